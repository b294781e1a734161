import { INT32_MAX } from '#base/units.ts'
import {
  BATCH_LENGTH_AT,
  BATCH_OVERHEAD,
  baseOffset,
  HEADER_TO_MAGIC,
  isControl,
  LOG_OVERHEAD,
  lastOffset,
  MAGIC_AT,
  maxTimestamp,
} from '#records/batch.ts'
import { messageOffset, messageTimestamp } from '#records/legacy.ts'
import type { File } from '#world/world.ts'

const LEGACY_HEADER_BYTES = LOG_OVERHEAD + 14
const LEGACY_V1_HEADER_BYTES = LOG_OVERHEAD + 22

/**
 * Goes over the batches of a file from header to header, reading in pieces and only what it needs:
 *
 *     while (walk.here() || (await walk.load())) { ...; walk.advance() }
 *
 * so that no promise is made for a batch that lies in the piece read last. It ends at `limit`, or at the first bytes
 * that can be no batch; `damaged` tells which.
 */
export class BatchWalk {
  readonly #file: File
  readonly #limit: number
  readonly #whole: boolean
  readonly #chunkBytes: number
  #chunkPosition = 0
  #filled = 0
  /** Where the current batch starts, in the file and in `buffer`. */
  position: number
  at = 0
  buffer: Buffer = Buffer.alloc(0)
  size = 0
  baseOffset = 0
  lastOffset = 0
  maxTimestamp = 0
  damaged = false

  /** `whole` has every batch whole in the buffer; otherwise only its header is certain to be there, and control batches. */
  constructor(file: File, position: number, limit: number, { whole = false, chunkBytes = 4096 } = {}) {
    this.#file = file
    this.position = position
    this.#limit = limit
    this.#whole = whole
    this.#chunkBytes = chunkBytes
  }

  /** Whether the batch at `position` is a good one as far as was read, and ready to be looked at. */
  here(): boolean {
    return this.#missing() === 0
  }

  async load(): Promise<boolean> {
    let want = this.#chunkBytes
    for (;;) {
      const left = this.#limit - this.position
      if (left <= 0) return false
      const size = Math.min(left, Math.max(want, HEADER_TO_MAGIC))
      if (this.buffer.length < size) this.buffer = Buffer.allocUnsafe(size)
      this.#filled = await this.#file.read(this.buffer.subarray(0, size), this.position)
      this.#chunkPosition = this.position
      const missing = this.#missing()
      if (missing === 0) return true
      // Asked for more than there is: the file ends in the middle of a batch.
      if (missing < 0 || missing <= want || this.#filled < size || this.#filled === left) break
      want = missing
    }
    this.damaged = true
    return false
  }

  advance(): void {
    this.position += this.size
  }

  /** 0: the batch is here; -1: this is none; otherwise how many bytes from `position` on are needed to tell. */
  #missing(): number {
    const at = this.position - this.#chunkPosition
    const left = this.#filled - at
    if (left < HEADER_TO_MAGIC) return HEADER_TO_MAGIC
    const { buffer } = this
    const length = buffer.readInt32BE(at + BATCH_LENGTH_AT)
    const magic = buffer.readInt8(at + MAGIC_AT)
    const header = magic === 2 ? BATCH_OVERHEAD : magic === 1 ? LEGACY_V1_HEADER_BYTES : LEGACY_HEADER_BYTES
    const size = LOG_OVERHEAD + length
    if (magic < 0 || magic > 2 || length < 0 || size < header || size > INT32_MAX) return -1
    if (this.position + size > this.#limit) return -1
    if (left < header) return header
    if (left < size && (this.#whole || (magic === 2 && isControl(buffer, at)))) return size
    if (magic === 2) {
      this.baseOffset = baseOffset(buffer, at)
      this.lastOffset = lastOffset(buffer, at)
      this.maxTimestamp = maxTimestamp(buffer, at)
    } else {
      // A compressed message of the old formats has the offset of its last one; where it begins would need unpacking.
      this.lastOffset = messageOffset(buffer, at)
      this.baseOffset = this.lastOffset
      this.maxTimestamp = messageTimestamp(buffer, at)
    }
    // Not NaN and in order.
    if (!(this.baseOffset >= 0 && this.lastOffset >= this.baseOffset && Number.isSafeInteger(this.maxTimestamp)))
      return -1
    this.at = at
    this.size = size
    return 0
  }
}
