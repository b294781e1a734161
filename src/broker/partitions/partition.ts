import type { Epoch, NodeId, Offset } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import { type LeaderEffect, PartitionLeader, type Produced } from '#core/partition/leader.ts'
import type { ProducerStates } from '#core/partition/producers.ts'
import type { Log } from '#storage/log.ts'
import { StorageError } from '#storage/storage-error.ts'

/** Who asked for an append and takes the answer. */
export interface ProduceToken {
  settle(produced: Produced<ProduceToken>): void
}

/** Who waits for records or for a watermark. Told once for every move, in the turn of the move. */
export interface Watcher {
  moved(partition: Partition): void
}

/** What a partition's topic lets in; the part of the topic's configuration that the request path reads. */
export interface PartitionTerms {
  readonly minInSync: number
}

/**
 * One partition on this broker: drives core's leader over the log. Everything here happens in one turn of the loop,
 * except for the log's writes, whose results come back as events.
 */
export class Partition {
  readonly topicId: Uuid
  readonly topic: string
  readonly index: number
  readonly log: Log
  readonly #producers: ProducerStates
  #leader: PartitionLeader<ProduceToken> | undefined
  #leaderId: NodeId = -1
  #leaderEpoch: Epoch = -1
  #highWatermark: Offset
  /** Where the batch starts that is being handed to the log; a snapshot made meanwhile covers what is below. */
  #appending: Offset = -1
  /** The write whose end is listened for already: the log gives one promise to all that it gathers. */
  #awaited: Promise<void> | undefined
  #gone = false
  readonly #watchers = new Set<Watcher>()

  constructor(topicId: Uuid, topic: string, index: number, log: Log, producers: ProducerStates, highWatermark: Offset) {
    this.topicId = topicId
    this.topic = topic
    this.index = index
    this.log = log
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

  /** Without transactions nothing is unstable, so the last stable offset is the high watermark. */
  get lastStableOffset(): Offset {
    return this.highWatermark
  }

  /** The offset that the next batch gets. */
  get nextOffset(): Offset {
    return this.#leader?.nextOffset ?? this.log.nextOffset
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

  /** Takes over as the leader of an epoch, with all that the local log holds. */
  lead(nodeId: NodeId, epoch: Epoch, inSync: readonly NodeId[], terms: PartitionTerms): void {
    if (this.#leader !== undefined && this.#leaderEpoch === epoch) return
    const led = this.#leader !== undefined
    if (this.#leader !== undefined) this.#perform(this.#leader.step({ kind: 'resigned' }))
    this.#leaderId = nodeId
    this.#leaderEpoch = epoch
    if (this.log.latestEpoch === undefined || this.log.latestEpoch < epoch) {
      this.log.assignEpoch(epoch, this.log.nextOffset)
    }
    const alone = inSync.length <= 1
    const { endOffset, nextOffset, failure } = this.log
    this.#leader = new PartitionLeader({
      epoch,
      endOffset,
      // Appends of the epoch before may be under way, and come to the log unless it fails.
      nextOffset: failure === undefined ? nextOffset : endOffset,
      highWatermark: alone ? endOffset : Math.min(this.#highWatermark, endOffset),
      inSync,
      minInSync: terms.minInSync,
      producers: this.#producers,
    })
    this.#moveHighWatermark(this.#leader.highWatermark)
    // Who waits believes in the epoch before.
    if (led) this.#wake()
  }

  resign(leaderId: NodeId, epoch: Epoch): void {
    this.#leaderId = leaderId
    this.#leaderEpoch = epoch
    if (this.#leader === undefined) return
    this.#perform(this.#leader.step({ kind: 'resigned' }))
    this.#leader = undefined
    this.#wake()
  }

  configure(terms: PartitionTerms): void {
    if (this.#leader !== undefined) this.#leader.minInSync = terms.minInSync
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
    this.#perform(this.#leader.step({ kind: 'produce', buffer, at, size, acks, token }))
  }

  /** Judges the epoch that a client believes in; -1 is no belief. KIP-320. */
  checkEpoch(believed: Epoch): 'FENCED_LEADER_EPOCH' | 'UNKNOWN_LEADER_EPOCH' | undefined {
    if (believed === -1 || believed === this.#leaderEpoch) return undefined
    return believed < this.#leaderEpoch ? 'FENCED_LEADER_EPOCH' : 'UNKNOWN_LEADER_EPOCH'
  }

  watch(watcher: Watcher): void {
    this.#watchers.add(watcher)
  }

  unwatch(watcher: Watcher): void {
    this.#watchers.delete(watcher)
  }

  /** Tells who waits that the log's start has moved, so that waiting DeleteRecords and fetches look again. */
  startMoved(): void {
    if (this.#highWatermark < this.log.startOffset) this.#highWatermark = this.log.startOffset
    this.#wake()
  }

  /** The topic is gone, or the broker stops: nobody waits here any more. */
  leave(): void {
    this.#gone = true
    this.resign(-1, this.#leaderEpoch)
    this.#wake()
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
      }
    }
  }

  #append(effect: LeaderEffect<ProduceToken> & { kind: 'append' }): void {
    this.#appending = effect.firstOffset
    const written = this.log.append(effect.buffer, effect.at, effect.at + effect.size)
    this.#appending = -1
    if (written === this.#awaited) return
    this.#awaited = written
    // Whoever leads by then has to know, also of what was appended in an epoch before.
    written.then(
      () => {
        if (this.#leader === undefined) return
        this.#perform(this.#leader.step({ kind: 'stored', endOffset: this.log.endOffset }))
      },
      error => {
        if (!(error instanceof StorageError)) throw error
        // The log refuses everything after a failure until it is mended, so nothing newer than this is under way.
        this.#awaited = undefined
        if (this.#leader === undefined) return
        this.#perform(this.#leader.step({ kind: 'storeFailed', endOffset: this.log.endOffset, message: error.message }))
      },
    )
  }

  #moveHighWatermark(offset: Offset): void {
    if (offset <= this.#highWatermark) return
    this.#highWatermark = offset
    this.#wake()
  }

  #wake(): void {
    // A watcher may stop watching, or begin again, while it is told.
    for (const watcher of [...this.#watchers]) watcher.moved(this)
  }
}
