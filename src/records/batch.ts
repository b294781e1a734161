/**
 * A view over record batches (magic 2, KIP-98) where they lie in a buffer: nothing is copied, nothing allocated, no
 * record touched. The readers of fields trust their position: call {@link checkBatch} first on bytes from outside.
 *
 * ```
 *  0 int64 baseOffset        8 int32 batchLength (bytes that follow it)    12 int32 partitionLeaderEpoch
 * 16 int8  magic            17 uint32 crc (CRC-32C of byte 21 to the end)  21 int16 attributes
 * 23 int32 lastOffsetDelta  27 int64 baseTimestamp                         35 int64 maxTimestamp
 * 43 int64 producerId       51 int16 producerEpoch                         53 int32 baseSequence
 * 57 int32 recordsCount     61 records, one compressed blob if a codec is set
 * ```
 * Attributes: bits 0–2 codec, 3 timestamp type, 4 transactional, 5 control, 6 baseTimestamp is a delete horizon.
 */
import { DecodeError } from '#base/bytes.ts'
import { crc32, crc32c } from './crc.ts'

export const BASE_OFFSET_AT = 0
export const BATCH_LENGTH_AT = 8
const LEADER_EPOCH_AT = 12
export const MAGIC_AT = 16
export const CRC_AT = 17
export const ATTRIBUTES_AT = 21
export const LAST_OFFSET_DELTA_AT = 23
export const BASE_TIMESTAMP_AT = 27
export const MAX_TIMESTAMP_AT = 35
export const PRODUCER_ID_AT = 43
const PRODUCER_EPOCH_AT = 51
const BASE_SEQUENCE_AT = 53
export const RECORDS_COUNT_AT = 57
export const RECORDS_AT = 61

/** Bytes of the header of a batch, the smallest that a batch can be. */
export const BATCH_OVERHEAD = RECORDS_AT
/** Bytes before what batchLength counts: offset and length, the same in every magic. */
export const LOG_OVERHEAD = 12
/** What a reader needs to have of a batch before it can tell its size and magic. */
export const HEADER_TO_MAGIC = 17

export const CODEC_MASK = 0x07
export const LOG_APPEND_TIME_BIT = 0x08
export const TRANSACTIONAL_BIT = 0x10
export const CONTROL_BIT = 0x20
export const DELETE_HORIZON_BIT = 0x40

export const NO_TIMESTAMP = -1
export const NO_PRODUCER_ID = -1
export const NO_PRODUCER_EPOCH = -1
export const NO_SEQUENCE = -1
export const NO_LEADER_EPOCH = -1

/** By codec number, as topics' `compression.type` names them. */
export const COMPRESSION_NAMES = ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const
export type CompressionName = (typeof COMPRESSION_NAMES)[number]
export type TimestampType = 'CreateTime' | 'LogAppendTime'

/** Kafka's error codes, by name, that bytes of batches can lead to. */
export type BatchErrorCode =
  | 'CORRUPT_MESSAGE'
  | 'INVALID_RECORD'
  | 'INVALID_TIMESTAMP'
  | 'MESSAGE_TOO_LARGE'
  | 'RECORD_LIST_TOO_LARGE'
  | 'UNSUPPORTED_COMPRESSION_TYPE'
  | 'UNKNOWN_SERVER_ERROR'

/** What is wrong with a batch, for an answer and for a log line. */
export interface BatchError {
  readonly code: BatchErrorCode
  readonly message: string
}

const TWO_32 = 0x1_0000_0000
const LOWEST_FORMAT_SIZE = 14 // of a magic 0 message without key and value, after offset and length

/** A 64-bit integer, or NaN where a number cannot hold it exactly. */
export function exactInt64(buffer: Buffer, at: number): number {
  const value = buffer.readInt32BE(at) * TWO_32 + buffer.readUInt32BE(at + 4)
  return Number.isSafeInteger(value) ? value : Number.NaN
}

function isExactInt64(buffer: Buffer, at: number): boolean {
  return Number.isSafeInteger(buffer.readInt32BE(at) * TWO_32 + buffer.readUInt32BE(at + 4))
}

/** Writes a number that is an exact integer as 64 bits. */
export function writeInt64(buffer: Buffer, at: number, value: number): void {
  const high = Math.floor(value / TWO_32)
  buffer.writeInt32BE(high, at)
  buffer.writeUInt32BE(value - high * TWO_32, at + 4)
}

/** The whole batch, in bytes, from its first one. The same for every magic. */
export function sizeInBytes(buffer: Buffer, at: number): number {
  return LOG_OVERHEAD + buffer.readInt32BE(at + BATCH_LENGTH_AT)
}

export function baseOffset(buffer: Buffer, at: number): number {
  return exactInt64(buffer, at + BASE_OFFSET_AT)
}

