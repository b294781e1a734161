/** Who waits for something of a partition. Told once for every move, in the turn of the move. */
export interface Watcher {
  moved(): void
}

/** All who wait for one thing of one partition. */
export class Watchers {
  /** Made for the first: for most things of most partitions nobody ever waits. */
  #all: Set<Watcher> | undefined

  get size(): number {
    return this.#all?.size ?? 0
  }

  add(watcher: Watcher): void {
    this.#all ??= new Set()
    this.#all.add(watcher)
  }

  delete(watcher: Watcher): void {
    this.#all?.delete(watcher)
  }

  tell(): void {
    if (this.#all === undefined || this.#all.size === 0) return
    // A watcher may stop watching, or begin again, while it is told.
    for (const watcher of [...this.#all]) watcher.moved()
  }
}
