import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SeededRandom } from '#base/random.ts'
import type { ErrorName } from '#protocol/errors.ts'
import { baseOffset, batchesOf, lastOffset, leaderEpoch, sizeInBytes } from '#records/batch.ts'
import { BatchBuilder } from '#records/builder.ts'
import { recordsOf } from '#records/records.ts'
import { LeaderEpochs } from '#storage/leader-epochs.ts'
import { type FetchPosition, type FollowedLog, type FollowerEffect, PartitionFollower } from './follower.ts'
import type { IsrAnswer, IsrProposal } from './in-sync-replicas.ts'
import { type LeaderEffect, PartitionLeader } from './leader.ts'
import { ProducerStates } from './producers.ts'

const SEEDS = Number(process.env.TIDEMARK_SEEDS ?? 60)
const FIRST_SEED = Number(process.env.TIDEMARK_SEED ?? 1)
const STEPS = 3000
const REPLICAS = [1, 2, 3]
const LAG_MS = 3000

/** What the controller has decided, as of one moment. */
interface Decided {
  readonly leader: number
  readonly leaderEpoch: number
  readonly partitionEpoch: number
  readonly isr: readonly number[]
  /** Of those that are not fenced. */
  readonly brokerEpochs: ReadonlyMap<number, number>
}

interface Token {
  readonly id: string
}

class ModelLog implements FollowedLog {
  readonly startOffset = 0
  batches: Buffer[] = []
  epochs = new LeaderEpochs()
  /** Handed to the disk and not stored yet. */
  pending: Buffer[] = []

  get endOffset(): number {
    const last = this.batches.at(-1)
    return last === undefined ? 0 : lastOffset(last, 0) + 1
  }
  get nextOffset(): number {
    const last = this.pending.at(-1)
    return last === undefined ? this.endOffset : lastOffset(last, 0) + 1
  }
  get latestEpoch(): number | undefined {
    return this.epochs.latest
  }
  endOffsetForEpoch(epoch: number) {
    return this.epochs.endOffsetFor(epoch, this.nextOffset)
  }
  store(count: number): void {
    for (const batch of this.pending.splice(0, count)) {
      const epoch = leaderEpoch(batch, 0)
      if (epoch !== this.epochs.latest) this.epochs.assign(epoch, baseOffset(batch, 0))
      this.batches.push(batch)
    }
  }
  truncate(offset: number): void {
    while (this.batches.length > 0 && lastOffset(this.batches.at(-1) as Buffer, 0) >= offset) this.batches.pop()
    this.epochs.truncateFromEnd(this.endOffset)
  }
  /** What lies at which offset. */
  values(): Map<number, string> {
    const values = new Map<number, string>()
    for (const batch of this.batches) {
      for (const { offset, value } of recordsOf(batch, 0)) values.set(offset, String(value))
    }
    return values
  }
}

class Replica {
  readonly id: number
  log = new ModelLog()
  up = false
  brokerEpoch = -1
  image: Decided | undefined
  /** What was decided before its registration is of a life before: nothing of it is acted on. */
  registeredAt = 0
  leader: PartitionLeader<Token> | undefined
  follower: PartitionFollower | undefined
  leaderEpoch = -1
  highWatermark = 0
  /** As a checkpoint has it. */
  savedWatermark = 0
  cutting: number | undefined
  /** A fetch is under way. */
  asked: FetchPosition | undefined
  constructor(id: number) {
    this.id = id
  }
}

type Message =
  | {
      readonly kind: 'fetch'
      readonly from: number
      readonly to: number
      readonly epoch: number
      readonly position: FetchPosition
    }
  | { readonly kind: 'answer'; readonly to: number; readonly position: FetchPosition; readonly answer: Answer }
  | { readonly kind: 'alter'; readonly from: number; readonly epoch: number; readonly proposal: IsrProposal }
  | { readonly kind: 'altered'; readonly to: number; readonly proposal: IsrProposal; readonly answer: IsrAnswer }

