import { assert } from '#base/assert.ts'
import { type ByteReader, ByteWriter, DecodeError, uvarintSize } from '#base/bytes.ts'
import { INT64_MAX, type RecordsHole, type RecordsInput, type UnknownTag } from './schema.ts'

/** What the compiled codecs call. Everything here is about one value on the wire. */

/** A value that does not fit the message's format. */
export class EncodeError extends Error {
  override readonly name: string = 'EncodeError'
}

/** A field has a value, but the version to encode cannot carry it and the table does not let it be left out. */
export class UnsupportedFieldError extends EncodeError {
  override readonly name = 'UnsupportedFieldError'
  readonly schema: string
  readonly field: string
  readonly version: number

  constructor(schema: string, field: string, version: number, reason = 'has no place') {
    super(`${schema}: ${field} ${reason} in version ${version}`)
    this.schema = schema
    this.field = field
    this.version = version
  }
}

/** A 64-bit integer that no number holds exactly, where the reader did not ask for bigints. */
export class UnsafeIntegerError extends DecodeError {}

export const EMPTY_BYTES: Buffer = Buffer.alloc(0)
const STRING_BYTES_MAX = 0x7fff
const TAGS_MAX = 1024
const INT64_MAX_EXACT = 0x7fff_ffff_ffff_ffffn

// Reading

export function int64(r: ByteReader): number {
  const at = r.take(8)
  const value = r.buffer.readInt32BE(at) * 0x1_0000_0000 + r.buffer.readUInt32BE(at + 4)
  if (!Number.isSafeInteger(value)) {
    throw new UnsafeIntegerError(`the 64-bit integer at byte ${at} is outside of what can be held exactly`)
  }
  return value
}

export function exactInt64(r: ByteReader): number | bigint {
  const value = r.bigint64()
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}

