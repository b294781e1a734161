import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SeededRandom } from '#base/random.ts'
import { errorOf } from '#protocol/errors.ts'
import type { AlterPartitionResponse } from '#protocol/messages/alter-partition.ts'
import type { MessageOf } from '#protocol/schema.ts'
import { baseOffset, batchesOf, lastOffset, leaderEpoch, sizeInBytes } from '#records/batch.ts'
import { BatchBuilder } from '#records/builder.ts'
import { recordsOf } from '#records/records.ts'
import { LeaderEpochs } from '#storage/leader-epochs.ts'
import { ControllerHarness, testUuid } from '../metadata/controller-harness.test.ts'
import { MetadataImage } from '../metadata/image.ts'
import { isActive } from '../metadata/node-image.ts'
import { LOST_DIRECTORY, type PartitionImage } from '../metadata/partition-image.ts'
import { decodeMetadataRecord } from '../metadata/record.ts'
import { divergence } from './divergence.ts'
import { type FetchPosition, type FollowedLog, type FollowerEffect, PartitionFollower } from './follower.ts'
import type { IsrAnswer, IsrProposal } from './in-sync-replicas.ts'
import { type LeaderEffect, PartitionLeader } from './leader.ts'
import { ProducerStates } from './producers.ts'

const SEEDS = Number(process.env.TIDEMARK_SEEDS ?? 25)
const FIRST_SEED = Number(process.env.TIDEMARK_SEED ?? 1)
const STEPS = Number(process.env.TIDEMARK_STEPS ?? 3000)
const BROKERS = [1, 2, 3, 4]
const LAG_MS = 3000
const NAME = 't'
const TOPIC = 2
const BROKER = 4
const MIN = 'min.insync.replicas'
const ELR = 'eligible.leader.replicas.version'

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
  synced = 0
  up = false
  brokerEpoch = -1
  /** Named at the next registration; -1 where something may be lost. */
  previousEpoch = -1
  directory: string
  incarnations = 0
  image = new MetadataImage()
  /** Batches of the metadata log that it has read. */
  read = 0
  leader: PartitionLeader<Token> | undefined
  ledBefore: PartitionLeader<Token>['replicas'] | undefined
  follower: PartitionFollower | undefined
  leaderId = -1
  leaderEpoch = -1
  highWatermark = 0
  /** As a checkpoint has it. */
  savedWatermark = 0
  cutting: number | undefined
  /** Its disk is full: the cluster is told that it is lost. */
  handedOver = false
  /** A fetch is under way. */
  asked: FetchPosition | undefined
  readonly ownMin: number
  constructor(id: number, ownMin: number) {
    this.id = id
    this.ownMin = ownMin
    this.directory = testUuid(1000 + id)
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
  | { readonly kind: 'assign'; readonly from: number; readonly epoch: number; readonly directory: string }
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

/** One partition, its replicas, and the controller; everything between them may be late, lost or twice. */
class Simulation {
  readonly random: SeededRandom
  readonly replicas: Map<number, Replica>
  readonly harness: ControllerHarness
  /** Where each batch of the metadata log ends. */
  readonly ends: number[] = []
  readonly flushes: boolean
  now = 0
  messages: Message[] = []
  trace: string[] = []
  readonly acknowledged = new Map<string, { readonly offset: number; readonly epoch: number }>()
  #made = 0
  elections = 0
  truncations = 0
  lost = 0

  constructor(seed: number) {
    this.random = new SeededRandom(seed)
    this.flushes = this.random.chance(0.5)
    this.harness = new ControllerHarness(new Map([[MIN, String(this.random.pick([1, 2]))]]))
    this.replicas = new Map(BROKERS.map(id => [id, new Replica(id, this.random.pick([1, 2]))]))
    for (const id of BROKERS) this.restart(id)
    for (const id of BROKERS) {
      this.learn(this.at(id), this.ends.length)
      this.unfence(id)
    }
    const assignments = [{ partitionIndex: 0, brokerIds: [1, 2, 3] }]
    this.ask('create-topics', { topics: [{ name: NAME, numPartitions: -1, replicationFactor: -1, assignments }] })
  }

  note(text: string): void {
    this.trace.push(text)
    if (this.trace.length > 4000) this.trace.shift()
  }

  get topicId(): string {
    return this.harness.machine.image.topicByName(NAME)?.id ?? ''
  }
  get decided(): PartitionImage {
    return this.harness.machine.image.partition(this.topicId, 0) as PartitionImage
  }
  at(id: number): Replica {
    return this.replicas.get(id) as Replica
  }
  isActive(id: number): boolean {
    return isActive(this.harness.machine.image.broker(id))
  }

  // The controller

  controller<T>(act: () => T): T {
    const before = this.topicId === '' ? undefined : this.decided
    const result = act()
    this.harness.pass(0)
    if (this.harness.log.length > (this.ends.at(-1) ?? 0)) this.ends.push(this.harness.log.length)
    const after = this.topicId === '' ? undefined : this.decided
    if (after !== before && after !== undefined) {
      this.note(`  = ${JSON.stringify({ ...after, directories: undefined })}`)
      if (after.leader !== before?.leader) this.elections++
    }
    return result
  }

  ask(kind: string, input: Record<string, unknown>): Record<string, unknown> {
    return this.controller(() => this.harness.ask(kind, input)).response
  }

  fence(id: number): void {
    const broker = this.harness.machine.image.broker(id)
    if (broker === undefined) return
    this.note(`fence ${id}`)
    this.controller(() => this.harness.do({ kind: 'broker-died', brokerId: id, brokerEpoch: broker.epoch }))
  }

  unfence(id: number): void {
    const replica = this.at(id)
    if (!replica.up || !this.knowsItself(replica) || this.harness.epochOf(id) !== replica.brokerEpoch) return
    this.controller(() => this.harness.heartbeat(id))
  }

  knowsItself(replica: Replica): boolean {
    return (replica.image.broker(replica.id)?.epoch ?? -1) >= replica.brokerEpoch
  }

  /** Registers anew. */
  restart(id: number): void {
    const replica = this.at(id)
    this.fence(id)
    replica.up = true
    replica.incarnations++
    const more = {
      previousBrokerEpoch: replica.previousEpoch,
      incarnationId: testUuid(id * 10000 + replica.incarnations),
      logDirs: [replica.directory],
    }
    this.note(
      `restart ${id} previous ${replica.previousEpoch} (of ${this.harness.epochOf(id)}) end ${replica.log.endOffset}`,
    )
    const { response } = this.controller(() => this.harness.register(id, more))
    assert.equal(response.errorCode, 0)
    replica.brokerEpoch = this.harness.epochOf(id)
    replica.highWatermark = Math.min(replica.savedWatermark, replica.log.endOffset)
    replica.savedWatermark = replica.highWatermark
    replica.handedOver = false
  }

  /** Nothing is under-replicated: a machine or a disk may be lost. */
  get isWell(): boolean {
    const { isr, replicas, addingReplicas, removingReplicas, leader } = this.decided
    const minimum = this.minimum(this.harness.machine.image, 2)
    return (
      minimum >= 2 &&
      // Without them it cannot be told from others that the last one in sync came back with nothing.
      this.harness.machine.image.feature(ELR) > 0 &&
      leader >= 0 &&
      addingReplicas.length + removingReplicas.length === 0 &&
      replicas.length >= 2 &&
      isr.length === replicas.length &&
      BROKERS.every(id => this.at(id).up && this.isActive(id))
    )
  }

  minimum(image: MetadataImage, own: number): number {
    const text = image.config(TOPIC, NAME).get(MIN) ?? image.config(BROKER, '').get(MIN)
    return text === undefined ? own : Number(text)
  }

  /** Stops, one way or another. */
  crash(id: number): void {
    const replica = this.at(id)
    const { log } = replica
    const what = this.random.pick(['stop', 'kill', 'kill', 'power', 'power', 'disk'])
    if (what === 'power' && !this.flushes && !this.isWell) return
    if (what === 'disk' && !this.isWell) return
    log.store(
      what === 'stop' && replica.leader === undefined ? log.pending.length : this.random.between(0, log.pending.length),
    )
    log.pending = []
    this.note(`crash ${id} ${what} end ${log.endOffset}`)
    replica.previousEpoch = what === 'power' || what === 'disk' ? -1 : replica.brokerEpoch
    if (what === 'power' && !this.flushes) {
      this.lost++
      log.truncate(this.random.between(Math.min(replica.synced, log.endOffset), log.endOffset))
    }
    if (what === 'disk') {
      this.lost++
      replica.log = new ModelLog()
      replica.synced = 0
      replica.savedWatermark = 0
      replica.directory = testUuid(20000 + id * 1000 + replica.incarnations)
    }
    if (what === 'stop') {
      this.controller(() => this.harness.heartbeat(id, { wantShutDown: true }))
      replica.savedWatermark = Math.min(replica.highWatermark, log.endOffset)
      replica.synced = log.endOffset
    }
    // Epochs are read back from the batches.
    replica.log.epochs = new LeaderEpochs()
    for (const batch of replica.log.batches) replica.log.epochs.assign(leaderEpoch(batch, 0), baseOffset(batch, 0))
    Object.assign(replica, { up: false, image: new MetadataImage(), read: 0, leader: undefined, follower: undefined })
    Object.assign(replica, {
      cutting: undefined,
      asked: undefined,
      leaderEpoch: -1,
      leaderId: -1,
      ledBefore: undefined,
    })
  }

  alter({ from, epoch, proposal }: Message & { kind: 'alter' }): void {
    const { leaderEpoch, partitionEpoch, isr } = proposal
    const newIsrWithEpochs = isr.map(({ brokerId, brokerEpoch }) => ({
      brokerId,
      brokerEpoch: brokerId === from ? epoch : brokerEpoch,
    }))
    const partitions = [{ partitionIndex: 0, leaderEpoch, partitionEpoch, newIsrWithEpochs, leaderRecoveryState: 0 }]
    this.note(`alter ${from} ${JSON.stringify(proposal)}`)
    const response = this.ask('alter-partition', {
      brokerId: from,
      brokerEpoch: epoch,
      topics: [{ topicId: this.topicId, partitions }],
    }) as MessageOf<typeof AlterPartitionResponse>
    if (response.errorCode !== 0) {
      this.again(from, epoch, proposal)
      return
    }
    const one = response.topics[0]?.partitions[0]
    assert.ok(one !== undefined)
    const error = errorOf(one.errorCode).name
    const answer: IsrAnswer =
      error === 'NONE'
        ? { kind: 'accepted', isr: one.isr, leaderEpoch: one.leaderEpoch, partitionEpoch: one.partitionEpoch }
        : { kind: 'refused', error }
    if (error === 'NOT_CONTROLLER') this.again(from, epoch, proposal)
    else this.messages.push({ kind: 'altered', to: from, proposal, answer })
  }

  /** A broker asks for as long as it matters. */
  again(from: number, epoch: number, proposal: IsrProposal): void {
    const replica = this.at(from)
    if (!replica.up || replica.brokerEpoch !== epoch || replica.leader?.epoch !== proposal.leaderEpoch) return
    if (replica.leader.replicas.pending !== proposal) return
    this.messages.push({ kind: 'alter', from, epoch, proposal })
  }

  assign({ from, epoch, directory }: Message & { kind: 'assign' }): void {
    const replica = this.at(from)
    if (!replica.up || replica.brokerEpoch !== epoch) return
    // A later word takes the place of an earlier one.
    if ((directory === LOST_DIRECTORY) !== replica.handedOver) return
    this.note(`assign ${from} ${directory}`)
    const partitions = [{ partitionIndex: 0 }]
    const directories = [{ id: directory, topics: [{ topicId: this.topicId, partitions }] }]
    this.ask('assign-replicas-to-dirs', { brokerId: from, brokerEpoch: epoch, directories })
  }

  /** What an operator does. */
  operate(): void {
    const { random } = this
    const what = random.below(9)
    // Who lowers it while one is gone that nobody misses yet says that this one's word is enough.
    if (what < 4 && !this.decided.isr.every(id => this.at(id).up)) return
    if (what < 2) {
      const value = random.pick([1, 2, 2, 3, undefined])
      const config = {
        name: MIN,
        configOperation: value === undefined ? 1 : 0,
        value: value === undefined ? null : String(value),
      }
      this.note(`min of topic ${value}`)
      this.ask('incremental-alter-configs', {
        resources: [{ resourceType: TOPIC, resourceName: NAME, configs: [config] }],
      })
    } else if (what === 2) {
      const value = random.pick([1, 2, 3, undefined])
      const config = {
        name: MIN,
        configOperation: value === undefined ? 1 : 0,
        value: value === undefined ? null : String(value),
      }
      this.note(`min of all ${value}`)
      this.ask('incremental-alter-configs', {
        resources: [{ resourceType: BROKER, resourceName: '', configs: [config] }],
      })
    } else if (what === 3) {
      const on = this.harness.machine.image.feature(ELR) > 0
      this.note(`elr ${!on}`)
      this.ask('update-features', {
        featureUpdates: [{ feature: ELR, maxVersionLevel: on ? 0 : 1, upgradeType: on ? 2 : 1 }],
      })
    } else if (what < 6) {
      // It ends at once where those that are to stay are in sync.
      if (!this.decided.isr.every(id => this.at(id).up)) return
      const count = random.pick([1, 2, 3, 3, 3])
      const shuffled = [...BROKERS].map(id => [random.fraction(), id] as const).sort((a, b) => a[0] - b[0])
      const replicas = what === 5 && random.chance(0.3) ? null : shuffled.slice(0, count).map(([, id]) => id)
      this.note(`reassign ${JSON.stringify(replicas)}`)
      this.ask('alter-partition-reassignments', {
        topics: [{ name: NAME, partitions: [{ partitionIndex: 0, replicas }] }],
      })
    } else if (what === 6) {
      this.note('elect preferred')
      this.ask('elect-leaders', { electionType: 0, topicPartitions: [{ topic: NAME, partitions: [0] }] })
    } else if (what === 7) {
      const id = random.pick(BROKERS)
      this.controller(() =>
        this.harness.do({
          kind: 'broker-reached',
          brokerId: id,
          brokerEpoch: this.harness.epochOf(id),
          isReached: random.chance(0.7),
        }),
      )
    } else this.controller(() => this.harness.failOver())
  }

  handOver(replica: Replica): void {
    if (!replica.up || !this.knowsItself(replica)) return
    if (!replica.handedOver) {
      // Within what is promised: nobody else fails while one is gone that nobody misses yet.
      if (!this.decided.isr.every(id => this.at(id).up)) return
      const { leader } = replica
      const canLeave = leader !== undefined ? leader.replicas.isr.length > 1 : replica.leaderId >= 0
      if (!canLeave) return
    }
    replica.handedOver = !replica.handedOver
    const directory = replica.handedOver ? LOST_DIRECTORY : replica.directory
    this.messages.push({ kind: 'assign', from: replica.id, epoch: replica.brokerEpoch, directory })
    // It takes part again at once; it ceases to with what the metadata say next.
    if (!replica.handedOver) this.takePart(replica)
  }

  // The replicas

  /** Takes up a later state of the metadata. */
  learn(replica: Replica, until = this.random.between(replica.read, this.ends.length)): void {
    if (!replica.up || until <= replica.read) return
    const before = replica.image.partition(this.topicId, 0)
    const from = replica.read === 0 ? 0 : (this.ends[replica.read - 1] as number)
    for (const { offset, epoch, value } of this.harness.log.slice(from, this.ends[until - 1] as number)) {
      replica.image.apply(decodeMetadataRecord(value), offset, epoch)
    }
    replica.read = until
    if (!this.knowsItself(replica)) return
    if (replica.leader !== undefined) {
      const minInSync = this.minimum(replica.image, replica.ownMin)
      this.lead(replica, replica.leader.step({ kind: 'minInSync', minInSync }, this.now))
    }
    if (replica.image.partition(this.topicId, 0) !== before || replica.leaderEpoch < 0) this.takePart(replica)
    if (replica.leader !== undefined) this.lead(replica, replica.leader.step({ kind: 'brokersChanged' }, this.now))
  }

  takePart(replica: Replica): void {
    if (replica.cutting !== undefined || !replica.up || !this.knowsItself(replica)) return
    const wanted = replica.image.partition(this.topicId, 0)
    if (wanted === undefined) return
    if (!wanted.replicas.includes(replica.id)) {
      if (replica.leader !== undefined) this.lead(replica, replica.leader.step({ kind: 'resigned' }, this.now))
      if (replica.log.nextOffset > 0) this.note(`${replica.id} removes its log`)
      Object.assign(replica, {
        leader: undefined,
        follower: undefined,
        leaderEpoch: -1,
        leaderId: -1,
        asked: undefined,
      })
      Object.assign(replica, {
        log: new ModelLog(),
        synced: 0,
        highWatermark: 0,
        savedWatermark: 0,
        ledBefore: undefined,
      })
      replica.handedOver = false
      return
    }
    const directory = wanted.directories[wanted.replicas.indexOf(replica.id)]
    this.become(replica, replica.handedOver ? { ...wanted, leader: -1 } : wanted)
    if (!replica.handedOver && directory !== replica.directory) {
      const isAsItWas = directory === LOST_DIRECTORY && wanted.eligibleLeaderReplicas.includes(replica.id)
      const isEmpty = wanted.leader < 0 && wanted.replicas.length > 1 && replica.log.endOffset === 0 && !isAsItWas
      if (!isEmpty && !this.messages.some(each => each.kind === 'assign' && each.from === replica.id)) {
        this.messages.push({
          kind: 'assign',
          from: replica.id,
          epoch: replica.brokerEpoch,
          directory: replica.directory,
        })
      }
    }
  }

  become(replica: Replica, image: PartitionImage): void {
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
        minInSync: this.minimum(replica.image, replica.ownMin),
        producers: new ProducerStates(),
        lagTimeMaxMs: LAG_MS,
        eligibleEpoch: other => {
          const broker = replica.image.broker(other)
          return isActive(broker) ? broker?.epoch : undefined
        },
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

  lead(replica: Replica, effects: readonly LeaderEffect<Token>[]): void {
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
    const leader = this.replicas.get(replica.leaderId)
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

  serve({ from, to, epoch, position }: Message & { kind: 'fetch' }): Answer | undefined {
    const replica = this.at(to)
    const { leader, log, image } = replica
    if (!replica.up) return undefined
    if (leader === undefined) return { kind: 'refused', error: 'NOT_LEADER_OR_FOLLOWER' }
    const known = image.broker(from)?.epoch
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
    if (isCalm || !this.random.chance(message.kind === 'fetch' || message.kind === 'alter' ? 0.1 : 0))
      this.messages.splice(index, 1)
    if (!isCalm && this.random.chance(0.1)) {
      this.messages = this.messages.filter(each => each !== message)
      const waiting = message.kind === 'fetch' ? message.from : message.kind === 'answer' ? message.to : undefined
      if (waiting !== undefined) this.at(waiting).asked = undefined
      // A broker that has no answer asks again, whatever became of what it asked.
      else if (message.kind === 'alter') this.again(message.from, message.epoch, message.proposal)
      else if (message.kind === 'altered') this.again(message.to, this.at(message.to).brokerEpoch, message.proposal)
      else this.messages.push(message)
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
      case 'assign':
        this.assign(message)
        break
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
    const replica = this.at(random.pick(BROKERS))
    const what = random.fraction()
    if (what < 0.3) this.deliver(false)
    else if (what < 0.45) this.store(replica)
    else if (what < 0.61) this.fetch(replica)
    else if (what < 0.69) this.produce(random.chance(0.8) ? this.at(Math.max(1, this.decided.leader)) : replica)
    else if (what < 0.83) this.learn(replica)
    else if (what < 0.955) this.passTime(random.between(1, 10))
    else if (what < 0.957) this.passTime(random.between(1, 2 * LAG_MS))
    else if (what < 0.963) replica.savedWatermark = replica.highWatermark
    else if (what < 0.966) replica.synced = replica.log.endOffset
    else if (what < 0.969) this.handOver(replica)
    else if (what < 0.973) this.operate()
    else if (what < 0.976) {
      if (replica.up) this.crash(replica.id)
    } else if (what < 0.977) this.fence(replica.id)
    else if (!replica.up) {
      if (random.chance(0.3)) this.restart(replica.id)
    } else this.unfence(replica.id)
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
      if (!replica.up) this.restart(replica.id)
      if (replica.handedOver) this.handOver(replica)
      this.controller(() =>
        this.harness.do({
          kind: 'broker-reached',
          brokerId: replica.id,
          brokerEpoch: this.harness.epochOf(replica.id),
          isReached: true,
        }),
      )
    }
    for (let round = 0; round < 1500; round++) {
      for (const replica of this.replicas.values()) {
        this.learn(replica, this.ends.length)
        this.unfence(replica.id)
        this.store(replica)
        this.fetch(replica)
        if (round === 1400) this.produce(replica)
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

test('one partition and its controller: nothing acknowledged is lost, logs agree below the watermark, and all is well in the end', () => {
  let [elections, truncations, acknowledged] = [0, 0, 0]
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++) {
    const simulation = new Simulation(seed)
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
  if (SEEDS >= 20) assert.ok(elections > SEEDS && truncations > SEEDS / 4 && acknowledged > 20 * SEEDS, counts)
})
