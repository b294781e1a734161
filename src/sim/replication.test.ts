import assert from 'node:assert/strict'
import { test } from 'node:test'
import { alterConfigs } from '#client/admin/configs.ts'
import { electLeaders } from '#client/admin/elections.ts'
import { commitOffsets, fetchOffsets } from '#client/admin/groups.ts'
import { listOffsets } from '#client/admin/offsets.ts'
import { alterReassignments } from '#client/admin/reassignments.ts'
import { createTopic, deleteRecords, describeTopic } from '#client/admin/topics.ts'
import { type Client, connect } from '#client/client.ts'
import { Consumer } from '#client/consumer.ts'
import { Producer } from '#client/producer.ts'
import { serverConfig } from '#core/config/server.ts'
import { partitionForGroup } from '#core/group/partition-for-group.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { BatchBuilder } from '#records/builder.ts'
import type { FakeNode } from '#world/fake/fake-node.ts'
import { Simulation } from '#world/fake/simulation.ts'
import { type RunningNode, startNode } from '../node.ts'

/** A controller and three brokers, each on a machine of its own. */
class Cluster {
  readonly simulation: Simulation
  readonly #running = new Map<string, RunningNode>()

  constructor(seed: number, keepTrace = process.env.TRACE === '1') {
    this.simulation = new Simulation(seed, { keepTrace })
  }

  machine(name: string): FakeNode {
    return this.simulation.node(name)
  }

  async start(name: string, more: readonly string[] = []): Promise<void> {
    const isController = name === 'c9'
    const result = serverConfig({
      overrides: [
        `node.id=${name.slice(1)}`,
        'log.dirs=/data',
        'default.replication.factor=3',
        'offsets.topic.replication.factor=3',
        'offsets.topic.num.partitions=2',
        ...(isController
          ? ['process.roles=controller', 'listeners=CONTROLLER://c9:9093']
          : ['process.roles=broker', `listeners=PLAINTEXT://${name}:9092`]),
        'controller.listener.names=CONTROLLER',
        'controller.quorum.voters=9@c9:9093',
        ...more,
      ],
    })
    if ('errors' in result) throw new Error(JSON.stringify(result.errors))
    const config = { ...result.config }
    this.#running.set(name, await startNode(this.machine(name).world, config))
  }

  async stop(name: string): Promise<void> {
    await this.#running.get(name)?.stop()
    this.#running.delete(name)
    this.machine(name).crash()
  }

  crash(name: string): void {
    this.#running.delete(name)
    this.machine(name).crash()
  }

  client(): Promise<Client> {
    return connect({ world: this.machine('client').world, bootstrap: 'b1:9092,b2:9092,b3:9092' })
  }

  async run(work: () => Promise<void>): Promise<void> {
    try {
      await this.simulation.run(work(), 600_000)
    } finally {
      if (process.env.TRACE === '1') for (const line of this.simulation.trace.lines ?? []) console.log(line)
    }
  }
}

async function partitionOf(client: Client, topic: string) {
  const { partitions } = await describeTopic(client, topic)
  const [partition] = partitions
  assert.ok(partition !== undefined)
  return partition
}

async function isrOf(client: Client, topic: string): Promise<readonly number[]> {
  return [...(await partitionOf(client, topic)).isr].sort()
}

/** The bytes of a partition's first segment on a machine. */
async function segmentOf(machine: FakeNode, folder: string): Promise<string> {
  const bytes = await machine.world.disk.readFile(`/data/${folder}/00000000000000000000.log`)
  return Buffer.from(bytes ?? []).toString('hex')
}

async function until(cluster: Cluster, what: string, holds: () => Promise<boolean>, limitMs = 60_000): Promise<void> {
  const from = cluster.simulation.schedule.now
  while (!(await holds())) {
    assert.ok(cluster.simulation.schedule.now - from < limitMs * 1000, `${what}, not in ${limitMs} ms`)
    await cluster.simulation.wait(50)
  }
}

async function valuesOf(client: Client, topic: string): Promise<string[]> {
  const consumer = new Consumer(client)
  consumer.assign([{ topic, partition: 0, from: 'earliest' }])
  const values: string[] = []
  for (let idle = 0; idle < 10; ) {
    const records = await consumer.poll(500)
    if (records.length === 0) idle++
    for (const { value } of records) values.push(String(value))
  }
  await consumer.close()
  return values
}

