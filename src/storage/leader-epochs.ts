import type { Epoch, Offset } from '#base/units.ts'

export interface EpochEndOffset {
  readonly leaderEpoch: Epoch
  readonly endOffset: Offset
}

/**
 * Which leader epoch began at which offset (KIP-101), rising in both. Kept as `leader-epoch-checkpoint`: version, count,
 * and `epoch startOffset` lines.
 */
export class LeaderEpochs {
  /** Epoch and start offset, alternating. */
  readonly #pairs: number[] = []
  /** Changed since it was last written. */
  dirty = false

  get latest(): Epoch | undefined {
    return this.#pairs.at(-2)
  }

  get entries(): readonly { readonly epoch: Epoch; readonly startOffset: Offset }[] {
    const entries = []
    for (let index = 0; index < this.#pairs.length; index += 2) {
      entries.push({ epoch: this.#pairs[index] as number, startOffset: this.#pairs[index + 1] as number })
    }
    return entries
  }

  /**
   * `epoch` has a record at `startOffset`, or begins there. What contradicts that is forgotten: a later epoch that began no
   * later, an earlier one that began no earlier. A later one that began behind it stays: a leader begins its epoch behind
   * the appends of the one before, which may still be under way to the disk.
   */
  assign(epoch: Epoch, startOffset: Offset): void {
    const pairs = this.#pairs
    if (epoch < 0) return
    let end = pairs.length
    while (end > 0 && (pairs[end - 2] as number) > epoch && (pairs[end - 1] as number) > startOffset) end -= 2
    let begin = end
    while (begin > 0) {
      const [known, start] = [pairs[begin - 2] as number, pairs[begin - 1] as number]
      if (known === epoch ? start <= startOffset : known < epoch && start < startOffset) break
      begin -= 2
    }
    const isKnown = begin > 0 && pairs[begin - 2] === epoch
    if (isKnown && begin === end) return
    pairs.splice(begin, end - begin, ...(isKnown ? [] : [epoch, startOffset]))
    this.dirty = true
  }

  /** Forgets the epochs that began at `endOffset` or after. */
  truncateFromEnd(endOffset: Offset): void {
    while (this.#pairs.length > 0 && (this.#pairs.at(-1) as number) >= endOffset) {
      this.#pairs.length -= 2
      this.dirty = true
    }
  }

  /** Forgets the epochs that ended before `startOffset`; the one that goes on there begins with it. */
  truncateFromStart(startOffset: Offset): void {
    const pairs = this.#pairs
    let ended = 0
    while (ended + 3 < pairs.length && (pairs[ended + 3] as number) <= startOffset) ended += 2
    if (ended > 0) pairs.splice(0, ended)
    if (ended > 0) this.dirty = true
    if (pairs.length > 0 && (pairs[1] as number) < startOffset) {
      pairs[1] = startOffset
      this.dirty = true
    }
  }

  clear(): void {
    if (this.#pairs.length > 0) this.dirty = true
    this.#pairs.length = 0
  }

  /**
   * Where `epoch` ended: the largest known epoch that is not above it, and the start of the next one (the log's end for
   * the latest). Undefined when all known ones are older than `epoch`; `epoch` itself when all are newer.
   */
  endOffsetFor(epoch: Epoch, logEndOffset: Offset): EpochEndOffset | undefined {
    const pairs = this.#pairs
    if (epoch < 0) return undefined
    if (pairs.at(-2) === epoch) return { leaderEpoch: epoch, endOffset: logEndOffset }
    let higher = 0
    while (higher < pairs.length && (pairs[higher] as number) <= epoch) higher += 2
    if (higher >= pairs.length) return undefined
    const endOffset = pairs[higher + 1] as number
    return { leaderEpoch: higher === 0 ? epoch : (pairs[higher - 2] as number), endOffset }
  }

  /** The epoch of the record at an offset. */
  epochAt(offset: Offset): Epoch | undefined {
    for (let index = this.#pairs.length - 2; index >= 0; index -= 2) {
      if ((this.#pairs[index + 1] as number) <= offset) return this.#pairs[index]
    }
    return undefined
  }

  encode(): string {
    let text = `0\n${this.#pairs.length / 2}\n`
    for (let index = 0; index < this.#pairs.length; index += 2) {
      text += `${this.#pairs[index]} ${this.#pairs[index + 1]}\n`
    }
    return text
  }

  /** Takes lines as far as they make sense. */
  static decode(text: string): LeaderEpochs {
    const epochs = new LeaderEpochs()
    const [version, , ...lines] = text.split('\n')
    if (version?.trim() !== '0') return epochs
    for (const line of lines) {
      const match = /^(\d+) (\d+)\s*$/.exec(line)
      if (match === null) break
      const [epoch, offset] = [Number(match[1]), Number(match[2])]
      if (!Number.isSafeInteger(epoch) || !Number.isSafeInteger(offset)) break
      epochs.assign(epoch, offset)
    }
    epochs.dirty = false
    return epochs
  }
}
