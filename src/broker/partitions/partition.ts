import type { Epoch, NodeId, Offset } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import type { FetchPosition, FollowerEvent } from '#core/partition/follower.ts'
import type {
  FetchContact,
  FollowerState,
  InSyncReplicas,
  IsrAnswer,
  IsrProposal,
} from '#core/partition/in-sync-replicas.ts'
import type { Produced } from '#core/partition/leader.ts'
import type { ProducerStates } from '#core/partition/producers.ts'
import type { Log } from '#storage/log.ts'
import type { StorageError } from '#storage/storage-error.ts'
import { Following } from './following.ts'
import { Leading } from './leading.ts'
import { Replica, type ReplicaOwner } from './replica.ts'
import type { PartitionSurroundings } from './surroundings.ts'
import type { Watchers } from './watchers.ts'

/** Who asked for an append and takes the answer. */
export interface ProduceToken {
  settle(produced: Produced<ProduceToken>): void
}

/** What a partition's topic lets in; the part of the topic's configuration that the request path reads. */
export interface PartitionTerms {
  readonly minInSync: number
}

/** What the cluster wants of a partition, as its metadata has it. */
export interface Assignment {
  /** -1 is nobody. */
  readonly leader: NodeId
  readonly leaderEpoch: Epoch
  readonly partitionEpoch: Epoch
  readonly replicas: readonly NodeId[]
  readonly isr: readonly NodeId[]
}

/**
 * One partition on this broker, and the part that it takes: it leads, it follows, or nobody leads. Everything here happens
 * in one turn of the loop, except for what the log does, whose results come back as events.
 */
export class Partition implements ReplicaOwner {
  readonly topicId: Uuid
  readonly topic: string
  readonly index: number
  readonly log: Log
  readonly producers: ProducerStates
  /** Who waits for the high watermark, for the end of the log, and for the low watermark. */
  readonly watermarkWatchers: Watchers
  readonly endWatchers: Watchers
  readonly startWatchers: Watchers
  readonly #replica: Replica
  readonly #around: PartitionSurroundings
  #leading: Leading | undefined
  #following: Following | undefined
  #leaderId: NodeId = -1
  #leaderEpoch: Epoch = -1
  /** Who was in sync as this broker knew it when it led in the present epoch, which it may do once more. */
  #ledBefore: InSyncReplicas | undefined
  /** As the metadata has it; a leader knows better. */
  #isInSync = false
  /** What comes after a cut of the log. */
  #wanted: { readonly assignment: Assignment; readonly terms: PartitionTerms } | undefined
  #gone = false

  constructor(
    topicId: Uuid,
    topic: string,
    index: number,
    log: Log,
    producers: ProducerStates,
    highWatermark: Offset,
    around: PartitionSurroundings,
  ) {
    this.topicId = topicId
    this.topic = topic
    this.index = index
    this.log = log
    this.producers = producers
    this.#around = around
    this.#replica = new Replica(log, producers, highWatermark, this, around)
    this.watermarkWatchers = this.#replica.watermarkWatchers
    this.endWatchers = this.#replica.endWatchers
    this.startWatchers = this.#replica.startWatchers
  }

  get leads(): boolean {
    return this.#leading !== undefined
  }

  get leaderId(): NodeId {
    return this.#leaderId
  }

  get leaderEpoch(): Epoch {
    return this.#leaderEpoch
  }

  get highWatermark(): Offset {
    return this.#replica.highWatermark
  }

  /** False while a new leader cannot know yet how far the one before had come. KIP-207. */
  get knowsHighWatermark(): boolean {
    return this.#leading === undefined || this.highWatermark >= this.#leading.epochStart
  }

  /** Without transactions nothing is unstable, so the last stable offset is the high watermark. */
  get lastStableOffset(): Offset {
    return this.highWatermark
  }

  /** The offset that the next batch gets. */
  get nextOffset(): Offset {
    return this.#leading?.nextOffset ?? this.log.nextOffset
  }

