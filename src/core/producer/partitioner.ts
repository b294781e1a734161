import { assert } from '#base/assert.ts'

/** How much waits for a partition that has a leader: batches, or any other measure of its backlog. */
export interface PartitionLoad {
  readonly partition: number
  readonly queued: number
}

/**
 * Chooses partitions for the records of one topic that have no key (KIP-480, KIP-794). It stays with a partition until
 * `switchBytes` went there, so that batches fill, then draws the next one; the shorter a partition's queue the likelier
 * it is drawn, so a slow broker gets less.
 */
export class StickyPartitioner {
  readonly #switchBytes: number
  #current = -1
  #producedBytes = 0

  constructor(switchBytes: number) {
    this.#switchBytes = switchBytes
  }

  /** @param fraction A random number in [0, 1), used only when a new partition is drawn. */
  partition(loads: readonly PartitionLoad[], fraction: () => number): number {
    assert(loads.length > 0, 'a topic has at least one partition')
    if (this.#current < 0 || !loads.some(load => load.partition === this.#current)) this.#draw(loads, fraction())
    return this.#current
  }

  /**
   * Records what went to the current partition. While its batch may still fill (`batchOpen`) the switch waits, up to
   * twice the size, so that a long linger does not leave half-filled batches behind.
   */
  appended(bytes: number, batchOpen: boolean): void {
    this.#producedBytes += bytes
    if (this.#producedBytes >= this.#switchBytes * 2 || (this.#producedBytes >= this.#switchBytes && !batchOpen)) {
      this.#current = -1
    }
  }

  #draw(loads: readonly PartitionLoad[], fraction: number): void {
    let longest = 0
    for (const load of loads) longest = Math.max(longest, load.queued)
    let total = 0
    for (const load of loads) total += longest + 1 - load.queued
    let left = Math.floor(fraction * total)
    this.#producedBytes = 0
    for (const load of loads) {
      this.#current = load.partition
      left -= longest + 1 - load.queued
      if (left < 0) return
    }
  }
}
