import { assert } from '#base/assert.ts'
import type { Millis, Offset } from '#base/units.ts'
import type { Disk, File } from '#world/world.ts'
import type { AbortedTransaction } from './batch-fold.ts'
import { BatchWalk } from './batch-walk.ts'
import { isMissing, offsetName, overwriteFile } from './files.ts'
import { OffsetIndex } from './offset-index.ts'
import { RecentBatches } from './recent-batches.ts'
import type { SegmentCache } from './segment-cache.ts'
import { SegmentFile } from './segment-file.ts'
import { StorageError } from './storage-error.ts'
import { type Syncs, syncEach } from './syncs.ts'
import { TimeIndex } from './time-index.ts'
import { decodeTxnIndex, encodeTxnIndex } from './txn-index.ts'

export const LOG_SUFFIX = '.log'
export const OFFSET_INDEX_SUFFIX = '.index'
const TIME_INDEX_SUFFIX = '.timeindex'
export const TXN_INDEX_SUFFIX = '.txnindex'
export const SEGMENT_SUFFIXES = [LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX] as const

/** How far apart two entries of the indexes are when nothing else is said, as when they are built anew. */
const INDEX_INTERVAL_BYTES = 4096

export interface Indexes {
  readonly offsets: OffsetIndex
  readonly times: TimeIndex
}

export interface SegmentPlace {
  readonly disk: Disk
  readonly cache: SegmentCache
  readonly folder: string
}

/**
 * One file of batches and its indexes. The active one (the last of a log) has its indexes and the ends of its recent
 * batches in memory and writes the indexes when it is sealed; a sealed one loads them when it is asked.
 */
export class Segment {
  readonly #place: SegmentPlace
  readonly baseOffset: Offset
  /** Bytes that were written, whole batches. */
  size = 0
  /** -1: no record has a time. Only known when the indexes were seen. */
  #maxTimestamp: Millis = -1
  #maxTimestampRelative = 0
  /** The highest time of the first batch, which ages the segment. -1 when empty or not known. */
  firstTimestamp: Millis = -1
  /** When this process first saw it; ages a segment whose records have no time. */
  readonly since: Millis
  #sinceIndexEntry = 0
  #indexes: Indexes | undefined
  /** Loaded with the indexes of an active segment; undefined when not loaded. */
  #aborted: AbortedTransaction[] | undefined
  /** There is a file of them; it is only made when there is something to put in. */
  #hasTxnIndex = false
  #indexesChanged = false
  #recent: RecentBatches | undefined
  readonly #file: SegmentFile
  #cursors: number[] | undefined
  /** Counts the times when positions that were found before ceased to hold. */
  cuts = 0
  /** Holds bytes that were not synced. */
  unsynced = false
  /** Its name may be lost in a power cut. */
  nameUnsynced = false

  constructor(place: SegmentPlace, baseOffset: Offset, since: Millis) {
    this.#place = place
    this.baseOffset = baseOffset
    this.since = since
    this.#file = new SegmentFile(place, this)
  }

  path(suffix: string): string {
    return `${this.#place.folder}/${offsetName(this.baseOffset, suffix)}`
  }

  get filePath(): string {
    return this.path(LOG_SUFFIX)
  }

  /** It is the one that grows: its file is not closed behind its back, and its indexes stay in memory. */
  get busy(): boolean {
    return this.#file.busy
  }

  set busy(busy: boolean) {
    this.#file.busy = busy
  }

  /** The file, if it is open. Says that it is in use. */
  get file(): File | undefined {
    return this.#file.current
  }

  get writableFile(): File | undefined {
    return this.#file.writable
  }

  /** The file for readers; rejects when there is none. */
  open(): Promise<File> {
    return this.#file.open()
  }

  /** The file for the writer, who makes it when there is none. */
  openWritable(): Promise<File> {
    return this.#file.openWritable()
  }

  /** Whoever sends from the file now goes on; others open it anew. */
  closeFile(): void {
    this.#file.close()
  }

  get hasLeft(): boolean {
    return this.#file.hasLeft
  }

  /** The log is closed: nobody opens the file any more, or makes indexes of it. */
  leave(): void {
    this.#file.leave()
  }

  get indexBytes(): number {
    return this.#indexes === undefined ? 0 : Math.max(this.#indexes.offsets.bytes, this.#indexes.times.bytes)
  }

  /** Begins with nothing: a segment that was just made, or is about to be built anew. */
  reset(): void {
    this.size = 0
    this.#maxTimestamp = -1
    this.#maxTimestampRelative = 0
    this.firstTimestamp = -1
    this.#sinceIndexEntry = 0
    this.#indexes = { offsets: new OffsetIndex(), times: new TimeIndex() }
    this.#place.cache.forgetIndexes(this)
    this.#aborted = []
    this.#indexesChanged = true
    this.#recent = undefined
    this.#cursors = undefined
    this.cuts++
  }

