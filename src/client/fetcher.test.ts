import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ApiPair } from '#network/channel.ts'
import type { FetchRequest } from '#protocol/messages/fetch.ts'
import type { ListOffsetsRequest } from '#protocol/messages/list-offsets.ts'
import type { InputOf } from '#protocol/schema.ts'
import { Simulation } from '#world/fake/simulation.ts'
import { Client } from './client.ts'
import { Fetcher } from './fetcher.ts'

const OPTIONS = {
  isolation: 'read_uncommitted',
  offsetReset: 'earliest',
  minBytes: 1,
  maxWaitMs: 100,
  fetchBytesMax: 1000,
  partitionBytesMax: 1000,
} as const

test('who leads no more, or is not known to, once its connection is there is not asked for records', async () => {
  const simulation = new Simulation(1)
  const { world } = simulation.node('client')
  const client = new Client({ world, bootstrap: 'broker:9092' })
  const leads = (leader: number) => ({
    name: 't',
    id: 'Z6qOWWaNR9qZx5b8TV406g',
    internal: false,
    partitions: [{ partition: 0, leader, leaderEpoch: 3, replicas: [1, 2], isr: [1, 2], offline: [] }],
  })
  let topic: ReturnType<typeof leads> | undefined = leads(1)
  client.metadata.remembered = () => topic
  let looks = 0
  client.metadata.refresh = async () => {
    looks++
    return { topics: [], errors: new Map() }
  }
  const asked: { readonly node: number; readonly body: InputOf<typeof FetchRequest> }[] = []
  const dialled = new Map<number, PromiseWithResolvers<void>>([1, 2].map(id => [id, Promise.withResolvers<void>()]))
  client.brokers.to = async node => {
    await dialled.get(node)?.promise
    const call = (_: ApiPair, __: number, body: InputOf<typeof FetchRequest>) => {
      asked.push({ node, body })
      return new Promise<never>(() => {})
    }
    return { versionFor: () => 17, call } as never
  }
  const fetcher = new Fetcher(client, OPTIONS)
  fetcher.add({ topic: 't', partition: 0 }, 44)
  await simulation.run(fetcher.poll(10, 10))
  topic = undefined
  dialled.get(1)?.resolve()
  await simulation.run(fetcher.poll(10, 10))
  assert.equal(asked.length, 0)
  assert.equal(looks, 1, 'who leads is asked for, and not as fast as answers come')

  topic = leads(2)
  await simulation.run(fetcher.poll(10, 300))
  topic = leads(1)
  dialled.get(2)?.resolve()
  await simulation.run(fetcher.poll(10, 10))
  assert.equal(asked.length, 1)
  assert.equal(asked[0]?.node, 1)
  assert.equal(asked[0]?.body.topics?.[0]?.partitions?.[0]?.currentLeaderEpoch, 3)
  fetcher.close()
})

test('a topic that was made anew under its name is read from its start, whatever the offset in the one before', async () => {
  for (const offsetReset of ['latest', 'none'] as const) {
    const simulation = new Simulation(1)
    const { world } = simulation.node('client')
    const client = new Client({ world, bootstrap: 'broker:9092' })
    let id = 'Z6qOWWaNR9qZx5b8TV406g'
    const partition = { partition: 0, leader: 1, leaderEpoch: 3, replicas: [1], isr: [1], offline: [] }
    client.metadata.remembered = () => ({ name: 't', id, internal: false, partitions: [partition] })
    const fetched: number[] = []
    const listed: number[] = []
    const call = async (_: ApiPair, __: number, body: InputOf<typeof FetchRequest>) => {
      const { topicId } = body.topics?.[0] ?? {}
      fetched.push(body.topics?.[0]?.partitions?.[0]?.fetchOffset ?? -1)
      await simulation.wait(10)
      const divergingEpoch = { epoch: -1, endOffset: -1 }
      const answered = { partitionIndex: 0, errorCode: 0, highWatermark: 100, divergingEpoch, records: null }
      return { errorCode: 0, sessionId: 0, responses: [{ topicId, partitions: [answered] }], nodeEndpoints: [] }
    }
    const ask = async (_: ApiPair, body: InputOf<typeof ListOffsetsRequest>) => {
      listed.push(Number(body.topics?.[0]?.partitions?.[0]?.timestamp))
      const answered = { partitionIndex: 0, errorCode: 0, offset: 2, timestamp: -1, leaderEpoch: 3 }
      return { topics: [{ name: 't', partitions: [answered] }] }
    }
    client.brokers.to = async () => ({ versionFor: () => 17, call, ask }) as never
    const anew: string[] = []
    const fetcher = new Fetcher(client, { ...OPTIONS, offsetReset }, ({ topic }) => anew.push(topic))
    fetcher.add({ topic: 't', partition: 0 }, 44)
    await simulation.run(fetcher.poll(10, 100))
    assert.deepEqual(new Set(fetched), new Set([44]))
    id = 'AAAAAAAAAAAAAAAAAAAAAg'
    const polled = simulation.run(fetcher.poll(10, 100))
    if (offsetReset === 'none') await assert.rejects(polled, { code: 'OFFSET_OUT_OF_RANGE' })
    else {
      await polled
      assert.deepEqual(anew, ['t'])
      assert.deepEqual(listed, [-2])
      assert.equal(fetched.at(-1), 2)
    }
    fetcher.close()
  }
})

test('a leader of an epoch before that of what was read is not asked, for as long as another one may be found', async () => {
  for (const found of [true, false]) {
    const simulation = new Simulation(1)
    const { world } = simulation.node('client')
    const client = new Client({ world, bootstrap: 'broker:9092' })
    let leaderEpoch = 3
    const id = 'Z6qOWWaNR9qZx5b8TV406g'
    client.metadata.remembered = () => {
      const partition = { partition: 0, leader: 1, leaderEpoch, replicas: [1], isr: [1], offline: [] }
      return { name: 't', id, internal: false, partitions: [partition] }
    }
    let looks = 0
    client.metadata.refresh = async () => {
      looks++
      if (found) leaderEpoch = 5
      return { topics: [], errors: new Map() }
    }
    const fetched: unknown[] = []
    const call = async (_: ApiPair, __: number, body: InputOf<typeof FetchRequest>) => {
      const { fetchOffset, currentLeaderEpoch, lastFetchedEpoch } = body.topics?.[0]?.partitions?.[0] ?? {}
      fetched.push([fetchOffset, currentLeaderEpoch, lastFetchedEpoch])
      return await new Promise<never>(() => {})
    }
    client.brokers.know(new Map([[1, { host: 'broker', port: 9092 }]]))
    client.brokers.to = async () => ({ versionFor: () => 17, call }) as never
    const fetcher = new Fetcher(client, OPTIONS)
    fetcher.add({ topic: 't', partition: 0 }, 44, 5)
    await simulation.run(fetcher.poll(10, 5000))
    assert.deepEqual(fetched, found ? [[44, 5, 5]] : [])
    assert.ok(found ? looks < 5 : looks > 10)
    await simulation.run(fetcher.poll(10, 6000))
    assert.deepEqual(fetched, found ? [[44, 5, 5]] : [[44, 3, 5]])
    fetcher.close()
  }
})
