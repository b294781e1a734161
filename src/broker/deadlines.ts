import { Heap, type HeapNode } from '#base/heap.ts'
import type { Millis } from '#base/units.ts'
import type { Clock, Timer } from '#world/world.ts'

const LATE_MS: Millis = 100

/** A deadline that was set; pass it to `cancel`. */
export type Deadline = HeapNode<() => void>

/**
 * All deadlines of a broker in one heap with one timer, so that thousands of long polls at rest cost nothing. The
 * timer may be early for the first deadline that is left, never late by more than the clock is.
 */
export class Deadlines {
  readonly #clock: Clock
  readonly #heap = new Heap<() => void>()
  #timer: Timer | undefined
  #timerAt = Number.POSITIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get size(): number {
    return this.#heap.size
  }

  /** Runs once, `delay` from now, unless it is cancelled. */
  after(delay: Millis, run: () => void): Deadline {
    const at = this.#clock.monotonic() + Math.max(0, delay)
    const deadline = this.#heap.push(at, run)
    this.#arm(at)
    return deadline
  }

  cancel(deadline: Deadline | undefined): void {
    if (deadline !== undefined) this.#heap.remove(deadline)
  }

  stop(): void {
    this.#timer?.cancel()
    while (this.#heap.pop() !== undefined);
  }

  #arm(at: Millis): void {
    if (at >= this.#timerAt) return
    this.#timer?.cancel()
    this.#timerAt = at
    this.#timer = this.#clock.after(Math.max(0, at - this.#clock.monotonic()), () => {
      // Late means that the loop was held up, and what would have kept a deadline from passing, a heartbeat, may lie in a
      // socket: the loop reads those before what is to be done soon.
      if (this.#clock.monotonic() - at > LATE_MS) this.#clock.soon(() => this.#fire())
      else this.#fire()
    })
  }

  #fire(): void {
    this.#timerAt = Number.POSITIVE_INFINITY
    const now = this.#clock.monotonic()
    for (let first = this.#heap.peek(); first !== undefined && first.key <= now; first = this.#heap.peek()) {
      this.#heap.remove(first)
      first.value()
    }
    const next = this.#heap.peek()
    if (next !== undefined) this.#arm(next.key)
  }
}
