import type { Millis } from '#base/units.ts'

const ENTRY_BYTES = 12
const NO_TIMES = new Float64Array(0)
const NO_OFFSETS = new Int32Array(0)

/**
 * The `.timeindex` of a segment, in memory. An entry says: the highest time in the segment up to some batch is
 * `timestamp`, and the batch that brought it ends at the relative offset. Times rise strictly.
 * On disk: int64 timestamp, int32 relative offset; a tail of zeros as in the offset index.
 */
export class TimeIndex {
  #times = NO_TIMES
  #offsets = NO_OFFSETS
  #count = 0

  get count(): number {
    return this.#count
  }

  get bytes(): number {
    return this.#count * ENTRY_BYTES
  }

  timestamp(slot: number): Millis {
    return this.#times[slot] as number
  }

  relativeOffset(slot: number): number {
    return this.#offsets[slot] as number
  }

  /** Appends unless the time is not above the last one, as in Kafka. */
  append(timestamp: Millis, relativeOffset: number): void {
    const at = this.#count
    if (timestamp <= (at === 0 ? -1 : (this.#times[at - 1] as number))) return
    if (at === this.#times.length) {
      const capacity = Math.max(16, at * 2)
      const times = new Float64Array(capacity)
      const offsets = new Int32Array(capacity)
      times.set(this.#times)
      offsets.set(this.#offsets)
      this.#times = times
      this.#offsets = offsets
    }
    this.#times[at] = timestamp
    this.#offsets[at] = relativeOffset
    this.#count++
  }

  /** The last slot below `timestamp`, or -1: every batch up to its offset is older than `timestamp`. */
  below(timestamp: Millis): number {
    let low = 0
    let high = this.#count
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#times[middle] as number) < timestamp) low = middle + 1
      else high = middle
    }
    return low - 1
  }

  /** A copy with the entries whose offset is below `relativeOffset`. */
  before(relativeOffset: number): TimeIndex {
    const copy = new TimeIndex()
    copy.#count = this.#count
    while (copy.#count > 0 && (this.#offsets[copy.#count - 1] as number) >= relativeOffset) copy.#count--
    copy.#times = this.#times.slice(0, copy.#count)
    copy.#offsets = this.#offsets.slice(0, copy.#count)
    return copy
  }

  encode(): Buffer {
    const bytes = Buffer.allocUnsafe(this.bytes)
    for (let slot = 0; slot < this.#count; slot++) {
      bytes.writeBigInt64BE(BigInt(this.#times[slot] as number), slot * ENTRY_BYTES)
      bytes.writeInt32BE(this.#offsets[slot] as number, slot * ENTRY_BYTES + 8)
    }
    return bytes
  }

  /** Undefined when the bytes are no time index, so that it has to be built anew. */
  static decode(bytes: Uint8Array): TimeIndex | undefined {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const count = Math.floor(bytes.length / ENTRY_BYTES)
    const index = new TimeIndex()
    let lastTime = -1
    let lastOffset = -1
    for (let slot = 0; slot < count; slot++) {
      const timestamp = Number(view.getBigInt64(slot * ENTRY_BYTES))
      const relativeOffset = view.getInt32(slot * ENTRY_BYTES + 8)
      if (slot > 0 && timestamp === 0 && relativeOffset === 0) break
      // A file of zeros: one that was preallocated and never written.
      if (slot === 0 && timestamp === 0 && relativeOffset === 0 && count > 1 && view.getBigInt64(ENTRY_BYTES) === 0n) {
        break
      }
      if (timestamp <= lastTime || !Number.isSafeInteger(timestamp) || relativeOffset < lastOffset) return undefined
      index.append(timestamp, relativeOffset)
      lastTime = timestamp
      lastOffset = relativeOffset
    }
    return index
  }
}
