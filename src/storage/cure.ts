import type { Complaints } from '#base/complaints.ts'
import { KiB, MiB, type Millis, type Offset } from '#base/units.ts'
import type { Clock, Timer } from '#world/world.ts'
import type { Segment, SegmentPlace } from './segment.ts'
import { cureOf, HungDiskError, type StorageError, storageError } from './storage-error.ts'

const CURE_AFTER_MS: Millis = 250
const CURE_AFTER_MS_MAX: Millis = 5_000
const PROBE_BYTES = 64 * KiB

export interface CureOptions {
  readonly clock: Clock
  readonly complaints: Complaints
  readonly place: SegmentPlace
}

/** The log that is to be cured: its end, as {@link Cure} needs it. */
export interface Patient {
  /** At least one; the last is the one that grows. */
  readonly segments: readonly Segment[]
  readonly endOffset: Offset
  readonly durableOffset: Offset
  exclusive(task: () => Promise<void>): Promise<void>
  /** Takes away what the failure may have left behind the end offset. */
  cutOff(): Promise<void>
  /** Appends are taken again. */
  cured(): void
}

/**
 * What becomes of a log whose disk failed: from the first failure on it refuses appends, and it is tried again and again,
 * less and less often, to cut off what may have been written behind the end offset, to make durable what a failed sync
 * left open, and to write and sync a probe. When all of that succeeds the failure is over.
 */
export class Cure {
  readonly #options: CureOptions
  readonly #patient: Patient
  /** Why appends are refused now. */
  failure: StorageError | undefined
  #timer: Timer | undefined
  #afterMs = CURE_AFTER_MS
  #syncFailed = false
  #awaitsProof = false
  #stopped = false

  constructor(options: CureOptions, patient: Patient) {
    this.#options = options
    this.#patient = patient
  }

  /** The disk failed. Of several failures the first is the one that counts. */
  begin(failure: StorageError, ofSync: boolean): void {
    if (ofSync) this.#syncFailed = true
    const before = this.failure
    // Of a disk that hangs everybody hears once, from who watches it; what it says when it answers is news.
    if (before !== undefined && !(before instanceof HungDiskError)) return
    this.failure = failure
    if (!(failure instanceof HungDiskError)) this.#complain(failure)
    if (before === undefined) this.#plan()
  }

  #complain({ errno, message }: StorageError): void {
    const { complaints, place } = this.#options
    complaints.tell(
      'error',
      `refusing ${errno}`,
      { folder: place.folder, errno, endOffset: this.#patient.endOffset },
      `refusing writes with KAFKA_STORAGE_ERROR because the disk does not take them (${message}); ${cureOf(errno)}. Reads go on`,
    )
  }

  #plan(): void {
    if (this.#stopped) return
    this.#timer = this.#options.clock.after(this.#afterMs, () => {
      this.#timer = undefined
      this.#patient.exclusive(() => this.#attempt())
    })
    this.#afterMs = Math.min(this.#afterMs * 2, CURE_AFTER_MS_MAX)
  }

  async #attempt(): Promise<void> {
    if (this.#stopped || this.failure === undefined) return
    const rewrites = this.#syncFailed
    this.#syncFailed = false
    try {
      await this.#patient.cutOff()
      if (rewrites) await this.#rewriteUnsynced()
      await this.#probe()
    } catch (error) {
      this.#syncFailed ||= rewrites
      this.#complain(storageError(error, this.#options.place.folder))
      this.#plan()
      return
    }
    // A sync of somebody else failed meanwhile, who has heard of it in place of those here.
    if (this.#syncFailed) {
      this.#plan()
      return
    }
    this.failure = undefined
    this.#awaitsProof = true
    this.#patient.cured()
  }

  /** A sync that failed may have marked pages clean that never reached the disk: they are made dirty once more. */
  async #rewriteUnsynced(): Promise<void> {
    const { segments, durableOffset } = this.#patient
    const first = segments.findLastIndex(segment => segment.baseOffset <= durableOffset)
    for (const segment of segments.slice(Math.max(0, first))) {
      if (segment.size === 0) continue
      const file = await segment.openWritable()
      const from = (await segment.seek(durableOffset))?.position ?? segment.size
      const piece = Buffer.allocUnsafe(Math.min(MiB, Math.max(0, segment.size - from)))
      for (let position = from; position < segment.size; position += piece.length) {
        const part = piece.subarray(0, Math.min(piece.length, segment.size - position))
        if ((await file.read(part, position)) < part.length) throw segment.unreadable()
        await file.write([part], position)
      }
      await file.sync()
    }
  }

  /** Whether the disk takes as much as a small append. */
  async #probe(): Promise<void> {
    const active = this.#patient.segments.at(-1) as Segment
    const file = await active.openWritable()
    try {
      await file.write([Buffer.alloc(PROBE_BYTES)], active.size)
    } finally {
      await file.truncate(active.size)
    }
    await file.sync()
  }

  /** A write succeeded: the first one after a cure proves it. */
  wrote(): void {
    if (!this.#awaitsProof) return
    this.#awaitsProof = false
    this.#afterMs = CURE_AFTER_MS
    const { complaints, place } = this.#options
    const fields = { folder: place.folder, endOffset: this.#patient.endOffset }
    complaints.tell('info', 'cured', fields, 'the disk takes writes again; appends go on')
  }

  stop(): void {
    this.#stopped = true
    this.#timer?.cancel()
  }
}
