import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ErrorName } from '#protocol/errors.ts'
import { lastOffset } from '#records/batch.ts'
import type { IsrAnswer, IsrProposal } from './in-sync-replicas.ts'
import {
  type Assigned,
  type ControllerMessage,
  LAG_MS,
  type Message,
  PartitionSimulation,
  runHistories,
} from './partition-harness.test.ts'
import { Replica } from './replica-harness.test.ts'

const REPLICAS = [1, 2, 3]

/** What the controller has decided, as of one moment. */
interface Decided extends Assigned {
  /** Of those that are not fenced. */
  readonly brokerEpochs: ReadonlyMap<number, number>
}

class InformedReplica extends Replica {
  image: Decided | undefined
  /** What was decided before its registration is of a life before: nothing of it is acted on. */
  registeredAt = 0
}

/** Three replicas and a controller that only knows what is told here. */
class Simulation extends PartitionSimulation<InformedReplica> {
  readonly replicas = new Map(REPLICAS.map(id => [id, new InformedReplica(id)]))
  readonly calmRounds = 300
  readonly #minInSync = this.random.pick([1, 2])
  history: Decided[] = []
  #nextBrokerEpoch = 100

  constructor(seed: number) {
    super(seed)
    const brokerEpochs = new Map(REPLICAS.map(id => [id, id]))
    const isr = [...REPLICAS]
    this.history.push({ leader: 1, leaderEpoch: 0, partitionEpoch: 0, replicas: REPLICAS, isr, brokerEpochs })
    for (const [id, brokerEpoch] of brokerEpochs) Object.assign(this.at(id), { up: true, brokerEpoch })
  }

  get decided(): Decided {
    return this.history.at(-1) as Decided
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
    this.history.push({ leader, leaderEpoch, partitionEpoch, replicas: REPLICAS, isr, brokerEpochs })
  }

  fence(id: number): void {
    const brokerEpochs = new Map(this.decided.brokerEpochs)
    brokerEpochs.delete(id)
    const others = this.decided.isr.filter(each => each !== id)
    this.decide({ brokerEpochs, isr: others.length > 0 ? others : this.decided.isr })
  }

  #unfence({ id, brokerEpoch }: InformedReplica): void {
    this.decide({ brokerEpochs: new Map(this.decided.brokerEpochs).set(id, brokerEpoch) })
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
    replica.stop()
    replica.image = undefined
  }

  /** It knows of no folders. */
  hear(message: Message & { kind: 'alter' | 'assign' }): void {
    assert.ok(message.kind === 'alter')
    const { from, epoch, proposal } = message
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

  /** Nobody stays without an answer from the controller: the broker asks again. */
  unheard(message: ControllerMessage): void {
    this.messages.push(message)
  }

  comesTwice({ kind }: Message): boolean {
    return kind === 'fetch'
  }

  // The replicas

  minInSync(): number {
    return this.#minInSync
  }

  knownEpoch({ image }: InformedReplica, brokerId: number): number | undefined {
    return image?.brokerEpochs.get(brokerId)
  }

  eligibleEpoch(replica: InformedReplica, brokerId: number): number | undefined {
    return this.knownEpoch(replica, brokerId)
  }

  #later(replica: InformedReplica): number {
    const known = replica.image === undefined ? replica.registeredAt : this.history.indexOf(replica.image) + 1
    return known >= this.history.length ? known - 1 : this.random.between(known, this.history.length - 1)
  }

  /** Takes up a later state of the metadata. */
  learn(replica: InformedReplica, index = this.#later(replica)): void {
    const image = this.history[index] as Decided
    if (
      !replica.up ||
      index < replica.registeredAt ||
      (replica.image !== undefined && this.history.indexOf(replica.image) >= index)
    )
      return
    replica.image = image
    this.takePart(replica)
  }

  takePart(replica: InformedReplica): void {
    if (replica.cutting === undefined && replica.image !== undefined) this.become(replica, replica.image)
  }

  catchUp(replica: InformedReplica): void {
    this.learn(replica, this.history.length - 1)
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
    else if (replica.up && !this.decided.brokerEpochs.has(replica.id)) this.#unfence(replica)
  }

  heal(replica: InformedReplica): void {
    if (!replica.up) this.restart(replica.id)
    else if (!this.decided.brokerEpochs.has(replica.id)) this.#unfence(replica)
  }
}

test('one partition: nothing acknowledged is lost, logs agree below the watermark, and all is well in the end', () => {
  runHistories(60, seed => new Simulation(seed))
})
