import { KiB, MiB } from '#base/units.ts'
import type { FrameMemory } from '#protocol/frame-reader.ts'

/** Connections begin with as much; larger ones than the most are rare. */
const KEPT_BYTES_MIN = 4 * KiB
const KEPT_BYTES_MAX = 8 * MiB

/**
 * Memory for frames that is used again, so that what clients produce does not pass through the garbage collector: it
 * takes every 64 KB that come from outside for a reason to look through the whole heap, which stops the loop for some
 * milliseconds. Only who knows that nothing refers to a frame any more gives it back; memory with a frame in it that is
 * never given back is collected like any other.
 */
export class FramePool implements FrameMemory {
  readonly #bytesMax: number
  /** Free buffers by the logarithm of their size. */
  readonly #free: Buffer[][] = []
  /** How many use what was lent. */
  readonly #users = new WeakMap<ArrayBufferLike, number>()
  #freeBytes = 0

  /** `bytesMax` is how much is kept while nobody uses it. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  get freeBytes(): number {
    return this.#freeBytes
  }

  take(size: number): Buffer {
    if (size < KEPT_BYTES_MIN || size > KEPT_BYTES_MAX) return Buffer.allocUnsafeSlow(size)
    const order = 32 - Math.clz32(size - 1)
    const kept = this.#free[order]?.pop()
    const buffer = kept ?? Buffer.allocUnsafeSlow(2 ** order)
    if (kept !== undefined) this.#freeBytes -= kept.length
    this.#users.set(buffer.buffer, 1)
    return buffer.subarray(0, size)
  }

  share(buffer: Buffer): void {
    const users = this.#users.get(buffer.buffer)
    if (users !== undefined) this.#users.set(buffer.buffer, users + 1)
  }

  give(buffer: Buffer): void {
    const memory = buffer.buffer
    const users = this.#users.get(memory)
    // Of a size that is not kept, or given back before.
    if (users === undefined) return
    if (users > 1) {
      this.#users.set(memory, users - 1)
      return
    }
    this.#users.delete(memory)
    if (this.#freeBytes + memory.byteLength > this.#bytesMax) return
    const order = 31 - Math.clz32(memory.byteLength)
    const kept = this.#free[order] ?? []
    this.#free[order] = kept
    kept.push(Buffer.from(memory as ArrayBuffer))
    this.#freeBytes += memory.byteLength
  }
}
