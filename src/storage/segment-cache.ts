import { MiB, type Millis } from '#base/units.ts'
import type { Clock, File, Timer } from '#world/world.ts'
import type { Segment } from './segment.ts'
import type { SegmentFile } from './segment-file.ts'

/** How long a range that was handed out stays readable, whatever is closed, renamed or deleted meanwhile. */
export const RANGE_GRACE_MS: Millis = 30_000

const SWEEP_EVERY_MS: Millis = 5_000

export interface SegmentCacheLimits {
  readonly openFilesMax: number
  readonly indexBytesMax: number
}

/**
 * Bounds what all segments of a node keep: open files and the indexes of closed segments. Both come back by themselves
 * when they are needed, so the longest unused go first.
 */
export class SegmentCache {
  readonly #clock: Clock
  readonly #limits: SegmentCacheLimits
  readonly #open = new Set<SegmentFile>()
  /** In the order of use, so that the first is the longest unused. */
  readonly #indexed = new Map<Segment, number>()
  #indexBytes = 0
  #sweptAt = 0
  readonly #retired = new Map<File, Timer>()

  constructor(clock: Clock, limits: SegmentCacheLimits = { openFilesMax: 4096, indexBytesMax: 64 * MiB }) {
    this.#clock = clock
    this.#limits = limits
  }

  get openFiles(): number {
    return this.#open.size
  }

  now(): Millis {
    return this.#clock.monotonic()
  }

  opened(file: SegmentFile): void {
    this.#open.add(file)
    if (this.#open.size > this.#limits.openFilesMax) this.#sweep()
  }

  closed(file: SegmentFile): void {
    this.#open.delete(file)
  }

  /** Closes a file when no range that was handed out can point to it any more. */
  retire(file: File): void {
    const close = (): void => {
      this.#retired.delete(file)
      file.close().catch(() => undefined)
    }
    this.#retired.set(file, this.#clock.after(RANGE_GRACE_MS, close))
  }

  /** Nobody reads any more. */
  close(): void {
    for (const [file, timer] of this.#retired) {
      timer.cancel()
      file.close().catch(() => undefined)
    }
    this.#retired.clear()
  }

  #sweep(): void {
    const now = this.now()
    if (now - this.#sweptAt < SWEEP_EVERY_MS) return
    this.#sweptAt = now
    const unused = [...this.#open].filter(file => !file.busy && now - file.usedAt > RANGE_GRACE_MS)
    unused.sort((a, b) => a.usedAt - b.usedAt)
    const tooMany = this.#open.size - Math.floor(this.#limits.openFilesMax * 0.9)
    for (const file of unused.slice(0, tooMany)) file.close()
  }

  /** The indexes of a closed segment were loaded or used. */
  usedIndexes(segment: Segment, bytes: number): void {
    this.forgetIndexes(segment)
    this.#indexed.set(segment, bytes)
    this.#indexBytes += bytes
    for (const [oldest] of this.#indexed) {
      if (this.#indexBytes <= this.#limits.indexBytesMax || oldest === segment) break
      this.forgetIndexes(oldest)
      oldest.dropIndexes()
    }
  }

  forgetIndexes(segment: Segment): void {
    this.#indexBytes -= this.#indexed.get(segment) ?? 0
    this.#indexed.delete(segment)
  }
}
