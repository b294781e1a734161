import { assert } from '#base/assert.ts'
import { Complaints } from '#base/complaints.ts'
import type { Epoch, Millis, Offset } from '#base/units.ts'
import type { Clock, Disk, Logger, Timer } from '#world/world.ts'
import type { AbortedTransaction, BatchFold } from './batch-fold.ts'
import type { DiskWatch } from './disk-watch.ts'
import { replaceFile } from './files.ts'
import type { EpochEndOffset, LeaderEpochs } from './leader-epochs.ts'
import { LEADER_EPOCH_FILE, type Loaded, loadLog } from './load.ts'
import type { LogConfig } from './log-config.ts'
import type { LogRange } from './log-range.ts'
import { LogReader } from './log-reader.ts'
import { segmentAt, type TimestampOffset } from './lookup.ts'
import type { ProducerSnapshots } from './producer-snapshots.ts'
import { countExpired, type RetentionReason } from './retention.ts'
import type { Segment, SegmentPlace } from './segment.ts'
import { RANGE_GRACE_MS, SegmentCache } from './segment-cache.ts'
import { type StorageError, storageError } from './storage-error.ts'
import { type Syncs, syncEach } from './syncs.ts'
import { WriteTurns } from './write-turns.ts'
import { Writer } from './writer.ts'

export interface LogOptions {
  readonly disk: Disk
  readonly clock: Clock
  readonly log: Logger
  readonly folder: string
  readonly config: LogConfig
  readonly fold: BatchFold
  /** All below it was synced. */
  readonly recoveryPoint: Offset
  /** All below it was synced too, though checking begins at the recovery point. */
  readonly syncedTo?: Offset
  /** Whether the last stop was clean, so that nothing needs to be scanned. */
  readonly clean: boolean
  readonly startOffset: Offset
  /** The folder was made just now and holds no batches. */
  readonly fresh?: boolean
  /** Shared by all logs of a node, so that files and indexes are bounded together. */
  readonly cache?: SegmentCache
  /** Shared by all logs on one disk. */
  readonly turns?: WriteTurns
  /** Shared by all logs on one disk. */
  readonly complaints?: Complaints
  /** Called when the log was cut, or begins anew, before anything is appended: nothing on the disk may say more of it. */
  readonly wasCut?: (() => Promise<void>) | undefined
  /** The same: sees that the disk hangs. */
  readonly watch?: DiskWatch
  /** Why appends are refused though the log is well: its disk hangs. When that begins, `hangs` is to be called. */
  readonly refusal?: () => StorageError | undefined
  /** Called when a sync failed: what was written may be gone, though nobody has cut the power. */
  readonly syncFailed?: (() => void) | undefined
  /** From now on appends are refused. */
  readonly failed?: (() => void) | undefined
}

/**
 * The log of one partition: whole batches in segments, as Kafka lays them out. Offsets in [startOffset, endOffset) can be
 * read. What the disk does wrong rejects with a {@link StorageError}; calls that only read go on while appends are refused.
 */
export class Log {
  readonly #options: LogOptions
  readonly #segments: Segment[]
  readonly #epochs: LeaderEpochs
  readonly #snapshots: ProducerSnapshots
  readonly #writer: Writer
  readonly #reader: LogReader
  readonly #folder: string
  /** The next offset when everything was last written down; -1 when nothing counts that was written. */
  #savedOffset: Offset
  #recoveryPoint: Offset
  #deletions: Set<Timer> | undefined