async function started(cluster: Cluster, more: readonly string[] = []): Promise<Client> {
  await cluster.start('c9')
  for (const name of BROKERS) await cluster.start(name, more)
  return await cluster.client()
}

const BROKERS = ['b1', 'b2', 'b3']

test('the death of a leader loses nothing that was acknowledged, and it comes back as a follower with the same bytes', async () => {
  const cluster = new Cluster(1)
  await cluster.run(async () => {
    const client = await started(cluster)
    await createTopic(client, {
      name: 't',
      partitions: 1,
      replicationFactor: 3,
      configs: { 'min.insync.replicas': '2' },
    })
    assert.deepEqual(await isrOf(client, 't'), [1, 2, 3])
    const producer = new Producer(client)
    const acknowledged: string[] = []
    const send = async (value: string) => {
      await producer.send('t', [{ value, partition: 0 }])
      acknowledged.push(value)
    }
    for (let n = 0; n < 20; n++) await send(`a${n}`)
    for (let round = 0; round < 3; round++) {
      const { leader } = await partitionOf(client, 't')
      const underWay = Array.from({ length: 5 }, (_, n) => send(`${round}b${n}`))
      await cluster.simulation.wait(round)
      cluster.crash(`b${leader}`)
      await Promise.all(underWay)
      for (let n = 0; n < 5; n++) await send(`${round}c${n}`)
      assert.notEqual((await partitionOf(client, 't')).leader, leader)
      await cluster.start(`b${leader}`)
      await until(cluster, 'all are in sync again', async () => (await isrOf(client, 't')).length === 3)
    }
    assert.deepEqual((await valuesOf(client, 't')).sort(), acknowledged.sort())
    await producer.close()
    client.close()
    for (const name of BROKERS) await cluster.stop(name)
    const [one, two, three] = await Promise.all(BROKERS.map(name => segmentOf(cluster.machine(name), 't-0')))
    assert.ok(one !== '' && one === two && two === three)
  })
})

test('too few in sync refuse acks=all and hold the watermark back; when one is back, all goes on', async () => {
  const cluster = new Cluster(2)
  await cluster.run(async () => {
    const client = await started(cluster)
    await createTopic(client, { name: 't', assignments: [[1, 2, 3]], configs: { 'min.insync.replicas': '2' } })
    const producer = new Producer(client)
    await producer.send('t', [{ value: 'before', partition: 0 }])
    cluster.crash('b2')
    cluster.crash('b3')
    await until(cluster, 'one is left', async () => (await isrOf(client, 't')).length === 1)
    const channel = await client.channel(1)
    const builder = new BatchBuilder()
    builder.append(1, null, Buffer.from('alone'))
    const records = builder.build()
    const { id } = await describeTopic(client, 't')
    const write = async (acks: number) => {
      const topicData = [{ topicId: id, partitionData: [{ index: 0, records: Buffer.from(records) }] }]
      const answer = await channel.ask(API.Produce, { acks, timeoutMs: 1000, topicData })
      return answer.responses[0]?.partitionResponses[0]?.errorCode
    }
    assert.equal(await write(-1), ErrorCode.NOT_ENOUGH_REPLICAS)
    assert.equal(await write(1), ErrorCode.NONE)
    assert.deepEqual(await valuesOf(client, 't'), ['before'])
    await cluster.start('b2')
    await until(cluster, 'another is in sync', async () => (await isrOf(client, 't')).length === 2)
    await producer.send('t', [{ value: 'after', partition: 0 }])
    assert.deepEqual(await valuesOf(client, 't'), ['before', 'alone', 'after'])
    await producer.close()
    client.close()
  })
})

test('a reassignment copies to the new replica and takes the folder of the old one away', async () => {
  const cluster = new Cluster(3)
  await cluster.run(async () => {
    const client = await started(cluster)
    await createTopic(client, { name: 't', assignments: [[1, 2]] })
    const producer = new Producer(client)
    for (let n = 0; n < 10; n++) await producer.send('t', [{ value: `v${n}`, partition: 0 }])
    await alterReassignments(client, [{ topic: 't', partition: 0, replicas: [3, 2] }])
    await until(cluster, 'it moved', async () => {
      const { replicas, isr } = await partitionOf(client, 't')
      return replicas.join() === '3,2' && isr.length === 2
    })
    await producer.send('t', [{ value: 'v10', partition: 0 }])
    assert.deepEqual(
      await valuesOf(client, 't'),
      Array.from({ length: 11 }, (_, n) => `v${n}`),
    )
    await until(cluster, 'the old one is gone', async () => {
      const names = (await cluster.machine('b1').world.disk.list('/data')).map(({ name }) => name)
      return !names.includes('t-0')
    })
    await producer.close()
    client.close()
  })
})

