import { assert } from '#base/assert.ts'
import { DecodeError } from '#base/bytes.ts'

const BUFFER_BYTES_MIN = 4 << 10
const BUFFER_BYTES_MAX = 64 << 10
/** Larger frames get their memory as their bytes arrive, so that a claimed size alone costs nothing. */
const TRUSTED_BYTES = 1 << 20
/** How much of a frame is read to see its size, when the one before was large and this one may be. */
const PEEK_BYTES = 512

/** Where the memory of frames comes from. What is never given back is left to the garbage collector. */
export interface FrameMemory {
  /** Exactly so many bytes, of any content, for one user. */
  take(size: number): Buffer
  /** One user more of memory that is in use: it is given back by each. */
  share(buffer: Buffer): void
  /** One user less. After the last one nothing refers to the bytes any more. `buffer` may be any part of the memory. */
  give(buffer: Buffer): void
}

const FRESH_MEMORY: FrameMemory = { take: size => Buffer.allocUnsafeSlow(size), share() {}, give() {} }

/**
 * Splits what a connection brings into frames. Small frames share a buffer, which grows with the traffic; a larger
 * one is read straight into its own, all but its first bytes. Bytes of a frame that was handed out are not written
 * again until it is given back to the memory.
 *
 * In turn: the network fills `space()`, says `received(count)`, then `next()` until it has no more.
 */
export class FrameReader {
  /** The largest frame that is taken from now on, without its size field. */
  frameBytesMax: number
  readonly #memory: FrameMemory
  #buffer: Buffer
  /** Bytes `#start` to `#end` of the buffer have arrived and are not handed out. */
  #start = 0
  #end = 0
  /** Frames lie in the buffer that were handed out: it must not be written from its beginning again. */
  #lent = false
  /** The frame that has a buffer of its own, as far as it has arrived. */
  #large: { readonly size: number; buffer: Buffer; filled: number } | undefined
  #lastWasLarge = false
  #spaceBytes = 0

  /** `frameBytesMax` is the largest frame that is taken, without its size field: `socket.request.max.bytes`. */
  constructor(frameBytesMax: number, memory: FrameMemory = FRESH_MEMORY) {
    this.frameBytesMax = frameBytesMax
    this.#memory = memory
    this.#buffer = memory.take(BUFFER_BYTES_MIN)
  }

  /** Whether a frame has begun and not ended: what it means when the connection ends here. */
  get partial(): boolean {
    return this.#large !== undefined || this.#end > this.#start
  }

  /** Where the next bytes go: never empty, valid until `received`. */
  space(): Buffer {
    const large = this.#large
    if (large !== undefined && large.filled < large.size) {
      if (large.filled === large.buffer.length) {
        const grown = this.#memory.take(Math.min(large.size, large.filled * 4))
        large.buffer.copy(grown, 0, 0, large.filled)
        this.#memory.give(large.buffer)
        large.buffer = grown
      }
      return this.#handOut(large.buffer.subarray(large.filled))
    }
    if (this.#end === this.#buffer.length) this.#renew()
    const end = this.#lastWasLarge ? Math.min(this.#end + PEEK_BYTES, this.#buffer.length) : this.#buffer.length
    return this.#handOut(this.#buffer.subarray(this.#end, end))
  }

  #handOut(space: Buffer): Buffer {
    this.#spaceBytes = space.length
    return space
  }

  /**
   * A buffer of twice the size, as the last one was filled, with what is not handed out yet. It may be the same memory:
   * that of a client who waits for its answers is free by then.
   */
  #renew(size = Math.min(this.#buffer.length * 2, BUFFER_BYTES_MAX)): void {
    const rest = this.#buffer.subarray(this.#start, this.#end)
    this.#memory.give(this.#buffer)
    const renewed = this.#memory.take(Math.max(size, rest.length * 2))
    rest.copy(renewed)
    this.#buffer = renewed
    this.#lent = false
    this.#start = 0
    this.#end = rest.length
  }

  received(count: number): void {
    assert(count <= this.#spaceBytes, `${count} bytes received, there was space for ${this.#spaceBytes}`)
    this.#spaceBytes = 0
    const large = this.#large
    if (large !== undefined && large.filled < large.size) large.filled += count
    else this.#end += count
  }

  /**
   * The next whole frame without its size field, or undefined until more bytes come.
   * @throws DecodeError for a size that is negative or too large: the connection is beyond repair.
   */
  next(): Buffer | undefined {
    const large = this.#large
    if (large !== undefined) {
      if (large.filled < large.size) return undefined
      this.#large = undefined
      this.#lastWasLarge = true
      return large.buffer
    }
    const arrived = this.#end - this.#start
    if (arrived < 4) return undefined
    const size = this.#buffer.readInt32BE(this.#start)
    if (size < 0 || size > this.frameBytesMax) {
      throw new DecodeError(`a frame of ${size} bytes, at most ${this.frameBytesMax} are taken`)
    }
    const from = this.#start + 4
    if (arrived >= 4 + size) {
      this.#start = from + size
      this.#lent = true
      this.#memory.share(this.#buffer)
      this.#lastWasLarge = false
      return this.#buffer.subarray(from, this.#start)
    }
    if (4 + size > BUFFER_BYTES_MAX / 2) {
      this.#beginLarge(size, from)
      return undefined
    }
    this.#lastWasLarge = false
    if (this.#start + 4 + size > this.#buffer.length) {
      // It grows for frames of which it holds only a few, and not for the small ones of thousands of idle connections.
      const { length } = this.#buffer
      this.#renew(Math.max(4 + size, 4 + size > length / 8 ? Math.min(length * 2, BUFFER_BYTES_MAX) : length))
    }
    return undefined
  }

  #beginLarge(size: number, from: number): void {
    const buffer = this.#memory.take(Math.min(size, TRUSTED_BYTES))
    const filled = this.#buffer.copy(buffer, 0, from, this.#end)
    this.#large = { size, buffer, filled }
    if (this.#lent) this.#start = this.#end
    else {
      this.#start = 0
      this.#end = 0
    }
  }
}