/** Stays what it was when compaction removes the last records. */
export function lastOffset(buffer: Buffer, at: number): number {
  return exactInt64(buffer, at + BASE_OFFSET_AT) + buffer.readInt32BE(at + LAST_OFFSET_DELTA_AT)
}

export function leaderEpoch(buffer: Buffer, at: number): number {
  return buffer.readInt32BE(at + LEADER_EPOCH_AT)
}

/** 2 for batches; 0 and 1 are single messages of old formats, at the same place. */
export function magic(buffer: Buffer, at: number): number {
  return buffer.readInt8(at + MAGIC_AT)
}

export function crc(buffer: Buffer, at: number): number {
  return buffer.readUInt32BE(at + CRC_AT)
}

export function attributes(buffer: Buffer, at: number): number {
  return buffer.readInt16BE(at + ATTRIBUTES_AT)
}

/** The codec's number: an index of {@link COMPRESSION_NAMES}. Checked batches have no other. */
export function codec(buffer: Buffer, at: number): number {
  return buffer.readUInt8(at + ATTRIBUTES_AT + 1) & CODEC_MASK
}

export function compression(buffer: Buffer, at: number): CompressionName {
  const name = COMPRESSION_NAMES[codec(buffer, at)]
  if (name === undefined) throw new DecodeError(`the batch names the codec ${codec(buffer, at)}, which does not exist`)
  return name
}

function hasBit(buffer: Buffer, at: number, bit: number): boolean {
  return (buffer.readUInt8(at + ATTRIBUTES_AT + 1) & bit) !== 0
}

export function timestampType(buffer: Buffer, at: number): TimestampType {
  return hasBit(buffer, at, LOG_APPEND_TIME_BIT) ? 'LogAppendTime' : 'CreateTime'
}

export function isTransactional(buffer: Buffer, at: number): boolean {
  return hasBit(buffer, at, TRANSACTIONAL_BIT)
}

export function isControl(buffer: Buffer, at: number): boolean {
  return hasBit(buffer, at, CONTROL_BIT)
}

/** Whether baseTimestamp is the time from which compaction may drop tombstones and markers (KIP-534). */
export function hasDeleteHorizon(buffer: Buffer, at: number): boolean {
  return hasBit(buffer, at, DELETE_HORIZON_BIT)
}

export function lastOffsetDelta(buffer: Buffer, at: number): number {
  return buffer.readInt32BE(at + LAST_OFFSET_DELTA_AT)
}

export function baseTimestamp(buffer: Buffer, at: number): number {
  return exactInt64(buffer, at + BASE_TIMESTAMP_AT)
}

/** The highest time of a record, or the time of all with LogAppendTime. */
export function maxTimestamp(buffer: Buffer, at: number): number {
  return exactInt64(buffer, at + MAX_TIMESTAMP_AT)
}

export function producerId(buffer: Buffer, at: number): number {
  return exactInt64(buffer, at + PRODUCER_ID_AT)
}

export function producerEpoch(buffer: Buffer, at: number): number {
  return buffer.readInt16BE(at + PRODUCER_EPOCH_AT)
}

export function baseSequence(buffer: Buffer, at: number): number {
  return buffer.readInt32BE(at + BASE_SEQUENCE_AT)
}

/** The sequence of the last record; -1 for a batch without sequences. */
export function lastSequence(buffer: Buffer, at: number): number {
  const base = baseSequence(buffer, at)
  return base === NO_SEQUENCE ? NO_SEQUENCE : sequenceAfter(base, lastOffsetDelta(buffer, at))
}

/** Sequences go on with 0 after 2147483647. */
export function sequenceAfter(sequence: number, steps: number): number {
  const next = sequence + steps
  return next > 0x7fff_ffff ? next - 0x8000_0000 : next
}

/** How many records the batch holds; after compaction fewer than its offsets span, even none. */
export function recordsCount(buffer: Buffer, at: number): number {
  return buffer.readInt32BE(at + RECORDS_COUNT_AT)
}

/**
 * Whether a whole batch (or message of an old format) starts at `at`: its size in bytes; 0 when the bytes until `end`
 * are a cut one, as at the end of a fetch or of a torn file; -1 when they can be none (length below the smallest of
 * any format, unknown magic).
 */
export function wholeBatchSize(buffer: Buffer, at: number, end: number): number {
  const left = end - at
  if (left < LOG_OVERHEAD) return 0
  const length = buffer.readInt32BE(at + BATCH_LENGTH_AT)
  if (length < LOWEST_FORMAT_SIZE || length > 0x7fff_ffff - LOG_OVERHEAD) return -1
  if (left < HEADER_TO_MAGIC) return 0
  const format = buffer.readInt8(at + MAGIC_AT)
  if (format < 0 || format > 2) return -1
  return LOG_OVERHEAD + length <= left ? LOG_OVERHEAD + length : 0
}

