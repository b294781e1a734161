import * as batch from './batch.ts'

/** Varints of up to this many bytes are read by the scan, in 32-bit arithmetic; longer ones are left to the reader. */
const VARINT_BYTES_MAX = 4

/** Where the scan is, and whether it has met what it does not understand. */
let position = 0
let puzzled = false

/** A zig-zag varint, still in zig-zag: even is zero or more, odd is negative. */
function rawVarint(bytes: Buffer): number {
  let byte = bytes[position++] as number
  if (byte < 0x80) return byte
  let raw = byte & 0x7f
  for (let index = 1; index < VARINT_BYTES_MAX; index++) {
    byte = bytes[position++] as number
    raw |= (byte & 0x7f) << (7 * index)
    if (byte < 0x80) return raw
  }
  puzzled = true
  return 0
}

/** Moves past bytes whose length comes first; null, which is −1, has none. */
function skipBytes(bytes: Buffer): void {
  const raw = rawVarint(bytes)
  if ((raw & 1) === 0) position += raw >>> 1
  else if (raw !== 1) puzzled = true
}

/**
 * Reads through the records of an uncompressed batch as fast as it goes, and returns the highest time of a record, less
 * the base timestamp. Undefined when anything is out of the ordinary, right or wrong: then BatchRecords must look, which
 * says what it is. What this accepts, BatchRecords accepts.
 */
export function scanPlain(bytes: Buffer, at: number): number | undefined {
  const end = at + batch.sizeInBytes(bytes, at)
  const count = batch.recordsCount(bytes, at)
  if (end > bytes.length) return undefined
  position = at + batch.RECORDS_AT
  puzzled = false
  let highest = Number.NEGATIVE_INFINITY
  for (let index = 0; index < count; index++) {
    const length = rawVarint(bytes)
    const recordEnd = position + (length >>> 1)
    // The bound of the whole record is checked before what is in it, so no read within leaves the buffer unseen.
    if (puzzled || (length & 1) !== 0 || recordEnd > end) return undefined
    position++ // attributes, unused
    const delta = rawVarint(bytes)
    const timestampDelta = (delta >>> 1) ^ -(delta & 1)
    if (timestampDelta > highest) highest = timestampDelta
    rawVarint(bytes) // the offset's delta, which Kafka does not look at either
    skipBytes(bytes)
    skipBytes(bytes)
    const headers = rawVarint(bytes)
    if (headers !== 0) {
      if ((headers & 1) !== 0 || headers >>> 1 > recordEnd - position) return undefined
      for (let left = headers >>> 1; left > 0; left--) {
        const keySize = rawVarint(bytes)
        if (puzzled || (keySize & 1) !== 0 || position >= recordEnd) return undefined
        position += keySize >>> 1
        skipBytes(bytes)
      }
    }
    if (puzzled || position !== recordEnd) return undefined
  }
  return position === end ? highest : undefined
}
