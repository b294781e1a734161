import type { Offset } from '#base/units.ts'
import { isControl, leaderEpoch } from '#records/batch.ts'
import { recordsOf } from '#records/records.ts'
import type { MetadataImage } from './image.ts'
import { decodeMetadataRecord } from './record.ts'

/**
 * Folds the metadata records of the batch at `at`: of the log those at or above `from`; of a snapshot, whose offsets are
 * its own, all of them as of `offset`. Throws a DecodeError for bytes that are no record.
 */
export function foldBatch(
  image: MetadataImage,
  bytes: Buffer,
  at: number,
  where: { readonly from: Offset } | { readonly offset: Offset },
): void {
  if (isControl(bytes, at)) return
  const epoch = leaderEpoch(bytes, at)
  const from = 'from' in where ? where.from : -1
  for (const { offset, value } of recordsOf(bytes, at)) {
    if (value === null || offset < from) continue
    image.apply(decodeMetadataRecord(value), 'offset' in where ? where.offset : offset, epoch)
  }
}
