/**
 * What two servers may choose freely: ids, ports, folders. The first time, two values are taken to mean the same; from
 * then on, each must always come with the other.
 */
export class Same {
  readonly #left = new Map<string, string>()
  readonly #right = new Map<string, string>()

  /** Whether these two of one kind may mean the same; they do from now on. */
  accepts(kind: string, left: unknown, right: unknown): boolean {
    const l = `${kind}:${String(left)}`
    const r = `${kind}:${String(right)}`
    const known = this.#left.get(l)
    if (known !== undefined || this.#right.has(r)) return known === r
    this.#left.set(l, r)
    this.#right.set(r, l)
    return true
  }

  /** A name that both sides' values share, to sort by; the value itself where it was never met. */
  nameOf(kind: string, side: 0 | 1, value: unknown): string {
    const key = `${kind}:${String(value)}`
    return side === 0 ? key : (this.#right.get(key) ?? key)
  }
}
