import type { CopyProgress } from '#client/admin/reassignments.ts'

export interface CopyTotals {
  /** Of all copies that were seen since it began to look. */
  readonly copiedBytes: number
  readonly totalBytes: number
  /** Undefined until there is a span to measure. */
  readonly bytesPerSecond: number | undefined
  readonly leftMs: number | undefined
}

/** The rate is that of the last so many looks: it follows a throttle that is changed, and does not jump. */
const LOOKS = 10

/** Sums up copies over several looks. A copy that is no longer named is done, and stays in the sum. */
export class Copies {
  readonly #known = new Map<string, { copied: number; total: number }>()
  readonly #looks: { readonly at: number; readonly copied: number }[] = []

  look(copies: readonly CopyProgress[], now: number): CopyTotals {
    const named = new Set<string>()
    for (const { topic, partition, to, copiedBytes, totalBytes, inSync } of copies) {
      const name = `${topic} ${partition} ${to}`
      named.add(name)
      const known = this.#known.get(name)
      const copied = Math.max(0, copiedBytes)
      // What its leader does not tell is as large as it was, or at least as what is there.
      const total = Math.max(totalBytes, totalBytes < 0 ? (known?.total ?? 0) : 0, copied)
      this.#known.set(name, { copied: inSync ? total : copied, total })
    }
    for (const [name, known] of this.#known) if (!named.has(name)) known.copied = known.total
    let copiedBytes = 0
    let totalBytes = 0
    for (const { copied, total } of this.#known.values()) {
      copiedBytes += copied
      totalBytes += total
    }
    this.#looks.push({ at: now, copied: copiedBytes })
    if (this.#looks.length > LOOKS) this.#looks.shift()
    const first = this.#looks[0] ?? { at: now, copied: copiedBytes }
    const bytesPerSecond =
      now > first.at ? Math.max(0, ((copiedBytes - first.copied) * 1000) / (now - first.at)) : undefined
    const left = totalBytes - copiedBytes
    const leftMs =
      left === 0 ? 0 : bytesPerSecond === undefined || bytesPerSecond === 0 ? undefined : (left * 1000) / bytesPerSecond
    return { copiedBytes, totalBytes, bytesPerSecond, leftMs }
  }
}
