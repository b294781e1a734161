import type { Millis } from '#base/units.ts'

const BYTES_MIN = 64 * 1024
/** Kafka's limit on one fetch of raft. */
export const FETCH_BYTES_MAX = 8 * 1024 * 1024
const LONG_MS: Millis = 500

/**
 * How much of a log or a snapshot is asked for at once: an answer has to come within the time of a request, or nothing
 * would ever come over a slow way. What comes quickly is followed by more.
 */
export class PieceSize {
  bytes = BYTES_MIN

  /** An answer was there after so long, of which it may have waited for news. */
  came(afterMs: Millis, maxWaitMs: Millis = 0): void {
    if (afterMs < LONG_MS) this.bytes = Math.min(2 * this.bytes, FETCH_BYTES_MAX)
    else if (afterMs > LONG_MS + maxWaitMs) this.bytes = Math.max(this.bytes / 2, BYTES_MIN)
  }

  /** None came in time. */
  late(): void {
    this.bytes = BYTES_MIN
  }
}
