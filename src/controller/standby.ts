import { assert } from '#base/assert.ts'
import { Complaints } from '#base/complaints.ts'
import { MiB, type Millis, type Offset } from '#base/units.ts'
import { foldBatch } from '#core/metadata/fold.ts'
import type { MetadataImage } from '#core/metadata/image.ts'
import { batchesOf, lastOffset, maxTimestamp } from '#records/batch.ts'
import { StorageError } from '#storage/storage-error.ts'
import { type Clock, type Logger, WorldError } from '#world/world.ts'
import type { Folded, MetadataLog } from './metadata-log.ts'

/** Batches that are not committed yet are kept for when they are; beyond this they are read from the disk again. */
export const TAIL_BYTES_MAX = 64 * MiB
const RETRY_MS = 1000

interface Tail {
  readonly bytes: Buffer
  readonly from: Offset
  readonly endOffset: Offset
}

export interface StandbyOptions {
  readonly log: MetadataLog
  readonly clock: Clock
  readonly logger: Logger
  /** More is folded than before. */
  readonly changed: () => void
  /** A term waits for the image, and the disk does not give what it is read from. */
  readonly unreadable: () => void
}

/**
 * The fold of what is committed, kept up to date while another controller leads, so that a term begins without a reload:
 * only the tail that nobody knew to be committed is folded then. While this node leads the image is the term's, which
 * applies ahead of the commit; when the term ends with more applied than committed, the image is read anew.
 */
export class Standby {
  readonly #options: StandbyOptions
  #image: MetadataImage | undefined
  /** Everything below is in the image. */
  #offset: Offset
  #lastTimestamp: Millis
  /** What follows the image without a gap, as far as it is in memory. */
  #tail: Tail[] = []
  #tailBytes = 0
  /** How far it may be folded. */
  #target: Offset = 0
  #lent = false
  /** Counts what made the image another one; what was under way for the one before is dropped. */
  #generation = 0
  #reading = false
  #waiting: { readonly offset: Offset; readonly resolve: () => void }[] = []
  #stopped = false
  readonly #complaints: Complaints

  constructor(options: StandbyOptions, { image, endOffset, lastTimestamp }: Folded) {
    this.#options = options
    this.#complaints = new Complaints(options.clock, options.logger)
    this.#image = image
    this.#offset = endOffset
    this.#lastTimestamp = lastTimestamp
  }

  /** Undefined while it is read anew. */
  get image(): MetadataImage | undefined {
    return this.#image
  }

  /** Whether a term has the image now. */
  get isLent(): boolean {
    return this.#lent
  }

  /** Everything below is in the image. */
  get offset(): Offset {
    return this.#offset
  }

  get lastTimestamp(): Millis {
    return this.#lastTimestamp
  }