test('records are deleted when all replicas have deleted them', async () => {
  const cluster = new Cluster(4)
  await cluster.run(async () => {
    const client = await started(cluster)
    await createTopic(client, { name: 't', assignments: [[1, 2, 3]] })
    const producer = new Producer(client)
    for (let n = 0; n < 10; n++) await producer.send('t', [{ value: `v${n}`, partition: 0 }])
    const from = cluster.simulation.schedule.now
    const [deleted] = await deleteRecords(client, [{ topic: 't', partition: 0, offset: 6 }])
    assert.equal(deleted?.lowWatermark, 6)
    assert.ok(cluster.simulation.schedule.now - from < 100_000, 'followers hear of it at once')
    cluster.crash('b1')
    assert.deepEqual(await valuesOf(client, 't'), ['v6', 'v7', 'v8', 'v9'])
    await producer.close()
    client.close()
  })
})

test('records are deleted only when who may lead next has deleted them, and nobody is let in with them', async () => {
  const cluster = new Cluster(16)
  await cluster.run(async () => {
    const client = await started(cluster)
    await createTopic(client, { name: 't', assignments: [[1, 2, 3]], configs: { 'min.insync.replicas': '3' } })
    const producer = new Producer(client)
    for (let count = 0; count < 4; count++) await producer.send('t', [{ value: `${count}`, partition: 0 }])
    await until(cluster, 'all are in sync', async () => (await isrOf(client, 't')).length === 3)
    await cluster.stop('b2')
    await until(cluster, 'it may lead', async () => (await partitionOf(client, 't')).eligible?.includes(2) === true)
    const deleting = deleteRecords(client, [{ topic: 't', partition: 0, offset: 3 }])
    await assert.rejects(deleting, { code: 'REQUEST_TIMED_OUT' })
    await cluster.start('b2')
    const again = await deleteRecords(client, [{ topic: 't', partition: 0, offset: 3 }])
    assert.equal(again[0]?.lowWatermark, 3)
    for (const name of ['b1', 'b3']) await cluster.stop(name)
    await until(cluster, 'it leads', async () => (await partitionOf(client, 't')).leader === 2)
    assert.deepEqual(await valuesOf(client, 't'), ['3'])
    await producer.close()
    client.close()
  })
})

test('what a group has committed is there when its coordinator dies', async () => {
  const cluster = new Cluster(5)
  await cluster.run(async () => {
    const client = await started(cluster)
    await createTopic(client, { name: 't', assignments: [[1, 2, 3]] })
    for (let round = 1; round <= 3; round++) {
      await commitOffsets(client, 'g', [{ topic: 't', partition: 0, offset: round }])
      const { leader } = (await describeTopic(client, '__consumer_offsets')).partitions[partitionForGroup('g', 2)] ?? {}
      cluster.crash(`b${leader}`)
      const offsets = await fetchOffsets(client, 'g')
      assert.deepEqual(
        offsets.map(({ offset }) => offset),
        [round],
      )
      await cluster.start(`b${leader}`)
      await until(cluster, 'all are in sync', async () => {
        const { partitions } = await describeTopic(client, '__consumer_offsets')
        return partitions.every(({ isr }) => isr.length === 3)
      })
    }
    client.close()
  })
})

test('a client asks for the coordinator again when the one that it knows has left the cluster', async () => {
  const cluster = new Cluster(5)
  await cluster.run(async () => {
    const client = await started(cluster)
    await createTopic(client, { name: 't', partitions: 1, replicationFactor: 3 })
    await commitOffsets(client, 'readers', [{ topic: 't', partition: 0, offset: 7 }])
    const coordinator = await client.coordinator('readers')
    cluster.crash(`b${coordinator}`)
    await until(cluster, 'the coordinator is not missed', async () => {
      await client.metadata.refresh([])
      return !client.brokers.known.has(coordinator)
    })
    const [found] = await fetchOffsets(client, 'readers')
    assert.equal(found?.offset, 7)
    assert.notEqual(await client.coordinator('readers'), coordinator)
    client.close()
  })
})

