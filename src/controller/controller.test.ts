import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ByteReader } from '#base/bytes.ts'
import { ZERO_UUID } from '#base/uuid.ts'
import { BrokerConfigs } from '#core/config/broker-configs.ts'
import { ChannelError } from '#network/channel.ts'
import { API } from '#protocol/apis.ts'
import { decode } from '#protocol/codec.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { decodeRequestHeader, decodeResponseHeader, encodeRequestFrame } from '#protocol/frames.ts'
import { realWorld } from '#world/real/real.ts'
import { MetadataLog } from './metadata-log.ts'
import { QuorumError } from './quorum-error.ts'
import { QuorumStateError } from './quorum-state.ts'
import { Client, startController } from './testing/rig.ts'

const world = realWorld({ log: { level: 'error' } })

async function folderFor(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tidemark-controller-'))
  later(t, () => rm(folder, { recursive: true, force: true }))
  return folder
}

const cleanups = new WeakMap<TestContext, (() => unknown)[]>()

/** What began last is ended first. */
function later(t: TestContext, run: () => unknown): void {
  const known = cleanups.get(t)
  if (known !== undefined) {
    known.push(run)
    return
  }
  const runs = [run]
  cleanups.set(t, runs)
  t.after(async () => {
    for (const each of runs.toReversed()) await each()
  })
}

async function running(t: TestContext, folder: string, config = {}) {
  const controller = await startController(world, folder, config)
  later(t, () => controller.stop())
  const client = await Client.connect(world, controller.address)
  later(t, () => client.channel.close())
  return { controller, client }
}

test('an empty folder becomes a cluster: a broker registers, is unfenced, and a topic is created and followed', async t => {
  const { controller, client } = await running(t, await folderFor(t))
  assert.equal(controller.isActive, true)
  assert.equal((await client.register()).errorCode, 0)
  assert.equal((await client.heartbeat(client.epoch - 1)).isFenced, true)
  assert.equal((await client.heartbeat()).isFenced, false)
  const topic = await client.createTopic('tides', 3)
  assert.equal(topic?.errorCode, 0)
  assert.equal((await client.createTopic('tides'))?.errorCode, ErrorCode.TOPIC_ALREADY_EXISTS)
  const image = await client.follow()
  assert.equal(image.topicByName('tides')?.id, topic?.topicId)
  assert.deepEqual(image.topicByName('tides')?.partitions[2]?.isr, [1])
  assert.equal(image.broker(1)?.epoch, client.epoch)
  assert.equal(image.controllers.get(1)?.endPoints[0]?.port, controller.address.port)
  assert.equal(image.skipped, 0)
})

test('everything is there after a restart, under the next epoch', async t => {
  const folder = await folderFor(t)
  const first = await running(t, folder)
  await first.client.register()
  await first.client.heartbeat()
  await first.client.createTopic('kept', 2)
  assert.equal(first.controller.epoch, 1)
  await first.controller.stop()

  const { controller, client } = await running(t, folder)
  assert.equal(controller.epoch, 2)
  const state = JSON.parse(await readFile(join(folder, '__cluster_metadata-0/quorum-state'), 'utf8'))
  assert.deepEqual(state, {
    leaderId: 1,
    leaderEpoch: 2,
    votedId: -1,
    votedDirectoryId: 'AAAAAAAAAAAAAAAAAAAAAA',
    data_version: 1,
  })
  const image = await client.follow()
  assert.equal(image.topicByName('kept')?.partitions.length, 2)
  assert.equal(image.broker(1)?.epoch, first.client.epoch)
})

test('a fetch waits for news, and is answered by the commit that brings it', async t => {
  const { controller, client } = await running(t, await folderFor(t))
  await client.register()
  await client.heartbeat()
  client.leaderEpoch = controller.epoch
  const other = await Client.connect(world, controller.address)
  later(t, () => other.channel.close())
  const end = controller.highWatermark
  const waiting = client.fetch(end, controller.epoch, 60_000)
  await other.createTopic('news')
  const { records, highWatermark } = await waiting
  assert.equal(highWatermark, end + 2)
  assert.ok(records !== null && records.length > 0)
  const empty = await client.fetch(end + 2, controller.epoch, 50)
  assert.equal(empty.errorCode, 0)
  assert.equal(empty.records?.length, 0)
})

