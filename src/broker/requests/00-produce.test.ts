import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ByteReader } from '#base/bytes.ts'
import { MiB } from '#base/units.ts'
import { ZERO_UUID } from '#base/uuid.ts'
import { BrokerConfigs } from '#core/config/broker-configs.ts'
import { resolveTopic } from '#core/config/topic.ts'
import type { ProduceError } from '#core/partition/leader.ts'
import { API } from '#protocol/apis.ts'
import { decode, encodeToBuffer } from '#protocol/codec.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { BASE_TIMESTAMP_AT, CRC_AT, computeCrc, MAX_TIMESTAMP_AT } from '#records/batch.ts'
import { BatchBuilder } from '#records/builder.ts'
import { ManualClock, plainBatch } from '#storage/testing/rig.ts'
import type { Broker } from '../broker.ts'
import { Deadlines } from '../deadlines.ts'
import type { ProduceToken } from '../partitions/partition.ts'
import { termsOf } from '../partitions/terms.ts'
import { produce } from './00-produce.ts'

const VERSION = 9
const TIME = new ManualClock().now()

/** A produce request to one partition, whose log answers when the test says so. */
function send(
  records: Buffer | readonly Buffer[] = plainBatch(0, 1, 10, TIME),
  configs = new Map<string, string>(),
  acks = -1,
) {
  const log = Promise.withResolvers<void>()
  const clock = new ManualClock()
  let token: ProduceToken | undefined
  const partition = {
    topic: 'topic',
    topicId: ZERO_UUID,
    index: 0,
    log: { startOffset: 0 },
    written: log.promise,
    produce: (_batch: Buffer, _at: number, _size: number, _acks: number, asked: ProduceToken) => {
      token = asked
      if (acks === 0) asked.settle({ token: asked, error: undefined, message: undefined, baseOffset: 0 })
    },
  }
  const terms = termsOf(resolveTopic(configs, new BrokerConfigs({ nodeId: 1 })))
  const broker = {
    world: { clock },
    deadlines: new Deadlines(clock),
    partitions: { find: () => partition, terms: () => terms },
    isInternal: () => false,
    leaderEndpoints: () => [],
  } as unknown as Broker
  const body = {
    acks,
    timeoutMs: 1000,
    topicData: [{ name: 'topic', partitionData: [records].flat().map((records, index) => ({ index, records })) }],
  }
  const bytes = encodeToBuffer(API.Produce.request, VERSION, body)
  const request = decode(API.Produce.request, VERSION, new ByteReader(bytes))
  let recycled = 0
  let held = 0
  const call = {
    apiVersion: VERSION,
    clientId: null,
    caller: {},
    recycle: () => recycled++,
    hold: () => held++,
    letGo: () => held--,
  }
  const answer = produce(broker).handle(request, call as never)
  const settle = (error: ProduceError | undefined): void => {
    assert.ok(token !== undefined)
    token.settle({ token, error, message: undefined, baseOffset: error === undefined ? 0 : -1 })
  }
  return {
    clock,
    answer,
    settle,
    recycled: () => recycled,
    held: () => held,
    logDone: log.resolve,
    logFailed: log.reject,
  }
}

test('the memory of a request is used again once its log has taken the bytes', async () => {
  const { answer, settle, recycled } = send()
  assert.equal(recycled(), 0)
  settle(undefined)
  await answer
  assert.equal(recycled(), 1)
})

test('the memory of a request that was answered before its log is done with it is left to the log', async () => {
  // A log that fails to sync one write refuses the next one while that is still under way.
  for (const error of ['NOT_LEADER_OR_FOLLOWER', 'KAFKA_STORAGE_ERROR'] as const) {
    const early = send()
    early.settle(error)
    await early.answer
    assert.equal(early.recycled(), 0)
  }

  const timedOut = send()
  timedOut.clock.advance(1000)
  await timedOut.answer
  timedOut.settle(undefined)
  assert.equal(timedOut.recycled(), 0)
})

test('the memory of a request counts until its log is done with the bytes, whenever the answer leaves', async () => {
  const usual = send()
  assert.equal(usual.held(), 1)
  usual.settle(undefined)
  assert.equal(usual.held(), 0)

  const timedOut = send()
  timedOut.clock.advance(1000)
  await timedOut.answer
  assert.equal(timedOut.held(), 1)
  timedOut.settle(undefined)
  assert.equal(timedOut.held(), 0)

  for (const error of ['NOT_LEADER_OR_FOLLOWER', 'KAFKA_STORAGE_ERROR'] as const) {
    const early = send()
    early.settle(error)
    await early.answer
    assert.equal(early.held(), 1)
    early.logFailed(new Error('the disk is gone'))
    await new Promise(setImmediate)
    assert.equal(early.held(), 0)
  }

  const careless = send(undefined, undefined, 0)
  await careless.answer
  assert.equal(careless.held(), 1)
  careless.logDone()
  await new Promise(setImmediate)
  assert.equal(careless.held(), 0)
})

test('what the batches of a request hold after decompression is limited together', async () => {
  const builder = new BatchBuilder({ compression: 'zstd' })
  builder.append(TIME, Buffer.from('key'), Buffer.alloc(100 * MiB))
  const batch = builder.build()
  const { answer, clock } = send(
    [batch, Buffer.from(batch), Buffer.from(batch)],
    new Map([['cleanup.policy', 'compact']]),
  )
  clock.advance(1000)
  const { responses } = (await answer) as { responses: { partitionResponses: { errorCode: number }[] }[] }
  assert.deepEqual(
    responses[0]?.partitionResponses.map(({ errorCode }) => errorCode),
    [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.MESSAGE_TOO_LARGE],
  )
})

test('a record of an impossible time is refused where it would be written anew, and does no harm', async () => {
  const records = plainBatch(0, 1, 10, TIME)
  records.writeBigInt64BE(-5n, BASE_TIMESTAMP_AT)
  records.writeBigInt64BE(-5n, MAX_TIMESTAMP_AT)
  records.writeUInt32BE(computeCrc(records, 0), CRC_AT)
  const { answer, recycled } = send(records, new Map([['compression.type', 'gzip']]))
  const { responses } = (await answer) as { responses: { partitionResponses: { errorCode: number }[] }[] }
  assert.equal(responses[0]?.partitionResponses[0]?.errorCode, ErrorCode.UNKNOWN_SERVER_ERROR)
  assert.equal(recycled(), 1)
})