test('a consumer is sent to the replica in its rack, and reads there what is committed', async () => {
  const cluster = new Cluster(6)
  await cluster.run(async () => {
    await cluster.start('c9')
    const selector = 'replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector'
    for (const name of BROKERS) await cluster.start(name, [`broker.rack=r${name}`, selector])
    const client = await cluster.client()
    await createTopic(client, { name: 't', assignments: [[1, 2, 3]] })
    const producer = new Producer(client)
    await producer.send('t', [{ value: 'v', partition: 0 }])
    const { id } = await describeTopic(client, 't')
    const fetch = async (from: number, rackId: string, fetchOffset = 0, maxWaitMs = 500) => {
      const channel = await client.channel(from)
      const partitions = [{ partition: 0, fetchOffset, partitionMaxBytes: 1000 }]
      const topics = [{ topicId: id, partitions }]
      const answer = await channel.ask(API.Fetch, { maxWaitMs, minBytes: 1, maxBytes: 1000, topics, rackId })
      return answer.responses[0]?.partitions[0]
    }
    assert.equal((await fetch(1, 'rb2'))?.preferredReadReplica, 2)
    assert.equal((await fetch(1, 'rb1'))?.preferredReadReplica, -1)
    assert.equal((await fetch(1, 'elsewhere'))?.preferredReadReplica, -1)
    // Only the leader knows that nothing can be there.
    assert.equal((await fetch(2, 'rb2', 9))?.errorCode, ErrorCode.OFFSET_NOT_AVAILABLE)
    assert.equal((await fetch(1, 'rb1', 9))?.errorCode, ErrorCode.OFFSET_OUT_OF_RANGE)
    const from = cluster.simulation.schedule.now
    const waiting = fetch(2, 'rb2', 1, 10_000)
    await producer.send('t', [{ value: 'w', partition: 0 }])
    assert.ok(((await waiting)?.records?.length ?? 0) > 0)
    assert.ok(cluster.simulation.schedule.now - from < 100_000, 'a follower hears of the watermark at once')
    await producer.close()
    client.close()
  })
})

test('who led before says who leads now and where it is, to producers and consumers (KIP-951)', async () => {
  const cluster = new Cluster(12)
  await cluster.run(async () => {
    const client = await started(cluster)
    await createTopic(client, { name: 't', assignments: [[1, 2, 3]] })
    await createTopic(client, { name: 'other', assignments: [[2, 3]] })
    const { id } = await describeTopic(client, 't')
    await alterReassignments(client, [{ topic: 't', partition: 0, replicas: [3, 1, 2] }])
    await electLeaders(client, 'preferred', [{ topic: 't', partition: 0 }])
    await until(cluster, 'another leads', async () => (await partitionOf(client, 't')).leader === 3)
    const led = await partitionOf(client, 't')
    const currentLeader = { leaderId: 3, leaderEpoch: led.leaderEpoch }
    const nodeEndpoints = [{ nodeId: 3, host: 'b3', port: 9092, rack: null }]
    const channel = await client.channel(1)
    const batch = new BatchBuilder({})
    batch.append(1, null, Buffer.from('v'))
    const produced = await channel.ask(API.Produce, {
      acks: -1,
      timeoutMs: 1000,
      topicData: [{ topicId: id, partitionData: [{ index: 0, records: batch.build() }] }],
    })
    const [refused] = produced.responses[0]?.partitionResponses ?? []
    assert.deepEqual(
      [refused?.errorCode, refused?.currentLeader, produced.nodeEndpoints],
      [ErrorCode.NOT_LEADER_OR_FOLLOWER, currentLeader, nodeEndpoints],
    )
    const fetch = async (from: number, topicId: string, currentLeaderEpoch: number) => {
      const partitions = [{ partition: 0, fetchOffset: 0, partitionMaxBytes: 1000, currentLeaderEpoch }]
      const asked = { maxWaitMs: 0, minBytes: 0, maxBytes: 1000, topics: [{ topicId, partitions }] }
      const { responses, nodeEndpoints: where } = await (await client.channel(from)).ask(API.Fetch, asked)
      const [answered] = responses[0]?.partitions ?? []
      return [answered?.errorCode, answered?.currentLeader, where]
    }
    const before = led.leaderEpoch - 1
    assert.deepEqual(await fetch(1, id, before), [ErrorCode.FENCED_LEADER_EPOCH, currentLeader, nodeEndpoints])
    // Also who has no replica of it knows.
    const { id: other } = await describeTopic(client, 'other')
    const at = [{ nodeId: 2, host: 'b2', port: 9092, rack: null }]
    assert.deepEqual(await fetch(1, other, 0), [
      ErrorCode.NOT_LEADER_OR_FOLLOWER,
      { leaderId: 2, leaderEpoch: (await partitionOf(client, 'other')).leaderEpoch },
      at,
    ])
    client.close()
  })
})

