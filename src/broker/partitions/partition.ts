import { assert } from '#base/assert.ts'
import type { Epoch, Millis, NodeId, Offset } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import { type FetchPosition, type FollowerEffect, PartitionFollower } from '#core/partition/follower.ts'
import {
  type FetchContact,
  type FollowerState,
  type IsrAnswer,
  type IsrProposal,
  type LeaderEffect,
  PartitionLeader,
  type Produced,
} from '#core/partition/leader.ts'
import type { ProducerStates } from '#core/partition/producers.ts'
import { lastOffset, sizeInBytes } from '#records/batch.ts'
import type { Log } from '#storage/log.ts'
import { StorageError } from '#storage/storage-error.ts'
import type { Clock, Logger } from '#world/world.ts'
import type { Deadline, Deadlines } from '../deadlines.ts'
import { Watchers } from './watchers.ts'

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

/** What a partition needs of its broker. */
export interface PartitionSurroundings {
  readonly nodeId: NodeId
  readonly clock: Clock
  readonly deadlines: Deadlines
  readonly log: Logger
  /** `replica.lag.time.max.ms` and `replica.fetch.backoff.ms`. */
  readonly lagTimeMaxMs: Millis
  readonly fetchBackoffMs: Millis
  /** The epoch of a broker that may be in sync: registered, not fenced, not about to leave. Of others undefined. */
  readonly eligibleEpoch: (id: NodeId) => number | undefined
  /** The partition began or ceased to be led here. */
  readonly ledChanged: (partition: Partition, leads: boolean) => void
  /** To the controller; the answer comes back by `isrAnswered`. */
  readonly alterIsr: (partition: Partition, proposal: IsrProposal) => void
  /** It follows, and has a position to fetch from that it did not have. */
  readonly fetchable: (partition: Partition) => void
  readonly followersServeConsumers: () => boolean
  /** Where the leader's log starts and ends is to be told by `leaderOffsets`. */
  readonly askOffsets: (partition: Partition) => void
}

type LeaderStep = Parameters<PartitionLeader<ProduceToken>['step']>[0]
type FollowerStep = Parameters<PartitionFollower['step']>[0]

/**
 * One partition on this broker: drives core's leader or follower over the log. Everything here happens in one turn of the
 * loop, except for what the log does, whose results come back as events.
 */
