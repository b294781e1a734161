import type { Clock } from '#world/world.ts'

/** Partitions that are looked at, one after another, in what runs in one go: some milliseconds. */
const LOOKED_AT_ONCE = 1024

/** Who looks again at what it waits for. */
export interface Looking {
  lookNow(): void
}

/**
 * What many wait for together moves, or their time is over, in one moment: each of them looks at all that it named, and a few
 * connections may have tens of thousands of fetches waiting that name thousands of partitions each. The first look at once,
 * the others in turns of the loop, in the order in which they had to wait.
 */
export class Looks {
  readonly #clock: Clock
  readonly #waiting = new Map<Looking, number>()
  #left = LOOKED_AT_ONCE
  readonly #refill = () => {
    this.#left = LOOKED_AT_ONCE
  }
  #planned = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Whether who asks may look at so many partitions now. What it may counts until all is done that runs in this go. */
  mayNow(partitions: number): boolean {
    if (this.#left <= 0) return false
    if (this.#left === LOOKED_AT_ONCE) queueMicrotask(this.#refill)
    this.#left -= partitions
    return true
  }

  /** It is told when it is its turn, once however often it asks. */
  soon(looking: Looking, partitions: number): void {
    this.#waiting.set(looking, partitions)
    this.#plan()
  }

  /** It does not want to look any more. */
  cancel(looking: Looking): void {
    this.#waiting.delete(looking)
  }

  #plan(): void {
    if (this.#planned || this.#waiting.size === 0) return
    this.#planned = true
    this.#clock.soon(() => {
      this.#planned = false
      let left = LOOKED_AT_ONCE
      for (const [looking, partitions] of this.#waiting) {
        if (left <= 0) break
        left -= partitions
        this.#waiting.delete(looking)
        looking.lookNow()
      }
      this.#plan()
    })
  }
}
