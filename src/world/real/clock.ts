import type { Millis } from '#base/units.ts'
import type { Clock, Timer } from '../world.ts'

/** What a Node timer can wait at most; a longer delay is waited for in pieces. */
const TIMER_MS_MAX = 0x7fff_ffff

export const realClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (delay, run) => new RealTimer(delay, run),
  soon: run => {
    setImmediate(run)
  },
}

class RealTimer implements Timer {
  readonly #run: () => void
  #handle: NodeJS.Timeout

  constructor(delay: Millis, run: () => void) {
    this.#run = run
    this.#handle = this.#wait(delay)
  }

  #wait(delay: Millis): NodeJS.Timeout {
    if (delay <= TIMER_MS_MAX) return setTimeout(this.#run, delay)
    return setTimeout(() => {
      this.#handle = this.#wait(delay - TIMER_MS_MAX)
    }, TIMER_MS_MAX)
  }

  cancel(): void {
    clearTimeout(this.#handle)
  }
}