export class Partition {
  readonly topicId: Uuid
  readonly topic: string
  readonly index: number
  readonly log: Log
  /** Of the high watermark, which consumers read to, and of the log's start. */
  readonly watermarkWatchers = new Watchers()
  /** Of the end of the log, which followers read to, and of its start. */
  readonly endWatchers = new Watchers()
  /** Of the low watermark: the starts of the logs of all replicas. */
  readonly startWatchers = new Watchers()
  readonly #around: PartitionSurroundings
  readonly #producers: ProducerStates
  #leader: PartitionLeader<ProduceToken> | undefined
  #follower: PartitionFollower | undefined
  #leaderId: NodeId = -1
  #leaderEpoch: Epoch = -1
  /** As the metadata has it; a leader knows better. */
  #isInSync = false
  #highWatermark: Offset
  /** Where the log ended when this broker began to lead. */
  #epochStart: Offset = -1
  /** Where the batch starts that is being handed to the log; a snapshot made meanwhile covers what is below. */
  #appending: Offset = -1
  /** The write whose end is listened for already: the log gives one promise to all that it gathers. */
  #awaited: Promise<void> | undefined
  /** The log is being cut: nobody may lead, nor be followed, before it is whole again. */
  #isCutting = false
  /** What comes after the cut. */
  #wanted: { readonly assignment: Assignment; readonly terms: PartitionTerms } | undefined
  #wake: Deadline | undefined
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
    this.#around = around
    this.#producers = producers
    this.#highWatermark = Math.min(Math.max(highWatermark, log.startOffset), log.endOffset)
  }

  get leads(): boolean {
    return this.#leader !== undefined
  }

  get leaderId(): NodeId {
    return this.#leaderId
  }

  get leaderEpoch(): Epoch {
    return this.#leaderEpoch
  }

  get highWatermark(): Offset {
    return Math.max(this.#highWatermark, this.log.startOffset)
  }

  /** False while a new leader cannot know yet how far the one before had come. KIP-207. */
  get knowsHighWatermark(): boolean {
    return this.highWatermark >= this.#epochStart
  }

  /** Without transactions nothing is unstable, so the last stable offset is the high watermark. */
  get lastStableOffset(): Offset {
    return this.highWatermark
  }

  /** The offset that the next batch gets. */
  get nextOffset(): Offset {
    return this.#leader?.nextOffset ?? this.log.nextOffset
  }

  /** The lowest start of the logs of all replicas whose brokers live; only the leader knows. */
  get lowWatermark(): Offset {
    const { startOffset } = this.log
    return this.#leader?.replicas.lowestStart(startOffset) ?? startOffset
  }

  /** Who is in sync, in the eyes of the leader that this is; nobody where it is not. */
  get inSync(): readonly NodeId[] {
    return this.#leader?.replicas.isr ?? []
  }

  get followers(): readonly FollowerState[] {
    return this.#leader?.replicas.followers ?? []
  }

  get producers(): ProducerStates {
    return this.#producers
  }

  /** The offset below which a snapshot of producers may speak. */
  get appending(): Offset {
    return this.#appending < 0 ? this.log.nextOffset : this.#appending
  }

  /** Ends, one way or the other, when the log is done with all that was appended so far. */
  get written(): Promise<void> | undefined {
    return this.#awaited
  }

  get gone(): boolean {
    return this.#gone
  }

  /** Takes the part that the cluster wants it to take; while the log is being cut, when that is done. */
  become(assignment: Assignment, terms: PartitionTerms): void {
    if (this.#gone) return
    this.#isInSync = assignment.isr.includes(this.#around.nodeId)
    if (this.#isCutting) {
      this.#wanted = { assignment, terms }
      return
    }
    const { leader, leaderEpoch } = assignment
    if (leader === this.#around.nodeId) this.#lead(assignment, terms)
    else if (leader !== this.#leaderId || leaderEpoch !== this.#leaderEpoch) this.#follow(leader, leaderEpoch)
  }

  #lead({ leaderEpoch: epoch, partitionEpoch, replicas, isr }: Assignment, terms: PartitionTerms): void {
    if (this.#leader !== undefined && this.#leaderEpoch === epoch) {
      this.#perform(this.#stepped({ kind: 'assigned', replicas, isr, partitionEpoch }))
      // A follower at rest that was put out must be looked at again, or nobody lets it in.
      this.endWatchers.tell(this)
      return
    }
    const { nodeId, lagTimeMaxMs, eligibleEpoch, clock, ledChanged } = this.#around
    const led = this.#leader !== undefined
    if (led) this.#perform(this.#stepped({ kind: 'resigned' }))
    this.#follower = undefined
    this.#leaderId = nodeId
    this.#leaderEpoch = epoch
    if (this.log.latestEpoch === undefined || this.log.latestEpoch < epoch) {
      this.log.assignEpoch(epoch, this.log.nextOffset)
    }
    const { endOffset, nextOffset, failure } = this.log
    // Appends of the epoch before may be under way, and come to the log unless it fails.
    const epochStart = failure === undefined ? nextOffset : endOffset
    this.#epochStart = epochStart
    this.#leader = new PartitionLeader({
      nodeId,
      epoch,
      endOffset,
      nextOffset: epochStart,
      highWatermark: Math.min(this.#highWatermark, endOffset),
      replicas,
      isr,
      partitionEpoch,
      minInSync: terms.minInSync,
      producers: this.#producers,
      lagTimeMaxMs,
      eligibleEpoch,
      now: clock.monotonic(),
    })
    this.#moveHighWatermark(this.#leader.highWatermark)
    this.#plan()
    // Who waits believes in the epoch before.
    this.#tellAll()
    if (!led) ledChanged(this, true)
  }

  #follow(leaderId: NodeId, epoch: Epoch): void {
    const leader = this.#leader
    if (leader !== undefined) {
      this.#perform(this.#stepped({ kind: 'resigned' }))
      this.#leader = undefined
    }
    this.#leaderId = leaderId
    this.#leaderEpoch = epoch
    this.#epochStart = -1
    this.#follower = undefined
    this.#plan()
    if (leaderId >= 0) {
      const { log } = this
      this.#follower = new PartitionFollower({
        epoch,
        log,
        highWatermark: this.highWatermark,
        isBusy: log.failure === undefined && log.nextOffset > log.endOffset,
        backoffMs: this.#around.fetchBackoffMs,
      })
      this.#performFollowing(this.#follower.begin())
    }
    this.#tellAll()
    if (leader !== undefined) this.#around.ledChanged(this, false)
  }

  configure({ minInSync }: PartitionTerms): void {
    if (this.#leader !== undefined) this.#perform(this.#stepped({ kind: 'minInSync', minInSync }))
  }

  /** Brokers came, went or were fenced: who was not fit to be in sync may be now. */
  brokersChanged(): void {
    if (this.#leader === undefined || this.#leader.replicas.followers.length === 0) return
    this.#perform(this.#stepped({ kind: 'brokersChanged' }))
    this.startWatchers.tell(this)
  }

  /** Appends one checked batch. The answer comes by `token`, in this turn or in a later one. */
  produce(buffer: Buffer, at: number, size: number, acks: -1 | 0 | 1, token: ProduceToken): void {
    if (this.#leader === undefined) {
      const message = 'this broker does not lead the partition'
      token.settle({ token, error: 'NOT_LEADER_OR_FOLLOWER', message, baseOffset: -1 })
      return
    }
    // While the log is mended its producers are read from it anew: by half of them nobody can be judged.
    const { failure } = this.log
    if (failure !== undefined) {
      token.settle({ token, error: 'KAFKA_STORAGE_ERROR', message: failure.message, baseOffset: -1 })
      return
    }
    this.#perform(this.#leader.step({ kind: 'produce', buffer, at, size, acks, token }, 0))
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
    const leader = this.#leader
    if (leader === undefined || !leader.replicas.hosts(replica)) return false
    const event = { kind: 'followerFetched', replica, offset, startOffset, brokerEpoch, contact } as const
    const effects = leader.step(event, this.#around.clock.monotonic())
    if (effects.length > 0) this.#perform(effects)
    this.startWatchers.tell(this)
    return true
  }

  isrAnswered(proposal: IsrProposal, answer: IsrAnswer): void {
    if (this.#leader === undefined || this.#leaderEpoch !== proposal.leaderEpoch) return
    this.#perform(this.#stepped({ kind: 'isrAnswered', proposal, answer }))
  }

  /** Where to fetch from; undefined while there is nothing to be fetched, or nobody to fetch from. */
  get fetchPosition(): FetchPosition | undefined {
    return this.#follower?.position
  }

  /** The log is not done yet with what was fetched last. */
  get isSettling(): boolean {
    return this.#follower?.isBusy ?? false
  }

  /** It holds all that the leader has committed, as far as is known here, or is in sync in the eyes of the cluster. */
  get isCaughtUp(): boolean {
    return this.#isInSync || (this.#follower?.isCaughtUp ?? true)
  }

  /** What the leader answered to the fetch of a position. */
  fetched(event: FollowerStep & { kind: 'fetched' | 'diverged' | 'refused' }): void {
    this.#followed(event)
  }

  /** What `askOffsets` wanted to know. */
  leaderOffsets(
    leaderEpoch: Epoch,
    range: { readonly startOffset: Offset; readonly endOffset: Offset } | undefined,
  ): void {
    if (leaderEpoch === this.#leaderEpoch) this.#followed({ kind: 'offsets', range })
  }

  /** Tells who waits that the log's start has moved, so that waiting DeleteRecords and fetches look again. */
  startMoved(): void {
    if (this.#highWatermark < this.log.startOffset) this.#highWatermark = this.log.startOffset
    this.#tellAll()
    if (this.fetchPosition !== undefined) this.#around.fetchable(this)
  }

  /** The topic is gone, or the broker stops: nobody waits here any more. */
  leave(): void {
    this.#gone = true
    this.#follow(-1, this.#leaderEpoch)
    this.#around.deadlines.cancel(this.#wake)
  }

  #stepped(event: LeaderStep): readonly LeaderEffect<ProduceToken>[] {
    const leader = this.#leader
    assert(leader !== undefined, 'only a leader takes steps')
    return leader.step(event, this.#around.clock.monotonic())
  }

  #perform(effects: readonly LeaderEffect<ProduceToken>[]): void {
    for (const effect of effects) {
      switch (effect.kind) {
        case 'append':
          this.#append(effect)
          break
        case 'answer':
          effect.answer.token.settle(effect.answer)
          break
        case 'highWatermark':
          this.#moveHighWatermark(effect.offset)
          break
        case 'alterIsr':
          this.#around.alterIsr(this, effect.proposal)
          break
      }
    }
  }

  #append(effect: LeaderEffect<ProduceToken> & { kind: 'append' }): void {
    this.#appending = effect.firstOffset
    const written = this.log.append(effect.buffer, effect.at, effect.at + effect.size)
    this.#appending = -1
    this.#listen(written)
  }

  #listen(written: Promise<void>): void {
    if (written === this.#awaited) return
    this.#awaited = written
    // Whoever leads or follows by then has to know, also of what was appended in an epoch before.
    written.then(
      () => this.#settled(undefined),
      error => {
        if (!(error instanceof StorageError)) throw error
        // The log refuses everything after a failure until it is mended, so nothing newer than this is under way.
        this.#awaited = undefined
        this.#settled(error)
      },
    )
  }

  /** The log is done with what was appended to it. */
  #settled(failure: StorageError | undefined): void {
    const { endOffset } = this.log
    if (this.#leader !== undefined) {
      const event: LeaderStep =
        failure === undefined
          ? { kind: 'stored', endOffset }
          : { kind: 'storeFailed', endOffset, message: failure.message }
      this.#perform(this.#leader.step(event, this.#leader.replicas.isAlone ? 0 : this.#around.clock.monotonic()))
      this.endWatchers.tell(this)
      if (this.#wake === undefined) this.#plan()
    } else if (this.#follower !== undefined) {
      // More may have come behind it, in an epoch before.
      const isDone = this.log.failure !== undefined || this.log.nextOffset === endOffset
      if (isDone) this.#followed({ kind: 'settled', failed: failure !== undefined })
    }
  }

  #followed(event: FollowerStep): void {
    if (this.#follower === undefined) return
    this.#performFollowing(this.#follower.step(event, this.#around.clock.monotonic()))
  }

  #performFollowing(effects: readonly FollowerEffect[]): void {
    for (const effect of effects) {
      switch (effect.kind) {
        case 'append':
          this.#appendFetched(effect.records, effect.size)
          break
        case 'truncate':
          this.#cut(effect.offset, () => this.log.truncateTo(effect.offset))
          break
        case 'startAnew':
          this.#cut(effect.offset, () => this.log.truncateFullyAndStartAt(effect.offset))
          break
        case 'highWatermark':
          this.#moveHighWatermark(effect.offset)
          break
        case 'logStart':
          this.log.deleteRecordsBefore(effect.offset)
          this.startMoved()
          break
        case 'askOffsets':
          this.#around.askOffsets(this)
          break
        case 'complain':
          this.#around.log.warn(
            { topic: this.topic, partition: this.index, leader: this.#leaderId, reason: effect.message },
            'a partition cannot be followed; trying again',
          )
          break
      }
    }
    this.#plan()
    if (this.fetchPosition !== undefined) this.#around.fetchable(this)
  }

  /** One after another: a roll's snapshot of producers speaks of what is before the batch that rolls. */
  #appendFetched(records: Buffer, size: number): void {
    if (this.log.failure !== undefined) {
      this.#followed({ kind: 'settled', failed: true })
      return
    }
    const first = this.log.nextOffset
    this.#appending = first
    const written = this.log.append(records, 0, size)
    for (let at = 0; at < size; at += sizeInBytes(records, at)) {
      this.#producers.apply(records, at)
      this.#appending = lastOffset(records, at) + 1
    }
    this.#appending = -1
    this.#listen(written)
  }

  #cut(offset: Offset, cut: () => Promise<unknown>): void {
    const { endOffset } = this.log
    const fields = { topic: this.topic, partition: this.index, leader: this.#leaderId, offset, endOffset }
    if (offset < this.#highWatermark && endOffset > this.log.startOffset) {
      this.#around.log.warn(
        fields,
        'cutting off records that were committed: the cluster elected a leader without them',
      )
    } else if (offset < endOffset) this.#around.log.info(fields, 'cutting off what the leader does not have')
    this.#isCutting = true
    cut().then(
      () => this.#isCut(false),
      error => {
        if (!(error instanceof StorageError)) throw error
        this.#isCut(true)
      },
    )
  }

  #isCut(failed: boolean): void {
    this.#isCutting = false
    this.#highWatermark = Math.min(this.#highWatermark, this.log.endOffset)
    const wanted = this.#wanted
    this.#wanted = undefined
    if (wanted !== undefined) this.become(wanted.assignment, wanted.terms)
    this.#followed({ kind: 'settled', failed })
  }

  /** One deadline, for what leader or follower wait for. */
  #plan(): void {
    const { deadlines, clock } = this.#around
    deadlines.cancel(this.#wake)
    this.#wake = undefined
    const at = this.#leader?.wakeAt() ?? this.#follower?.wakeAt()
    if (at === undefined || this.#gone) return
    this.#wake = deadlines.after(Math.max(0, at - clock.monotonic()), () => {
      this.#wake = undefined
      if (this.#leader !== undefined) {
        this.#perform(this.#stepped({ kind: 'tick' }))
        this.#plan()
      } else this.#followed({ kind: 'tick' })
    })
  }

  #moveHighWatermark(offset: Offset): void {
    if (offset <= this.#highWatermark) return
    this.#highWatermark = offset
    this.watermarkWatchers.tell(this)
    // Where consumers read from followers, these are to know at once; else it travels with the next records.
    if (this.endWatchers.size > 0 && this.#around.followersServeConsumers()) this.endWatchers.tell(this)
  }

  #tellAll(): void {
    this.watermarkWatchers.tell(this)
    this.endWatchers.tell(this)
    this.startWatchers.tell(this)
  }
}