type Answer =
  | {
      readonly kind: 'fetched'
      readonly highWatermark: number
      readonly startOffset: number
      readonly records: Buffer | null
    }
  | { readonly kind: 'diverged'; readonly epoch: number; readonly endOffset: number }
  | {
      readonly kind: 'refused'
      readonly error: 'NOT_LEADER_OR_FOLLOWER' | 'FENCED_LEADER_EPOCH' | 'UNKNOWN_LEADER_EPOCH' | 'OFFSET_OUT_OF_RANGE'
    }

/** One partition, three replicas and a controller; everything between them may be late, lost or twice. */
class Simulation {
  readonly random: SeededRandom
  readonly replicas = new Map(REPLICAS.map(id => [id, new Replica(id)]))
  readonly minInSync: number
  now = 0
  history: Decided[] = []
  messages: Message[] = []
  /** Offsets of what was acknowledged with acks=all, by value. */
  readonly acknowledged = new Map<string, { readonly offset: number; readonly epoch: number }>()
  #made = 0
  #nextBrokerEpoch = 100
  elections = 0
  truncations = 0

  constructor(seed: number) {
    this.random = new SeededRandom(seed)
    this.minInSync = this.random.pick([1, 2])
    const brokerEpochs = new Map(REPLICAS.map(id => [id, id]))
    this.history.push({ leader: 1, leaderEpoch: 0, partitionEpoch: 0, isr: [...REPLICAS], brokerEpochs })
    for (const [id, brokerEpoch] of brokerEpochs) Object.assign(this.at(id), { up: true, brokerEpoch })
  }

  get decided(): Decided {
    return this.history.at(-1) as Decided
  }
  at(id: number): Replica {
    return this.replicas.get(id) as Replica
  }

  // The controller

  decide(change: Partial<Decided>): void {
    const before = this.decided
    let { leader, leaderEpoch, isr } = { ...before, ...change }
    const brokerEpochs = change.brokerEpochs ?? before.brokerEpochs
    if (leader < 0 || !isr.includes(leader) || !brokerEpochs.has(leader)) {
      leader = REPLICAS.find(id => isr.includes(id) && brokerEpochs.has(id)) ?? -1
    }
    if (leader !== before.leader) {
      leaderEpoch++
      this.elections++
    }
    const same = leader === before.leader && isr.join() === before.isr.join()
    const partitionEpoch = same ? before.partitionEpoch : before.partitionEpoch + 1
    this.history.push({ leader, leaderEpoch, partitionEpoch, isr, brokerEpochs })
  }

  fence(id: number): void {
    const brokerEpochs = new Map(this.decided.brokerEpochs)
    brokerEpochs.delete(id)
    const others = this.decided.isr.filter(each => each !== id)
    this.decide({ brokerEpochs, isr: others.length > 0 ? others : this.decided.isr })
  }

  /** Registers anew: what it had before counts no more. */
  restart(id: number): void {
    const replica = this.at(id)
    replica.up = true
    replica.brokerEpoch = this.#nextBrokerEpoch++
    replica.highWatermark = Math.min(replica.savedWatermark, replica.log.endOffset)
    this.fence(id)
    const brokerEpochs = new Map(this.decided.brokerEpochs)
    brokerEpochs.set(id, replica.brokerEpoch)
    this.decide({ brokerEpochs })
    replica.registeredAt = this.history.length - 1
  }

  crash(id: number): void {
    const replica = this.at(id)
    const others = this.decided.isr.filter(each => each !== id)
    replica.log.store(this.random.between(0, replica.log.pending.length))
    replica.log.pending = []
    // Power fails: the tail goes. Only where others have it; who is the last one must not lose its disk.
    if (others.length > 0 && this.random.chance(0.5)) {
      this.fence(id)
      const kept = this.random.between(0, replica.log.batches.length)
      replica.log.truncate(kept === 0 ? 0 : lastOffset(replica.log.batches[kept - 1] as Buffer, 0) + 1)
    }
    // Epochs are read back from the batches.
    replica.log.epochs = new LeaderEpochs()
    for (const batch of replica.log.batches) replica.log.epochs.assign(leaderEpoch(batch, 0), baseOffset(batch, 0))
    Object.assign(replica, { up: false, image: undefined, leader: undefined, follower: undefined, leaderEpoch: -1 })
    Object.assign(replica, { cutting: undefined, asked: undefined })
  }