/** The positions of the whole batches in `buffer[at, end)`, up to a cut one. Bytes that can be no batch throw a DecodeError. */
export function* batchesOf(buffer: Buffer, at = 0, end: number = buffer.length): Generator<number, void, undefined> {
  for (let position = at; position < end; ) {
    const size = wholeBatchSize(buffer, position, end)
    if (size === 0) return
    if (size < 0) throw new DecodeError(noBatch(buffer, position, end).message)
    yield position
    position += size
  }
}

function noBatch(buffer: Buffer, at: number, end: number): BatchError {
  const length = buffer.readInt32BE(at + BATCH_LENGTH_AT)
  if (length < LOWEST_FORMAT_SIZE) {
    const message = `the batch length ${length} is less than the ${LOWEST_FORMAT_SIZE} bytes of the smallest message`
    return { code: 'CORRUPT_MESSAGE', message }
  }
  // Kafka's own sum overflows here, and the exception that follows becomes this code.
  if (length > 0x7fff_ffff - LOG_OVERHEAD) {
    return { code: 'UNKNOWN_SERVER_ERROR', message: `the batch length ${length} is beyond what a batch can have` }
  }
  if (end - at >= HEADER_TO_MAGIC && (magic(buffer, at) < 0 || magic(buffer, at) > 2)) {
    return { code: 'CORRUPT_MESSAGE', message: `the magic byte is ${magic(buffer, at)}; 0, 1 and 2 exist` }
  }
  return { code: 'CORRUPT_MESSAGE', message: `the batch is cut: ${end - at} bytes of it are here` }
}

const CRC_WRONG: BatchError = { code: 'CORRUPT_MESSAGE', message: 'the CRC does not match the bytes' }

/**
 * The checks of Kafka's reader that need no record, but the CRC ({@link checkCrc}): length, magic, header size, codec,
 * count. Beyond Kafka, offsets, times and producer ids must be exact as numbers, and the last offset not below the base.
 * Messages of formats 0 and 1 are only checked for their size. Undefined when all is well.
 */
export function checkBatch(buffer: Buffer, at: number, end: number): BatchError | undefined {
  const size = wholeBatchSize(buffer, at, end)
  if (size <= 0) {
    return end - at < LOG_OVERHEAD ? { code: 'CORRUPT_MESSAGE', message: 'the batch is cut' } : noBatch(buffer, at, end)
  }
  const format = magic(buffer, at)
  if (format < 2) return size < LOG_OVERHEAD + (format === 0 ? 14 : 22) ? tooSmall(size) : undefined
  if (size < BATCH_OVERHEAD) return tooSmall(size)
  if (codec(buffer, at) >= COMPRESSION_NAMES.length) {
    // Not UNSUPPORTED_COMPRESSION_TYPE: Kafka meets an unexpected exception here.
    return { code: 'UNKNOWN_SERVER_ERROR', message: `the codec ${codec(buffer, at)} does not exist` }
  }
  const count = recordsCount(buffer, at)
  if (count < 0) return { code: 'INVALID_RECORD', message: `the number of records is ${count}` }
  const delta = lastOffsetDelta(buffer, at)
  if (delta < 0) return { code: 'INVALID_RECORD', message: `the last offset lies ${-delta} before the base offset` }
  if (!isExactInt64(buffer, at + BASE_OFFSET_AT) || !Number.isSafeInteger(lastOffset(buffer, at))) {
    return notExact('offset')
  }
  if (!isExactInt64(buffer, at + PRODUCER_ID_AT)) return notExact('producer id')
  if (!isExactInt64(buffer, at + BASE_TIMESTAMP_AT) || !isExactInt64(buffer, at + MAX_TIMESTAMP_AT)) {
    return { code: 'INVALID_TIMESTAMP', message: 'a timestamp is beyond ±2^53 ms' }
  }
  return undefined
}

function tooSmall(size: number): BatchError {
  return { code: 'CORRUPT_MESSAGE', message: `the batch has ${size} bytes, fewer than its header needs` }
}

function notExact(what: string): BatchError {
  return { code: 'INVALID_RECORD', message: `the ${what} is beyond ±2^53` }
}

/** Compares the stored CRC with the bytes of the whole batch at `at`. Undefined when they agree. */
export function checkCrc(buffer: Buffer, at: number): BatchError | undefined {
  return (magic(buffer, at) < 2 ? messageCrc(buffer, at) : computeCrc(buffer, at)) ===
    buffer.readUInt32BE(at + (magic(buffer, at) < 2 ? LOG_OVERHEAD : CRC_AT))
    ? undefined
    : CRC_WRONG
}

