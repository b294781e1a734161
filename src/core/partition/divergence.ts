import type { Epoch, Offset } from '#base/units.ts'
import type { FollowedLog } from './follower.ts'

/** Where the follower's log parts from the leader's: the largest epoch that both may know, and where the leader's ended. */
export interface Divergence {
  readonly epoch: Epoch
  readonly endOffset: Offset
}

/**
 * Where the leader's log has another history than that of a follower which ends at `fetchOffset` with a batch, or a
 * leadership, of `lastFetchedEpoch`; 'unknown' where the leader's epochs do not say.
 */
export function divergence(
  log: FollowedLog,
  fetchOffset: Offset,
  lastFetchedEpoch: Epoch,
): Divergence | 'unknown' | undefined {
  if (lastFetchedEpoch < 0) return undefined
  const known = log.endOffsetForEpoch(lastFetchedEpoch)
  if (known === undefined) return beyond(log, fetchOffset)
  if (known.leaderEpoch === lastFetchedEpoch && known.endOffset >= fetchOffset) return undefined
  return { epoch: known.leaderEpoch, endOffset: known.endOffset }
}

/**
 * The follower knows a later epoch than the leader has records of: the leader's own is forgotten where a disk that failed
 * took what it began with. All that the leader has is older then.
 */
function beyond(
  { startOffset, endOffset, latestEpoch }: FollowedLog,
  fetchOffset: Offset,
): Divergence | 'unknown' | undefined {
  if (latestEpoch !== undefined) return { epoch: latestEpoch, endOffset }
  return startOffset === endOffset && fetchOffset === endOffset ? undefined : 'unknown'
}
