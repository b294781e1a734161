import { assert } from './assert.ts'
import type { Uuid } from './uuid.ts'

/** Bytes from outside that are not what they should be. Expected; whoever decodes turns it into an answer or a close. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError'
}

/**
 * Reads big-endian values one after another. Every read is checked against the end before anything is allocated;
 * strings and byte strings that pass the end are a {@link DecodeError}. Byte strings are views, not copies.
 */
export class ByteReader {
  readonly buffer: Buffer
  position: number
  readonly end: number
  /** How many more array elements and tagged fields one message may bring: objects take more memory than their bytes. */
  elementsLeft = 1 << 22

  constructor(bytes: Uint8Array, start = 0, end: number = bytes.length) {
    this.buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.position = start
    this.end = end
  }

  get remaining(): number {
    return this.end - this.position
  }

  /** Moves past `size` bytes and returns where they start. */
  take(size: number): number {
    const at = this.position
    if (size < 0 || size > this.end - at) {
      throw new DecodeError(`${size} bytes wanted at byte ${at}, ${this.end - at} are left`)
    }
    this.position = at + size
    return at
  }

  int8(): number {
    return this.buffer.readInt8(this.take(1))
  }

  uint8(): number {
    return this.buffer.readUInt8(this.take(1))
  }

  boolean(): boolean {
    return this.int8() !== 0
  }

  int16(): number {
    return this.buffer.readInt16BE(this.take(2))
  }

  uint16(): number {
    return this.buffer.readUInt16BE(this.take(2))
  }

  int32(): number {
    return this.buffer.readInt32BE(this.take(4))
  }

  uint32(): number {
    return this.buffer.readUInt32BE(this.take(4))
  }

  float64(): number {
    return this.buffer.readDoubleBE(this.take(8))
  }

  /** A 64-bit integer that must be exact as a number; one that is not is a DecodeError. */
  int64(): number {
    const at = this.take(8)
    const value = this.buffer.readInt32BE(at) * 0x1_0000_0000 + this.buffer.readUInt32BE(at + 4)
    if (!Number.isSafeInteger(value)) {
      throw new DecodeError(`the 64-bit integer at byte ${at} is outside of what can be held exactly`)
    }
    return value
  }

  bigint64(): bigint {
    return this.buffer.readBigInt64BE(this.take(8))
  }

  uuid(): Uuid {
    const at = this.take(16)
    return this.buffer.toString('base64url', at, at + 16)
  }

  /** An unsigned varint of at most 32 bits. */
  uvarint(): number {
    let value = 0
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.uint8()
      if (shift === 28 && byte > 0x0f) break
      value += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) return value
    }
    throw new DecodeError(`the varint that ends at byte ${this.position} is longer than 32 bits`)
  }

  /** A zig-zag varint of at most 32 bits. */
  varint(): number {
    const raw = this.uvarint()
    return (raw >>> 1) ^ -(raw & 1)
  }

  /** A zig-zag varint of at most 64 bits that must be exact as a number. */
  varlong(): number {
    let low = 0 // bits 0 to 27
    let high = 0 // bits 28 to 63
    for (let index = 0; index < 10; index++) {
      const byte = this.uint8()
      if (index === 9 && byte > 1) break
      if (index < 4) low += (byte & 0x7f) * 2 ** (7 * index)
      else high += (byte & 0x7f) * 2 ** (7 * (index - 4))
      if (byte < 0x80) {
        const negative = (low & 1) === 1
        const half = high * 2 ** 27 + (low - (low & 1)) / 2
        const value = negative ? -half - 1 : half
        if (!Number.isSafeInteger(value)) {
          throw new DecodeError(`the varlong that ends at byte ${this.position} is outside of what can be held exactly`)
        }
        return value
      }
    }
    throw new DecodeError(`the varlong that ends at byte ${this.position} is longer than 64 bits`)
  }

  bytes(size: number): Buffer {
    const at = this.take(size)
    return this.buffer.subarray(at, at + size)
  }

  text(size: number): string {
    const at = this.take(size)
    return this.buffer.toString('utf8', at, at + size)
  }
}

/** All parts together, in bytes. */
export function sizeOf(parts: readonly Uint8Array[]): number {
  let size = 0
  for (const part of parts) size += part.length
  return size
}

/** What is left of the parts after the first `count` bytes. */
export function partsFrom(parts: readonly Uint8Array[], count: number): readonly Uint8Array[] {
  if (count === 0) return parts
  const rest: Uint8Array[] = []
  let skip = count
  for (const part of parts) {
    if (skip >= part.length) skip -= part.length
    else {
      rest.push(skip === 0 ? part : part.subarray(skip))
      skip = 0
    }
  }
  return rest
}

