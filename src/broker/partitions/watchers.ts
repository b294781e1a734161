import type { Partition } from './partition.ts'

/** Who waits for something of a partition. Told once for every move, in the turn of the move. */
export interface Watcher {
  moved(partition: Partition): void
}

/** All who wait for one thing of one partition. */
export class Watchers {
  readonly #all = new Set<Watcher>()

  get size(): number {
    return this.#all.size
  }

  add(watcher: Watcher): void {
    this.#all.add(watcher)
  }

  delete(watcher: Watcher): void {
    this.#all.delete(watcher)
  }

  tell(partition: Partition): void {
    if (this.#all.size === 0) return
    // A watcher may stop watching, or begin again, while it is told.
    for (const watcher of [...this.#all]) watcher.moved(partition)
  }
}
