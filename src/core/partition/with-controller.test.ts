import assert from 'node:assert/strict'
import { test } from 'node:test'
import { errorOf } from '#protocol/errors.ts'
import type { AlterPartitionResponse } from '#protocol/messages/alter-partition.ts'
import type { MessageOf } from '#protocol/schema.ts'
import { ControllerHarness, testUuid } from '../metadata/controller-harness.test.ts'
import { MetadataImage } from '../metadata/image.ts'
import { isActive } from '../metadata/node-image.ts'
import { LOST_DIRECTORY, type PartitionImage } from '../metadata/partition-image.ts'
import { decodeMetadataRecord } from '../metadata/record.ts'
import type { IsrAnswer } from './in-sync-replicas.ts'
import {
  type ControllerMessage,
  LAG_MS,
  type Message,
  PartitionSimulation,
  runHistories,
} from './partition-harness.test.ts'
import { ModelLog, Replica } from './replica-harness.test.ts'

const BROKERS = [1, 2, 3, 4]
const NAME = 't'
const TOPIC = 2
const BROKER = 4
const MIN = 'min.insync.replicas'
const ELR = 'eligible.leader.replicas.version'

class MemberReplica extends Replica {
  synced = 0
  /** Named at the next registration; -1 where something may be lost. */
  previousEpoch = -1
  directory: string
  incarnations = 0
  image = new MetadataImage()
  /** Batches of the metadata log that it has read. */
  read = 0
  /** Its disk is full: the cluster is told that it is lost. */
  handedOver = false
  readonly ownMin: number
  constructor(id: number, ownMin: number) {
    super(id)
    this.ownMin = ownMin
    this.directory = testUuid(1000 + id)
  }
}

/** Four brokers and the real controller, which operators ask as well. */
class Simulation extends PartitionSimulation<MemberReplica> {
  readonly replicas: ReadonlyMap<number, MemberReplica>
  readonly calmRounds = 1500
  readonly harness: ControllerHarness
  /** Where each batch of the metadata log ends. */
  readonly ends: number[] = []
  readonly flushes: boolean
  lost = 0

  constructor(seed: number) {
    super(seed)
    this.flushes = this.random.chance(0.5)
    this.harness = new ControllerHarness(new Map([[MIN, String(this.random.pick([1, 2]))]]))
    this.replicas = new Map(BROKERS.map(id => [id, new MemberReplica(id, this.random.pick([1, 2]))]))
    for (const id of BROKERS) this.restart(id)
    for (const id of BROKERS) {
      this.learn(this.at(id), this.ends.length)
      this.unfence(id)
    }
    const assignments = [{ partitionIndex: 0, brokerIds: [1, 2, 3] }]
    this.ask('create-topics', { topics: [{ name: NAME, numPartitions: -1, replicationFactor: -1, assignments }] })
  }

  get topicId(): string {
    return this.harness.machine.image.topicByName(NAME)?.id ?? ''
  }
  get decided(): PartitionImage {
    return this.harness.machine.image.partition(this.topicId, 0) as PartitionImage
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

  /** Whether the controller can dial it. */
  reach(id: number, isReached: boolean): void {
    const brokerEpoch = this.harness.epochOf(id)
    this.controller(() => this.harness.do({ kind: 'broker-reached', brokerId: id, brokerEpoch, isReached }))
  }

  knowsItself(replica: MemberReplica): boolean {
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
    replica.stop()
    replica.image = new MetadataImage()
    replica.read = 0
  }

  hear(message: Message & { kind: 'alter' | 'assign' }): void {
    if (message.kind === 'alter') this.alter(message)
    else this.assign(message)
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
      this.reach(random.pick(BROKERS), random.chance(0.7))
    } else this.controller(() => this.harness.failOver())
  }

  handOver(replica: MemberReplica): void {
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
  learn(replica: MemberReplica, until = this.random.between(replica.read, this.ends.length)): void {
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

  takePart(replica: MemberReplica): void {
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

  minInSync({ image, ownMin }: MemberReplica): number {
    return this.minimum(image, ownMin)
  }

  knownEpoch({ image }: MemberReplica, brokerId: number): number | undefined {
    return image.broker(brokerId)?.epoch
  }

  eligibleEpoch({ image }: MemberReplica, brokerId: number): number | undefined {
    const broker = image.broker(brokerId)
    return isActive(broker) ? broker?.epoch : undefined
  }

  comesTwice({ kind }: Message): boolean {
    return kind === 'fetch' || kind === 'alter'
  }

  /** A broker that has no answer asks again, whatever became of what it asked. */
  unheard(message: ControllerMessage): void {
    if (message.kind === 'alter') this.again(message.from, message.epoch, message.proposal)
    else if (message.kind === 'altered') this.again(message.to, this.at(message.to).brokerEpoch, message.proposal)
    else this.messages.push(message)
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

  heal(replica: MemberReplica): void {
    if (!replica.up) this.restart(replica.id)
    if (replica.handedOver) this.handOver(replica)
    this.reach(replica.id, true)
  }

  catchUp(replica: MemberReplica): void {
    this.learn(replica, this.ends.length)
    this.unfence(replica.id)
  }
}

test('one partition and its controller: nothing acknowledged is lost, logs agree below the watermark, and all is well in the end', () => {
  runHistories(25, seed => new Simulation(seed))
})