test('a copy takes no more than its throttle lets it, at the leader and at the follower each by itself (KIP-73)', async () => {
  const cluster = new Cluster(13)
  await cluster.run(async () => {
    await cluster.start('c9')
    for (const name of BROKERS) await cluster.start(name, ['replica.fetch.max.bytes=20000'])
    const client = await cluster.client()
    const throttled = async (ends: readonly string[]) => {
      const name = ends.join('-') || 'none'
      const configs = Object.fromEntries(ends.map(end => [`${end}.replication.throttled.replicas`, '*']))
      await createTopic(client, { name, assignments: [[1]], configs })
      const producer = new Producer(client)
      const value = Buffer.alloc(10_000)
      await Promise.all(Array.from({ length: 50 }, () => producer.send(name, [{ value, partition: 0 }])))
      await producer.close()
      const from = cluster.simulation.schedule.now
      await alterReassignments(client, [{ topic: name, partition: 0, replicas: [2] }])
      await until(cluster, 'it moved', async () => (await isrOf(client, name)).join() === '2')
      return (cluster.simulation.schedule.now - from) / 1e6
    }
    const rates = (['leader', 'follower'] as const).map(end => `${end}.replication.throttled.rate`)
    await alterConfigs(
      client,
      { type: 'broker', name: '' },
      rates.map(name => ({ name, op: 'set' as const, value: '50000' })),
    )
    // 500 KB at 50 KB/s, of which a second's worth and the last fetch go at once.
    for (const end of ['leader', 'follower']) {
      const seconds = await throttled([end])
      assert.ok(seconds > 7 && seconds < 12, `${end}: ${seconds} s`)
    }
    assert.ok((await throttled([])) < 2, 'who is not named is not held back')
    client.close()
  })
})

test('a disk that fails for long loses the leadership of what lies on it, not the records', async () => {
  const cluster = new Cluster(7)
  await cluster.run(async () => {
    const client = await started(cluster)
    await createTopic(client, { name: 't', assignments: [[1, 2, 3]] })
    const producer = new Producer(client)
    await producer.send('t', [{ value: 'before', partition: 0 }])
    cluster.machine('b1').disk.faults.writeFails = 1
    const during = producer.send('t', [{ value: 'during', partition: 0 }])
    await until(cluster, 'another leads', async () => (await partitionOf(client, 't')).leader !== 1)
    await during
    assert.deepEqual(await isrOf(client, 't'), [2, 3])
    assert.deepEqual(await valuesOf(client, 't'), ['before', 'during'])
    cluster.machine('b1').disk.faults.writeFails = 0
    cluster.crash('b1')
    await cluster.start('b1')
    await until(cluster, 'it is back', async () => (await isrOf(client, 't')).length === 3)
    await producer.close()
    client.close()
  })
})

test('a leader whose disk is full hands over to who has space, and follows again when it has', async () => {
  const cluster = new Cluster(9)
  await cluster.run(async () => {
    const client = await started(cluster)
    await createTopic(client, { name: 't', assignments: [[1, 2, 3]] })
    await createTopic(client, { name: 'alone', assignments: [[1]] })
    const producer = new Producer(client)
    for (const topic of ['t', 'alone']) await producer.send(topic, [{ value: 'before', partition: 0 }])
    const { disk } = cluster.machine('b1')
    const { capacity } = disk.faults
    disk.faults.capacity = disk.usedBytes
    const from = cluster.simulation.schedule.now
    await producer.send('t', [{ value: 'during', partition: 0 }])
    const tookMs = (cluster.simulation.schedule.now - from) / 1000
    assert.ok(tookMs < 12_000, `it takes some seconds, not ${tookMs} ms`)
    assert.notEqual((await partitionOf(client, 't')).leader, 1)
    assert.deepEqual(await isrOf(client, 't'), [2, 3])
    assert.deepEqual((await partitionOf(client, 't')).offline, [1])
    assert.equal((await partitionOf(client, 'alone')).leader, 1)
    assert.deepEqual(await valuesOf(client, 'alone'), ['before'])
    disk.faults.capacity = capacity
    await until(cluster, 'it follows', async () => (await isrOf(client, 't')).length === 3)
    assert.deepEqual((await partitionOf(client, 't')).offline, [])
    await producer.send('alone', [{ value: 'after', partition: 0 }])
    await producer.close()
    client.close()
  })
})

