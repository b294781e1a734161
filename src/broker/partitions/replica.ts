import type { Epoch, Offset } from '#base/units.ts'
import type { ProducerStates } from '#core/partition/producers.ts'
import { lastOffset, sizeInBytes } from '#records/batch.ts'
import type { Log } from '#storage/log.ts'
import { StorageError } from '#storage/storage-error.ts'
import type { PartitionSurroundings } from './surroundings.ts'
import { Watchers } from './watchers.ts'

/** Who is told what became of the log. */
export interface ReplicaOwner {
  /** The log is done with what was appended to it. */
  logSettled(failure: StorageError | undefined): void
  /** The log is whole again, and shorter unless it failed. */
  logCut(failed: boolean): void
}

/**
 * What a broker holds of a partition, whichever part it takes there: the log, what the log says of producers, how much of
 * it is known to be committed, and who waits for any of these to move.
 */
export class Replica {
  readonly log: Log
  readonly producers: ProducerStates
  /** Of the high watermark, which consumers read to, and of the log's start. */
  readonly watermarkWatchers = new Watchers()
  /** Of the end of the log, which followers read to, and of its start. */
  readonly endWatchers = new Watchers()
  /** Of the low watermark: the starts of the logs of all replicas. */
  readonly startWatchers = new Watchers()
  readonly #owner: ReplicaOwner
  readonly #followersServeConsumers: () => boolean
  #highWatermark: Offset
  /** Where the batch starts that is being handed to the log; a snapshot made meanwhile covers what is below. */
  #appending: Offset = -1
  /** The write whose end is listened for already: the log gives one promise to all that it gathers. */
  #awaited: Promise<void> | undefined
  #isCutting = false

  constructor(
    log: Log,
    producers: ProducerStates,
    highWatermark: Offset,
    owner: ReplicaOwner,
    { followersServeConsumers }: PartitionSurroundings,
  ) {
    this.log = log
    this.producers = producers
    this.#owner = owner
    this.#followersServeConsumers = followersServeConsumers
    this.#highWatermark = Math.min(Math.max(highWatermark, log.startOffset), log.endOffset)
  }

  get highWatermark(): Offset {
    return Math.max(this.#highWatermark, this.log.startOffset)
  }

  /** The offset below which a snapshot of producers may speak. */
  get appending(): Offset {
    return this.#appending < 0 ? this.log.nextOffset : this.#appending
  }

  /** Ends, one way or the other, when the log is done with all that was appended so far. */
  get written(): Promise<void> | undefined {
    return this.#awaited
  }

  /** The log is being cut: nobody may lead, nor be followed, before it is whole again. */
  get isCutting(): boolean {
    return this.#isCutting
  }

  /** A leader begins here. */
  beginEpoch(epoch: Epoch): void {
    const { latestEpoch, nextOffset } = this.log
    if (latestEpoch === undefined || latestEpoch < epoch) this.log.assignEpoch(epoch, nextOffset)
  }

  /**
   * One batch of a leader, whose producers are known before it is appended. True when the log is done with it already;
   * else the owner is told.
   */
  append(buffer: Buffer, at: number, size: number, firstOffset: Offset): boolean {
    this.#appending = firstOffset
    const written = this.log.appendNow(buffer, at, at + size)
    this.#appending = -1
    return this.#listen(written)
  }

  /**
   * Batches of another's log, one after another: a roll's snapshot of producers speaks of what is before the batch that
   * rolls. True when the log is done with them already; else the owner is told.
   */
  appendFetched(records: Buffer, size: number): boolean {
    this.#appending = this.log.nextOffset
    const written = this.log.appendNow(records, 0, size)
    for (let at = 0; at < size; at += sizeInBytes(records, at)) {
      this.producers.apply(records, at)
      this.#appending = lastOffset(records, at) + 1
    }
    this.#appending = -1
    return this.#listen(written)
  }

  #listen(written: Promise<void> | undefined): boolean {
    if (written === this.#awaited) return written === undefined
    this.#awaited = written
    if (written === undefined) return true
    // Whoever leads or follows by then has to know, also of what was appended in an epoch before.
    written.then(
      () => this.#owner.logSettled(undefined),
      error => {
        if (!(error instanceof StorageError)) throw error
        // The log refuses everything after a failure until it is mended, so nothing newer than this is under way.
        this.#awaited = undefined
        this.#owner.logSettled(error)
      },
    )
    return false
  }

  cut(cut: () => Promise<unknown>): void {
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
    this.#owner.logCut(failed)
  }

  moveHighWatermark(offset: Offset): void {
    if (offset <= this.#highWatermark) return
    this.#highWatermark = offset
    this.watermarkWatchers.tell()
    // Where consumers read from followers, these are to know at once; else it travels with the next records.
    if (this.endWatchers.size > 0 && this.#followersServeConsumers()) this.endWatchers.tell()
  }

  /** Somebody has moved the start of the log. */
  startMoved(): void {
    if (this.#highWatermark < this.log.startOffset) this.#highWatermark = this.log.startOffset
    this.tellAll()
  }

  tellAll(): void {
    this.watermarkWatchers.tell()
    this.endWatchers.tell()
    this.startWatchers.tell()
  }
}
