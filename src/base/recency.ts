/** What stands in an order of recency; it holds its own place, and stands in one order at most. */
export interface Recent<T> {
  older: T | undefined
  newer: T | undefined
}

/**
 * Who was used last, in constant time: a Map that is deleted from at its front has holes there, which every look at its
 * first entry walks over again.
 */
export class Recency<T extends Recent<T>> {
  #oldest: T | undefined
  #newest: T | undefined

  get oldest(): T | undefined {
    return this.#oldest
  }

  /** From now on the newest one, whether it was here or not. */
  use(item: T): void {
    if (this.#newest === item) return
    this.remove(item)
    item.older = this.#newest
    if (this.#newest === undefined) this.#oldest = item
    else this.#newest.newer = item
    this.#newest = item
  }

  remove(item: T): void {
    const { older, newer } = item
    if (older !== undefined) older.newer = newer
    else if (this.#oldest === item) this.#oldest = newer
    if (newer !== undefined) newer.older = older
    else if (this.#newest === item) this.#newest = older
    item.older = undefined
    item.newer = undefined
  }

  clear(): void {
    this.#oldest = undefined
    this.#newest = undefined
  }

  /** The oldest first. The one that is given may be removed or used meanwhile, no other. */
  *[Symbol.iterator](): Generator<T> {
    for (let item = this.#oldest; item !== undefined; ) {
      const { newer } = item
      yield item
      item = newer
    }
  }
}
