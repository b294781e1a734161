import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FollowedLog, type FollowerEffect, PartitionFollower } from './follower.ts'

interface TestLog {
  startOffset: number
  endOffset: number
  latestEpoch: number | undefined
}

function followerOf(log: TestLog, highWatermark: number): PartitionFollower {
  const followed: FollowedLog = Object.assign(log, { endOffsetForEpoch: () => undefined })
  return new PartitionFollower({ epoch: 7, log: followed, highWatermark, isBusy: false, backoffMs: 1000 })
}

/** Refuses the fetch that it makes now as out of range, and tells it the leader's offsets. */
function outOfRange(follower: PartitionFollower, startOffset: number, endOffset: number): readonly FollowerEffect[] {
  const { position } = follower
  assert(position !== undefined)
  const asks = follower.step({ kind: 'refused', position, error: 'OFFSET_OUT_OF_RANGE' }, 0)
  assert.deepEqual(asks, [{ kind: 'askOffsets' }])
  return follower.step({ kind: 'offsets', range: { startOffset, endOffset } }, 0)
}

test('a log that begins anew where the leader begins takes all below for committed, and cuts nothing', () => {
  const log: TestLog = { startOffset: 0, endOffset: 1522, latestEpoch: 3 }
  const follower = followerOf(log, 1522)
  assert.deepEqual(follower.begin(), [])
  assert.deepEqual(outOfRange(follower, 1557, 1600), [{ kind: 'startAnew', offset: 1557 }])
  Object.assign(log, { startOffset: 1557, endOffset: 1557, latestEpoch: undefined })
  // It was cut back to the watermark of before, begun anew, cut back, for ever.
  assert.deepEqual(follower.step({ kind: 'settled', failed: false }, 0), [])
  assert.equal(follower.position?.offset, 1557)
  assert.equal(follower.position?.lastFetchedEpoch, -1)
})
