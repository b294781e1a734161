import type { Millis } from '#base/units.ts'
import type { Clock } from '#world/world.ts'

/** So many writes within so short a time are a stream: what comes next is gathered for a moment. */
const STREAM_WRITES = 8
const STREAM_MS: Millis = 4
const GATHER_MS: Millis = 1

/**
 * When writes go to one disk, and how many at a time. A write is a trip to the thread pool and back, which costs as much
 * as writing some 32 KB, so a stream of them is gathered: once writes follow each other by fractions of a millisecond,
 * they start in rounds, a millisecond apart, and what is appended to a log until its round goes along in the same write.
 * A write that comes alone starts at once.
 */
export class WriteTurns {
  readonly #atOnce: number
  readonly #clock: Clock | undefined
  #under = 0
  readonly #waiting: (() => void)[] = []
  /** How many of those that wait may start in the round that runs. */
  #inRound = 0
  #isRoundDue = false
  /** When the last writes started, as a ring. */
  readonly #starts = new Float64Array(STREAM_WRITES).fill(Number.NEGATIVE_INFINITY)
  #startsAt = 0

  /** Without a clock nothing is gathered: every write starts as soon as there is a turn. */
  constructor(atOnce: number, clock?: Clock) {
    this.#atOnce = atOnce
    this.#clock = clock
  }

  /** Undefined when the turn is there at once; every turn is given back with `leave`. */
  enter(): Promise<void> | undefined {
    const isStream = this.#isStream()
    if (!isStream && this.#waiting.length === 0 && this.#under < this.#atOnce) {
      this.#start()
      return undefined
    }
    const turn = new Promise<void>(resolve => this.#waiting.push(resolve))
    if (isStream) this.#planRound()
    else this.#inRound++
    return turn
  }

  leave(): void {
    this.#under--
    this.#grant()
  }

  #isStream(): boolean {
    if (this.#clock === undefined) return false
    return this.#clock.monotonic() - (this.#starts[this.#startsAt] as number) < STREAM_MS
  }

  #start(): void {
    this.#under++
    if (this.#clock === undefined) return
    this.#starts[this.#startsAt] = this.#clock.monotonic()
    this.#startsAt = (this.#startsAt + 1) % STREAM_WRITES
  }

  #planRound(): void {
    if (this.#isRoundDue) return
    this.#isRoundDue = true
    this.#clock?.after(GATHER_MS, () => {
      this.#isRoundDue = false
      this.#inRound = this.#waiting.length
      this.#grant()
    })
  }

  #grant(): void {
    while (this.#inRound > 0 && this.#under < this.#atOnce) {
      const next = this.#waiting.shift()
      this.#inRound--
      if (next === undefined) return
      this.#start()
      next()
    }
  }
}
