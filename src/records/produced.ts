/**
 * What the leader checks of the bytes of one partition in a Produce request, in Kafka's order (ProduceRequest's check,
 * the log's check of sizes, base offset and CRC, LogValidator) and with its error codes.
 */

import type { BatchError, TimestampType } from './batch.ts'
import * as batch from './batch.ts'
import type { DecompressionAllowance } from './decompression-allowance.ts'
import { scanPlain } from './plain-scan.ts'
import { BatchRecords } from './records.ts'
import { RecordsError } from './records-error.ts'

export interface ProducedOptions {
  /** The version of the request: zstd needs 7. Default: the newest. */
  readonly apiVersion?: number
  /** `max.message.bytes`: of the whole batch, compressed. */
  readonly messageBytesMax: number
  /** `segment.bytes`. */
  readonly segmentBytes: number
  /** `message.timestamp.type`. */
  readonly timestampType: TimestampType
  /** `message.timestamp.before.max.ms` and `.after.max.ms`; from 2^53-1 up without a limit. */
  readonly timestampBeforeMaxMs: number
  readonly timestampAfterMaxMs: number
  /** `cleanup.policy` contains compact, so that every record needs a key. */
  readonly compacted: boolean
  readonly now: number
  /**
   * Which batches' records are read through, whatever else asks for it (a compacted topic, a time out of range):
   * `unread` none, the header is believed; `plain` the uncompressed ones; `all` every one, as Kafka does.
   */
  readonly records: 'unread' | 'plain' | 'all'
  /** Bytes that a batch may have after decompression before it is refused. */
  readonly decompressedBytesMax?: number
  /** Bytes that all batches of a request may have after decompression, before the rest is refused. */
  readonly allowance?: DecompressionAllowance
}

/** Which record of the batch is at fault, for the RecordErrors of Produce from version 8 on. */
export interface ProducedRecordError {
  readonly batchIndex: number
  readonly message: string
}

export interface ProducedError extends BatchError {
  readonly recordErrors?: readonly ProducedRecordError[]
}

/**
 * Undefined when `buffer[at, end)` holds exactly one batch that may be appended; a cut one after it is ignored, so it is
 * `sizeInBytes` that counts. Where the records were read and the header's timestamp type or highest time is not
 * the right one, the header is corrected in place, as Kafka does it. The time of the append is not yet stamped.
 */
export function validateProduced(
  buffer: Buffer,
  at: number,
  end: number,
  options: ProducedOptions,
): ProducedError | undefined {
  const wrong = checkRequest(buffer, at, end, options) ?? checkAppend(buffer, at, options)
  if (wrong !== undefined) return wrong
  const plain = batch.codec(buffer, at) === 0
  const doubtful = options.compacted || timesAreDoubtful(buffer, at, options)
  if (!doubtful && options.records !== 'unread' && plain && isSound(buffer, at, options)) return undefined
  const mustRead = doubtful || options.records === 'all' || (options.records === 'plain' && plain)
  return mustRead ? checkRecords(buffer, at, options) : undefined
}

const NO_BATCH: ProducedError = { code: 'INVALID_RECORD', message: 'there is no whole batch for the partition' }

function checkRequest(buffer: Buffer, at: number, end: number, options: ProducedOptions): ProducedError | undefined {
  const size = batch.wholeBatchSize(buffer, at, end)
  if (size === 0) return NO_BATCH
  if (size < 0) return batch.checkBatch(buffer, at, end)
  if (batch.magic(buffer, at) !== 2) {
    return { code: 'INVALID_RECORD', message: `message format ${batch.magic(buffer, at)}; only 2 may be produced` }
  }
  if (size >= batch.BATCH_OVERHEAD && (options.apiVersion ?? 7) < 7 && batch.codec(buffer, at) === 4) {
    return { code: 'UNSUPPORTED_COMPRESSION_TYPE', message: 'zstd needs version 7 of Produce' }
  }
  if (at + size < end) {
    const more = batch.wholeBatchSize(buffer, at + size, end)
    if (more < 0) return batch.checkBatch(buffer, at + size, end)
    if (more > 0) return { code: 'INVALID_RECORD', message: 'there is more than one batch for the partition' }
  }
  return undefined
}

function checkAppend(buffer: Buffer, at: number, options: ProducedOptions): ProducedError | undefined {
  const size = batch.sizeInBytes(buffer, at)
  if (buffer.readInt32BE(at) !== 0 || buffer.readInt32BE(at + 4) !== 0) {
    return { code: 'INVALID_RECORD', message: 'the base offset is not 0' }
  }
  if (size > options.messageBytesMax) {
    const message = `the batch has ${size} bytes; max.message.bytes of the topic is ${options.messageBytesMax}`
    return { code: 'MESSAGE_TOO_LARGE', message }
  }
  if (size < batch.BATCH_OVERHEAD) return batch.checkBatch(buffer, at, at + size)
  const wrong = batch.checkCrc(buffer, at) ?? checkRange(buffer, at) ?? batch.checkBatch(buffer, at, at + size)
  if (wrong !== undefined) return wrong
  if (size > options.segmentBytes) {
    const message = `the batch has ${size} bytes; segment.bytes of the topic is ${options.segmentBytes}`
    return { code: 'RECORD_LIST_TOO_LARGE', message }
  }
  return undefined
}