  private constructor(options: LogOptions, place: SegmentPlace, loaded: Loaded) {
    const { disk, clock, fold, config, wasCut, syncFailed, failed } = options
    const complaints = options.complaints ?? new Complaints(clock, options.log)
    this.#options = options
    this.#folder = options.folder
    this.#segments = loaded.segments
    this.#epochs = loaded.epochs
    this.#snapshots = loaded.snapshots
    this.#writer = new Writer(
      {
        disk,
        clock,
        complaints,
        fold,
        place,
        turns: options.turns ?? new WriteTurns(1),
        wasCut,
        watch: options.watch,
        refusal: options.refusal,
        syncFailed,
        failed,
      },
      config,
      loaded,
    )
    this.#reader = new LogReader(options.folder, complaints, loaded.segments, this.#writer)
    // After recovery there is something to write down, even if nothing is appended.
    this.#savedOffset = loaded.saved ? loaded.endOffset : -1
    this.#recoveryPoint = loaded.durableOffset
  }

  /**
   * Rejects with a {@link StorageError}; with a {@link DamagedLogError} when the log has to be checked and is damaged below
   * what was synced. Only what lies above that is ever cut off.
   */
  static async open(options: LogOptions): Promise<Log> {
    const { disk, clock, log, folder, config, fold, recoveryPoint, clean, startOffset } = options
    const place = { disk, folder, cache: options.cache ?? new SegmentCache(clock) }
    const fresh = options.fresh ?? false
    try {
      const loaded = await loadLog({
        disk,
        clock,
        log,
        place,
        config,
        fold,
        recoveryPoint,
        syncedTo: Math.max(recoveryPoint, options.syncedTo ?? 0),
        clean,
        startOffset,
        fresh,
      })
      return new Log(options, place, loaded)
    } catch (error) {
      throw storageError(error, folder)
    }
  }

  get folder(): string {
    return this.#folder
  }

  /** Where the next append must start: the end offset and what is queued behind it. Falls back to the end offset on failure. */
  get nextOffset(): Offset {
    return this.#writer.nextOffset
  }

  /** Moves when the write returned; with flush.messages reached when the sync did. Never back but by truncation. */
  get endOffset(): Offset {
    return this.#writer.endOffset
  }

  /** Below it everything survives a power cut. */
  get durableOffset(): Offset {
    return this.#writer.durableOffset
  }

  /** Below it everything is durable and the indexes on the disk speak of it: where recovery may begin. */
  get recoveryPoint(): Offset {
    return Math.min(this.#recoveryPoint, this.#writer.durableOffset)
  }

  get startOffset(): Offset {
    return this.#writer.startOffset
  }

  /** Why appends are refused now. */
  get failure(): StorageError | undefined {
    return this.#writer.failure ?? this.#options.refusal?.()
  }

  /** The disk hangs: all that waits for it is refused. What is under way may come back at any time, and never counts. */
  hangs(failure: StorageError): void {
    this.#writer.hangs(failure)
  }

  get config(): LogConfig {
    return this.#writer.config
  }

  get sizeInBytes(): number {
    let size = 0
    for (const segment of this.#segments) size += segment.size
    return size
  }

  get segmentCount(): number {
    return this.#segments.length
  }

  /** Base offset and size of the segment that grows. */
  get activeSegment(): { readonly baseOffset: Offset; readonly sizeInBytes: number } {
    const { baseOffset, size } = this.#active
    return { baseOffset, sizeInBytes: size }
  }

  get #active(): Segment {
    return this.#segments.at(-1) as Segment
  }

  /**
   * Takes the whole batches in `bytes[at, end)`, stamped with offsets that begin at `nextOffset` (or above it, where the
   * leader's log has a gap) and their epoch. The bytes are not copied and must stay as they are until the promise settles.
   * It is the same promise for all that one write takes. Call it before the batches are folded into what is known of
   * producers. Rejects with a StorageError; then nothing of the write counts and the fold is restored.
   */
  append(bytes: Buffer, at = 0, end: number = bytes.length): Promise<void> {
    return this.#writer.append(bytes, at, end)
  }

  /** As `append`; undefined when it is written already, and the end offset has moved. */
  appendNow(bytes: Buffer, at = 0, end: number = bytes.length): Promise<void> | undefined {
    return this.#writer.appendNow(bytes, at, end)
  }

  /**
   * The batches from the one that holds `from` (in [startOffset, endOffset]), as many as lie together, fit in `maxBytes` and
   * end at or below `upTo`; the first of them also when it does not fit. Undefined when there is nothing. Without a promise
   * when it lies in the recent tail.
   */
  read(from: Offset, maxBytes: number, upTo: Offset): LogRange | undefined | Promise<LogRange | undefined> {
    return this.#reader.read(from, maxBytes, upTo, true)
  }

  /** As `read`; undefined also when the first batch does not fit. */
  readFitting(from: Offset, maxBytes: number, upTo: Offset): LogRange | undefined | Promise<LogRange | undefined> {
    return this.#reader.read(from, maxBytes, upTo, false)
  }

  readBytes(range: LogRange): Promise<Buffer> {
    return this.#reader.readBytes(range)
  }

  /**
   * The first record in offset order, from the start offset on, at or after a time; undefined when there is none. Records
   * that cannot be unpacked reject with a RecordsError.
   */
  offsetForTimestamp(timestamp: Millis): Promise<TimestampOffset | undefined> {
    return this.#reader.offsetForTimestamp(timestamp)
  }

  /** The first record that has the highest time of the log; undefined when no record has one. */
  offsetOfMaxTimestamp(): Promise<TimestampOffset | undefined> {
    return this.#reader.offsetOfMaxTimestamp()
  }

  /** A leader begins: its epoch starts at `offset`. */
  assignEpoch(epoch: Epoch, offset: Offset): void {
    this.#epochs.assign(epoch, offset)
  }

  get latestEpoch(): Epoch | undefined {
    return this.#epochs.latest
  }

  get epochs(): readonly { readonly epoch: Epoch; readonly startOffset: Offset }[] {
    return this.#epochs.entries
  }

  /** The leader epoch of the record at `offset`. */
  epochAt(offset: Offset): Epoch | undefined {
    return this.#epochs.epochAt(offset)
  }

  /** Where the largest known epoch that is not above `epoch` ended; undefined when it is above all that is known. */
  endOffsetForEpoch(epoch: Epoch): EpochEndOffset | undefined {
    return this.#epochs.endOffsetFor(epoch, this.nextOffset)
  }

  /** What a reader of committed records has to know of [from, upTo). */
  abortedTransactions(from: Offset, upTo: Offset): Promise<readonly AbortedTransaction[]> {
    return this.#reader.abortedTransactions(from, upTo)
  }

  /** The marker at `lastOffset` was appended. */
  appendAborted(transaction: AbortedTransaction): void {
    const index = Math.max(0, segmentAt(this.#segments, transaction.lastOffset))
    ;(this.#segments[index] as Segment).appendAborted(transaction)
  }

  configure(config: LogConfig): void {
    this.#writer.config = config
  }

  /** Begins a new segment at the end, unless the last one is empty. */
  roll(): Promise<void> {
    return this.#writer.roll()
  }

  /**
   * Cuts off what lies at and after `offset`, with the whole batch that holds it. Returns the new end offset. The fold is
   * brought back to it.
   */
  async truncateTo(offset: Offset): Promise<Offset> {
    await this.#writer.settled()
    return this.#exclusive(async () => {
      if (offset >= this.endOffset) {
        // An epoch of a leader that appended nothing goes as well: another may begin at its offset.
        this.#epochs.truncateFromEnd(this.endOffset)
        return this.endOffset
      }
      this.#savedOffset = -1
      this.#recoveryPoint = Math.min(this.#recoveryPoint, offset)
      if (offset < (this.#segments[0] as Segment).baseOffset) await this.#writer.restartAt(offset)
      else await this.#writer.cutTo(offset)
      return this.endOffset
    })
  }

  /** Throws all records away; the log is empty and begins at `offset`. */
  async truncateFullyAndStartAt(offset: Offset): Promise<void> {
    await this.#writer.settled()
    await this.#exclusive(async () => {
      this.#savedOffset = -1
      this.#recoveryPoint = Math.min(this.#recoveryPoint, offset)
      await this.#writer.restartAt(offset)
    })
  }

  /** A follower of a log, or DeleteRecords: records below `offset` are gone for readers; the files follow with retention. */
  deleteRecordsBefore(offset: Offset): void {
    if (offset <= this.startOffset) return
    assert(offset <= this.endOffset, 'the start offset does not pass the end')
    this.#writer.startOffset = offset
    this.#epochs.truncateFromStart(offset)
  }

  /**
   * Deletes the oldest segments by time, size and start offset, as far as the high watermark. Their files get `.deleted` now
   * and go after file.delete.delay.ms. Returns how many.
   */
  async retain(now: Millis, highWatermark: Offset): Promise<number> {
    const segments = this.#segments
    const { config } = this
    const { cuts } = this.#writer
    try {
      if (segments.length === 1 && this.#active.size === 0) return 0
      // With what is still under way: that a segment holds nothing to keep must hold of all that is appended to it.
      const end = this.nextOffset
      const looked = [...segments]
      let { count, reason } = await countExpired(looked, config, now, highWatermark, this.startOffset, end)
      this.#writer.refuseClosed()
      if (count === segments.length) {
        if (this.failure !== undefined || this.nextOffset !== end) count--
        else await this.roll()
      }
      if (count === 0) return 0
      const removed: Segment[] = []
      try {
        await this.#exclusive(async () => {
          // What was cut, begun anew, or taken away since it was looked at has other segments in the same places.
          if (this.#writer.cuts === cuts && segments[0] === looked[0]) await this.#takeAway(count, removed)
        })
      } finally {
        if (removed.length > 0) this.#removeLater(removed, reason)
      }
      return removed.length
    } catch (error) {
      throw storageError(error, this.#folder)
    }
  }

  /** Moves the oldest segments, but never the last, from the list to `removed`, one by one as their files are renamed. */
  async #takeAway(countMax: number, removed: Segment[]): Promise<void> {
    const segments = this.#segments
    const count = Math.min(countMax, segments.length - 1)
    const start = (segments[count] as Segment).baseOffset
    if (count > 0) this.deleteRecordsBefore(start)
    while (removed.length < count) {
      const segment = segments.shift() as Segment
      try {
        await segment.renameDeleted()
      } catch (error) {
        // Still there, and below the start offset: what the next retention begins with.
        segments.unshift(segment)
        throw error
      }
      removed.push(segment)
    }
    await this.#snapshots.removeBelow(start)
  }

  #removeLater(removed: readonly Segment[], reason: RetentionReason | undefined): void {
    const { folder, config } = this
    this.#options.log.info(
      { folder, segments: removed.length, reason, startOffset: this.startOffset },
      'deleted old segments',
    )
    const timer = this.#options.clock.after(Math.max(config.fileDeleteDelayMs, RANGE_GRACE_MS), () => {
      this.#deletions?.delete(timer)
      this.#writer.later(async () => {
        for (const segment of removed) await segment.removeDeleted()
      })
    })
    this.#deletions ??= new Set()
    this.#deletions.add(timer)
  }

  async #exclusive<T>(task: () => Promise<T>): Promise<T> {
    try {
      return await this.#writer.exclusive(async () => {
        // What was under way when the log was closed would find another one in its folder, of a topic that was made anew.
        this.#writer.refuseClosed()
        return await task()
      })
    } catch (error) {
      throw storageError(error, this.#folder)
    }
  }

  /** Makes everything durable that was appended before. */
  flush(): Promise<void> {
    return this.#writer.flush()
  }

  /** An epoch without records, or an older start, is no reason: a start forgets the one and finds the other by itself. */
  get hasUnsaved(): boolean {
    return this.nextOffset !== this.#savedOffset
  }

  /**
   * Writes down what makes the next start short: syncs, then the indexes, epochs and producers. Nothing to do costs nothing.
   * Moves the recovery point.
   */
  async checkpoint(syncs: Syncs = syncEach(this.#options.disk)): Promise<void> {
    if (!this.hasUnsaved) return
    const offset = this.nextOffset
    // Taken now, because it goes with this offset; written when that is durable.
    const producers = this.#options.fold.snapshot()
    const { cuts } = this.#writer
    try {
      await this.#writer.flush(syncs)
      await this.#writer.background()
      await this.#exclusive(async () => {
        if (this.#writer.cuts !== cuts || this.endOffset < offset) return
        for (const segment of this.#segments) await segment.writeIndexes(syncs)
        await this.#writeEpochs(syncs)
        const { newest } = this.#snapshots
        if (offset > (newest ?? (this.#segments[0] as Segment).baseOffset)) {
          await this.#snapshots.write(offset, producers, this.#writer.bases(), syncs)
          // A clean start believes the newest snapshot: its name has to be there.
          await syncs.folder(this.#folder)
        }
        this.#savedOffset = offset
        this.#recoveryPoint = offset
      })
    } catch (error) {
      throw storageError(error, this.#folder)
    }
  }

  async #writeEpochs(syncs: Syncs): Promise<void> {
    if (!this.#epochs.dirty) return
    this.#epochs.dirty = false
    try {
      await replaceFile(this.#options.disk, this.#folder, LEADER_EPOCH_FILE, this.#epochs.encode(), syncs)
    } catch (error) {
      this.#epochs.dirty = true
      throw error
    }
  }

  /** A clean stop: all is written down. Rejects when the disk does not take it; the next start then has to recover. */
  async close(syncs?: Syncs): Promise<void> {
    await this.#writer.settled()
    try {
      // What is cut at the same time makes what was about to be written down wrong, and it is not.
      do {
        if (this.#writer.failure !== undefined) throw this.#writer.failure
        await this.checkpoint(syncs)
      } while (this.hasUnsaved)
    } finally {
      await this.abandon()
    }
  }

  /** Stops without writing anything down, for a log that is deleted or whose folder failed. */
  async abandon(): Promise<void> {
    // What they would have removed goes at the next start.
    for (const timer of this.#deletions ?? []) timer.cancel()
    this.#deletions = undefined
    await this.#writer.stop()
    for (const segment of this.#segments) segment.leave()
  }
}
