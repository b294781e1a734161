import type { Epoch, Offset } from '#base/units.ts'
import { baseOffset, checkBatch, checkCrc, lastOffset, leaderEpoch, magic, wholeBatchSize } from '#records/batch.ts'

/** Batches of the leader's log as they came, which go on where the asker's log ends. */
export interface FollowedRecords {
  /** Whole batches and nothing else. */
  readonly bytes: Buffer
  /** Where the log ends with them. */
  readonly endOffset: Offset
}

/**
 * The whole batches of a Fetch's answer, checked before they become part of this log: what is wrong with one of them is
 * returned as text. A cut batch at the end is left out.
 */
export function followedRecords(records: Buffer, from: Offset, epoch: Epoch): FollowedRecords | string {
  let at = 0
  let next = from
  let newest: Epoch = -1
  while (at < records.length) {
    const size = wholeBatchSize(records, at, records.length)
    if (size === 0) break
    const wrong = checkBatch(records, at, records.length) ?? checkCrc(records, at)
    if (wrong !== undefined) return `at offset ${next}: ${wrong.message}`
    if (magic(records, at) !== 2) return `at offset ${next}: a batch of an old format`
    if (baseOffset(records, at) !== next) return `offset ${baseOffset(records, at)} where ${next} is due`
    const its = leaderEpoch(records, at)
    if (its < newest || its > epoch) return `at offset ${next}: epoch ${its} in a fetch of epoch ${epoch}`
    newest = its
    next = lastOffset(records, at) + 1
    at += size
  }
  return { bytes: at === records.length ? records : records.subarray(0, at), endOffset: next }
}
