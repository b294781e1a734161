const ENTRY_BYTES = 8
const NO_PAIRS = new Int32Array(0)

/**
 * The sparse `.index` of a segment, in memory: after every `index.interval.bytes` one entry with the last offset of a
 * batch, relative to the segment's base, and the position at which that batch starts. Both only rise.
 * On disk: int32 relative offset, int32 position; Kafka leaves a preallocated tail of zeros after an unclean stop.
 */
export class OffsetIndex {
  #pairs = NO_PAIRS
  #count = 0

  get count(): number {
    return this.#count
  }

  get bytes(): number {
    return this.#count * ENTRY_BYTES
  }

  relativeOffset(slot: number): number {
    return this.#pairs[slot * 2] as number
  }

  position(slot: number): number {
    return this.#pairs[slot * 2 + 1] as number
  }

  append(relativeOffset: number, position: number): void {
    const at = this.#count * 2
    if (at === this.#pairs.length) {
      const grown = new Int32Array(Math.max(32, at * 2))
      grown.set(this.#pairs)
      this.#pairs = grown
    }
    this.#pairs[at] = relativeOffset
    this.#pairs[at + 1] = position
    this.#count++
  }

  /** The last slot whose offset is at most `relativeOffset`, or -1. All batches before its position end below it. */
  floorOffset(relativeOffset: number): number {
    return this.#floor(0, relativeOffset)
  }

  /** The last slot whose position is at most `position`, or -1. */
  floorPosition(position: number): number {
    return this.#floor(1, position)
  }

  #floor(field: 0 | 1, value: number): number {
    let low = 0
    let high = this.#count
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#pairs[middle * 2 + field] as number) <= value) low = middle + 1
      else high = middle
    }
    return low - 1
  }

  /** A copy with the entries before a position. */
  before(position: number): OffsetIndex {
    const copy = new OffsetIndex()
    copy.#count = this.floorPosition(position - 1) + 1
    copy.#pairs = this.#pairs.slice(0, copy.#count * 2)
    return copy
  }

  encode(): Buffer {
    const bytes = Buffer.allocUnsafe(this.bytes)
    for (let index = 0; index < this.#count * 2; index++) bytes.writeInt32BE(this.#pairs[index] as number, index * 4)
    return bytes
  }

  /** The entries within a file of this size. Undefined when the bytes are no index, so that it has to be built anew. */
  static decode(bytes: Uint8Array, segmentSize: number): OffsetIndex | undefined {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const count = Math.floor(bytes.length / ENTRY_BYTES)
    const index = new OffsetIndex()
    let lastOffset = -1
    let lastPosition = -1
    for (let slot = 0; slot < count; slot++) {
      const relativeOffset = view.getInt32(slot * ENTRY_BYTES)
      const position = view.getInt32(slot * ENTRY_BYTES + 4)
      // The first batch never gets an entry, so a position of 0 is the preallocated tail.
      if (relativeOffset === 0 && position === 0) break
      if (relativeOffset <= lastOffset || position <= lastPosition) return undefined
      // Written ahead of data that a crash took.
      if (position >= segmentSize) break
      index.append(relativeOffset, position)
      lastOffset = relativeOffset
      lastPosition = position
    }
    return index
  }
}