  alter({ from, epoch, proposal }: Message & { kind: 'alter' }): void {
    if (this.decided.brokerEpochs.get(from) !== epoch) return
    const error = this.#refusal(proposal)
    if (error === undefined) this.decide({ isr: proposal.isr.map(({ brokerId }) => brokerId) })
    const { isr, leaderEpoch, partitionEpoch } = this.decided
    const answer: IsrAnswer =
      error === undefined ? { kind: 'accepted', isr, leaderEpoch, partitionEpoch } : { kind: 'refused', error }
    this.messages.push({ kind: 'altered', to: from, proposal, answer })
  }

  #refusal({ leaderEpoch, partitionEpoch, isr }: IsrProposal): ErrorName | undefined {
    const { decided } = this
    if (leaderEpoch < decided.leaderEpoch) return 'FENCED_LEADER_EPOCH'
    if (partitionEpoch < decided.partitionEpoch) return 'INVALID_UPDATE_VERSION'
    const eligible = isr.every(({ brokerId, brokerEpoch }) => {
      const known = decided.brokerEpochs.get(brokerId)
      return known !== undefined && (brokerEpoch === -1 || brokerEpoch === known)
    })
    return eligible ? undefined : 'INELIGIBLE_REPLICA'
  }

  // The replicas

  #later(replica: Replica): number {
    const known = replica.image === undefined ? replica.registeredAt : this.history.indexOf(replica.image) + 1
    return known >= this.history.length ? known - 1 : this.random.between(known, this.history.length - 1)
  }

  /** Takes up a later state of the metadata. */
  learn(replica: Replica, index = this.#later(replica)): void {
    const image = this.history[index] as Decided
    if (
      !replica.up ||
      index < replica.registeredAt ||
      (replica.image !== undefined && this.history.indexOf(replica.image) >= index)
    )
      return
    replica.image = image
    if (replica.cutting === undefined) this.become(replica, image)
  }

  become(replica: Replica, image: Decided): void {
    const { id, log } = replica
    if (image.leader === id) {
      if (replica.leader !== undefined && replica.leaderEpoch === image.leaderEpoch) {
        const { isr, partitionEpoch } = image
        this.lead(replica, replica.leader.step({ kind: 'assigned', replicas: REPLICAS, isr, partitionEpoch }, this.now))
        return
      }
      if (replica.leader !== undefined) this.lead(replica, replica.leader.step({ kind: 'resigned' }, this.now))
      replica.follower = undefined
      replica.leaderEpoch = image.leaderEpoch
      if ((log.latestEpoch ?? -1) < image.leaderEpoch) log.epochs.assign(image.leaderEpoch, log.nextOffset)
      this.holdsAcknowledged(replica)
      replica.leader = new PartitionLeader<Token>({
        nodeId: id,
        epoch: image.leaderEpoch,
        endOffset: log.endOffset,
        nextOffset: log.nextOffset,
        highWatermark: Math.min(replica.highWatermark, log.endOffset),
        replicas: REPLICAS,
        isr: image.isr,
        partitionEpoch: image.partitionEpoch,
        minInSync: this.minInSync,
        producers: new ProducerStates(),
        lagTimeMaxMs: LAG_MS,
        eligibleEpoch: other => replica.image?.brokerEpochs.get(other),
        now: this.now,
      })
      this.moveWatermark(replica, replica.leader.highWatermark)
      return
    }
    if (replica.leaderEpoch === image.leaderEpoch && replica.leader === undefined) return
    if (replica.leader !== undefined) this.lead(replica, replica.leader.step({ kind: 'resigned' }, this.now))
    replica.leader = undefined
    replica.follower = undefined
    replica.leaderEpoch = image.leaderEpoch
    replica.asked = undefined
    if (image.leader < 0) return
    replica.follower = new PartitionFollower({
      epoch: image.leaderEpoch,
      log,
      highWatermark: replica.highWatermark,
      isBusy: log.pending.length > 0,
      backoffMs: 100,
    })
    this.follow(replica, replica.follower.begin())
  }

  lead(replica: Replica, effects: readonly LeaderEffect<Token>[]): void {
    for (const effect of effects) {
      if (effect.kind === 'append') replica.log.pending.push(Buffer.from(effect.buffer))
      else if (effect.kind === 'highWatermark') this.moveWatermark(replica, effect.offset)
      else if (effect.kind === 'alterIsr') {
        this.messages.push({ kind: 'alter', from: replica.id, epoch: replica.brokerEpoch, proposal: effect.proposal })
      } else if (effect.answer.error === undefined) {
        const { token, baseOffset: offset } = effect.answer
        this.acknowledged.set(token.id, { offset, epoch: replica.leaderEpoch })
      }
    }
  }

  follow(replica: Replica, effects: readonly FollowerEffect[]): void {
    for (const effect of effects) {
      if (effect.kind === 'append') {
        for (const at of batchesOf(effect.records, 0, effect.size)) {
          replica.log.pending.push(effect.records.subarray(at, at + sizeInBytes(effect.records, at)))
        }
      } else if (effect.kind === 'truncate') {
        this.truncations++
        replica.cutting = effect.offset
      } else if (effect.kind === 'highWatermark') this.moveWatermark(replica, effect.offset)
      else if (effect.kind === 'askOffsets') this.offsets(replica)
      else assert.fail(`not expected: ${JSON.stringify(effect)} of ${replica.id}`)
    }
  }

  offsets(replica: Replica): void {
    const leader = this.at(replica.image?.leader ?? -1)
    const range = leader?.leader === undefined ? undefined : { startOffset: 0, endOffset: leader.log.endOffset }
    this.followed(replica, { kind: 'offsets', range })
  }

  followed(replica: Replica, event: Parameters<PartitionFollower['step']>[0]): void {
    if (replica.follower !== undefined) this.follow(replica, replica.follower.step(event, this.now))
  }

  moveWatermark(replica: Replica, offset: number): void {
    if (offset <= replica.highWatermark) return
    replica.highWatermark = offset
  }

  /** The disk is done with some of what it was given. */
  store(replica: Replica): void {
    const { log } = replica
    if (!replica.up) return
    if (replica.cutting !== undefined) {
      assert.equal(log.pending.length, 0)
      assert.ok(replica.cutting >= replica.highWatermark, 'nothing that is committed is cut off')
      log.truncate(replica.cutting)
      replica.cutting = undefined
      if (replica.image !== undefined) this.become(replica, replica.image)
      this.followed(replica, { kind: 'settled', failed: false })
      return
    }
    if (log.pending.length === 0) return
    log.store(this.random.between(1, log.pending.length))
    const { leader } = replica
    if (leader !== undefined) this.lead(replica, leader.step({ kind: 'stored', endOffset: log.endOffset }, this.now))
    else if (log.pending.length === 0) this.followed(replica, { kind: 'settled', failed: false })
  }

  produce(replica: Replica): void {
    if (replica.leader === undefined) return
    const id = `${++this.#made}`
    const builder = new BatchBuilder({})
    for (let count = this.random.between(1, 3); count > 0; count--) builder.append(1000, null, Buffer.from(id))
    const buffer = builder.build()
    const event = { kind: 'produce', buffer, at: 0, size: buffer.length, acks: -1, token: { id } } as const
    this.lead(replica, replica.leader.step(event, this.now))
  }

  fetch(replica: Replica): void {
    const position = replica.follower?.position
    if (!replica.up || position === undefined || replica.asked === position) return
    replica.asked = position
    const message = {
      kind: 'fetch',
      from: replica.id,
      to: replica.image?.leader ?? -1,
      epoch: replica.brokerEpoch,
      position,
    } as const
    this.messages.push(message)
  }

  serve({ from, to, epoch, position }: Message & { kind: 'fetch' }): Answer | undefined {
    const replica = this.at(to)
    const { leader, log, image } = replica
    if (!replica.up) return undefined
    if (leader === undefined) return { kind: 'refused', error: 'NOT_LEADER_OR_FOLLOWER' }
    const known = image?.brokerEpochs.get(from)
    if (known !== undefined && known > epoch) return { kind: 'refused', error: 'NOT_LEADER_OR_FOLLOWER' }
    if (position.leaderEpoch < leader.epoch) return { kind: 'refused', error: 'FENCED_LEADER_EPOCH' }
    if (position.leaderEpoch > leader.epoch) return { kind: 'refused', error: 'UNKNOWN_LEADER_EPOCH' }
    if (position.lastFetchedEpoch >= 0) {
      const end = log.endOffsetForEpoch(position.lastFetchedEpoch)
      if (end === undefined) return { kind: 'refused', error: 'OFFSET_OUT_OF_RANGE' }
      if (end.leaderEpoch < position.lastFetchedEpoch || end.endOffset < position.offset) {
        return { kind: 'diverged', epoch: end.leaderEpoch, endOffset: end.endOffset }
      }
    }
    if (position.offset > log.endOffset) return { kind: 'refused', error: 'OFFSET_OUT_OF_RANGE' }
    const event = {
      kind: 'followerFetched',
      replica: from,
      offset: position.offset,
      startOffset: 0,
      brokerEpoch: epoch,
    } as const
    this.lead(replica, leader.step(event, this.now))
    const behind = log.batches.filter(batch => baseOffset(batch, 0) >= position.offset)
    const records = Buffer.concat(behind.slice(0, this.random.between(1, 3)))
    return { kind: 'fetched', highWatermark: replica.highWatermark, startOffset: 0, records }
  }

  deliver(isCalm: boolean): void {
    const index = isCalm ? 0 : this.random.below(this.messages.length)
    const message = this.messages[index]
    if (message === undefined) return
    // A request that was thought lost may come after all, more than once.
    if (isCalm || !this.random.chance(message.kind === 'fetch' ? 0.1 : 0)) this.messages.splice(index, 1)
    if (!isCalm && this.random.chance(0.1)) {
      this.messages = this.messages.filter(each => each !== message)
      const waiting = message.kind === 'fetch' ? message.from : message.kind === 'answer' ? message.to : undefined
      if (waiting !== undefined) this.at(waiting).asked = undefined
      // Nobody stays without an answer from the controller: the broker asks again.
      else if (message.kind !== 'fetch') this.messages.push(message)
      return
    }
    switch (message.kind) {
      case 'fetch': {
        const answer = this.serve(message)
        if (answer !== undefined) {
          this.messages.push({ kind: 'answer', to: message.from, position: message.position, answer })
        } else if (this.at(message.from).asked === message.position) this.at(message.from).asked = undefined
        break
      }
      case 'answer': {
        const replica = this.at(message.to)
        if (replica.asked === message.position) replica.asked = undefined
        this.followed(replica, { ...message.answer, position: message.position })
        break
      }
      case 'alter':
        this.alter(message)
        break
      case 'altered': {
        const { to, proposal, answer } = message
        const { leader } = this.at(to)
        if (leader?.epoch !== proposal.leaderEpoch) break
        this.lead(this.at(to), leader.step({ kind: 'isrAnswered', proposal, answer }, this.now))
        break
      }
    }
  }

  // What must hold

  /** One that begins to lead has all that was acknowledged in the epochs before. */
  holdsAcknowledged(replica: Replica): void {
    const values = replica.log.values()
    for (const [id, { offset, epoch }] of this.acknowledged) {
      if (epoch > replica.leaderEpoch) continue
      assert.equal(values.get(offset), id, `leader ${replica.id} has what was acknowledged at ${offset}`)
    }
  }

  agree(): void {
    const [first, ...others] = [...this.replicas.values()].filter(({ up }) => up)
    if (first === undefined) return
    for (const other of others) {
      const common = Math.min(first.highWatermark, other.highWatermark, first.log.endOffset, other.log.endOffset)
      for (let at = 0; at < first.log.batches.length; at++) {
        const mine = first.log.batches[at] as Buffer
        const theirs = other.log.batches[at]
        if (baseOffset(mine, 0) >= common) break
        assert.ok(theirs !== undefined && mine.equals(theirs), `${first.id} and ${other.id} agree below ${common}`)
      }
    }
  }

  step(): void {
    const { random } = this
    const replica = this.at(random.pick(REPLICAS))
    const what = random.fraction()
    if (what < 0.3) this.deliver(false)
    else if (what < 0.48) this.store(replica)
    else if (what < 0.66) this.fetch(replica)
    else if (what < 0.74) this.produce(random.chance(0.8) ? this.at(Math.max(1, this.decided.leader)) : replica)
    else if (what < 0.84) this.learn(replica)
    else if (what < 0.974) this.passTime(random.between(1, 10))
    else if (what < 0.976) this.passTime(random.between(1, 2 * LAG_MS))
    else if (what < 0.985) replica.savedWatermark = replica.highWatermark
    else if (what < 0.988 && replica.up) this.crash(replica.id)
    else if (what < 0.989) this.fence(replica.id)
    else if (!replica.up) this.restart(replica.id)
    else if (replica.up && !this.decided.brokerEpochs.has(replica.id)) {
      this.decide({ brokerEpochs: new Map(this.decided.brokerEpochs).set(replica.id, replica.brokerEpoch) })
    }
  }

  passTime(ms: number): void {
    this.now += ms
    for (const replica of this.replicas.values()) {
      const at = replica.leader?.wakeAt(this.now - ms) ?? replica.follower?.wakeAt()
      if (at === undefined || at > this.now) continue
      if (replica.leader !== undefined) this.lead(replica, replica.leader.step({ kind: 'tick' }, this.now))
      else this.followed(replica, { kind: 'tick' })
    }
  }

  run(): void {
    for (let step = 0; step < STEPS; step++) {
      this.step()
      if (step % 50 === 0) this.agree()
    }
    this.messages = this.messages.filter(({ kind }) => kind === 'alter' || kind === 'altered')
    for (const replica of this.replicas.values()) {
      replica.asked = undefined
      if (!replica.up) this.restart(replica.id)
      else if (!this.decided.brokerEpochs.has(replica.id)) {
        this.decide({ brokerEpochs: new Map(this.decided.brokerEpochs).set(replica.id, replica.brokerEpoch) })
      }
    }
    for (let round = 0; round < 300; round++) {
      for (const replica of this.replicas.values()) {
        this.learn(replica, this.history.length - 1)
        this.store(replica)
        this.fetch(replica)
        if (round === 200) this.produce(replica)
      }
      while (this.messages.length > 0) this.deliver(true)
      this.passTime(10)
    }
    const { isr, leader } = this.decided
    assert.deepEqual([...isr].sort(), REPLICAS, 'all are in sync in the end')
    this.holdsAcknowledged(this.at(leader))
    for (const { log, highWatermark } of this.replicas.values()) {
      assert.deepEqual(log.batches, this.at(leader).log.batches, 'all logs are the same in the end')
      assert.equal(highWatermark, this.at(leader).log.endOffset, 'and committed')
    }
    this.agree()
  }
}

test('one partition: nothing acknowledged is lost, logs agree below the watermark, and all is well in the end', () => {
  let [elections, truncations, acknowledged] = [0, 0, 0]
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++) {
    const simulation = new Simulation(seed)
    try {
      simulation.run()
    } catch (error) {
      throw new Error(`TIDEMARK_SEED=${seed}: ${(error as Error).message}`, { cause: error })
    }
    elections += simulation.elections
    truncations += simulation.truncations
    acknowledged += simulation.acknowledged.size
  }
  // It must come to what it is about.
  const counts = `${elections} elections, ${truncations} truncations, ${acknowledged} acknowledged`
  if (SEEDS >= 20) assert.ok(elections > SEEDS && truncations > SEEDS / 4 && acknowledged > 20 * SEEDS, counts)
})
