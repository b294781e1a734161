import type { Epoch, Offset } from '#base/units.ts'

/** A snapshot holds everything below `endOffset`; `epoch` is that of the record before it. */
export interface SnapshotId {
  readonly endOffset: Offset
  readonly epoch: Epoch
}

/** What raft sees of the log beside it. It changes between events, never during one. */
export interface LogView {
  readonly startOffset: Offset
  /** Where the next append goes. */
  readonly nextOffset: Offset
  /** Everything below can be read. */
  readonly endOffset: Offset
  readonly lastEpoch: Epoch
  /** The end of the largest epoch that is not above the given one; undefined where the log knows of none. */
  endOffsetForEpoch(epoch: Epoch): SnapshotId | undefined
  readonly earliestSnapshot: SnapshotId | undefined
  readonly latestSnapshot: SnapshotId | undefined
}

export type Position =
  | { readonly kind: 'valid' }
  /** The fetcher's log parts from ours: it cuts its own back to this. */
  | { readonly kind: 'diverging'; readonly epoch: Epoch; readonly endOffset: Offset }
  /** What the fetcher needs next is only in a snapshot. */
  | { readonly kind: 'snapshot'; readonly id: SnapshotId }

const VALID: Position = { kind: 'valid' }

/** Whether a fetcher whose log ends at `offset`, with a last record of `epoch`, may go on from there (KIP-595, 630). */
export function judgePosition(log: LogView, offset: Offset, epoch: Epoch): Position {
  if (log.startOffset === 0 && offset === 0 && epoch === 0) return VALID
  const { earliestSnapshot: earliest, latestSnapshot: latest } = log
  if (earliest !== undefined && latest !== undefined) {
    const isBelow = offset < log.startOffset || epoch < earliest.epoch
    if (isBelow || (offset === log.startOffset && epoch !== earliest.epoch)) return { kind: 'snapshot', id: latest }
  }
  const end = log.endOffsetForEpoch(epoch) ?? { endOffset: log.endOffset, epoch: log.lastEpoch }
  if (end.epoch === epoch && end.endOffset >= offset) return VALID
  return { kind: 'diverging', epoch: end.epoch, endOffset: end.endOffset }
}
