/**
 * A seeded source of chance: xoshiro128** with its state filled by splitmix32. The same seed gives the same sequence
 * on every machine. Not for secrets.
 */
export class SeededRandom {
  #a: number
  #b: number
  #c: number
  #d: number

  constructor(seed: number) {
    let state = seed >>> 0
    const split = (): number => {
      state = (state + 0x9e3779b9) >>> 0
      let z = state
      z = Math.imul(z ^ (z >>> 16), 0x21f0aaad)
      z = Math.imul(z ^ (z >>> 15), 0x735a2d97)
      return (z ^ (z >>> 15)) >>> 0
    }
    this.#a = split()
    this.#b = split()
    this.#c = split()
    this.#d = split() | 1
  }

  /** 32 random bits as an unsigned integer. */
  uint32(): number {
    const x = Math.imul(this.#b, 5)
    const result = Math.imul((x << 7) | (x >>> 25), 9) >>> 0
    const t = this.#b << 9
    this.#c ^= this.#a
    this.#d ^= this.#b
    this.#b ^= this.#c
    this.#a ^= this.#d
    this.#c ^= t
    this.#d = (this.#d << 11) | (this.#d >>> 21)
    return result
  }

  /** A fraction in [0, 1). */
  fraction(): number {
    return this.uint32() / 0x1_0000_0000
  }

  /** An integer in [0, below). */
  below(below: number): number {
    return Math.floor(this.fraction() * below)
  }

  /** An integer in [from, to], both included. */
  between(from: number, to: number): number {
    return from + this.below(to - from + 1)
  }

  chance(probability: number): boolean {
    return this.fraction() < probability
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)] as T
  }

  fill(into: Uint8Array): Uint8Array {
    for (let i = 0; i < into.length; i++) into[i] = this.uint32() >>> 24
    return into
  }

  /** A generator of its own, so that drawing more here does not change what is drawn there. */
  fork(): SeededRandom {
    return new SeededRandom(this.uint32())
  }
}
