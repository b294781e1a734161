import assert from 'node:assert/strict'
import { SeededRandom } from '#base/random.ts'
import { baseOffset, batchesOf, sizeInBytes } from '#records/batch.ts'
import { BatchBuilder } from '#records/builder.ts'
import { divergence } from './divergence.ts'
import { type FetchPosition, type FollowerEffect, PartitionFollower } from './follower.ts'
import type { IsrAnswer, IsrProposal } from './in-sync-replicas.ts'
import { type LeaderEffect, PartitionLeader } from './leader.ts'
import { ProducerStates } from './producers.ts'
import type { Replica, Token } from './replica-harness.test.ts'

const FIRST_SEED = Number(process.env.TIDEMARK_SEED ?? 1)
const STEPS = Number(process.env.TIDEMARK_STEPS ?? 3000)
export const LAG_MS = 3000

/** What the controller has decided of the partition. */
export interface Assigned {
  readonly leader: number
  readonly leaderEpoch: number
  readonly partitionEpoch: number
  readonly replicas: readonly number[]
  readonly isr: readonly number[]
}

export type Message =
  | {
      readonly kind: 'fetch'
      readonly from: number
      readonly to: number
      readonly epoch: number
      readonly position: FetchPosition
    }
  | { readonly kind: 'answer'; readonly to: number; readonly position: FetchPosition; readonly answer: FetchAnswer }
  | { readonly kind: 'alter'; readonly from: number; readonly epoch: number; readonly proposal: IsrProposal }
  | { readonly kind: 'assign'; readonly from: number; readonly epoch: number; readonly directory: string }
  | { readonly kind: 'altered'; readonly to: number; readonly proposal: IsrProposal; readonly answer: IsrAnswer }

type FetchAnswer =
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

export type ControllerMessage = Message & { readonly kind: 'alter' | 'assign' | 'altered' }

/**
 * One partition and its replicas, which a random history takes apart and heals; everything between them, and between them
 * and the controller, may be late, lost or twice. Which controller that is, and what else befalls them, is the test's.
 */
export abstract class PartitionSimulation<R extends Replica> {
  readonly random: SeededRandom
  abstract readonly replicas: ReadonlyMap<number, R>
  /** So many rounds without trouble and all must be well. */
  protected abstract readonly calmRounds: number
  now = 0
  messages: Message[] = []
  readonly trace: string[] = []
  /** Offsets of what was acknowledged with acks=all, by value. */
  readonly acknowledged = new Map<string, { readonly offset: number; readonly epoch: number }>()
  #made = 0
  elections = 0
  truncations = 0

  constructor(seed: number) {
    this.random = new SeededRandom(seed)
  }

  note(text: string): void {
    this.trace.push(text)
    if (this.trace.length > 4000) this.trace.shift()
  }

  at(id: number): R {
    return this.replicas.get(id) as R
  }

  // What the controller and its metadata are

  /** The latest decision. */
  abstract get decided(): Assigned
  /** Of a broker, as this replica knows it. */
  protected abstract knownEpoch(replica: R, brokerId: number): number | undefined
  /** The same, unless that one may not be in sync. */
  protected abstract eligibleEpoch(replica: R, brokerId: number): number | undefined
  protected abstract minInSync(replica: R): number
  /** Takes the part that it knows it has, once nothing is being cut. */
  protected abstract takePart(replica: R): void
  /** The controller is asked, and answers by a message. */
  protected abstract hear(message: Message & { readonly kind: 'alter' | 'assign' }): void
  /** A request to the controller, or its answer, was lost. */
  protected abstract unheard(message: ControllerMessage): void
  protected abstract comesTwice(message: Message): boolean
  /** Something happens. */
  protected abstract step(): void
  /** Whatever it has lost is over. */
  protected abstract heal(replica: R): void
  /** Learns all that is decided. */
  protected abstract catchUp(replica: R): void

  // The replicas

  /** A broker asks for as long as it matters. */
  again(from: number, epoch: number, proposal: IsrProposal): void {
    const replica = this.at(from)
    if (!replica.up || replica.brokerEpoch !== epoch || replica.leader?.epoch !== proposal.leaderEpoch) return
    if (replica.leader.replicas.pending !== proposal) return
    this.messages.push({ kind: 'alter', from, epoch, proposal })
  }

