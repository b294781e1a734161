import { assert } from '#base/assert.ts'

const CAPACITY_FIRST = 16
const CAPACITY_MAX = 1024

/**
 * Where the last batches of the active segment end: a ring of (relative last offset, end position), so that a reader who
 * has caught up is served without a look-up. Some 8 KiB for a busy partition, nothing for an idle one.
 */
export class RecentBatches {
  #ring = new Int32Array(CAPACITY_FIRST * 2)
  /** Counts the batches that were ever added; the ring holds the last ones. */
  #added = 0
  #oldest = 0
  /** The last offset and end position of the batch before the oldest one here. */
  #lastBefore: number
  #startPosition: number

  constructor(lastBefore: number, startPosition: number) {
    this.#lastBefore = lastBefore
    this.#startPosition = startPosition
  }

  add(lastRelative: number, endPosition: number): void {
    const capacity = this.#ring.length >> 1
    if (this.#added - this.#oldest === capacity) {
      if (capacity < CAPACITY_MAX) this.#grow()
      else {
        const slot = (this.#oldest & (capacity - 1)) << 1
        this.#lastBefore = this.#ring[slot] as number
        this.#startPosition = this.#ring[slot + 1] as number
        this.#oldest++
      }
    }
    const slot = (this.#added & ((this.#ring.length >> 1) - 1)) << 1
    this.#ring[slot] = lastRelative
    this.#ring[slot + 1] = endPosition
    this.#added++
  }

  #grow(): void {
    const old = this.#ring
    const mask = (old.length >> 1) - 1
    const grown = new Int32Array(old.length * 2)
    const count = this.#added - this.#oldest
    for (let index = 0; index < count; index++) {
      const slot = ((this.#oldest + index) & mask) << 1
      grown[index * 2] = old[slot] as number
      grown[index * 2 + 1] = old[slot + 1] as number
    }
    this.#ring = grown
    this.#oldest = 0
    this.#added = count
  }

  /** The first batch that ends at or after a relative offset: its number, or -1 if it may lie before what is kept. */
  find(relative: number): number {
    if (relative <= this.#lastBefore) return -1
    let low = this.#oldest
    let high = this.#added
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.lastRelative(middle) < relative) low = middle + 1
      else high = middle
    }
    return low < this.#added ? low : -1
  }

  /** The last batch from `first` on that ends at or before `endPosition` and below the relative offset `below`; or less than `first`. */
  findEnd(first: number, endPosition: number, below: number): number {
    let low = first
    let high = this.#added
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.endPosition(middle) <= endPosition && this.lastRelative(middle) < below) low = middle + 1
      else high = middle
    }
    return low - 1
  }

  lastRelative(batch: number): number {
    return this.#ring[(batch & ((this.#ring.length >> 1) - 1)) << 1] as number
  }

  endPosition(batch: number): number {
    return this.#ring[((batch & ((this.#ring.length >> 1) - 1)) << 1) + 1] as number
  }

  startPosition(batch: number): number {
    assert(batch >= this.#oldest && batch < this.#added, 'a batch that the ring holds')
    return batch === this.#oldest ? this.#startPosition : this.endPosition(batch - 1)
  }
}
