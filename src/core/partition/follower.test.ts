import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stamp } from '#records/batch.ts'
import { BatchBuilder } from '#records/builder.ts'
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

test('a log that begins within a batch, as records were deleted up to there, takes the whole batch', () => {
  const log: TestLog = { startOffset: 7936, endOffset: 7936, latestEpoch: undefined }
  const follower = followerOf(log, 7936)
  assert.deepEqual(follower.begin(), [])
  const builder = new BatchBuilder()
  for (const value of ['a', 'b', 'c']) builder.append(1000, null, Buffer.from(value), [])
  const records = builder.build()
  stamp(records, 0, 7934, 7)
  const { position } = follower
  assert(position !== undefined)
  const answer = { kind: 'fetched', position, highWatermark: 7937, startOffset: 7936, records } as const
  // It was refused for ever, as it begins below the end.
  assert.deepEqual(follower.step(answer, 0), [{ kind: 'startAnew', offset: 7934 }])
  Object.assign(log, { startOffset: 7934, endOffset: 7934 })
  const appends = follower.step({ kind: 'settled', failed: false }, 0)
  assert.deepEqual(appends, [{ kind: 'append', records, size: records.length, endOffset: 7937 }])
  Object.assign(log, { endOffset: 7937, latestEpoch: 7 })
  assert.deepEqual(follower.step({ kind: 'settled', failed: false }, 0), [
    { kind: 'highWatermark', offset: 7937 },
    { kind: 'logStart', offset: 7936 },
  ])
})