/** Writes big-endian values one after another into a buffer that grows by doubling. */
export class ByteWriter {
  buffer: Buffer
  position = 0

  constructor(capacity: number | Buffer = 256) {
    this.buffer = typeof capacity === 'number' ? Buffer.allocUnsafe(capacity) : capacity
  }

  /** Makes room for `size` more bytes, moves past them and returns where they start. */
  reserve(size: number): number {
    const at = this.position
    const end = at + size
    if (end > this.buffer.length) this.grow(end)
    this.position = end
    return at
  }

  protected grow(end: number): void {
    const grown = Buffer.allocUnsafe(Math.max(end, this.buffer.length * 2))
    this.buffer.copy(grown, 0, 0, this.position)
    this.buffer = grown
  }

  /** What was written so far, as a view. */
  written(): Buffer {
    return this.buffer.subarray(0, this.position)
  }

  int8(value: number): void {
    const at = this.reserve(1)
    this.buffer.writeInt8(value, at)
  }

  uint8(value: number): void {
    const at = this.reserve(1)
    this.buffer.writeUInt8(value, at)
  }

  boolean(value: boolean): void {
    const at = this.reserve(1)
    this.buffer.writeInt8(value ? 1 : 0, at)
  }

  int16(value: number): void {
    const at = this.reserve(2)
    this.buffer.writeInt16BE(value, at)
  }

  uint16(value: number): void {
    const at = this.reserve(2)
    this.buffer.writeUInt16BE(value, at)
  }

  int32(value: number): void {
    const at = this.reserve(4)
    this.buffer.writeInt32BE(value, at)
  }

  uint32(value: number): void {
    const at = this.reserve(4)
    this.buffer.writeUInt32BE(value, at)
  }

  float64(value: number): void {
    const at = this.reserve(8)
    this.buffer.writeDoubleBE(value, at)
  }

  /** Our own numbers are exact; a bigint is taken as it is, for values that we only pass on. */
  int64(value: number | bigint): void {
    const at = this.reserve(8)
    if (typeof value === 'bigint') {
      this.buffer.writeBigInt64BE(value, at)
      return
    }
    assert(Number.isSafeInteger(value), `${value} is no exact 64-bit integer`)
    const high = Math.floor(value / 0x1_0000_0000)
    this.buffer.writeInt32BE(high, at)
    this.buffer.writeUInt32BE(value - high * 0x1_0000_0000, at + 4)
  }

  uuid(value: Uuid): void {
    const at = this.reserve(16)
    assert(this.buffer.write(value, at, 16, 'base64url') === 16, `${value} is no id of 16 bytes`)
  }

  uvarint(value: number): void {
    let rest = value
    while (rest >= 0x80) {
      this.uint8((rest & 0x7f) | 0x80)
      rest = rest > INT32_RANGE ? Math.floor(rest / 0x80) : rest >>> 7
    }
    this.uint8(rest)
  }

  varint(value: number): void {
    this.uvarint(((value << 1) ^ (value >> 31)) >>> 0)
  }

  varlong(value: number): void {
    // Zig-zag by arithmetic: shifts would cut the value to 32 bits, and doubling may leave the safe range.
    const negative = value < 0
    const half = negative ? -(value + 1) : value
    let high = Math.floor(half / 0x800_0000) // bits 27 and up
    const low = (half - high * 0x800_0000) * 2 + (negative ? 1 : 0) // 28 bits
    if (high === 0) {
      this.uvarint(low)
      return
    }
    const at = this.reserve(4)
    for (let index = 0; index < 4; index++) this.buffer[at + index] = ((low >>> (7 * index)) & 0x7f) | 0x80
    while (high >= 0x80) {
      this.uint8((high % 0x80) | 0x80)
      high = Math.floor(high / 0x80)
    }
    this.uint8(high)
  }

  bytes(value: Uint8Array): void {
    const at = this.reserve(value.length)
    this.buffer.set(value, at)
  }

  /** The text's UTF-8 bytes, without a length. */
  text(value: string, size: number = Buffer.byteLength(value)): void {
    const at = this.reserve(size)
    this.buffer.write(value, at, size, 'utf8')
  }
}

const INT32_RANGE = 0xffff_ffff

/** How many bytes an unsigned varint takes. */
export function uvarintSize(value: number): number {
  let size = 1
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) size++
  return size
}