  /** Batches were appended to the log behind those before. */
  appended(bytes: Buffer, from: Offset, endOffset: Offset): void {
    if (this.#lent) return
    const due = this.#tail.at(-1)?.endOffset ?? this.#offset
    // After a gap the disk has to be read anyway, from there on.
    if (from !== due || this.#image === undefined || this.#tailBytes + bytes.length > TAIL_BYTES_MAX) return
    this.#tail.push({ bytes, from, endOffset })
    this.#tailBytes += bytes.length
  }

  /** The log was cut back to this end, which is not below what is committed. */
  truncated(endOffset: Offset): void {
    while ((this.#tail.at(-1)?.endOffset ?? -1) > endOffset) {
      this.#tailBytes -= (this.#tail.pop() as Tail).bytes.length
    }
    this.#target = Math.min(this.#target, Math.max(endOffset, this.#offset))
  }

  committed(highWatermark: Offset): void {
    if (highWatermark <= this.#target) return
    this.#target = highWatermark
    this.#advance()
  }

  /**
   * For a term that begins: folds everything below `endOffset`, committed or not, and lends the image, at once where all
   * of it is in memory.
   */
  lend(endOffset: Offset, take: (image: MetadataImage) => void): void {
    assert(!this.#lent, 'the image is lent to one term at a time')
    this.#target = Math.max(this.#target, endOffset)
    const give = (): void => {
      if (this.#lent || this.#image === undefined) return
      this.#lent = true
      this.#tail = []
      this.#tailBytes = 0
      take(this.#image)
    }
    this.#advance()
    if (this.#image !== undefined && this.#offset >= endOffset) give()
    else this.#waiting.push({ offset: endOffset, resolve: give })
  }

  /** The term is over: its image holds everything below `endOffset`, of which what is below `committed` is certain. */
  giveBack(endOffset: Offset, committed: Offset, lastTimestamp: Millis): void {
    this.#waiting = []
    if (!this.#lent) {
      // It began to fold what may now be cut off.
      this.#target = Math.max(committed, 0)
      if (this.#offset > this.#target) this.#reload()
      return
    }
    this.#lent = false
    this.#offset = endOffset
    this.#lastTimestamp = lastTimestamp
    this.#target = Math.max(committed, 0)
    if (endOffset > committed) this.#reload()
  }

  /** The log begins anew at a snapshot. */
  restart({ image, endOffset, lastTimestamp }: Folded): void {
    this.#generation++
    this.#image = image
    this.#offset = endOffset
    this.#lastTimestamp = lastTimestamp
    this.#target = endOffset
    this.#tail = []
    this.#tailBytes = 0
    this.#options.changed()
  }

  stop(): void {
    this.#stopped = true
    this.#generation++
    this.#waiting = []
  }

  #advance(): void {
    if (this.#lent || this.#stopped) return
    const before = this.#offset
    if (this.#image !== undefined) this.#foldTail(this.#image)
    if (this.#offset < this.#target) void this.#read()
    if (this.#offset > before) this.#options.changed()
    this.#wake()
  }

  #foldTail(image: MetadataImage): void {
    let count = 0
    for (const { bytes, from, endOffset } of this.#tail) {
      if (from > this.#offset) break
      if (endOffset <= this.#target) {
        this.#fold(image, bytes)
        count++
        this.#tailBytes -= bytes.length
        continue
      }
      // Batches that came together may be committed one by one; the rest is kept.
      if (from < this.#target) this.#fold(image, bytes)
      break
    }
    this.#tail.splice(0, count)
  }

  #fold(image: MetadataImage, bytes: Buffer): void {
    for (const at of batchesOf(bytes)) {
      const end = lastOffset(bytes, at) + 1
      if (end <= this.#offset) continue
      if (end > this.#target) return
      foldBatch(image, bytes, at, { from: this.#offset })
      this.#lastTimestamp = maxTimestamp(bytes, at)
      this.#offset = end
    }
  }

  #wake(): void {
    if (this.#image === undefined) return
    const ready = this.#waiting.filter(({ offset }) => offset <= this.#offset)
    this.#waiting = this.#waiting.filter(({ offset }) => offset > this.#offset)
    for (const { resolve } of ready) resolve()
  }

  #reload(): void {
    this.#generation++
    this.#image = undefined
    this.#offset = 0
    this.#tail = []
    this.#tailBytes = 0
    void this.#read()
  }

  /** Reads what is missing from the disk, one at a time; tries again when the disk refuses. */
  async #read(): Promise<void> {
    if (this.#reading || this.#stopped) return
    this.#reading = true
    const { log, clock } = this.#options
    while (!this.#stopped && !this.#lent && (this.#image === undefined || this.#offset < this.#target)) {
      const generation = this.#generation
      const isCurrent = (): boolean => generation === this.#generation && !this.#lent
      try {
        const image = this.#image
        if (image === undefined) {
          const folded = await log.fold(Math.min(this.#target, log.endOffset))
          if (!isCurrent()) continue
          this.#image = folded.image
          this.#offset = folded.endOffset
          this.#lastTimestamp = folded.lastTimestamp
        } else {
          const upTo = Math.min(this.#target, log.endOffset)
          if (upTo <= this.#offset) break
          await log.readThrough(this.#offset, upTo, bytes => {
            if (isCurrent()) this.#fold(image, bytes)
          })
          if (!isCurrent()) continue
        }
        this.#dropFolded()
        this.#options.changed()
        this.#wake()
      } catch (error) {
        if (!(error instanceof StorageError) && !(error instanceof WorldError)) throw error
        this.#complaints.tell(
          'warn',
          'unreadable',
          { folder: log.folder, reason: error.message },
          'the metadata log could not be read, so this controller falls behind; it tries again. Check the disk',
        )
        if (this.#waiting.length > 0) this.#options.unreadable()
        await new Promise<void>(resolve => clock.after(RETRY_MS, resolve))
      }
    }
    this.#reading = false
    // What was appended meanwhile may have come behind the last look.
    if (!this.#stopped && !this.#lent && this.#offset < Math.min(this.#target, log.endOffset)) void this.#read()
  }

  /** What was read from the disk need not be kept; what follows without a gap stays. */
  #dropFolded(): void {
    this.#tail = this.#tail.filter(({ endOffset }) => endOffset > this.#offset)
    if ((this.#tail[0]?.from ?? this.#offset) > this.#offset) this.#tail = []
    this.#tailBytes = this.#tail.reduce((sum, { bytes }) => sum + bytes.length, 0)
  }
}
