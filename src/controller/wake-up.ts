import type { Millis } from '#base/units.ts'
import type { Clock, Timer } from '#world/world.ts'

/** One timer for the earliest deadline of several machines. It may be early, when a deadline moved away; never late. */
export class WakeUp {
  readonly #clock: Clock
  readonly #run: () => void
  #timer: Timer | undefined
  #at = Number.POSITIVE_INFINITY

  constructor(clock: Clock, run: () => void) {
    this.#clock = clock
    this.#run = run
  }

  /** On the monotonic clock. */
  arm(...deadlines: (Millis | undefined)[]): void {
    const at = Math.min(...deadlines.map(deadline => deadline ?? Number.POSITIVE_INFINITY))
    if (at >= this.#at) return
    this.#timer?.cancel()
    this.#at = at
    this.#timer = this.#clock.after(Math.max(0, at - this.#clock.monotonic()), () => {
      this.#at = Number.POSITIVE_INFINITY
      this.#run()
    })
  }

  stop(): void {
    this.#timer?.cancel()
    this.#at = Number.NEGATIVE_INFINITY
  }
}