test('an empty disk in the place of the only one in sync is not elected by itself; told to, one that has records is', async () => {
  const cluster = new Cluster(11)
  await cluster.run(async () => {
    await started(cluster)
    const { world } = cluster.machine('client')
    const client = await connect({ world, bootstrap: 'b1:9092,b2:9092,b3:9092', requestTimeoutMs: 1000 })
    await createTopic(client, { name: 't', assignments: [[1, 2, 3]] })
    const producer = new Producer(client)
    await producer.send('t', [{ value: 'everywhere', partition: 0 }])
    for (const name of ['b2', 'b3']) await cluster.stop(name)
    await producer.send('t', [{ value: 'alone', partition: 0 }])
    cluster.crash('b1')
    const { disk } = cluster.machine('b1')
    disk.replace()
    await cluster.machine('b1').world.disk.makeFolder('/data')
    await cluster.machine('b1').world.disk.syncFolder('/')
    for (const name of ['b2', 'b3', 'b1']) await cluster.start(name)
    await until(cluster, 'nobody leads', async () => (await partitionOf(client, 't')).leader === -1)
    const endOf = async () => (await listOffsets(client, [{ topic: 't', partition: 0, spec: 'latest' }]))[0]?.offset
    await cluster.simulation.wait(30_000)
    assert.equal((await partitionOf(client, 't')).leader, -1)
    await assert.rejects(endOf(), { code: 'LEADER_NOT_AVAILABLE' })
    await electLeaders(client, 'unclean', [{ topic: 't', partition: 0 }])
    await until(cluster, 'all follow', async () => (await isrOf(client, 't')).length === 3)
    assert.notEqual((await partitionOf(client, 't')).leader, 1)
    assert.equal(await endOf(), 1)
    assert.deepEqual(await valuesOf(client, 't'), ['everywhere'])
    await producer.close()
    client.close()
  })
})

test('after a leader was elected that lacks what was read, consumers read on where its log parts from that', async () => {
  const cluster = new Cluster(12)
  await cluster.run(async () => {
    await started(cluster)
    const { world } = cluster.machine('client')
    const client = await connect({ world, bootstrap: 'b1:9092,b2:9092,b3:9092', requestTimeoutMs: 1000 })
    await createTopic(client, { name: 't', assignments: [[1, 2]] })
    const producer = new Producer(client)
    const write = (value: string) => producer.send('t', [{ value, partition: 0 }])
    const read = async (consumer: Consumer): Promise<string[]> => {
      const lines = []
      for (let idle = 0; idle < 20; idle++) {
        for (const { value, offset } of await consumer.poll(500)) lines.push(`${offset} ${value}`)
      }
      return lines
    }
    const consumer = (options: ConstructorParameters<typeof Consumer>[1]) => {
      const made = new Consumer(client, options)
      if (options?.group === undefined) made.assign([{ topic: 't', partition: 0, from: 0 }])
      else made.subscribe(['t'])
      return made
    }
    const live = consumer({})
    const careful = consumer({ offsetReset: 'none' })
    await write('everywhere')
    await cluster.stop('b2')
    await write('lost')
    for (const each of [live, careful]) assert.deepEqual(await read(each), ['0 everywhere', '1 lost'])
    const fromTheEnd = new Consumer(client)
    fromTheEnd.assign([{ topic: 't', partition: 0, from: 'latest' }])
    assert.deepEqual(await read(fromTheEnd), [])
    const member = consumer({ group: 'g', offsetReset: 'earliest' })
    assert.deepEqual(await read(member), ['0 everywhere', '1 lost'])
    await member.close()
    cluster.crash('b1')
    const { disk } = cluster.machine('b1')
    disk.replace()
    await cluster.machine('b1').world.disk.makeFolder('/data')
    await cluster.machine('b1').world.disk.syncFolder('/')
    for (const name of ['b2', 'b1']) await cluster.start(name)
    await until(cluster, 'nobody leads', async () => (await partitionOf(client, 't')).leader === -1)
    await electLeaders(client, 'unclean', [{ topic: 't', partition: 0 }])
    await until(cluster, 'it leads', async () => (await partitionOf(client, 't')).leader === 2)
    for (const value of ['anew', 'more', 'most']) await write(value)
    for (const each of [live, fromTheEnd]) assert.deepEqual(await read(each), ['1 anew', '2 more', '3 most'])
    await assert.rejects(read(careful), {
      code: 'OFFSET_OUT_OF_RANGE',
      message: /was cut at offset 1, and was read to 2/,
    })
    assert.deepEqual(await read(consumer({ group: 'g' })), ['1 anew', '2 more', '3 most'])
    await producer.close()
    client.close()
  })
})

