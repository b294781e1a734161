/**
 * How many writes go to one disk at a time. What is appended to a log while it waits for its turn goes along in the same
 * write, so a busy disk gets fewer and larger ones, and the thread pool keeps threads for reads.
 */
export class WriteTurns {
  readonly #atOnce: number
  #under = 0
  readonly #waiting: (() => void)[] = []

  constructor(atOnce: number) {
    this.#atOnce = atOnce
  }

  /** Undefined when the turn is there at once; every turn is given back with `leave`. */
  enter(): Promise<void> | undefined {
    if (this.#under < this.#atOnce) {
      this.#under++
      return undefined
    }
    return new Promise(resolve => this.#waiting.push(resolve))
  }

  leave(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#under--
    else next()
  }
}
