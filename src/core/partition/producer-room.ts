import type { ProducerStates } from './producers.ts'

/** Of all partitions of a broker: 350 to 750 bytes each. Decision 0018 says why so many. */
export const BROKER_PRODUCERS_MAX = 500_000

/** Those to go are looked for once in so many of the whole. */
const PARTS = 1000

/**
 * How many producers all partitions of a broker know together. Beyond the limit the partition with the most forgets those
 * that have been idle there for longest: who floods one topic costs the others nothing.
 */
export class ProducerRoom {
  readonly #max: number
  /** Those that ever knew any. */
  readonly #partitions = new Set<ProducerStates>()
  #count = 0

  constructor(max: number = BROKER_PRODUCERS_MAX) {
    this.#max = max
  }

  get count(): number {
    return this.#count
  }

  /** A partition is about to know one more. */
  coming(states: ProducerStates): void {
    if (this.#count >= this.#max) this.#makeRoom()
    this.#partitions.add(states)
    this.#count++
  }

  forgotten(): void {
    this.#count--
  }

  /** Nothing of what a partition knows counts any more. */
  left(states: ProducerStates): void {
    if (this.#partitions.delete(states)) this.#count -= states.size
  }

  #makeRoom(): void {
    let fullest: ProducerStates | undefined
    for (const states of this.#partitions) if (fullest === undefined || states.size > fullest.size) fullest = states
    for (let left = Math.ceil(this.#max / PARTS); left > 0; left--) if (fullest?.forgetIdlest() !== true) return
  }
}
