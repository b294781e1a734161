import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ByteReader } from '#base/bytes.ts'
import { service } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { decode, encodeToBuffer } from '#protocol/codec.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { decodeResponseHeader, encodeRequestFrame } from '#protocol/frames.ts'
import type { Controller } from '../controller.ts'
import { NotControllerError } from '../term.ts'
import { createTopics } from './19-create-topics.ts'
import { electLeaders } from './43-elect-leaders.ts'
import { envelope } from './58-envelope.ts'
import { fetchSnapshot } from './59-fetch-snapshot.ts'

const VERSION = 7
const REQUEST = { topics: [{ name: 'topic', numPartitions: 1, replicationFactor: 1 }] }

/** A controller that loses its term over what it is asked, before it looks at it or when it has appended. */
function losing(isActive: boolean) {
  const controller = {
    isActive,
    submitted: 0,
    freshId: () => 'AAAAAAAAAAAAAAAAAAAAAg',
    submit() {
      controller.submitted++
      controller.isActive = false
      return Promise.reject(new NotControllerError('the term ended'))
    },
  }
  return controller
}

async function direct(controller: object): Promise<number | undefined> {
  const bytes = encodeToBuffer(API.CreateTopics.request, VERSION, REQUEST)
  const request = decode(API.CreateTopics.request, VERSION, new ByteReader(bytes))
  const answer = await createTopics(controller as Controller).handle(request, { apiVersion: VERSION } as never)
  return (answer as { topics: { errorCode: number }[] }).topics[0]?.errorCode
}

/** The envelope's error, and that of the topic if there is an answer in it. */
async function passedOn(controller: object): Promise<[number | undefined, number | undefined]> {
  const all = service([createTopics(controller as Controller)])
  const parts = encodeRequestFrame(API.CreateTopics, VERSION, { correlationId: 5, clientId: 'client' }, REQUEST)
  const requestData = Buffer.concat(parts as Buffer[]).subarray(4)
  const request = { requestData, requestPrincipal: null, clientHostAddress: Buffer.from([127, 0, 0, 1]) }
  const served = envelope(controller as Controller, () => all)
  const answer = (await served.handle(request, { apiVersion: 0 } as never)) as {
    errorCode: number
    responseData?: Buffer
  }
  if (answer.responseData === undefined) return [answer.errorCode, undefined]
  const reader = new ByteReader(answer.responseData)
  decodeResponseHeader(API.CreateTopics.key, VERSION, reader)
  return [answer.errorCode, decode(API.CreateTopics.response, VERSION, reader).topics[0]?.errorCode]
}

test('who passes a request on may do so again only where nothing was done', async () => {
  const never = losing(false)
  assert.deepEqual(await passedOn(never), [ErrorCode.NOT_CONTROLLER, undefined])
  assert.equal(never.submitted, 0)
  // The next leader may find it in its log and commit it: a second time, the topic would be there already.
  assert.deepEqual(await passedOn(losing(true)), [ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT])
})

test('who asks a controller himself is told that it is none any more', async () => {
  assert.equal(await direct(losing(true)), ErrorCode.NOT_CONTROLLER)
  assert.equal(await direct(losing(false)), ErrorCode.NOT_CONTROLLER)
})

test('a snapshot is asked for by one partition, not by as many as a request can name', async () => {
  let read = 0
  const controller = {
    isForeign: () => false,
    nodeId: 1,
    leaderId: 1,
    epoch: 3,
    leaderNodes: [],
    findSnapshot: () => ({ size: 100, file: {} }),
    snapshotRead: () => read++,
  }
  const ask = async (count: number) => {
    const partition = { partition: 0, currentLeaderEpoch: 3, snapshotId: { endOffset: 5, epoch: 2 }, position: 0 }
    const topics = [{ name: '__cluster_metadata', partitions: Array.from({ length: count }, () => partition) }]
    const bytes = encodeToBuffer(API.FetchSnapshot.request, 1, { replicaId: 2, maxBytes: 1000, topics })
    const reader = new ByteReader(bytes)
    const before = reader.elementsLeft
    const request = decode(API.FetchSnapshot.request, 1, reader)
    const call = { apiVersion: 1, elements: before - reader.elementsLeft }
    return await fetchSnapshot(controller as unknown as Controller).handle(request, call as never)
  }
  assert.equal(((await ask(1)) as { topics: readonly object[] }).topics.length, 1)
  assert.equal(read, 1)
  assert.deepEqual(await ask(100_000), { errorCode: ErrorCode.INVALID_REQUEST })
  assert.equal(read, 1)
})

test('an election of version 0 is refused partition by partition: there is no error of the whole', async () => {
  const { request: asked, response, versions } = API.ElectLeaders
  for (let version = versions.first; version <= versions.last; version++) {
    const bytes = encodeToBuffer(asked, version, { topicPartitions: [{ topic: 'topic', partitions: [0] }] })
    const request = decode(asked, version, new ByteReader(bytes))
    for (const elements of [1, 1_000_000]) {
      const call = { apiVersion: version, elements } as never
      const answer = await electLeaders(losing(false) as unknown as Controller).handle(request, call)
      const read = decode(response, version, new ByteReader(encodeToBuffer(response, version, answer as never)))
      const expected = elements === 1 ? ErrorCode.NOT_CONTROLLER : ErrorCode.POLICY_VIOLATION
      assert.equal(read.replicaElectionResults[0]?.partitionResult[0]?.errorCode, expected)
      assert.equal(read.errorCode, version === 0 ? ErrorCode.NONE : expected)
    }
  }
})