  /** A batch lies at the end of the file now. */
  added(baseOffset: Offset, lastOffset: Offset, bytes: number, timestamp: Millis, indexIntervalBytes: number): void {
    const indexes = this.#indexes
    assert(indexes !== undefined, 'a segment that grows has its indexes in memory')
    const relative = lastOffset - this.baseOffset
    const position = this.size
    if (position === 0) this.firstTimestamp = timestamp
    if (timestamp > this.#maxTimestamp) {
      this.#maxTimestamp = timestamp
      this.#maxTimestampRelative = relative
    }
    if (this.#sinceIndexEntry > indexIntervalBytes) {
      indexes.offsets.append(relative, position)
      indexes.times.append(this.#maxTimestamp, this.#maxTimestampRelative)
      this.#sinceIndexEntry = 0
    }
    this.#indexesChanged = true
    this.#sinceIndexEntry += bytes
    this.#recent ??= new RecentBatches(baseOffset - this.baseOffset - 1, position)
    this.size = position + bytes
    this.#recent.add(relative, this.size)
  }

  /** The ends of the last batches, for a segment that grows. */
  get recent(): RecentBatches | undefined {
    return this.#recent
  }

  /** Offset and position pairs at which readers stopped, who will go on there. */
  cursor(offset: Offset): number | undefined {
    const cursors = this.#cursors
    if (cursors === undefined) return undefined
    for (let index = 0; index < cursors.length; index += 2) {
      if (cursors[index] === offset) return cursors[index + 1]
    }
    return undefined
  }

  /** `cuts` is that of when the position was looked for. */
  remember(offset: Offset, position: number, cuts: number): void {
    if (cuts !== this.cuts) return
    this.#cursors ??= []
    if (this.#cursors.length >= CURSORS * 2) this.#cursors.splice(0, 2)
    this.#cursors.push(offset, position)
  }

  /** The indexes, loaded or built anew when the files are missing or make no sense. `size` must be known. */
  async indexes(): Promise<Indexes> {
    if (this.#indexes !== undefined) {
      if (!this.busy) this.#place.cache.usedIndexes(this, indexesBytes(this.#indexes))
      return this.#indexes
    }
    const loaded = await this.#readIndexes()
    if (this.#indexes !== undefined) return this.#indexes
    if (loaded !== undefined) {
      this.#indexes = loaded
      this.#takeMaxTimestamp(loaded.times)
    }
    const indexes = loaded ?? (await this.#buildIndexes())
    if (!this.busy) this.#place.cache.usedIndexes(this, indexesBytes(indexes))
    return indexes
  }

  async #readIndexes(): Promise<Indexes | undefined> {
    const { disk } = this.#place
    const [offsetBytes, timeBytes] = await Promise.all([
      disk.readFile(this.path(OFFSET_INDEX_SUFFIX)),
      disk.readFile(this.path(TIME_INDEX_SUFFIX)),
    ])
    if (offsetBytes === undefined || timeBytes === undefined) return undefined
    const offsets = OffsetIndex.decode(offsetBytes, this.size)
    const times = TimeIndex.decode(timeBytes)
    return offsets === undefined || times === undefined ? undefined : { offsets, times }
  }

  #takeMaxTimestamp(times: TimeIndex): void {
    const last = times.count - 1
    this.#maxTimestamp = last < 0 ? -1 : times.timestamp(last)
    this.#maxTimestampRelative = last < 0 ? 0 : times.relativeOffset(last)
  }

  /** For a sealed segment: from the headers of its batches, without their CRC. */
  async #buildIndexes(): Promise<Indexes> {
    const { copy, indexes } = this.#copyOf({ offsets: new OffsetIndex(), times: new TimeIndex() })
    await copy.#walkOn(await this.open(), this.size, 65_536)
    this.#indexes = indexes
    this.#maxTimestamp = copy.#maxTimestamp
    this.#maxTimestampRelative = copy.#maxTimestampRelative
    indexes.times.append(this.#maxTimestamp, this.#maxTimestampRelative)
    // Of a file that is damaged they would say less than there is, also when it is restored.
    this.#indexesChanged = copy.size === this.size
    // Only a saving for the next time; a disk that does not take them changes nothing.
    if (!this.hasLeft) await this.writeIndexes().catch(() => undefined)
    return indexes
  }

  /** A segment of its own that ends where the last entry of `indexes` stands, to be walked on while readers use this one. */
  #copyOf(indexes: Indexes): { readonly copy: Segment; readonly indexes: Indexes } {
    const copy = new Segment(this.#place, this.baseOffset, this.since)
    const slot = indexes.offsets.count - 1
    copy.size = slot < 0 ? 0 : indexes.offsets.position(slot)
    copy.#indexes = indexes
    copy.#takeMaxTimestamp(indexes.times)
    return { copy, indexes }
  }

  /** Adds the batches between `size` and `limit`. Returns the offset after the last one; undefined when there is none. */
  async #walkOn(file: File, limit: number, chunkBytes?: number): Promise<Offset | undefined> {
    const walk = new BatchWalk(file, this.size, limit, { chunkBytes })
    let end: Offset | undefined
    while (walk.here() || (await walk.load())) {
      this.added(walk.baseOffset, walk.lastOffset, walk.size, walk.maxTimestamp, INDEX_INTERVAL_BYTES)
      end = walk.lastOffset + 1
      walk.advance()
    }
    return end
  }

  /**
   * Makes the segment the one that grows: its indexes stay in memory, and what lies behind their last entry is walked,
   * which gives the end. Returns the offset after the last batch, or undefined when the file does not end in a whole
   * batch and has to be recovered. `bytes` is how much of the file counts, `below` an offset that it does not reach.
   */
  async resume(bytes: number, below: Offset = Number.POSITIVE_INFINITY): Promise<Offset | undefined> {
    this.busy = true
    if (bytes === 0) {
      this.reset()
      return this.baseOffset
    }
    this.size = bytes
    await this.loadAborted()
    const read = await this.#readIndexes()
    const changed = this.#indexesChanged || below < Number.POSITIVE_INFINITY
    const end = await this.#endAt(bytes, below, read ?? { offsets: new OffsetIndex(), times: new TimeIndex() })
    if (changed) this.#indexesChanged = true
    return end
  }

  /**
   * Takes the first `bytes`, which end below `below`, for all there is. Until that is known to the last batch, and when it
   * turns out not to be so (undefined), readers find what they found before.
   */
  async #endAt(bytes: number, below: Offset, { offsets, times }: Indexes): Promise<Offset | undefined> {
    const timesBelow = times.before(below - this.baseOffset)
    // A time index that is shorter than the offset index lost its tail: then the highest time is not known before the end.
    const { copy } = this.#copyOf({ offsets: offsets.before(timesBelow.count === 0 ? 0 : bytes), times: timesBelow })
    const isWalkedWhole = copy.size === 0
    const file = await this.open()
    const end = await copy.#walkOn(file, bytes)
    if (copy.size !== bytes) return undefined
    const first = new BatchWalk(file, 0, bytes, { chunkBytes: 128 })
    if (!isWalkedWhole && (await first.load())) copy.firstTimestamp = first.maxTimestamp
    this.size = bytes
    this.#maxTimestamp = copy.#maxTimestamp
    this.#maxTimestampRelative = copy.#maxTimestampRelative
    this.firstTimestamp = copy.firstTimestamp
    this.#sinceIndexEntry = copy.#sinceIndexEntry
    this.#indexes = copy.#indexes
    this.#place.cache.forgetIndexes(this)
    this.#recent = copy.#recent
    this.#cursors = undefined
    this.cuts++
    // What was walked may have brought a time that the file does not know.
    const last = timesBelow.count - 1
    this.#indexesChanged = this.#maxTimestamp > (last < 0 ? -1 : timesBelow.timestamp(last))
    return end
  }

