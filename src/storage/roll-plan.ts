import { INT32_MAX, type Millis, type Offset } from '#base/units.ts'
import type { Clock } from '#world/world.ts'
import { type LogConfig, SEGMENT_BYTES_MAX } from './log-config.ts'
import type { Segment } from './segment.ts'

/**
 * What the active segment will be when all that is queued is written, so that an append knows at once whether a new
 * segment begins with it.
 */
export class RollPlan {
  readonly #clock: Clock
  readonly #folder: string
  #base: Offset = 0
  #bytes = 0
  #firstTimestamp: Millis = -1
  #since: Millis = 0
  #indexEntries = 0
  #sinceEntry = 0

  constructor(clock: Clock, folder: string, active: Segment) {
    this.#clock = clock
    this.#folder = folder
    this.follow(active)
  }

  get isEmpty(): boolean {
    return this.#bytes === 0
  }

  /** Nothing is queued. */
  follow(active: Segment): void {
    this.#base = active.baseOffset
    this.#bytes = active.size
    this.#firstTimestamp = active.firstTimestamp
    this.#since = active.since
    this.#indexEntries = Math.ceil(active.indexBytes / 8)
    this.#sinceEntry = 0
  }

  /** What comes next goes into a new segment. */
  begin(base: Offset): void {
    this.#base = base
    this.#bytes = 0
    this.#firstTimestamp = -1
    this.#since = this.#clock.now()
    this.#indexEntries = 0
    this.#sinceEntry = 0
  }

  add({ indexIntervalBytes }: LogConfig, bytes: number, newest: Millis): void {
    if (this.#bytes === 0) this.#firstTimestamp = newest
    this.#bytes += bytes
    this.#sinceEntry += bytes
    if (this.#sinceEntry <= indexIntervalBytes) return
    this.#indexEntries++
    this.#sinceEntry = 0
  }

  /** Whether batches of this size, last offset and highest time have to begin a new segment. */
  mustRoll(config: LogConfig, bytes: number, last: Offset, newest: Millis): boolean {
    if (last - this.#base > INT32_MAX) return true
    if (this.#bytes === 0) return false
    if (this.#bytes + bytes > Math.min(config.segmentBytes, SEGMENT_BYTES_MAX)) return true
    // The time index is the larger one, and keeps room for its last entry.
    if (this.#indexEntries >= Math.floor(config.segmentIndexBytes / 12) - 1) return true
    const age =
      this.#firstTimestamp >= 0 && newest >= 0 ? newest - this.#firstTimestamp : this.#clock.now() - this.#since
    return age > config.segmentMs - this.#jitterMs(config)
  }

  /** The same for a segment every time, different from log to log, so that they do not all roll at once. */
  #jitterMs({ segmentJitterMs, segmentMs }: LogConfig): Millis {
    const jitterMs = Math.min(segmentJitterMs, segmentMs)
    if (jitterMs <= 0) return 0
    let hash = this.#base >>> 0
    for (const character of this.#folder) {
      hash = Math.imul(hash ^ (character.codePointAt(0) as number), 0x01000193) >>> 0
    }
    return (hash / 0x1_0000_0000) * jitterMs
  }
}
