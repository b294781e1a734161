/** What the cases share: a server, or a node in this process whose doors can be held, and calls to it. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { serverConfig } from '../../src/core/config/server.ts'
import { Channel } from '../../src/network/channel.ts'
import { type RunningNode, startNode } from '../../src/node.ts'
import { API } from '../../src/protocol/apis.ts'
import { BatchBuilder, type BatchOptions } from '../../src/records/builder.ts'
import { realWorld } from '../../src/world/real/real.ts'
import type { World } from '../../src/world/world.ts'
import { Server, type ServerKind, type Settings } from '../server.ts'

/** CASES_SERVER=kafka holds the cases against Kafka itself, where they are about what clients see. */
export const kind: ServerKind = process.env.CASES_SERVER === 'kafka' ? 'kafka' : 'tidemark'

export const world: World = realWorld({ log: { level: 'error' } })

/** A time long ago, so that nothing depends on when the test runs. */
export const T0 = 1_700_000_000_000

export async function running(settings: Settings = {}): Promise<Server> {
  const server = await Server.create(kind, undefined, settings)
  await server.start()
  return server
}

export async function channelTo(port: number, host = '127.0.0.1'): Promise<Channel> {
  const channel = await Channel.connect(world, { host, port }, { clientId: 'case' })
  await channel.negotiate()
  return channel
}

/** A node in this process; `overrides` as for `tidemark start`. */
export async function nodeIn(t: TestContext, of: World, overrides: readonly string[]): Promise<RunningNode> {
  const folder = await mkdtemp(join(tmpdir(), 'tidemark-cases-'))
  const result = serverConfig({
    environment: {},
    flags: [],
    overrides: [...overrides, `log.dirs=${join(folder, 'data')}`, `metadata.log.dir=${join(folder, 'data')}`],
  })
  if ('errors' in result) throw new Error(JSON.stringify(result.errors))
  const node = await startNode(of, result.config)
  t.after(async () => {
    await node.stop()
    await rm(folder, { recursive: true, force: true })
  })
  return node
}

export async function createTopic(channel: Channel, name: string, configs: Settings = {}, partitions = 1) {
  const answer = await channel.ask(API.CreateTopics, {
    topics: [
      {
        name,
        numPartitions: partitions,
        replicationFactor: 1,
        configs: Object.entries(configs).map(([key, value]) => ({ name: key, value })),
      },
    ],
  })
  await eventually(async () => {
    const partitionsOf = Array.from({ length: partitions }, (_, partitionIndex) => ({ partitionIndex, timestamp: -1 }))
    const { topics } = await channel.ask(API.ListOffsets, {
      replicaId: -1,
      topics: [{ name, partitions: partitionsOf }],
    })
    return topics.every(topic => topic.partitions.every(({ errorCode }) => errorCode === 0))
  })
  return answer.topics[0] as (typeof answer.topics)[number]
}

export async function deleteTopic(channel: Channel, name: string): Promise<void> {
  await channel.call(API.DeleteTopics, 4, { topicNames: [name], timeoutMs: 10_000 })
  await eventually(async () => {
    const { topics } = await channel.ask(API.Metadata, { topics: [{ name }], allowAutoTopicCreation: false })
    return topics[0]?.errorCode === 3
  })
}

/** One record per time. */
export function batchAt(times: readonly number[], options: BatchOptions = {}): Buffer {
  const builder = new BatchBuilder(options)
  for (const time of times) builder.append(time, Buffer.from(`key ${time}`), Buffer.from(`value ${time}`))
  return builder.build()
}

export async function produce(channel: Channel, name: string, records: Buffer, partition = 0) {
  const answer = await channel.call(API.Produce, 9, produceBody(name, records, partition))
  return answer.responses[0]?.partitionResponses[0] as PartitionResponse
}

export function produceBody(name: string, records: Buffer, index = 0) {
  return { acks: -1, timeoutMs: 10_000, topicData: [{ name, partitionData: [{ index, records }] }] }
}

type PartitionResponse = Awaited<ReturnType<typeof produceAnswer>>
declare function produceAnswer(): Promise<{ errorCode: number; baseOffset: number; errorMessage: string | null }>

export async function eventually(holds: () => Promise<boolean>, limitMs = 10_000): Promise<void> {
  const until = performance.now() + limitMs
  while (!(await holds())) {
    if (performance.now() > until) throw new Error(`not within ${limitMs} ms`)
    await delay(20)
  }
}