  /**
   * Cuts the file at the start of a batch, before which all end below `below`; the segment is the one that grows from then
   * on. Returns its new end. Readers below that find at any time what they look for.
   */
  async truncate(position: number, below: Offset): Promise<Offset> {
    this.busy = true
    const indexes = await this.indexes()
    await this.loadAborted()
    const file = await this.openWritable()
    let end: Offset | undefined = this.baseOffset
    if (position === 0) this.reset()
    else end = await this.#endAt(position, below, indexes)
    if (end === undefined) throw this.unreadable()
    this.#aborted = this.#aborted?.filter(transaction => transaction.lastOffset < below)
    this.unsynced = true
    this.#indexesChanged = true
    // What lies behind `size` is nobody's any more: an attempt that fails from here on is made again.
    await file.truncate(position)
    // The files still speak of what was cut off; left so, they would be believed for what comes in its place.
    await this.writeIndexes()
    return end
  }

  /** For whoever finds less in the file than was written to it, or something else. */
  unreadable(position?: number): StorageError {
    const where = this.path(LOG_SUFFIX) + (position === undefined ? '' : `, position ${position}`)
    return new StorageError('EIO', this.#place.folder, `${where}: the disk does not give back what was written`)
  }

  /** A walk up to `limit` has ended where no batch is. Not so when the segment was cut meanwhile: that is no damage. */
  isDamagedAt({ damaged }: BatchWalk, limit: number): boolean {
    return damaged && this.size >= limit
  }

  /**
   * The first batch that ends at or after `offset`, as a walk that stands on it; undefined when none does. Rejects with a
   * StorageError when damage lies before it: what comes behind is not there for a reader, and is not gone either.
   */
  async seek(offset: Offset): Promise<BatchWalk | undefined> {
    const file = await this.open()
    const { offsets } = await this.indexes()
    const slot = offsets.floorOffset(Math.min(offset - this.baseOffset, 0x7fff_ffff))
    const { size } = this
    const walk = new BatchWalk(file, slot < 0 ? 0 : offsets.position(slot), size)
    while (walk.here() || (await walk.load())) {
      if (walk.lastOffset >= offset) return walk
      walk.advance()
    }
    if (this.isDamagedAt(walk, size)) throw this.unreadable(walk.position)
    return undefined
  }

  async maxTimestamp(): Promise<Millis> {
    if (this.#indexes === undefined) await this.indexes()
    return this.#maxTimestamp
  }

  /** The end of the batch that brought the highest time. */
  get maxTimestampOffset(): Offset {
    return this.baseOffset + this.#maxTimestampRelative
  }

  /** The folder has no index of aborted transactions for it. */
  hasNoAborted(): void {
    this.#aborted = []
  }

  /** The aborted transactions whose markers lie in this segment. */
  async loadAborted(): Promise<AbortedTransaction[]> {
    if (this.#aborted !== undefined) return this.#aborted
    const bytes = await this.#place.disk.readFile(this.path(TXN_INDEX_SUFFIX))
    if (bytes !== undefined) this.#hasTxnIndex = true
    this.#aborted ??= bytes === undefined ? [] : decodeTxnIndex(bytes)
    return this.#aborted
  }

  appendAborted(transaction: AbortedTransaction): void {
    this.#aborted ??= []
    const last = this.#aborted.at(-1)
    if (last !== undefined && last.lastOffset >= transaction.lastOffset) return
    this.#aborted.push(transaction)
    this.#indexesChanged = true
  }

  /** Writes the indexes, with the final time entry that Kafka puts at the end of a segment. */
  async writeIndexes(syncs: Syncs = syncEach(this.#place.disk)): Promise<void> {
    if (!this.#indexesChanged || this.#indexes === undefined) return
    const { disk } = this.#place
    const { offsets, times } = this.#indexes
    this.#indexesChanged = false
    try {
      times.append(this.#maxTimestamp, this.#maxTimestampRelative)
      await overwriteFile(disk, this.path(OFFSET_INDEX_SUFFIX), offsets.encode(), syncs)
      await overwriteFile(disk, this.path(TIME_INDEX_SUFFIX), times.encode(), syncs)
      if (this.#aborted !== undefined && (this.#aborted.length > 0 || this.#hasTxnIndex)) {
        this.#hasTxnIndex = true
        await overwriteFile(disk, this.path(TXN_INDEX_SUFFIX), encodeTxnIndex(this.#aborted), syncs)
      }
    } catch (error) {
      this.#indexesChanged = true
      throw error
    }
  }

  /** Grows no more: what only the active segment needs is given up once the indexes are written. */
  seal(): void {
    this.busy = false
    this.#recent = undefined
    if (this.#indexes !== undefined) this.#place.cache.usedIndexes(this, indexesBytes(this.#indexes))
  }

  /** Indexes that are not on the disk yet stay. */
  dropIndexes(): void {
    if (this.busy || this.#indexesChanged) return
    this.#indexes = undefined
    this.#aborted = undefined
  }

  /**
   * Adds `.deleted` to the names, so that a crash does not bring the segment back. To that of the log last: where one of
   * them fails the segment is still there, indexes are made anew, and what is appended to it after a cut has to stay.
   */
  async renameDeleted(): Promise<void> {
    const { disk } = this.#place
    for (const suffix of SEGMENT_SUFFIXES.toReversed()) {
      await disk.rename(this.path(suffix), `${this.path(suffix)}.deleted`).catch(ignoreMissing)
    }
  }

  /** Removes the files. */
  async removeFiles(): Promise<void> {
    await this.#remove(SEGMENT_SUFFIXES)
  }

  /** Removes the files that were renamed to `.deleted`. */
  async removeDeleted(): Promise<void> {
    await this.#remove(SEGMENT_SUFFIXES.map(suffix => `${suffix}.deleted`))
  }

  async #remove(suffixes: readonly string[]): Promise<void> {
    this.#place.cache.forgetIndexes(this)
    this.#file.retire()
    for (const suffix of suffixes) await this.#place.disk.remove(this.path(suffix))
  }
}

const CURSORS = 4

function indexesBytes({ offsets, times }: Indexes): number {
  return offsets.bytes + times.bytes
}

function ignoreMissing(error: unknown): void {
  if (!isMissing(error)) throw error
}
