import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ByteReader } from '#base/bytes.ts'
import { Turns } from '#network/turns.ts'
import { API } from '#protocol/apis.ts'
import { decode, encodeToBuffer } from '#protocol/codec.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { RecordsError } from '#records/records-error.ts'
import { realClock } from '#world/real/clock.ts'
import type { Broker } from '../broker.ts'
import { listOffsets } from './02-list-offsets.ts'

const VERSION = 7

test('the record with the highest time is told only when it is committed', async () => {
  const asked = async (highWatermark: number, knowsHighWatermark = true) => {
    const partition = {
      leads: true,
      leaderEpoch: 0,
      highWatermark,
      knowsHighWatermark,
      checkEpoch: () => undefined,
      log: { offsetOfMaxTimestamp: async () => ({ timestamp: 1000, offset: 5, leaderEpoch: 0 }) },
    }
    const broker = { turns: new Turns(realClock), partitions: { find: () => partition } } as unknown as Broker
    const request = {
      replicaId: -1,
      isolationLevel: 0,
      topics: [{ name: 'topic', partitions: [{ partitionIndex: 0, currentLeaderEpoch: -1, timestamp: -3 }] }],
    }
    const answer = await listOffsets(broker).handle(request as never, { apiVersion: VERSION } as never)
    const [topic] = (answer as { topics: { partitions: { errorCode: number; offset: number }[] }[] }).topics
    return [topic?.partitions[0]?.errorCode, topic?.partitions[0]?.offset]
  }
  assert.deepEqual(await asked(6), [ErrorCode.NONE, 5])
  assert.deepEqual(await asked(5), [ErrorCode.NONE, -1])
  assert.deepEqual(await asked(5, false), [ErrorCode.OFFSET_NOT_AVAILABLE, -1])
})

test('a batch that cannot be opened is an error of its partition, not of the connection', async () => {
  const partition = {
    leads: true,
    leaderEpoch: 0,
    highWatermark: 9,
    knowsHighWatermark: true,
    checkEpoch: () => undefined,
    log: { offsetForTimestamp: async () => Promise.reject(new RecordsError('UNKNOWN_SERVER_ERROR', 'no gzip stream')) },
  }
  const turns = new Turns(realClock)
  const broker = { turns, partitions: { find: () => partition } } as unknown as Broker
  const topics = [
    { name: 'topic', partitions: [0, -1].map((timestamp, partitionIndex) => ({ partitionIndex, timestamp })) },
  ]
  const bytes = encodeToBuffer(API.ListOffsets.request, VERSION, { replicaId: -1, topics })
  const request = decode(API.ListOffsets.request, VERSION, new ByteReader(bytes))
  const answer = await listOffsets(broker).handle(request, { apiVersion: VERSION } as never)
  const [topic] = (answer as { topics: { partitions: { errorCode: number; offset: number }[] }[] }).topics
  assert.deepEqual(
    topic?.partitions.map(({ errorCode, offset }) => [errorCode, offset]),
    [
      [ErrorCode.UNKNOWN_SERVER_ERROR, -1],
      [ErrorCode.NONE, 9],
    ],
  )
})
