import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Turns } from '#network/turns.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { realClock } from '#world/real/clock.ts'
import type { Broker } from '../broker.ts'
import { deleteRecords } from './21-delete-records.ts'

test('who leads no more when the new start is written down does not say that all have deleted', async () => {
  const partition = {
    topic: 'topic',
    leads: true,
    highWatermark: 9,
    lowWatermark: 7,
    log: { startOffset: 7, deleteRecordsBefore() {} },
    startMoved() {},
  }
  const broker = {
    turns: new Turns(realClock),
    isInternal: () => false,
    partitions: {
      find: () => partition,
      terms: () => ({ topic: { cleanupCompact: false, cleanupDelete: true } }),
      keepStart: async () => {
        partition.leads = false
      },
    },
  } as unknown as Broker
  const topics = [{ name: 'topic', partitions: [{ partitionIndex: 0, offset: 7 }] }]
  const answer = await deleteRecords(broker).handle({ timeoutMs: 100, topics } as never, { apiVersion: 2 } as never)
  const [topic] = (answer as { topics: { partitions: { errorCode: number }[] }[] }).topics
  assert.equal(topic?.partitions[0]?.errorCode, ErrorCode.NOT_LEADER_OR_FOLLOWER)
})
