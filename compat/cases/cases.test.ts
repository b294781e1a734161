/**
 * What users of other brokers ran into, one test per case. CASES_SERVER=kafka holds them against Kafka, where the right
 * values come from.
 */
import assert from 'node:assert/strict'
import { networkInterfaces } from 'node:os'
import { after, before, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { ByteReader } from '../../src/base/bytes.ts'
import type { Channel } from '../../src/network/channel.ts'
import { API } from '../../src/protocol/apis.ts'
import { decode } from '../../src/protocol/codec.ts'
import { ErrorCode, isRetriable } from '../../src/protocol/errors.ts'
import { encodeRequestFrame } from '../../src/protocol/frames.ts'
import type { File, World } from '../../src/world/world.ts'
import { Wire } from '../differential/wire.ts'
import type { Server } from '../server.ts'
import {
  batchAt,
  channelTo,
  createTopic,
  deleteTopic,
  eventually,
  kind,
  nodeIn,
  produce,
  produceBody,
  running,
  T0,
  world,
} from './node.ts'

const span = (count: number, from: number, step = 1): number[] =>
  Array.from({ length: count }, (_, i) => from + i * step)

describe('cases that users of other brokers ran into', () => {
  let server: Server
  let channel: Channel
  before(async () => {
    server = await running({
      'producer.id.expiration.ms': '1000',
      'producer.id.expiration.check.interval.ms': '100',
      'log.retention.ms': '-1',
    })
    channel = await channelTo(server.port)
  })
  after(async () => {
    channel?.close()
    await server?.remove()
  })

  async function timeOf(name: string, timestamp: number, version = 7, at = channel) {
    const answer = await at.call(API.ListOffsets, version, {
      replicaId: -1,
      topics: [{ name, partitions: [{ partitionIndex: 0, timestamp }] }],
    })
    const { errorCode, offset, timestamp: found, leaderEpoch } = answer.topics[0]?.partitions[0] ?? assert.fail()
    return { errorCode, offset, timestamp: found, leaderEpoch }
  }

  for (const compression of ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const) {
    test(`a time is found within a batch: ${compression}`, async () => {
      const name = `times-${compression}`
      await createTopic(channel, name)
      await produce(channel, name, batchAt(span(50, T0, 10), { compression }))
      for (let i = 0; i < 50; i++) {
        assert.deepEqual(await timeOf(name, T0 + i * 10), {
          errorCode: 0,
          offset: i,
          timestamp: T0 + i * 10,
          leaderEpoch: 0,
        })
      }
      assert.equal((await timeOf(name, T0 + 5)).offset, 1)
      assert.deepEqual(await timeOf(name, T0 + 491), { errorCode: 0, offset: -1, timestamp: -1, leaderEpoch: -1 })
      // Backwards from batch to batch, and within one: the first record in offset order counts.
      await produce(channel, name, batchAt(span(10, T0 - 1000, 10), { compression }))
      await produce(channel, name, batchAt([T0 + 900, T0 + 700, T0 + 800], { compression }))
      assert.equal((await timeOf(name, T0 - 1000)).offset, 0)
      assert.equal((await timeOf(name, T0 + 490)).offset, 49)
      assert.equal((await timeOf(name, T0 + 600)).offset, 60)
      assert.equal((await timeOf(name, T0 + 750)).offset, 60)
      assert.equal((await timeOf(name, -3)).offset, 60)
    })
  }

  test('ListOffsets: a partition named twice, and special times below their versions', async () => {
    await createTopic(channel, 'specials')
    await produce(channel, 'specials', batchAt(span(3, T0)))
    for (let version = 1; version <= 11; version++) {
      const twice = { partitionIndex: 0, timestamp: -1 }
      const answer = await channel.call(API.ListOffsets, version, {
        replicaId: -1,
        topics: [{ name: 'specials', partitions: [twice, twice] }],
      })
      const codes = answer.topics.flatMap(topic => topic.partitions.map(({ errorCode }) => errorCode))
      assert.ok(codes.length > 0 && codes.every(code => code === ErrorCode.INVALID_REQUEST), `version ${version}`)
      for (const [special, since] of [
        [-3, 7],
        [-4, 8],
        [-5, 9],
        [-6, 11],
      ] as const) {
        for (const name of ['specials', 'not-there']) {
          const { errorCode, offset, leaderEpoch } = await timeOf(name, special, version)
          const known = name === 'specials' ? ErrorCode.NONE : ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
          assert.equal(
            errorCode,
            version < since ? ErrorCode.UNSUPPORTED_VERSION : known,
            `${special} in version ${version}`,
          )
          if (errorCode === 0 && special <= -5) assert.deepEqual([offset, leaderEpoch], [-1, -1])
        }
      }
    }
    assert.equal((await timeOf('specials', -4, 8)).offset, 0)
  })

  test('a fetch session over a topic that was deleted and created again', async () => {
    const old = (await createTopic(channel, 'again')).topicId
    await produce(channel, 'again', batchAt([T0]))
    const fetch = (topicId: string, sessionId: number, sessionEpoch: number) =>
      channel.call(API.Fetch, 13, {
        maxWaitMs: 20_000,
        minBytes: 1,
        sessionId,
        sessionEpoch,
        topics:
          sessionEpoch > 0
            ? []
            : [{ topicId, partitions: [{ partition: 0, fetchOffset: 0, partitionMaxBytes: 1000 }] }],
      })
    const { sessionId } = await fetch(old, 0, 0)
    await deleteTopic(channel, 'again')
    const { topicId } = await createTopic(channel, 'again')
    assert.notEqual(topicId, old)
    const begun = performance.now()
    const incremental = await fetch(old, sessionId, 1)
    assert.equal(incremental.responses[0]?.partitions[0]?.errorCode, ErrorCode.INCONSISTENT_TOPIC_ID)
    const full = await fetch(old, 0, -1)
    assert.equal(full.responses[0]?.partitions[0]?.errorCode, ErrorCode.UNKNOWN_TOPIC_ID)
    assert.ok(performance.now() - begun < 5_000, 'at once, not after its patience')
  })

  async function producerId(at = channel): Promise<number> {
    let id = -1
    await eventually(async () => {
      const answer = await at.ask(API.InitProducerId, { transactionalId: null, transactionTimeoutMs: 60_000 })
      id = answer.producerId
      return answer.errorCode === 0
    })
    return id
  }

  test('a producer that was forgotten goes on with its next sequence', async () => {
    await createTopic(channel, 'idle')
    const id = await producerId()
    const send = (baseSequence: number) =>
      produce(channel, 'idle', batchAt([Date.now(), Date.now()], { producerId: id, producerEpoch: 0, baseSequence }))
    assert.equal((await send(0)).errorCode, 0)
    assert.equal((await send(5)).errorCode, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    await eventually(async () => {
      const { topics } = await channel.ask(API.DescribeProducers, { topics: [{ name: 'idle', partitionIndexes: [0] }] })
      return topics[0]?.partitions[0]?.activeProducers.length === 0
    })
    const sent = await send(2)
    assert.deepEqual([sent.errorCode, sent.baseOffset], [0, 2])
    assert.equal((await send(2)).baseOffset, 2, 'known again, with its repeats')
  })

  test('a produce that is cut and sent again leaves one copy, also over a restart', async t => {
    // A server of its own: the other one forgets its producers while it is restarted.
    const restarted = await running()
    t.after(() => restarted.remove())
    let own = await channelTo(restarted.port)
    await createTopic(own, 'cut')
    const id = await producerId(own)
    const records = batchAt(span(5, Date.now()), { producerId: id, producerEpoch: 0, baseSequence: 0 })
    const header = { correlationId: 1, clientId: 'cut' }
    const frame = Buffer.concat(encodeRequestFrame(API.Produce, 9, header, produceBody('cut', records)) as Buffer[])
    for (const part of [frame.subarray(0, 3), frame.subarray(0, 40), frame.subarray(0, frame.length - 1), frame]) {
      const wire = new Wire(restarted.port)
      wire.send(part)
      await delay(30)
      wire.close()
    }
    const last = () => timeOf('cut', -1, 7, own)
    await eventually(async () => (await last()).offset === 5)
    assert.equal((await produce(own, 'cut', Buffer.from(records))).baseOffset, 0)
    await restarted.restart()
    own = await channelTo(restarted.port)
    t.after(() => own.close())
    await eventually(async () => (await last()).errorCode === 0)
    const again = await produce(own, 'cut', Buffer.from(records))
    assert.deepEqual([again.errorCode, again.baseOffset, (await last()).offset], [0, 0, 5])
  })

  test('an offset committed without an epoch comes back without one', async () => {
    await createTopic(channel, 'epochs')
    // Whoever asks first for a coordinator makes the topic of the groups.
    await channel.ask(API.FindCoordinator, { keyType: 0, coordinatorKeys: ['epochs'] })
    const partitions = [{ partitionIndex: 0, committedOffset: 7, committedLeaderEpoch: -1, committedMetadata: 'm' }]
    for (let version = 2; version <= 9; version++) {
      const groupId = `epochs-${version}`
      await eventually(async () => {
        const answer = await channel.call(API.OffsetCommit, version, {
          groupId,
          topics: [{ name: 'epochs', partitions }],
        })
        return answer.topics[0]?.partitions[0]?.errorCode === 0
      })
      const answer = await channel.call(API.OffsetFetch, 8, { groups: [{ groupId, topics: null }] })
      const { committedOffset, committedLeaderEpoch, metadata } =
        answer.groups[0]?.topics[0]?.partitions[0] ?? assert.fail()
      assert.deepEqual([committedOffset, committedLeaderEpoch, metadata], [7, -1, 'm'], `version ${version}`)
    }
  })

  test('an unknown version of ApiVersions is answered, of another API closes with a line in the log', async () => {
    const frame = (api: number, version: number): Buffer => {
      const rest = Buffer.concat([Buffer.alloc(8), Buffer.from([0, 4]), Buffer.from('case'), Buffer.alloc(2)])
      rest.writeInt16BE(api, 0)
      rest.writeInt16BE(version, 2)
      rest.writeInt32BE(1, 4)
      const size = Buffer.alloc(4)
      size.writeInt32BE(rest.length)
      return Buffer.concat([size, rest])
    }
    const wire = new Wire(server.port)
    for (const version of [99, 5, 99]) {
      const answer = await wire.request(frame(API.ApiVersions.key, version), 5_000)
      assert.ok(Buffer.isBuffer(answer), 'answered, on the same connection')
      const body = decode(API.ApiVersions.response, 0, new ByteReader(answer.subarray(4)))
      assert.equal(body.errorCode, ErrorCode.UNSUPPORTED_VERSION)
      assert.deepEqual(body.apiKeys, [{ apiKey: 18, minVersion: 0, maxVersion: 4 }])
    }
    assert.equal(await wire.request(frame(API.Metadata.key, 88), 5_000), 'closed')
    if (kind === 'kafka') return
    const refusal = () =>
      server
        .lastLog(20)
        .split('\n')
        .find(text => /version 88\b/.test(text))
    await eventually(async () => refusal() !== undefined)
    const line = refusal() ?? ''
    for (const part of ['case', 'Metadata', /\b0\b.*\b13\b/]) assert.match(line, new RegExp(part))
  })

  test('DescribeConfigs of one key', async () => {
    await createTopic(channel, 'configs', { 'retention.bytes': '-1' })
    const describeOne = async (...keys: string[]) => {
      const answer = await channel.call(API.DescribeConfigs, 4, {
        resources: [{ resourceType: 2, resourceName: 'configs', configurationKeys: keys }],
        includeSynonyms: true,
      })
      return answer.results[0]?.configs ?? assert.fail()
    }
    const [one, ...more] = await describeOne('segment.bytes')
    assert.equal(more.length, 0)
    assert.deepEqual(
      { ...one, documentation: undefined },
      {
        name: 'segment.bytes',
        value: '1073741824',
        readOnly: false,
        configSource: 5,
        isSensitive: false,
        synonyms: [{ name: 'log.segment.bytes', value: '1073741824', source: 5 }],
        configType: 3,
        documentation: undefined,
      },
    )
    assert.deepEqual(await describeOne('segment.bytes'), [one])
    // Equal to the default, and still set.
    const [set] = await describeOne('retention.bytes')
    assert.deepEqual([set?.value, set?.configSource, set?.synonyms[0]?.name], ['-1', 1, 'retention.bytes'])
  })

  test('CreateTopics tells what it made', async () => {
    for (const version of [5, 6, 7]) {
      const name = `made-${version}`
      const configs = [{ name: 'cleanup.policy', value: 'compact' }]
      for (const validateOnly of [true, false]) {
        const answer = await channel.call(API.CreateTopics, version, {
          topics: [{ name, numPartitions: -1, replicationFactor: -1, configs }],
          validateOnly,
        })
        const topic = answer.topics[0] ?? assert.fail()
        assert.deepEqual([topic.errorCode, topic.numPartitions, topic.replicationFactor], [0, 3, 1])
        assert.ok((topic.configs ?? []).length >= 30, 'all configurations')
        const policy = topic.configs?.find(config => config.name === 'cleanup.policy')
        assert.deepEqual([policy?.value, policy?.configSource], ['compact', 1])
      }
    }
  })

  test("produce and fetch right after automatic creation end well within a client's retries", async () => {
    for (let round = 0; round < 10; round++) {
      const name = `auto-${round}`
      const metadata = await channel.call(API.Metadata, 8, { topics: [{ name }], allowAutoTopicCreation: true })
      const first = metadata.topics[0]?.errorCode ?? -1
      assert.ok(first === 0 || isRetriable(first), `metadata: ${first}`)
      let code = -1
      for (let attempt = 0; attempt < 20 && code !== 0; attempt++) {
        code = (await produce(channel, name, batchAt([T0]))).errorCode
        assert.ok(code === 0 || isRetriable(code), `produce: ${code}`)
        if (code !== 0) await delay(50)
      }
      assert.equal(code, 0)
      const fetched = await channel.call(API.Fetch, 11, {
        maxWaitMs: 500,
        minBytes: 1,
        topics: [{ topic: name, partitions: [{ partition: 0, fetchOffset: 0, partitionMaxBytes: 1000 }] }],
      })
      assert.equal(fetched.responses[0]?.partitions[0]?.errorCode, 0)
      assert.ok((fetched.responses[0]?.partitions[0]?.records?.length ?? 0) > 0)
    }
  })
})

describe('cases of the machine beneath', { skip: kind === 'kafka' && 'they need a node in this process' }, () => {
  test('a fetch from a disk that is stuck is answered by its patience, empty and without an error', async t => {
    let stuck = false
    const slow: World = {
      ...world,
      disk: {
        ...world.disk,
        open: async (path, how) => {
          const file = await world.disk.open(path, how)
          return new Proxy(file, {
            get(target, property) {
              const value = Reflect.get(target, property) as unknown
              if (typeof value !== 'function') return value
              if (property !== 'read') return value.bind(target)
              return async (...args: Parameters<File['read']>) => {
                while (stuck && path.includes('slow-0') && path.endsWith('.log')) await delay(20)
                return target.read(...args)
              }
            },
          })
        },
      },
    }
    const node = await nodeIn(t, slow, ['listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0', 'node.id=1'])
    const at = node.listeners.find(listener => listener.name === 'PLAINTEXT')?.address ?? assert.fail()
    const channel = await channelTo(at.port)
    t.after(() => channel.close())
    await createTopic(channel, 'slow')
    await createTopic(channel, 'quick')
    for (let i = 0; i < 300; i++) await produce(channel, 'slow', batchAt(span(20, T0 + i)))
    await produce(channel, 'quick', batchAt([T0]))
    stuck = true
    t.after(() => {
      stuck = false
    })
    const partitions = [{ partition: 0, fetchOffset: 13, partitionMaxBytes: 2_000 }]
    for (const maxWaitMs of [0, 200]) {
      const begun = performance.now()
      const answer = await channel.call(API.Fetch, 12, {
        maxWaitMs,
        minBytes: 1,
        topics: [{ topic: 'slow', partitions }],
      })
      assert.ok(performance.now() - begun < maxWaitMs + 1_000, `${performance.now() - begun} ms of ${maxWaitMs}`)
      assert.equal(answer.errorCode, 0)
      assert.equal(answer.responses[0]?.partitions[0]?.errorCode, 0)
    }
    stuck = false
    const answer = await channel.call(API.Fetch, 12, {
      maxWaitMs: 2_000,
      minBytes: 1,
      topics: [{ topic: 'slow', partitions }],
    })
    assert.ok((answer.responses[0]?.partitions[0]?.records?.length ?? 0) > 0, 'served when it can be')
  })

  test('each client is told the address that it dialled', async t => {
    const node = await nodeIn(t, world, ['listeners=PLAINTEXT://:0,CONTROLLER://127.0.0.1:0', 'node.id=1'])
    const { port } = node.listeners.find(listener => listener.name === 'PLAINTEXT')?.address ?? assert.fail()
    const own = Object.values(networkInterfaces())
      .flatMap(list => list ?? [])
      .filter(({ family, internal }) => family === 'IPv4' && !internal)
      .map(({ address }) => address)
    const dialled = ['127.0.0.1', '127.0.0.2', ...own.slice(0, 1)]
    for (const host of dialled) {
      const channel = await channelTo(port, host)
      const metadata = await channel.call(API.Metadata, 9, { topics: [] })
      assert.deepEqual(
        metadata.brokers.map(broker => [broker.host, broker.port]),
        [[host, port]],
      )
      const cluster = await channel.call(API.DescribeCluster, 0, {})
      assert.deepEqual(
        cluster.brokers.map(broker => [broker.host, broker.port]),
        [[host, port]],
      )
      let coordinator = { errorCode: -1, host: '', port: -1 }
      await eventually(async () => {
        coordinator = await channel.call(API.FindCoordinator, 2, { key: 'g', keyType: 0 })
        return coordinator.errorCode === 0
      })
      assert.deepEqual([coordinator.host, coordinator.port], [host, port])
      await channel.close()
    }
  })
})
