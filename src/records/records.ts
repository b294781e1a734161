/**
 * The records of one batch, one after the other, decompressed when the batch is. A cursor moves over them and reads what
 * it is asked for, so a look-up by time allocates nothing per record.
 *
 * A record: varint length of what follows, int8 attributes (unused), varlong timestampDelta, varint offsetDelta,
 * varint key length (-1: null), key, varint value length (-1: null), value, varint number of headers, and for each
 * varint key length, key, varint value length (-1: null), value. All varints are zig-zag.
 */
import * as batch from './batch.ts'
import { DECOMPRESSED_BYTES_MAX_DEFAULT, decompress } from './compression.ts'
import type { DecompressionAllowance } from './decompression-allowance.ts'
import { LegacyRecords } from './legacy.ts'
import { RecordsError } from './records-error.ts'

export interface RecordHeader {
  readonly key: string
  readonly value: Buffer | null
}

/** Byte strings are views of the batch, or of its decompressed records. */
export interface LogRecord {
  readonly offset: number
  /** Milliseconds since 1970; -1 where the record has none. */
  readonly timestamp: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly RecordHeader[]
}

export interface RecordsOptions {
  /** A batch with more bytes than this after decompression is refused. */
  readonly decompressedBytesMax?: number
  /** What this and other batches may have after decompression together. */
  readonly allowance?: DecompressionAllowance | undefined
}

/** The records of a batch of any magic, first before the first one. */
export interface Records {
  /** Moves to the next record; false after the last one. What is wrong with the bytes is a RecordsError. */
  next(): boolean
  readonly offset: number
  readonly timestamp: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly RecordHeader[]
  /** The record that the cursor is at, to keep. */
  record(): LogRecord
}

/** The records of the whole batch, or message of format 0 or 1, at `at`. Its CRC is not looked at. */
export function openRecords(buffer: Buffer, at = 0, options: RecordsOptions = {}): Records {
  if (batch.wholeBatchSize(buffer, at, buffer.length) <= 0) {
    throw new RecordsError('CORRUPT_MESSAGE', 'there is no whole batch')
  }
  return batch.magic(buffer, at) < 2
    ? new LegacyRecords(buffer, at, options.decompressedBytesMax ?? DECOMPRESSED_BYTES_MAX_DEFAULT)
    : new BatchRecords(buffer, at, options)
}

export function* recordsOf(
  buffer: Buffer,
  at = 0,
  options: RecordsOptions = {},
): Generator<LogRecord, void, undefined> {
  const records = openRecords(buffer, at, options)
  while (records.next()) yield records.record()
}

/** The first record, in offset order from `fromOffset` on, that is at or after `timestamp`. */
export function firstAtOrAfter(
  buffer: Buffer,
  at: number,
  timestamp: number,
  fromOffset = 0,
  options: RecordsOptions = {},
): { offset: number; timestamp: number } | undefined {
  const records = openRecords(buffer, at, options)
  while (records.next()) {
    if (records.timestamp >= timestamp && records.offset >= fromOffset) {
      return { offset: records.offset, timestamp: records.timestamp }
    }
  }
  return undefined
}

const NO_HEADERS: readonly RecordHeader[] = Object.freeze([])

export class BatchRecords implements Records {
  readonly #bytes: Buffer
  #position: number
  readonly #end: number
  readonly #count: number
  #read = 0
  readonly #baseOffset: number
  readonly #baseTimestamp: number
  readonly #appendTime: number | undefined
  /** False in {@link skimmed} reading. */
  readonly #measured: boolean
  offsetDelta = 0
  #timestampDelta = 0
  #keyAt = 0
  #keySize = -1
  #valueAt = 0
  #valueSize = -1
  #headersAt = 0
  #headersCount = 0