/** One that no number holds exactly stands at the edge of those that one does. */
export function int64ToEdge(r: ByteReader): number {
  const at = r.take(8)
  const value = r.buffer.readInt32BE(at) * 0x1_0000_0000 + r.buffer.readUInt32BE(at + 4)
  return Math.min(Math.max(value, Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER)
}

/** For the fields whose default is the highest integer. */
export function int64OrMax(r: ByteReader): number {
  const at = r.position
  if (r.bigint64() === INT64_MAX_EXACT) return INT64_MAX
  r.position = at
  return int64(r)
}

/** The length before a string; negative for null. */
export function stringSize(r: ByteReader): number {
  return r.int16()
}

export function compactStringSize(r: ByteReader): number {
  const size = r.uvarint() - 1
  if (size > STRING_BYTES_MAX) throw new DecodeError(`a string of ${size} bytes before byte ${r.position}`)
  return size
}

export function compactSize(r: ByteReader): number {
  return r.uvarint() - 1
}

/** Checks the count of an array before anything is made for it, against the bytes that are left and the message's budget. */
export function checkCount(r: ByteReader, count: number, elementBytesMin: number): void {
  if (count * elementBytesMin > r.remaining) {
    throw new DecodeError(`${count} elements before byte ${r.position}, ${r.remaining} bytes are left`)
  }
  spend(r, count)
}

/** Some milliseconds of reading or writing, in elements of arrays and in bytes. */
const TURN_ELEMENTS = 4096
const TURN_BYTES = 8 << 20

/** Counts what one turn of a long message took, so that the loop goes to others in between. */
export class Turn {
  #elementsLeft = TURN_ELEMENTS
  #upTo = TURN_BYTES

  /** Whether the turn is over at this element; then the next one begins with it. */
  over(position: number): boolean {
    if (this.#elementsLeft-- > 0 && position < this.#upTo) return false
    this.#elementsLeft = TURN_ELEMENTS
    this.#upTo = position + TURN_BYTES
    return true
  }
}

function spend(r: ByteReader, count: number): void {
  r.elementsLeft -= count
  if (r.elementsLeft < 0) {
    throw new DecodeError(`too many array elements, tags and long strings before byte ${r.position}`)
  }
}

/** Strings of a line and more count as several elements. */
const TEXT_ELEMENT_BYTES = 64

export function text(r: ByteReader, size: number): string {
  if (size >= TEXT_ELEMENT_BYTES) spend(r, Math.floor(size / TEXT_ELEMENT_BYTES))
  return r.text(size)
}

export function unexpectedNull(path: string): never {
  throw new DecodeError(`${path} must not be null`)
}

export function tagCount(r: ByteReader): number {
  const count = r.uvarint()
  if (count > TAGS_MAX) throw new DecodeError(`${count} tagged fields before byte ${r.position}`)
  spend(r, count)
  return count
}

export function checkTagEnd(r: ByteReader, end: number, path: string): void {
  if (r.position !== end) throw new DecodeError(`${path} ends at byte ${r.position}, its tag says ${end}`)
}

// Writing

export function writeInt64(w: ByteWriter, value: number | bigint): void {
  w.int64(value === INT64_MAX ? INT64_MAX_EXACT : value)
}

export function isInt64Max(value: number | bigint): boolean {
  return value === INT64_MAX || value === INT64_MAX_EXACT
}

export function writeString(w: ByteWriter, value: string): void {
  const size = textSize(value)
  w.int16(size)
  w.text(value, size)
}

export function writeCompactString(w: ByteWriter, value: string): void {
  const size = textSize(value)
  w.uvarint(size + 1)
  w.text(value, size)
}

function textSize(value: string): number {
  const size = Buffer.byteLength(value)
  if (size > STRING_BYTES_MAX)
    throw new EncodeError(`a string of ${size} bytes, at most ${STRING_BYTES_MAX} can be sent`)
  return size
}

/** Parts of at least this size are not copied by a {@link PartsWriter}. */
const PART_BYTES_MIN = 4096
/** Of one message, beside its records. A few bytes may ask for an answer that would fill the memory. */
const MESSAGE_BYTES_MAX = 256 << 20

/** What is written up to here is copied out of the scratch, and takes no more memory than its bytes. */
const COPIED_BYTES_MAX = 32 * 1024

/** Where one message after another is written, unless another is half written there. */
let scratch: Buffer | undefined

function takeScratch(): Buffer {
  const taken = scratch ?? Buffer.allocUnsafeSlow(COPIED_BYTES_MAX)
  scratch = undefined
  return taken
}

/**
 * A writer that keeps large records and holes beside its buffer instead of copying them into it. Parts may wait in a
 * queue for long, so what they hold is theirs alone: a buffer that grew by doubling would be up to three times as much.
 */
export class PartsWriter extends ByteWriter {
  readonly #splices: { at: number; part: Buffer | RecordsHole }[] = []

  constructor() {
    super(takeScratch())
  }

  protected override grow(end: number): void {
    if (end > MESSAGE_BYTES_MAX) throw new EncodeError(`the message is larger than ${MESSAGE_BYTES_MAX} bytes`)
    super.grow(end)
  }

  splice(part: Buffer | RecordsHole): void {
    this.#splices.push({ at: this.position, part })
  }

  /** Ends the writing. */
  parts(): (Buffer | RecordsHole)[] {
    const written = this.#taken()
    if (this.#splices.length === 0) return written.length > 0 ? [written] : []
    const parts: (Buffer | RecordsHole)[] = []
    let from = 0
    for (const { at, part } of this.#splices) {
      if (at > from) parts.push(written.subarray(from, at))
      parts.push(part)
      from = at
    }
    if (written.length > from) parts.push(written.subarray(from))
    return parts
  }

  #taken(): Buffer {
    const written = this.written()
    if (this.buffer.length > COPIED_BYTES_MAX) return written
    scratch = this.buffer
    return Buffer.from(written)
  }
}

export function recordsSize(value: RecordsInput): number {
  if (!isList(value)) return partSize(value)
  let size = 0
  for (const part of value) size += partSize(part)
  return size
}

export function writeRecords(w: ByteWriter, value: RecordsInput): void {
  if (!isList(value)) writePart(w, value)
  else for (const part of value) writePart(w, part)
}

function isList(value: RecordsInput): value is readonly (Uint8Array | RecordsHole)[] {
  return Array.isArray(value)
}

function partSize(part: Uint8Array | RecordsHole): number {
  return part instanceof Uint8Array ? part.length : part.size
}

function writePart(w: ByteWriter, part: Uint8Array | RecordsHole): void {
  if (!(part instanceof Uint8Array)) {
    assert(w instanceof PartsWriter, 'a hole in records can only be encoded by encodeParts')
    if (part.size > 0) w.splice(part)
  } else if (w instanceof PartsWriter && part.length >= PART_BYTES_MIN) {
    w.splice(Buffer.isBuffer(part) ? part : Buffer.from(part.buffer, part.byteOffset, part.byteLength))
  } else {
    w.bytes(part)
  }
}

/** Leaves one byte for the size of a tagged field; {@link closeTag} moves the field when its size takes more. */
export function openTag(w: ByteWriter): number {
  return w.reserve(1)
}

export function closeTag(w: ByteWriter, at: number): void {
  const start = at + 1
  const end = w.position
  const size = end - start
  if (size < 0x80) {
    w.buffer[at] = size
    return
  }
  const extra = uvarintSize(size) - 1
  w.reserve(extra)
  w.buffer.copyWithin(start + extra, start, end)
  w.position = at
  w.uvarint(size)
  w.position = end + extra
}

/** Writes the unknown tags below `limit`, from the one at `index` on. Returns the index of the next one. */
export function writeUnknownTags(w: ByteWriter, tags: readonly UnknownTag[], index: number, limit: number): number {
  let next = index
  for (; next < tags.length; next++) {
    const { tag, data } = tags[next] as UnknownTag
    if (tag >= limit) break
    w.uvarint(tag)
    w.uvarint(data.length)
    w.bytes(data)
  }
  return next
}

export function sortedTags(tags: readonly UnknownTag[]): readonly UnknownTag[] {
  return tags.length < 2 ? tags : tags.toSorted((a, b) => a.tag - b.tag)
}

export function unsupportedField(message: string, field: string, version: number): never {
  throw new UnsupportedFieldError(message, field, version)
}

export function unsupportedNull(message: string, field: string, version: number): never {
  throw new UnsupportedFieldError(message, field, version, 'must not be null')
}