test('a leader that nobody can dial does not stay alone in sync: a follower leads, and nothing is lost', async () => {
  const cluster = new Cluster(15)
  await cluster.run(async () => {
    await started(cluster, ['replica.lag.time.max.ms=2000', 'replica.fetch.wait.max.ms=100'])
    const { world } = cluster.machine('client')
    const client = await connect({ world, bootstrap: 'b1:9092,b2:9092,b3:9092', requestTimeoutMs: 1000 })
    await createTopic(client, { name: 't', assignments: [[1, 2]] })
    const producer = new Producer(client)
    await producer.send('t', [{ value: 'before', partition: 0 }])
    await until(cluster, 'both are in sync', async () => (await isrOf(client, 't')).length === 2)
    const { network } = cluster.simulation
    // With something in its log that its follower does not have, it would soon be put out.
    network.cut(cluster.machine('b1'), cluster.machine('b2'))
    const began = cluster.simulation.schedule.now
    const sending = producer.send('t', [{ value: 'meanwhile', partition: 0 }])
    await cluster.simulation.wait(200)
    network.wall(cluster.machine('b1'))
    network.heal(cluster.machine('b1'), cluster.machine('b2'))
    await sending
    const tookMs = (cluster.simulation.schedule.now - began) / 1000
    assert.ok(tookMs < 10_000, `${tookMs} ms`)
    assert.equal((await partitionOf(client, 't')).leader, 2)
    network.unwall(cluster.machine('b1'))
    await until(cluster, 'it follows', async () => (await isrOf(client, 't')).length === 2)
    assert.deepEqual(await valuesOf(client, 't'), ['before', 'meanwhile'])
    await producer.close()
    client.close()
  })
})

test('where all disks are full one replica stays and is read, and all come back', async () => {
  const cluster = new Cluster(10)
  await cluster.run(async () => {
    const client = await started(cluster)
    await createTopic(client, { name: 't', assignments: [[1, 2, 3]] })
    const producer = new Producer(client)
    await producer.send('t', [{ value: 'before', partition: 0 }])
    const faults = BROKERS.map(name => cluster.machine(name).disk)
    for (const disk of faults) disk.faults.capacity = disk.usedBytes
    await assert.rejects(producer.send('t', [{ value: 'refused', partition: 0 }]))
    assert.notEqual((await partitionOf(client, 't')).leader, -1)
    assert.deepEqual(await valuesOf(client, 't'), ['before'])
    for (const disk of faults) disk.faults.capacity = Number.MAX_SAFE_INTEGER
    await until(cluster, 'all follow', async () => (await isrOf(client, 't')).length === 3)
    await producer.send('t', [{ value: 'after', partition: 0 }])
    await producer.close()
    client.close()
  })
})

test('a broker that the others cannot reach where it says is told of in one line, and again when they can', async () => {
  const cluster = new Cluster(8, true)
  const told = (text: string) => cluster.simulation.trace.lines?.filter(line => line.includes(text)).length
  await cluster.run(async () => {
    await cluster.start('c9')
    await cluster.start('b1', ['advertised.listeners=PLAINTEXT://elsewhere:9092'])
    for (const name of ['b2', 'b3']) await cluster.start(name)
    const client = await connect({ world: cluster.machine('client').world, bootstrap: 'b2:9092' })
    await createTopic(client, { name: 't', assignments: [[1, 2, 3]] })
    await cluster.simulation.wait(60_000)
    assert.equal(told('Check that broker 1 runs, its advertised.listeners'), 2)
    await cluster.stop('b1')
    await cluster.start('b1')
    await until(cluster, 'it is followed', async () => (await isrOf(client, 't')).length === 3)
    client.close()
  })
})
