import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ZERO_UUID } from '#base/uuid.ts'
import type { Caller } from '#network/service.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { ManualClock } from '#storage/testing/rig.ts'
import type { MetadataLog } from './metadata-log.ts'
import type { Quorum } from './quorum.ts'
import { Readers } from './readers.ts'

const CALLER: Caller = { whenGone: () => () => {} } as unknown as Caller

async function answerOf(
  log: { isFailing: boolean; isHung?: boolean; durableOffset: number; nextOffset: number },
  offset: number,
) {
  const quorum = { highWatermark: log.durableOffset, leaderId: 2, epoch: 4 } as Quorum
  const whole = {
    ...log,
    endOffset: log.nextOffset,
    startOffset: 0,
    latestEpoch: 4,
    endOffsetForEpoch: () => undefined,
  }
  const readers = new Readers(1, whole as unknown as MetadataLog, quorum, new ManualClock())
  const fetch = {
    replicaId: 1,
    directoryId: ZERO_UUID,
    offset,
    currentLeaderEpoch: 4,
    lastFetchedEpoch: -1,
    maxWaitMs: 0,
  }
  const found = await readers.fetch(fetch as unknown as Parameters<Readers['fetch']>[0], 1000, CALLER)
  return found?.answer.errorCode
}

test('the broker beside a controller whose disk takes nothing is sent to the leader, but not before the log there has anything', async () => {
  assert.equal(
    await answerOf({ isFailing: true, durableOffset: 7, nextOffset: 7 }, 0),
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
  )
  // Partitions beside an empty log would refuse the next start.
  assert.equal(await answerOf({ isFailing: true, durableOffset: 0, nextOffset: 0 }, 0), ErrorCode.NONE)
})