function checkRange(buffer: Buffer, at: number): ProducedError | undefined {
  const span = batch.lastOffsetDelta(buffer, at) + 1
  const count = batch.recordsCount(buffer, at)
  if (count <= 0 || span !== count) {
    return { code: 'INVALID_RECORD', message: `the number of records is ${count}, the offsets span ${span}` }
  }
  if (batch.isControl(buffer, at)) {
    return { code: 'INVALID_RECORD', message: 'clients may not write control records' }
  }
  const id = batch.producerId(buffer, at)
  const sequence = batch.baseSequence(buffer, at)
  if (id >= 0 && sequence < 0) {
    return { code: 'INVALID_RECORD', message: `the producer ${id} sends the sequence ${sequence}` }
  }
  return undefined
}

/** Whether the header's word about times does not do. A highest time within the limit clears all that are too new. */
function timesAreDoubtful(buffer: Buffer, at: number, options: ProducedOptions): boolean {
  if (batch.timestampType(buffer, at) === 'LogAppendTime') return true
  if (options.timestampType === 'LogAppendTime') return false
  return (
    options.timestampBeforeMaxMs < Number.MAX_SAFE_INTEGER ||
    batch.maxTimestamp(buffer, at) - options.now > options.timestampAfterMaxMs
  )
}

/** Whether a plain batch passes at a glance. No is no verdict. */
function isSound(buffer: Buffer, at: number, options: ProducedOptions): boolean {
  const highest = scanPlain(buffer, at)
  if (highest === undefined) return false
  const base = batch.baseTimestamp(buffer, at)
  // Times that the header hides are looked at one by one, and so are those with special meanings.
  if (base < 0 || base + highest !== batch.maxTimestamp(buffer, at)) return false
  return batch.timestampType(buffer, at) === options.timestampType
}

function checkRecords(buffer: Buffer, at: number, options: ProducedOptions): ProducedError | undefined {
  const plain = batch.codec(buffer, at) === 0
  const faults: ProducedRecordError[] = []
  let ofTime = false
  let highest = batch.NO_TIMESTAMP
  let inOrder = true
  try {
    const limits = { decompressedBytesMax: options.decompressedBytesMax, allowance: options.allowance }
    const records = plain ? new BatchRecords(buffer, at, limits) : BatchRecords.skimmed(buffer, at, limits)
    for (let batchIndex = 0; records.next(); batchIndex++) {
      const { timestamp } = records
      if (timestamp > highest) highest = timestamp
      if (records.offsetDelta !== batchIndex) inOrder = false
      if (options.compacted && records.keySize < 0) {
        faults.push({ batchIndex, message: 'a compacted topic takes no record without a key' })
      } else {
        const message = wrongTime(buffer, at, timestamp, options)
        if (message === undefined) continue
        ofTime = true
        faults.push({ batchIndex, message })
      }
    }
  } catch (error) {
    if (error instanceof RecordsError) return { code: error.code, message: error.message }
    throw error
  }
  if (faults.length > 0) {
    const message = `${faults.length} of the records were refused: ${faults[0]?.message}`
    return { code: ofTime ? 'INVALID_TIMESTAMP' : 'INVALID_RECORD', message, recordErrors: faults }
  }
  // Kafka would write such a batch anew and fails at it. In a plain batch it does not look.
  if (!plain && !inOrder) {
    return { code: 'UNKNOWN_SERVER_ERROR', message: 'the offsets within the compressed batch are not 0, 1, 2 …' }
  }
  if (options.timestampType === 'CreateTime') batch.stampMaxTimestamp(buffer, at, 'CreateTime', highest)
  return undefined
}

function wrongTime(buffer: Buffer, at: number, timestamp: number, options: ProducedOptions): string | undefined {
  if (options.timestampType === 'CreateTime' && timestamp !== batch.NO_TIMESTAMP) {
    const early = options.now - timestamp
    if (early <= options.timestampBeforeMaxMs && -early <= options.timestampAfterMaxMs) return undefined
    return `the time ${timestamp} is not within [${options.now - options.timestampBeforeMaxMs}, ${options.now + options.timestampAfterMaxMs}]`
  }
  if (batch.timestampType(buffer, at) === 'CreateTime') return undefined
  return 'a producer may not set the timestamp type to LogAppendTime'
}
