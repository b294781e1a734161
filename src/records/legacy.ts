/**
 * Messages of formats 0 and 1, still to be found in old segments; read only. One message takes the place of a batch:
 *
 * ```
 * 0 int64 offset   8 int32 size of what follows   12 uint32 crc (CRC-32 of byte 16 to the end)   16 int8 magic
 * 17 int8 attributes (bits 0–2 codec, 3 timestamp type)   [magic 1: 18 int64 timestamp]   int32 size, key   int32 size, value
 * ```
 * With a codec the value holds messages, and the offset is that of the last. In format 1 their own offsets are relative.
 */
import { assert } from '#base/assert.ts'
import {
  CODEC_MASK,
  COMPRESSION_NAMES,
  type CompressionName,
  checkCrc,
  exactInt64,
  LOG_APPEND_TIME_BIT,
  MAGIC_AT,
  magic,
  NO_TIMESTAMP,
  sizeInBytes,
  wholeBatchSize,
} from './batch.ts'
import { decompress } from './compression.ts'
import type { LogRecord, Records } from './records.ts'
import { RecordsError } from './records-error.ts'

const MESSAGE_ATTRIBUTES_AT = 17
const MESSAGE_TIMESTAMP_AT = 18

/** The offset of the message; of a compressed one that of its last. */
export function messageOffset(buffer: Buffer, at: number): number {
  return exactInt64(buffer, at)
}

export function messageCompression(buffer: Buffer, at: number): CompressionName {
  const codec = buffer.readUInt8(at + MESSAGE_ATTRIBUTES_AT) & CODEC_MASK
  const name = COMPRESSION_NAMES[codec]
  if (name === undefined || name === 'zstd') throw invalid(`a message of an old format names the codec ${codec}`)
  return name
}

/** -1 in format 0, which has no time. */
export function messageTimestamp(buffer: Buffer, at: number): number {
  return magic(buffer, at) === 0 ? NO_TIMESTAMP : exactInt64(buffer, at + MESSAGE_TIMESTAMP_AT)
}

export function messageHasAppendTime(buffer: Buffer, at: number): boolean {
  return magic(buffer, at) === 1 && (buffer.readUInt8(at + MESSAGE_ATTRIBUTES_AT) & LOG_APPEND_TIME_BIT) !== 0
}

export class LegacyRecords implements Records {
  readonly #records: readonly LogRecord[]
  #index = -1

  constructor(buffer: Buffer, at: number, decompressedBytesMax: number) {
    this.#records = messages(buffer, at, decompressedBytesMax)
  }

  next(): boolean {
    if (this.#index < this.#records.length) this.#index++
    return this.#index < this.#records.length
  }

  get offset(): number {
    return this.record().offset
  }
  get timestamp(): number {
    return this.record().timestamp
  }
  get key(): Buffer | null {
    return this.record().key
  }
  get value(): Buffer | null {
    return this.record().value
  }
  get headers(): LogRecord['headers'] {
    return this.record().headers
  }

  record(): LogRecord {
    const record = this.#records[this.#index]
    assert(record !== undefined, 'the cursor is at no record')
    return record
  }
}

function messages(buffer: Buffer, at: number, decompressedBytesMax: number): LogRecord[] {
  const wrapper = message(buffer, at)
  const compression = messageCompression(buffer, at)
  if (compression === 'none') return [wrapper]
  if (wrapper.value === null) throw invalid('a compressed message has no value')
  const wrapperMagic = magic(buffer, at)
  const inner = decompress(compression, wrapper.value, decompressedBytesMax, wrapperMagic)
  const appendTime = messageHasAppendTime(buffer, at) ? wrapper.timestamp : undefined
  const records: LogRecord[] = []
  for (let position = 0; position < inner.length; ) {
    const size = wholeBatchSize(inner, position, inner.length)
    if (size === 0) break // Kafka, too, leaves a cut one alone
    if (size < 0 || magic(inner, position) > 1) throw invalid('the messages in a compressed one are damaged')
    const record = message(inner, position)
    const wrong = checkCrc(inner, position)
    if (wrong !== undefined) throw new RecordsError(wrong.code, wrong.message)
    if (messageCompression(inner, position) !== 'none') throw invalid('a message in a compressed one is compressed')
    const takesAppendTime = appendTime !== undefined && magic(inner, position) === 1
    records.push(takesAppendTime ? { ...record, timestamp: appendTime } : record)
    position += size
  }
  const last = records.at(-1)
  if (last === undefined) throw invalid('a compressed message holds none')
  if (wrapperMagic === 0) return records
  // The wrapper's offset is 0 when some early clients produced it; the inner offsets are then the right ones.
  if (wrapper.offset === 0) return records
  if (wrapper.offset < last.offset) throw invalid('the offset of a compressed message is less than of its last one')
  const base = wrapper.offset - last.offset
  return records.map(record => ({ ...record, offset: base + record.offset }))
}

function message(buffer: Buffer, at: number): LogRecord {
  const end = at + sizeInBytes(buffer, at)
  const keyAt = at + (magic(buffer, at) === 0 ? MESSAGE_TIMESTAMP_AT : MESSAGE_TIMESTAMP_AT + 8)
  if (end > buffer.length || keyAt + 8 > end || at + MAGIC_AT >= end) {
    throw new RecordsError('CORRUPT_MESSAGE', 'a message is smaller than its format needs')
  }
  const keySize = buffer.readInt32BE(keyAt)
  const valueAt = keyAt + 4 + Math.max(keySize, 0)
  if (valueAt + 4 > end) throw invalid('the key of a message runs past its end')
  const valueSize = buffer.readInt32BE(valueAt)
  if (valueAt + 4 + Math.max(valueSize, 0) > end) throw invalid('the value of a message runs past its end')
  const offset = messageOffset(buffer, at)
  const timestamp = messageTimestamp(buffer, at)
  if (Number.isNaN(offset + timestamp)) throw invalid('the offset or time of a message is beyond ±2^53')
  return {
    offset,
    timestamp,
    key: keySize < 0 ? null : buffer.subarray(keyAt + 4, keyAt + 4 + keySize),
    value: valueSize < 0 ? null : buffer.subarray(valueAt + 4, valueAt + 4 + valueSize),
    headers: [],
  }
}

function invalid(text: string): RecordsError {
  return new RecordsError('INVALID_RECORD', text)
}