/** What the CRC field of the batch should hold. */
export function computeCrc(buffer: Buffer, at: number): number {
  return crc32c(buffer, at + ATTRIBUTES_AT, at + sizeInBytes(buffer, at))
}

function messageCrc(buffer: Buffer, at: number): number {
  return crc32(buffer, at + MAGIC_AT, at + sizeInBytes(buffer, at))
}

/** The leader's stamp: base offset and leader epoch, in place; both lie outside of what the CRC covers. */
export function stamp(buffer: Buffer, at: number, offset: number, epoch: number): void {
  writeInt64(buffer, at + BASE_OFFSET_AT, offset)
  buffer.writeInt32BE(epoch, at + LEADER_EPOCH_AT)
}

/** Makes `timestamp` the time of all records, in place, and computes the CRC anew. */
export function stampLogAppendTime(buffer: Buffer, at: number, timestamp: number): void {
  stampMaxTimestamp(buffer, at, 'LogAppendTime', timestamp)
}

/** Sets the timestamp type and the highest time, in place, and computes the CRC anew if that changed something. */
export function stampMaxTimestamp(buffer: Buffer, at: number, type: TimestampType, timestamp: number): void {
  const wanted = type === 'LogAppendTime' ? LOG_APPEND_TIME_BIT : 0
  const flags = attributes(buffer, at)
  if ((flags & LOG_APPEND_TIME_BIT) === wanted && maxTimestamp(buffer, at) === timestamp) return
  // As in Kafka, the unused bits 7 to 15 do not survive a rewrite.
  buffer.writeInt16BE((flags & 0x7f & ~LOG_APPEND_TIME_BIT) | wanted, at + ATTRIBUTES_AT)
  writeInt64(buffer, at + MAX_TIMESTAMP_AT, timestamp)
  buffer.writeUInt32BE(computeCrc(buffer, at), at + CRC_AT)
}

/** Gives the batch a producer's identity, in place, and computes the CRC anew: for the client's first send and epoch bumps. */
export function stampProducer(buffer: Buffer, at: number, id: number, epoch: number, sequence: number): void {
  writeInt64(buffer, at + PRODUCER_ID_AT, id)
  buffer.writeInt16BE(epoch, at + PRODUCER_EPOCH_AT)
  buffer.writeInt32BE(sequence, at + BASE_SEQUENCE_AT)
  buffer.writeUInt32BE(computeCrc(buffer, at), at + CRC_AT)
}

/** A batch at a position, for code that passes batches around. Movable, so that a loop needs only one. */
export class BatchView {
  buffer: Buffer
  at: number

  constructor(buffer: Buffer, at = 0) {
    this.buffer = buffer
    this.at = at
  }

  moveTo(buffer: Buffer, at: number): this {
    this.buffer = buffer
    this.at = at
    return this
  }

  get sizeInBytes(): number {
    return sizeInBytes(this.buffer, this.at)
  }
  get baseOffset(): number {
    return baseOffset(this.buffer, this.at)
  }
  get lastOffset(): number {
    return lastOffset(this.buffer, this.at)
  }
  get leaderEpoch(): number {
    return leaderEpoch(this.buffer, this.at)
  }
  get magic(): number {
    return magic(this.buffer, this.at)
  }
  get crc(): number {
    return crc(this.buffer, this.at)
  }
  get attributes(): number {
    return attributes(this.buffer, this.at)
  }
  get compression(): CompressionName {
    return compression(this.buffer, this.at)
  }
  get timestampType(): TimestampType {
    return timestampType(this.buffer, this.at)
  }
  get isTransactional(): boolean {
    return isTransactional(this.buffer, this.at)
  }
  get isControl(): boolean {
    return isControl(this.buffer, this.at)
  }
  get hasDeleteHorizon(): boolean {
    return hasDeleteHorizon(this.buffer, this.at)
  }
  get lastOffsetDelta(): number {
    return lastOffsetDelta(this.buffer, this.at)
  }
  get baseTimestamp(): number {
    return baseTimestamp(this.buffer, this.at)
  }
  get maxTimestamp(): number {
    return maxTimestamp(this.buffer, this.at)
  }
  get producerId(): number {
    return producerId(this.buffer, this.at)
  }
  get producerEpoch(): number {
    return producerEpoch(this.buffer, this.at)
  }
  get baseSequence(): number {
    return baseSequence(this.buffer, this.at)
  }
  get lastSequence(): number {
    return lastSequence(this.buffer, this.at)
  }
  get recordsCount(): number {
    return recordsCount(this.buffer, this.at)
  }

  /** The bytes of the batch, as a view. */
  bytes(): Buffer {
    return this.buffer.subarray(this.at, this.at + this.sizeInBytes)
  }
}