  become(replica: R, image: Assigned): void {
    const { id, log } = replica
    const { replicas } = image
    if (image.leader === id) {
      if (replica.leader !== undefined && replica.leaderEpoch === image.leaderEpoch) {
        const { isr, partitionEpoch } = image
        this.lead(replica, replica.leader.step({ kind: 'assigned', replicas, isr, partitionEpoch }, this.now))
        return
      }
      if (replica.leader !== undefined) this.lead(replica, replica.leader.step({ kind: 'resigned' }, this.now))
      replica.follower = undefined
      const known =
        replica.leaderEpoch === image.leaderEpoch
          ? replica.ledBefore?.known(image.isr, image.partitionEpoch)
          : undefined
      replica.ledBefore = undefined
      replica.leaderEpoch = image.leaderEpoch
      replica.leaderId = id
      if ((log.latestEpoch ?? -1) < image.leaderEpoch) log.epochs.assign(image.leaderEpoch, log.nextOffset)
      this.note(`${id} leads ${image.leaderEpoch} end ${log.endOffset} hw ${replica.highWatermark}`)
      this.holdsAcknowledged(replica)
      replica.leader = new PartitionLeader<Token>({
        nodeId: id,
        epoch: image.leaderEpoch,
        endOffset: log.endOffset,
        nextOffset: log.nextOffset,
        highWatermark: Math.min(replica.highWatermark, log.endOffset),
        replicas,
        minInSync: this.minInSync(replica),
        producers: new ProducerStates(),
        lagTimeMaxMs: LAG_MS,
        eligibleEpoch: other => this.eligibleEpoch(replica, other),
        now: this.now,
        ...(known ?? { isr: image.isr, partitionEpoch: image.partitionEpoch }),
      })
      this.moveWatermark(replica, replica.leader.highWatermark)
      const { pending } = replica.leader.replicas
      if (pending !== undefined) this.again(id, replica.brokerEpoch, pending)
      return
    }
    if (replica.leaderEpoch === image.leaderEpoch && replica.leaderId === image.leader) return
    const led = replica.leader
    if (led !== undefined) this.lead(replica, led.step({ kind: 'resigned' }, this.now))
    if (image.leaderEpoch !== replica.leaderEpoch) replica.ledBefore = undefined
    else if (led !== undefined) replica.ledBefore = led.replicas
    replica.leader = undefined
    replica.follower = undefined
    replica.leaderEpoch = image.leaderEpoch
    replica.leaderId = image.leader
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

  lead(replica: R, effects: readonly LeaderEffect<Token>[]): void {
    for (const effect of effects) {
      if (effect.kind === 'append') replica.log.pending.push(Buffer.from(effect.buffer))
      else if (effect.kind === 'highWatermark') this.moveWatermark(replica, effect.offset)
      else if (effect.kind === 'alterIsr') {
        this.messages.push({ kind: 'alter', from: replica.id, epoch: replica.brokerEpoch, proposal: effect.proposal })
      } else if (effect.answer.error === undefined) {
        const { token, baseOffset: offset } = effect.answer
        this.acknowledged.set(token.id, { offset, epoch: replica.leaderEpoch })
        this.note(`${replica.id} acks ${token.id} at ${offset}`)
      }
    }
  }

  follow(replica: R, effects: readonly FollowerEffect[]): void {
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

  offsets(replica: R): void {
    const leader = this.replicas.get(replica.leaderId)
    const range = leader?.leader === undefined ? undefined : { startOffset: 0, endOffset: leader.log.endOffset }
    this.followed(replica, { kind: 'offsets', range })
  }

  followed(replica: R, event: Parameters<PartitionFollower['step']>[0]): void {
    if (replica.follower !== undefined) this.follow(replica, replica.follower.step(event, this.now))
  }

  moveWatermark(replica: R, offset: number): void {
    if (offset <= replica.highWatermark) return
    replica.highWatermark = offset
  }

  /** The disk is done with some of what it was given. */
  store(replica: R): void {
    const { log } = replica
    if (!replica.up) return
    if (replica.cutting !== undefined) {
      assert.equal(log.pending.length, 0)
      assert.ok(replica.cutting >= replica.highWatermark, 'nothing that is committed is cut off')
      log.truncate(replica.cutting)
      replica.cutting = undefined
      this.takePart(replica)
      this.followed(replica, { kind: 'settled', failed: false })
      return
    }
    if (log.pending.length === 0) return
    log.store(this.random.between(1, log.pending.length))
    const { leader } = replica
    if (leader !== undefined) this.lead(replica, leader.step({ kind: 'stored', endOffset: log.endOffset }, this.now))
    else if (log.pending.length === 0) this.followed(replica, { kind: 'settled', failed: false })
  }

  produce(replica: R): void {
    if (replica.leader === undefined) return
    const id = `${++this.#made}`
    const builder = new BatchBuilder({})
    for (let count = this.random.between(1, 3); count > 0; count--) builder.append(1000, null, Buffer.from(id))
    const buffer = builder.build()
    const event = { kind: 'produce', buffer, at: 0, size: buffer.length, acks: -1, token: { id } } as const
    this.lead(replica, replica.leader.step(event, this.now))
  }

  fetch(replica: R): void {
    const position = replica.follower?.position
    if (!replica.up || position === undefined || replica.asked === position) return
    if (!this.replicas.has(replica.leaderId)) return
    replica.asked = position
    const message = {
      kind: 'fetch',
      from: replica.id,
      to: replica.leaderId,
      epoch: replica.brokerEpoch,
      position,
    } as const
    this.messages.push(message)
  }

  serve({ from, to, epoch, position }: Message & { kind: 'fetch' }): FetchAnswer | undefined {
    const replica = this.at(to)
    const { leader, log } = replica
    if (!replica.up) return undefined
    if (leader === undefined) return { kind: 'refused', error: 'NOT_LEADER_OR_FOLLOWER' }
    const known = this.knownEpoch(replica, from)
    if (known !== undefined && known > epoch) return { kind: 'refused', error: 'NOT_LEADER_OR_FOLLOWER' }
    if (position.leaderEpoch < leader.epoch) return { kind: 'refused', error: 'FENCED_LEADER_EPOCH' }
    if (position.leaderEpoch > leader.epoch) return { kind: 'refused', error: 'UNKNOWN_LEADER_EPOCH' }
    const diverging = divergence(log, position.offset, position.lastFetchedEpoch)
    if (diverging === 'unknown') return { kind: 'refused', error: 'OFFSET_OUT_OF_RANGE' }
    if (diverging !== undefined) return { kind: 'diverged', ...diverging }
    if (!leader.replicas.hosts(from)) return { kind: 'refused', error: 'UNKNOWN_LEADER_EPOCH' }
    if (position.offset > log.endOffset) return { kind: 'refused', error: 'OFFSET_OUT_OF_RANGE' }
    const event = {
      kind: 'followerFetched',
      replica: from,
      offset: position.offset,
      startOffset: 0,
      leaderStart: 0,
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
    if (isCalm || !this.random.chance(this.comesTwice(message) ? 0.1 : 0)) this.messages.splice(index, 1)
    if (!isCalm && this.random.chance(0.1)) {
      this.messages = this.messages.filter(each => each !== message)
      const waiting = message.kind === 'fetch' ? message.from : message.kind === 'answer' ? message.to : undefined
      if (waiting !== undefined) this.at(waiting).asked = undefined
      else this.unheard(message as ControllerMessage)
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
      case 'assign':
        this.hear(message)
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
  holdsAcknowledged(replica: R): void {
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
    this.note('--- heals')
    this.messages = this.messages.filter(({ kind }) => kind === 'alter' || kind === 'altered' || kind === 'assign')
    for (const replica of this.replicas.values()) {
      replica.asked = undefined
      this.heal(replica)
    }
    for (let round = 0; round < this.calmRounds; round++) {
      for (const replica of this.replicas.values()) {
        this.catchUp(replica)
        this.store(replica)
        this.fetch(replica)
        if (round === this.calmRounds - 100) this.produce(replica)
      }
      while (this.messages.length > 0) this.deliver(true)
      this.passTime(10)
    }
    const { isr, leader, replicas } = this.decided
    assert.deepEqual([...isr].sort(), [...replicas].sort(), 'all are in sync in the end')
    this.holdsAcknowledged(this.at(leader))
    for (const id of replicas) {
      const { log, highWatermark } = this.at(id)
      assert.deepEqual(log.batches, this.at(leader).log.batches, 'all logs are the same in the end')
      assert.equal(highWatermark, this.at(leader).log.endOffset, 'and committed')
    }
    this.agree()
  }
}

/** As many histories, unless TIDEMARK_SEEDS says how many. TIDEMARK_TRACE shows the one that fails. */
export function runHistories(count: number, begin: (seed: number) => PartitionSimulation<Replica>): void {
  const seeds = Number(process.env.TIDEMARK_SEEDS ?? count)
  let [elections, truncations, acknowledged] = [0, 0, 0]
  for (let seed = FIRST_SEED; seed < FIRST_SEED + seeds; seed++) {
    const simulation = begin(seed)
    try {
      simulation.run()
    } catch (error) {
      if (process.env.TIDEMARK_TRACE) console.error(simulation.trace.join('\n'))
      throw new Error(`TIDEMARK_SEED=${seed}: ${(error as Error).message}`, { cause: error })
    }
    elections += simulation.elections
    truncations += simulation.truncations
    acknowledged += simulation.acknowledged.size
  }
  // It must come to what it is about.
  const counts = `${elections} elections, ${truncations} truncations, ${acknowledged} acknowledged`
  if (seeds >= 20) assert.ok(elections > seeds && truncations > seeds / 4 && acknowledged > 20 * seeds, counts)
}