  constructor(buffer: Buffer, at: number, options: RecordsOptions = {}, measured = true) {
    const start = at + batch.RECORDS_AT
    const end = at + batch.sizeInBytes(buffer, at)
    if (end < start || end > buffer.length) throw new RecordsError('CORRUPT_MESSAGE', 'the batch is cut')
    this.#count = batch.recordsCount(buffer, at)
    if (this.#count < 0) throw invalid(`the number of records is ${this.#count}`)
    const codec = batch.codec(buffer, at)
    const compression = batch.COMPRESSION_NAMES[codec]
    if (compression === undefined) throw new RecordsError('UNKNOWN_SERVER_ERROR', `the codec ${codec} does not exist`)
    if (compression === 'none') {
      this.#bytes = buffer
      this.#position = start
      this.#end = end
    } else {
      const max = options.decompressedBytesMax ?? DECOMPRESSED_BYTES_MAX_DEFAULT
      const blob = buffer.subarray(start, end)
      this.#bytes =
        this.#count === 0
          ? blob
          : (options.allowance?.decompress(compression, blob, max) ?? decompress(compression, blob, max))
      this.#position = 0
      this.#end = this.#bytes.length
    }
    this.#measured = measured || compression === 'none'
    this.#baseOffset = batch.baseOffset(buffer, at)
    this.#baseTimestamp = batch.baseTimestamp(buffer, at)
    const max = batch.maxTimestamp(buffer, at)
    this.#appendTime = batch.timestampType(buffer, at) === 'LogAppendTime' ? max : undefined
    if (Number.isNaN(this.#baseOffset + this.#baseTimestamp + max)) throw invalid('an offset or time is beyond ±2^53')
  }

  /**
   * The records as Kafka's leader reads those of a compressed batch: field by field, blind to the length that each record
   * states of itself. Only for deciding on a Produce as Kafka decides.
   */
  static skimmed(buffer: Buffer, at: number, options: RecordsOptions): BatchRecords {
    return new BatchRecords(buffer, at, options, false)
  }

  next(): boolean {
    if (this.#read === this.#count) {
      // Kafka leaves what follows the header of an empty batch alone.
      if (this.#count > 0 && this.#position !== this.#end) throw invalid('bytes are left after the last record')
      return false
    }
    if (this.#position >= this.#end) throw invalid(`only ${this.#read} of ${this.#count} records are there`)
    this.#read++
    const length = this.#varint(this.#end, 'UNKNOWN_SERVER_ERROR')
    const start = this.#position
    const end = this.#measured ? start + length : this.#end
    if (length < 0 ? this.#measured : end > this.#end) {
      throw invalid(`a record of ${length} bytes, where ${this.#end - start} are left`)
    }
    this.#skip(1, end) // attributes, unused
    this.#timestampDelta = this.#varlong(end)
    this.offsetDelta = this.#varint(end)
    this.#keySize = this.#varint(end)
    this.#keyAt = this.#skip(this.#keySize, end)
    this.#valueSize = this.#varint(end)
    this.#valueAt = this.#skip(this.#valueSize, end)
    this.#headersCount = this.#varint(end)
    if (this.#headersCount < 0 || this.#headersCount > end - this.#position) {
      throw invalid(`${this.#headersCount} headers, where ${end - this.#position} bytes are left`)
    }
    this.#headersAt = this.#position
    for (let index = 0; index < this.#headersCount; index++) {
      const keySize = this.#varint(end)
      if (keySize < 0) throw invalid('the key of a header is null')
      this.#skip(keySize, end)
      this.#skip(this.#varint(end), end)
    }
    if (this.#measured && this.#position !== end) {
      throw invalid(`a record of ${length} bytes, of which ${this.#position - start} are used`)
    }
    if (!Number.isSafeInteger(this.offset) || !Number.isSafeInteger(this.timestamp)) {
      throw new RecordsError('INVALID_TIMESTAMP', 'the offset or time of a record is beyond ±2^53')
    }
    return true
  }

  get offset(): number {
    return this.#baseOffset + this.offsetDelta
  }

  get timestamp(): number {
    return this.#appendTime ?? this.#baseTimestamp + this.#timestampDelta
  }

  /** How long the key is; -1 for null. */
  get keySize(): number {
    return this.#keySize < 0 ? -1 : this.#keySize
  }

  get key(): Buffer | null {
    return this.#keySize < 0 ? null : this.#bytes.subarray(this.#keyAt, this.#keyAt + this.#keySize)
  }

  get value(): Buffer | null {
    return this.#valueSize < 0 ? null : this.#bytes.subarray(this.#valueAt, this.#valueAt + this.#valueSize)
  }

  get headers(): readonly RecordHeader[] {
    if (this.#headersCount === 0) return NO_HEADERS
    const position = this.#position
    this.#position = this.#headersAt
    const headers: RecordHeader[] = []
    for (let index = 0; index < this.#headersCount; index++) {
      const keySize = this.#varint(position)
      const keyAt = this.#skip(keySize, position)
      const valueSize = this.#varint(position)
      const valueAt = this.#skip(valueSize, position)
      headers.push({
        key: this.#bytes.toString('utf8', keyAt, keyAt + keySize),
        value: valueSize < 0 ? null : this.#bytes.subarray(valueAt, valueAt + valueSize),
      })
    }
    this.#position = position
    return headers
  }

  record(): LogRecord {
    const { offset, timestamp, key, value, headers } = this
    return { offset, timestamp, key, value, headers }
  }

  /** Moves past `size` bytes, none if it is negative (null), and returns where they start. */
  #skip(size: number, end: number): number {
    const at = this.#position
    if (size > 0) {
      if (size > end - at) throw invalid(`${size} bytes of a record, where ${end - at} are left`)
      this.#position = at + size
    }
    return at
  }

  #varint(end: number, codeTooLong: batch.BatchErrorCode = 'INVALID_RECORD'): number {
    let raw = 0
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.#position < end ? this.#bytes[this.#position++] : undefined
      if (byte === undefined) throw invalid('a record is cut in a varint')
      raw |= (byte & 0x7f) << shift
      if (byte < 0x80) return (raw >>> 1) ^ -(raw & 1)
    }
    throw new RecordsError(codeTooLong, 'a varint is longer than 5 bytes')
  }

  #varlong(end: number): number {
    let low = 0 // bits 0 to 27
    let high = 0 // bits 28 to 63
    for (let index = 0; index < 10; index++) {
      const byte = this.#position < end ? this.#bytes[this.#position++] : undefined
      if (byte === undefined) throw invalid('a record is cut in a varlong')
      if (index < 4) low |= (byte & 0x7f) << (7 * index)
      else high += (byte & (index < 9 ? 0x7f : 1)) * 2 ** (7 * (index - 4))
      if (byte < 0x80) {
        const half = high * 2 ** 27 + (low >>> 1)
        return (low & 1) === 0 ? half : -half - 1
      }
    }
    throw invalid('a varlong is longer than 10 bytes')
  }
}

function invalid(message: string): RecordsError {
  return new RecordsError('INVALID_RECORD', message)
}
