import type { Clock } from '#world/world.ts'

/** Pieces of work, each some microseconds, that are done in one go. */
const PIECES_AT_ONCE = 1024

/**
 * Long work in turns. One request may name what takes seconds to look at; whoever goes over it waits after some
 * thousand pieces, so that everybody else is served in between. However many do so, one goes on in each turn of the
 * loop, in the order in which they began to wait.
 */
export class Turns {
  readonly #clock: Clock
  readonly #waiting: (() => void)[] = []
  #planned = false
  /** How often somebody had to wait. */
  count = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Resolves when it is one's turn. */
  next(): Promise<void> {
    return new Promise(resolve => this.soon(resolve))
  }

  soon(run: () => void): void {
    this.count++
    this.#waiting.push(run)
    this.#plan()
  }

  /** Counts the pieces of one task. */
  pieces(): Pieces {
    return new Pieces(this)
  }

  #plan(): void {
    if (this.#planned) return
    this.#planned = true
    this.#clock.soon(() => {
      this.#planned = false
      const run = this.#waiting.shift()
      if (this.#waiting.length > 0) this.#plan()
      run?.()
    })
  }
}

export class Pieces {
  readonly #turns: Turns
  #left = PIECES_AT_ONCE

  constructor(turns: Turns) {
    this.#turns = turns
  }

  /**
   * Called before each piece. What is returned is to be waited for; nothing, mostly, and then no promise need be awaited:
   * `const wait = pieces.next(); if (wait) await wait`. `size` is how much it takes, beside a piece of some microseconds.
   */
  next(size = 1): Promise<void> | undefined {
    this.#left -= size
    if (this.#left >= 0) return undefined
    this.#left = PIECES_AT_ONCE
    return this.#turns.next()
  }

  /** Maps a list in turns. */
  async map<Item, Result>(items: readonly Item[], map: (item: Item, index: number) => Result): Promise<Result[]> {
    const results: Result[] = []
    const first = this.next()
    if (first) await first
    for (const [index, item] of items.entries()) {
      const wait = this.next()
      if (wait) await wait
      results.push(map(item, index))
    }
    return results
  }

  /** As `map`, where a piece may take longer than its turn: they are begun in turns and waited for together. */
  async mapLater<Item, Result>(
    items: readonly Item[],
    map: (item: Item) => Result | Promise<Result>,
  ): Promise<Result[]> {
    const begun = await this.map(items, item => {
      const result = map(item)
      // One that fails while others are still to begin is told of at the end.
      if (result instanceof Promise) result.catch(() => {})
      return result
    })
    return await Promise.all(begun)
  }
}
