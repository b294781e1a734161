import {
  baseSequence,
  compression,
  isTransactional,
  maxTimestamp,
  NO_TIMESTAMP,
  producerEpoch,
  producerId,
  sizeInBytes,
  timestampType,
} from '#records/batch.ts'
import { BatchBuilder } from '#records/builder.ts'
import type { DecompressionAllowance } from '#records/decompression-allowance.ts'
import { recordsOf } from '#records/records.ts'
import { RecordsError } from '#records/records-error.ts'
import type { Terms } from './terms.ts'

/**
 * The batch in the codec that its topic demands: the same records, sequence and times. As it came where that fits already.
 * @throws RecordsError for records that were taken as they came, and cannot be written again. Kafka has the same ones.
 */
export function recompressed(batch: Buffer, terms: Terms, allowance?: DecompressionAllowance): Buffer {
  const wanted = terms.compressionType
  if (wanted === 'producer' || wanted === compression(batch, 0)) return batch
  const builder = new BatchBuilder({
    compression: wanted,
    ...(terms.compressionLevel !== undefined && { compressionLevel: terms.compressionLevel }),
    producerId: producerId(batch, 0),
    producerEpoch: producerEpoch(batch, 0),
    baseSequence: baseSequence(batch, 0),
    transactional: isTransactional(batch, 0),
    ...(timestampType(batch, 0) === 'LogAppendTime' && { logAppendTime: maxTimestamp(batch, 0) }),
  })
  for (const record of recordsOf(batch.subarray(0, sizeInBytes(batch, 0)), 0, { allowance })) {
    if (record.timestamp < 0 && record.timestamp !== NO_TIMESTAMP) {
      throw new RecordsError('UNKNOWN_SERVER_ERROR', `a record of the time ${record.timestamp} cannot be written anew`)
    }
    builder.append(record.timestamp, record.key, record.value, record.headers)
  }
  return builder.build()
}
