import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LeaderEpochs } from '#storage/leader-epochs.ts'
import { divergence } from './divergence.ts'
import type { FollowedLog } from './follower.ts'

function logOf(endOffset: number, ...epochs: readonly (readonly [epoch: number, startOffset: number])[]): FollowedLog {
  const known = new LeaderEpochs()
  for (const [epoch, startOffset] of epochs) known.assign(epoch, startOffset)
  return {
    startOffset: 0,
    endOffset,
    latestEpoch: known.latest,
    endOffsetForEpoch: epoch => known.endOffsetFor(epoch, endOffset),
  }
}

test('logs of one history do not part, and others part where the last epoch of both ends', () => {
  const leader = logOf(100, [2, 0], [4, 50], [6, 80])
  assert.equal(divergence(leader, 100, 6), undefined)
  assert.equal(divergence(leader, 80, 4), undefined)
  assert.equal(divergence(leader, 90, -1), undefined)
  assert.deepEqual(divergence(leader, 85, 4), { epoch: 4, endOffset: 80 })
  assert.deepEqual(divergence(leader, 85, 5), { epoch: 4, endOffset: 80 })
})

test('a follower that knows a later epoch than the leader has records of is not turned away for good', () => {
  const leader = logOf(100, [4, 50])
  const follower = logOf(100, [4, 50], [5, 100])
  const told = divergence(leader, 100, 5)
  assert.deepEqual(told, { epoch: 4, endOffset: 100 })
  // What it cuts by that is the epoch without records, and then both agree.
  assert.deepEqual(follower.endOffsetForEpoch(4), { leaderEpoch: 4, endOffset: 100 })
  assert.deepEqual(divergence(leader, 130, 5), { epoch: 4, endOffset: 100 })
})

test('an empty log parts from none that ends where it does; records without epochs say nothing', () => {
  assert.equal(divergence(logOf(0), 0, 5), undefined)
  assert.equal(divergence(logOf(10), 10, 5), 'unknown')
})
