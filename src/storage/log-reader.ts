import type { Complaints } from '#base/complaints.ts'
import type { Millis, Offset } from '#base/units.ts'
import type { AbortedTransaction } from './batch-fold.ts'
import { type LogRange, rangeOf, recentRange } from './log-range.ts'
import { findMaxTimestamp, findTimestamp, segmentAt, type TimestampOffset } from './lookup.ts'
import type { Segment } from './segment.ts'
import { type StorageError, storageError } from './storage-error.ts'
import { collectAborted } from './txn-index.ts'

/** Where a log begins and ends at this moment. */
export interface LogBounds {
  readonly startOffset: Offset
  readonly endOffset: Offset
  /** With what is under way. */
  readonly nextOffset: Offset
}

/** Reads a log's segments. They may come and go meanwhile, also while appends are refused. */
export class LogReader {
  readonly #folder: string
  readonly #complaints: Complaints
  readonly #segments: readonly Segment[]
  readonly #bounds: LogBounds

  constructor(folder: string, complaints: Complaints, segments: readonly Segment[], bounds: LogBounds) {
    this.#folder = folder
    this.#complaints = complaints
    this.#segments = segments
    this.#bounds = bounds
  }

  /** As `Log.read`; without `minOneBatch` undefined also when the first batch does not fit. */
  read(
    from: Offset,
    maxBytes: number,
    upTo: Offset,
    minOneBatch: boolean,
  ): LogRange | undefined | Promise<LogRange | undefined> {
    const below = Math.min(upTo, this.#bounds.endOffset)
    if (from >= below) return undefined
    const active = this.#segments.at(-1) as Segment
    const found = from < active.baseOffset ? null : recentRange(active, from, maxBytes, below, minOneBatch)
    if (found !== null) return found
    return this.#readCold(from, maxBytes, below, minOneBatch)
  }

  async #readCold(from: Offset, maxBytes: number, below: Offset, minOneBatch: boolean): Promise<LogRange | undefined> {
    try {
      const first = Math.max(0, segmentAt(this.#segments, from))
      for (let index = first; index < this.#segments.length; index++) {
        const segment = this.#segments[index] as Segment
        if (segment.baseOffset >= below) return undefined
        const start = segment.cursor(from) ?? (await segment.seek(from))?.position
        // Compaction may leave nothing at the end of a segment; then the next one has what comes after.
        if (start === undefined || start >= segment.size) continue
        const end = this.#segments[index + 1]?.baseOffset ?? this.#bounds.nextOffset
        return await rangeOf(segment, start, maxBytes, below, end, minOneBatch)
      }
      return undefined
    } catch (error) {
      const failure = storageError(error, this.#folder)
      // A log that was closed meanwhile tells nothing of the disk.
      throw this.#segments[0]?.hasLeft === true ? failure : this.#unreadable(failure)
    }
  }

  #unreadable(failure: StorageError): StorageError {
    const { message, errno } = failure
    this.#complaints.tell(
      'error',
      `unreadable ${errno}`,
      { folder: this.#folder, errno },
      `refusing reads with KAFKA_STORAGE_ERROR (${message}); check the disk, and restore the file from a backup. Consumers can seek behind it`,
    )
    return failure
  }

  async readBytes({ file, position, size }: LogRange): Promise<Buffer> {
    const bytes = Buffer.allocUnsafe(size)
    try {
      const count = await file.read(bytes, position)
      return count === size ? bytes : bytes.subarray(0, count)
    } catch (error) {
      throw storageError(error, this.#folder)
    }
  }

  offsetForTimestamp(timestamp: Millis): Promise<TimestampOffset | undefined> {
    const { startOffset, endOffset } = this.#bounds
    return this.#lookUp(() => findTimestamp([...this.#segments], timestamp, startOffset, endOffset))
  }

  offsetOfMaxTimestamp(): Promise<TimestampOffset | undefined> {
    return this.#lookUp(() => findMaxTimestamp([...this.#segments]))
  }

  async #lookUp<T>(find: () => Promise<T>): Promise<T> {
    try {
      return await find()
    } catch (error) {
      if (error instanceof Error && error.name === 'RecordsError') throw error
      throw storageError(error, this.#folder)
    }
  }

  async abortedTransactions(from: Offset, upTo: Offset): Promise<readonly AbortedTransaction[]> {
    const found: AbortedTransaction[] = []
    for (const segment of this.#segments.slice(Math.max(0, segmentAt(this.#segments, from)))) {
      if (collectAborted(await segment.loadAborted(), from, upTo, found)) break
    }
    return found
  }
}