test('a connection that fetches for years is watched for its end by no more than one fetch', async t => {
  const { controller } = await running(t, await folderFor(t))
  let watches = 0
  const whenGone = () => {
    watches++
    return () => watches--
  }
  const caller = { whenGone } as unknown as Parameters<typeof controller.fetch>[2]
  const { epoch: currentLeaderEpoch, nextOffset: offset } = controller
  const fetch = {
    replicaId: 7,
    directoryId: ZERO_UUID,
    currentLeaderEpoch,
    offset,
    lastFetchedEpoch: currentLeaderEpoch,
    highWatermark: Number.POSITIVE_INFINITY,
    maxWaitMs: 5,
  }
  for (let count = 0; count < 3; count++) {
    const fetched = controller.fetch(fetch, 1000, caller)
    assert.equal(watches, 1)
    await fetched
  }
  assert.equal(watches, 0)
})

test('a fetcher with another epoch is told the leader, in every version that has the field', async t => {
  const { controller, client } = await running(t, await folderFor(t))
  for (const version of [12, 13, 15, 16, 18]) {
    client.leaderEpoch = 0
    const stale = await client.fetch(0, 0, 0, version)
    assert.equal(stale.errorCode, ErrorCode.FENCED_LEADER_EPOCH)
    assert.deepEqual(stale.currentLeader, { leaderId: 1, leaderEpoch: 1 })
    const known = await client.fetch(0, 0, 0, version)
    assert.equal(known.errorCode, 0)
    assert.equal(known.highWatermark, controller.highWatermark)
    client.leaderEpoch = 9
    assert.equal((await client.fetch(0, 0, 0, version)).errorCode, ErrorCode.UNKNOWN_LEADER_EPOCH)
  }
  client.leaderEpoch = 1
  const diverging = await client.fetch(1, 0)
  assert.equal(diverging.errorCode, 0)
  assert.notEqual(diverging.divergingEpoch.endOffset, -1)
})

test('only the metadata log can be fetched, and only by the same cluster', async t => {
  const { client } = await running(t, await folderFor(t))
  const body = { maxWaitMs: 0, minBytes: 1, maxBytes: 1000 }
  const none = await client.channel.ask(API.Fetch, { ...body, topics: [] })
  assert.equal(none.errorCode, ErrorCode.INVALID_REQUEST)
  const foreign = await client.channel.ask(API.Fetch, { ...body, clusterId: 'another', topics: [] })
  assert.equal(foreign.errorCode, ErrorCode.INCONSISTENT_CLUSTER_ID)
})

test('snapshots are written as the log grows, the log before them goes, and a newcomer reads them', async t => {
  const folder = await folderFor(t)
  const { controller, client } = await running(t, folder, { snapshotBytes: 2000 })
  await client.register()
  await client.heartbeat()
  for (let index = 0; index < 60; index++) await client.createTopic(`topic-${index}`)
  const until = Date.now() + 5000
  while (controller.logStartOffset === 0 && Date.now() < until) {
    await client.createTopic(`more-${Date.now()}-${process.hrtime.bigint()}`)
  }
  assert.ok(controller.logStartOffset > 0)
  const before = await client.follow()
  assert.ok(before.topics.size >= 60)
  const files = await readdir(join(folder, '__cluster_metadata-0'))
  assert.equal(files.filter(name => name.endsWith('.checkpoint')).length, 2)
  const size = before.topics.size
  await controller.stop()

  const again = await running(t, folder)
  assert.equal((await again.client.follow()).topics.size, size)
  const newest = files
    .filter(name => name.endsWith('.checkpoint'))
    .sort()
    .at(-1) as string
  await again.controller.stop()

  // A damaged snapshot costs nothing: the one before it and the log are still there.
  const path = join(folder, '__cluster_metadata-0', newest)
  const bytes = await readFile(path)
  bytes.writeUInt8(bytes.readUInt8(200) ^ 1, 200)
  await writeFile(path, bytes)
  const quiet = { ...world, log: realWorld({ log: { level: 'silent' as never } }).log }
  const repaired = await startController(quiet, folder)
  later(t, () => repaired.stop())
  assert.equal(repaired.image?.topics.size, size)
})