  /** The lowest start of the logs of all replicas whose brokers live, and of these; only the leader knows. */
  lowWatermark(others: readonly NodeId[]): Offset {
    const { startOffset } = this.log
    return this.#leading?.replicas.lowestStart(startOffset, others) ?? startOffset
  }

  /** Who is in sync, in the eyes of the leader that this is; nobody where it is not. */
  get inSync(): readonly NodeId[] {
    return this.#leading?.replicas.isr ?? []
  }

  /** Whether it leads, and fewer are in sync than must be: what all in sync are to have is refused. */
  get tooFewInSync(): boolean {
    return this.#leading?.replicas.tooFew ?? false
  }

  get followers(): readonly FollowerState[] {
    return this.#leading?.replicas.followers ?? []
  }

  /** The offset below which a snapshot of producers may speak. */
  get appending(): Offset {
    return this.#replica.appending
  }

  /** Ends, one way or the other, when the log is done with all that was appended so far. */
  get written(): Promise<void> | undefined {
    return this.#replica.written
  }

  get gone(): boolean {
    return this.#gone
  }

  /** Takes the part that the cluster wants it to take; while the log is being cut, when that is done. */
  become(assignment: Assignment, terms: PartitionTerms): void {
    if (this.#gone) return
    this.#isInSync = assignment.isr.includes(this.#around.nodeId)
    if (this.#replica.isCutting) {
      this.#wanted = { assignment, terms }
      return
    }
    const { leader, leaderEpoch } = assignment
    if (leader === this.#around.nodeId) this.#lead(assignment, terms)
    else if (leader !== this.#leaderId || leaderEpoch !== this.#leaderEpoch) this.#follow(leader, leaderEpoch)
  }

  #lead({ leaderEpoch: epoch, partitionEpoch, replicas, isr }: Assignment, { minInSync }: PartitionTerms): void {
    const before = this.#leading
    if (before !== undefined && this.#leaderEpoch === epoch) {
      before.step({ kind: 'assigned', replicas, isr, partitionEpoch })
      // A follower at rest that was put out must be looked at again, or nobody lets it in.
      this.endWatchers.tell()
      return
    }
    before?.end()
    this.#following?.end()
    this.#following = undefined
    const known = this.#leaderEpoch === epoch ? this.#ledBefore?.known(isr, partitionEpoch) : undefined
    this.#ledBefore = undefined
    this.#leaderId = this.#around.nodeId
    this.#leaderEpoch = epoch
    this.#replica.beginEpoch(epoch)
    const leadership = { epoch, replicas, minInSync, ...(known ?? { isr, partitionEpoch }) }
    this.#leading = new Leading(this, this.#replica, this.#around, leadership)
    this.#leading.begin()
    // Who waits believes in the epoch before.
    this.#replica.tellAll()
    if (before === undefined) this.#around.ledChanged(this, true)
  }

  #follow(leaderId: NodeId, epoch: Epoch): void {
    const led = this.#leading
    led?.end()
    this.#leading = undefined
    this.#following?.end()
    this.#following = undefined
    if (epoch !== this.#leaderEpoch) this.#ledBefore = undefined
    else if (led !== undefined) this.#ledBefore = led.replicas
    this.#leaderId = leaderId
    this.#leaderEpoch = epoch
    if (leaderId >= 0) {
      this.#following = new Following(this, this.#replica, this.#around, { id: leaderId, epoch })
      this.#following.begin()
    }
    this.#replica.tellAll()
    if (led !== undefined) this.#around.ledChanged(this, false)
  }

  /** Told by the replica, as is the next. */
  logSettled(failure: StorageError | undefined): void {
    if (this.#leading !== undefined) this.#leading.settled(failure)
    else this.#following?.settled(failure !== undefined)
  }

  logCut(failed: boolean): void {
    const wanted = this.#wanted
    this.#wanted = undefined
    if (wanted !== undefined) this.become(wanted.assignment, wanted.terms)
    this.#following?.step({ kind: 'settled', failed })
  }

  configure(terms: PartitionTerms): void {
    if (this.#wanted !== undefined) this.#wanted = { ...this.#wanted, terms }
    this.#leading?.step({ kind: 'minInSync', minInSync: terms.minInSync })
  }

  /** Brokers came, went or were fenced: who was not fit to be in sync may be now. */
  brokersChanged(): void {
    if (this.#leading === undefined || this.#leading.replicas.followers.length === 0) return
    this.#leading.step({ kind: 'brokersChanged' })
    this.startWatchers.tell()
  }

  /** Appends one checked batch. The answer comes by `token`, in this turn or in a later one. */
  produce(buffer: Buffer, at: number, size: number, acks: -1 | 0 | 1, token: ProduceToken): void {
    if (this.#leading !== undefined) {
      this.#leading.produce(buffer, at, size, acks, token)
      return
    }
    const message = 'this broker does not lead the partition'
    token.settle({ token, error: 'NOT_LEADER_OR_FOLLOWER', message, baseOffset: -1 })
  }

  /** Judges the epoch that a client believes in; -1 is no belief. KIP-320. */
  checkEpoch(believed: Epoch): 'FENCED_LEADER_EPOCH' | 'UNKNOWN_LEADER_EPOCH' | undefined {
    if (believed === -1 || believed === this.#leaderEpoch) return undefined
    return believed < this.#leaderEpoch ? 'FENCED_LEADER_EPOCH' : 'UNKNOWN_LEADER_EPOCH'
  }

  /**
   * A follower fetches from `offset`, so it holds everything below. False when it is none of the replicas. With a contact
   * that need not be said again while it rests there.
   */
  followerFetched(
    replica: NodeId,
    offset: Offset,
    startOffset: Offset,
    brokerEpoch: number,
    contact?: FetchContact,
  ): boolean {
    const leading = this.#leading
    if (leading === undefined || !leading.replicas.hosts(replica)) return false
    const leaderStart = this.log.startOffset
    leading.step({ kind: 'followerFetched', replica, offset, startOffset, leaderStart, brokerEpoch, contact })
    this.startWatchers.tell()
    return true
  }

  isrAnswered(proposal: IsrProposal, answer: IsrAnswer): void {
    if (this.#leaderEpoch === proposal.leaderEpoch) this.#leading?.step({ kind: 'isrAnswered', proposal, answer })
  }

  /** Where to fetch from; undefined while there is nothing to be fetched, or nobody to fetch from. */
  get fetchPosition(): FetchPosition | undefined {
    return this.#following?.position
  }

  /** The log is not done yet with what was fetched last. */
  get isSettling(): boolean {
    return this.#following?.isBusy ?? false
  }

  /** It holds all that the leader has committed, as far as is known here, or is in sync in the eyes of the cluster. */
  get isCaughtUp(): boolean {
    return this.#isInSync || (this.#following?.isCaughtUp ?? true)
  }

  /** What the leader answered to the fetch of a position. */
  fetched(event: FollowerEvent & { kind: 'fetched' | 'diverged' | 'refused' }): void {
    this.#following?.step(event)
  }

  /** What `askOffsets` wanted to know. */
  leaderOffsets(
    leaderEpoch: Epoch,
    range: { readonly startOffset: Offset; readonly endOffset: Offset } | undefined,
  ): void {
    if (leaderEpoch === this.#leaderEpoch) this.#following?.step({ kind: 'offsets', range })
  }

  /** Tells who waits that the log's start has moved, so that waiting DeleteRecords and fetches look again. */
  startMoved(): void {
    this.#replica.startMoved()
    if (this.fetchPosition !== undefined) this.#around.fetchable(this)
  }

  /** The topic is gone, or the broker stops: nobody waits here any more. */
  leave(): void {
    this.#gone = true
    this.producers.leaveRoom()
    this.#follow(-1, this.#leaderEpoch)
  }
}
