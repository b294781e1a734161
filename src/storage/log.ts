import { assert } from '#base/assert.ts'
import type { Epoch, Millis, Offset } from '#base/units.ts'
import type { Clock, Disk, File, Logger } from '#world/world.ts'
import type { AbortedTransaction, BatchFold } from './batch-fold.ts'
import type { LogConfig } from './log-config.ts'
import type { StorageError } from './storage-error.ts'

export interface LogOptions {
  readonly disk: Disk
  readonly clock: Clock
  readonly log: Logger
  readonly folder: string
  readonly config: LogConfig
  readonly fold: BatchFold
  /** All below it was synced. */
  readonly recoveryPoint: Offset
  /** Whether the last stop was clean, so that nothing needs to be scanned. */
  readonly clean: boolean
  readonly startOffset: Offset
}

/** Whole batches that lie together in one file. Stays readable for half a minute, whatever is deleted meanwhile. */
export interface LogRange {
  readonly file: File
  readonly position: number
  readonly size: number
  /** The offset after the last batch: where to read on. */
  readonly nextOffset: Offset
}

export interface TimestampOffset {
  readonly timestamp: Millis
  readonly offset: Offset
  readonly leaderEpoch: Epoch
}

export interface EpochEndOffset {
  readonly leaderEpoch: Epoch
  readonly endOffset: Offset
}

export class Log {
  static open(_options: LogOptions): Promise<Log> {
    return unbuilt()
  }
  /** Where the next append must start: the end offset and what is queued behind it. */
  get nextOffset(): Offset {
    return unbuilt()
  }
  get endOffset(): Offset {
    return unbuilt()
  }
  get durableOffset(): Offset {
    return unbuilt()
  }
  get startOffset(): Offset {
    return unbuilt()
  }
  get sizeInBytes(): number {
    return unbuilt()
  }
  /** Why appends are refused now. */
  get failure(): StorageError | undefined {
    return unbuilt()
  }
  /** Whole batches, stamped; kept (not copied) until the promise settles. The same promise for all that one write takes. */
  append(_bytes: Buffer, _at: number, _end: number): Promise<void> {
    return unbuilt()
  }
  /** `from` in [startOffset, endOffset]; only batches that end at or below `upTo`. Undefined: nothing (that fits). */
  read(
    _from: Offset,
    _maxBytes: number,
    _upTo: Offset,
    _minOneBatch: boolean,
  ): LogRange | undefined | Promise<LogRange | undefined> {
    return unbuilt()
  }
  readBytes(_range: LogRange): Promise<Buffer> {
    return unbuilt()
  }
  offsetForTimestamp(_timestamp: Millis): Promise<TimestampOffset | undefined> {
    return unbuilt()
  }
  offsetOfMaxTimestamp(): Promise<TimestampOffset | undefined> {
    return unbuilt()
  }
  /** A leader begins: its epoch starts at `offset`. */
  assignEpoch(_epoch: Epoch, _offset: Offset): void {
    unbuilt()
  }
  get latestEpoch(): Epoch | undefined {
    return unbuilt()
  }
  endOffsetForEpoch(_epoch: Epoch): EpochEndOffset | undefined {
    return unbuilt()
  }
  abortedTransactions(_from: Offset, _upTo: Offset): Promise<readonly AbortedTransaction[]> {
    return unbuilt()
  }
  appendAborted(_transaction: AbortedTransaction): void {
    unbuilt()
  }
  configure(_config: LogConfig): void {
    unbuilt()
  }
  roll(): Promise<void> {
    return unbuilt()
  }
  truncateTo(_offset: Offset): Promise<Offset> {
    return unbuilt()
  }
  truncateFullyAndStartAt(_offset: Offset): Promise<void> {
    return unbuilt()
  }
  deleteRecordsBefore(_offset: Offset): void {
    unbuilt()
  }
  retain(_now: Millis, _highWatermark: Offset): Promise<void> {
    return unbuilt()
  }
  flush(): Promise<void> {
    return unbuilt()
  }
  checkpoint(): Promise<void> {
    return unbuilt()
  }
  close(): Promise<void> {
    return unbuilt()
  }
}

function unbuilt(): never {
  assert(false, 'not built yet')
}
