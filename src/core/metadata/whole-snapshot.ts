import { checkBatch, checkCrc, isControl, sizeInBytes } from '#records/batch.ts'
import { controlTypeOf } from '#records/control.ts'
import { recordsOf } from '#records/records.ts'

/** Whether every batch of a snapshot is as it was written and the footer ends them: a part of one would lack topics. */
export function isWholeSnapshot(bytes: Buffer): boolean {
  if (!areWholeBatches(bytes)) return false
  let last = -1
  for (let at = 0; at < bytes.length; at += sizeInBytes(bytes, at)) last = at
  if (last < 0 || !isControl(bytes, last)) return false
  const [footer] = recordsOf(bytes, last)
  return footer !== undefined && controlTypeOf(footer.key) === 'snapshotFooter'
}

/** Whether these bytes, a part of a snapshot, are batches as they were written. */
export function areWholeBatches(bytes: Buffer): boolean {
  for (let at = 0; at < bytes.length; at += sizeInBytes(bytes, at)) {
    if (checkBatch(bytes, at, bytes.length) !== undefined || checkCrc(bytes, at) !== undefined) return false
  }
  return true
}