test('requests that a broker passes on come back in their envelope', async t => {
  const { client } = await running(t, await folderFor(t))
  await client.register()
  await client.heartbeat()
  const forward = async (requestData: Buffer) =>
    await client.channel.ask(API.Envelope, {
      requestData,
      requestPrincipal: null,
      clientHostAddress: Buffer.of(127, 0, 0, 1),
    })
  const frame = (version: number) => {
    const body = { topics: [{ name: `v${version}`, numPartitions: 1, replicationFactor: 1 }], timeoutMs: 1 }
    const parts = encodeRequestFrame(API.CreateTopics, version, { correlationId: 42, clientId: 'c' }, body)
    return Buffer.concat(parts as Buffer[]).subarray(4)
  }
  for (const version of [2, 4, 5, 7]) {
    const answer = await forward(frame(version))
    assert.equal(answer.errorCode, 0)
    const reader = new ByteReader(answer.responseData as Buffer)
    assert.equal(decodeResponseHeader(API.CreateTopics.key, version, reader).correlationId, 42)
    assert.equal(decode(API.CreateTopics.response, version, reader).topics[0]?.errorCode, 0)
    assert.equal(reader.remaining, 0)
  }
  assert.equal((await forward(Buffer.of(1, 2, 3))).errorCode, ErrorCode.INVALID_REQUEST)
  const heartbeat = encodeRequestFrame(API.Heartbeat, 4, { correlationId: 1, clientId: null }, {})
  assert.equal((await forward(Buffer.concat(heartbeat as Buffer[]).subarray(4))).errorCode, ErrorCode.INVALID_REQUEST)
  const future = frame(7)
  future.writeInt16BE(99, 2)
  assert.equal(decodeRequestHeader(new ByteReader(frame(7))).apiVersion, 7)
  assert.equal((await forward(future)).errorCode, ErrorCode.UNSUPPORTED_VERSION)
})

test('the quorum describes itself: a voter, and the observers that fetched', async t => {
  const { controller, client } = await running(t, await folderFor(t))
  await client.follow()
  const topics = [{ topicName: '__cluster_metadata', partitions: [{ partitionIndex: 0 }] }]
  const answer = await client.channel.ask(API.DescribeQuorum, { topics })
  const partition = answer.topics[0]?.partitions[0]
  assert.equal(partition?.leaderId, 1)
  assert.equal(partition?.highWatermark, controller.highWatermark)
  assert.equal(partition?.currentVoters[0]?.logEndOffset, controller.highWatermark)
  assert.equal(partition?.observers[0]?.replicaId, 7)
  assert.ok(Math.abs((partition?.observers[0]?.lastFetchTimestamp ?? 0) - Date.now()) < 60_000)
  assert.deepEqual(answer.nodes[0]?.listeners, [controller.endpoint])
  const wrong = await client.channel.ask(API.DescribeQuorum, {
    topics: [{ topicName: 'tides', partitions: [{ partitionIndex: 0 }] }],
  })
  assert.equal(wrong.topics[0]?.partitions[0]?.errorCode, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
})

test('a controller says which controllers there are, and sends who asks for brokers away', async t => {
  const { controller, client } = await running(t, await folderFor(t))
  const answer = await client.channel.ask(API.DescribeCluster, { endpointType: 2 })
  const { host, port } = controller.endpoint
  assert.deepEqual(answer.brokers, [{ brokerId: 1, host, port, rack: null, isFenced: false }])
  const wrong = await client.channel.ask(API.DescribeCluster, { endpointType: 1 })
  assert.equal(wrong.errorCode, ErrorCode.MISMATCHED_ENDPOINT_TYPE)
})

test('a folder of another quorum or with an unreadable vote is refused with its reason', async t => {
  const folder = await folderFor(t)
  const controller = await startController(world, folder)
  await controller.stop()
  await assert.rejects(startController(world, folder, { directoryId: '08v4ulRaR2-bGxgk_Ot-AA' }), QuorumError)
  await writeFile(join(folder, '__cluster_metadata-0/quorum-state'), '{"leaderId":')
  await assert.rejects(startController(world, folder), QuorumStateError)
})

test('the log folds to the same metadata as the controller has', async t => {
  const folder = await folderFor(t)
  const { controller, client } = await running(t, folder)
  await client.register()
  await client.heartbeat()
  await client.createTopic('same', 5)
  const records = [...(controller.image?.snapshotRecords() ?? [])]
  await controller.stop()
  const log = await MetadataLog.open({ disk: world.disk, clock: world.clock, log: world.log, folder })
  const { image, history } = await log.fold()
  assert.deepEqual([...image.snapshotRecords()], records)
  assert.equal(history.kraftVersion, 1)
  assert.equal(history.voters?.voters[0]?.id, 1)
  await log.close()
})

test('a controller takes as many connections as its own listener may have, whatever clients may', async t => {
  const fixed = new Map([
    ['listener.name.controller.max.connections', '2'],
    ['max.connections', '1'],
  ])
  const { controller } = await running(t, await folderFor(t), { configs: new BrokerConfigs({ nodeId: 1, fixed }) })
  const second = await Client.connect(world, controller.address)
  later(t, () => second.channel.close())
  await assert.rejects(Client.connect(world, controller.address), ChannelError)
})
