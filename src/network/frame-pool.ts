import { KiB, MiB } from '#base/units.ts'
import type { FrameMemory } from '#protocol/frame-reader.ts'

/** Smaller buffers come cheaper from the system; larger ones are rare. */
const KEPT_BYTES_MIN = 32 * KiB
const KEPT_BYTES_MAX = 4 * MiB

/**
 * Memory for large frames that is used again, so that a gigabyte of produce requests does not pass through the garbage
 * collector. Only who knows that nothing refers to a frame any more gives it back; a frame that is never given back is
 * collected like any other memory.
 */
export class FramePool implements FrameMemory {
  readonly #bytesMax: number
  /** Free buffers by the logarithm of their size. */
  readonly #free: Buffer[][] = []
  readonly #lent = new WeakSet<ArrayBufferLike>()
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
    this.#lent.add(buffer.buffer)
    return buffer.subarray(0, size)
  }

  give(frame: Buffer): void {
    const memory = frame.buffer
    // A part of a shared buffer, or given back before.
    if (!this.#lent.delete(memory)) return
    if (this.#freeBytes + memory.byteLength > this.#bytesMax) return
    const order = 31 - Math.clz32(memory.byteLength)
    const kept = this.#free[order] ?? []
    this.#free[order] = kept
    kept.push(Buffer.from(memory as ArrayBuffer))
    this.#freeBytes += memory.byteLength
  }
}
