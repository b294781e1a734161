/** Some of everything that a node keeps on disk: put into any server through its protocol, and told of any other. */
import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { alterConfigs, describeConfigs } from '../../src/client/admin/configs.ts'
import { commitOffsets, fetchOffsets, listGroups } from '../../src/client/admin/groups.ts'
import { listOffsets } from '../../src/client/admin/offsets.ts'
import { createPartitions, createTopic, deleteRecords, deleteTopic, listTopics } from '../../src/client/admin/topics.ts'
import type { Client } from '../../src/client/client.ts'
import { Consumer } from '../../src/client/consumer.ts'
import { Producer } from '../../src/client/producer.ts'
import { ErrorCode } from '../../src/protocol/errors.ts'
import { COMPRESSION_NAMES } from '../../src/records/batch.ts'
import type { Server } from '../server.ts'
import { RawProducer } from './raw-producer.ts'
import { channelOf, clientOf, readAll } from './rig.ts'

/** An idempotent producer as it was left: what it sent last, and where it was told that this is. */
export interface LeftProducer {
  readonly topic: string
  readonly producer: RawProducer
  readonly lastBatch: Buffer
  readonly lastOffset: number
  readonly nextSequence: number
}

const MiB = 1 << 20
/** Of the first record; an hour ago, so that retention leaves it. */
const TIME = Date.now() - 3_600_000

/** Puts it in; may be done again and again on the same server under other names. */
export async function putIn(
  server: Server,
  name: string,
  { deletesRecords = true }: { readonly deletesRecords?: boolean } = {},
): Promise<LeftProducer> {
  const client = await clientOf(server)
  try {
    const topics = {
      plain: { partitions: 3 },
      rolled: { configs: { 'segment.bytes': String(MiB), 'retention.ms': '-1', 'index.interval.bytes': '1024' } },
      compacted: { configs: { 'cleanup.policy': 'compact', 'min.cleanable.dirty.ratio': '0.9' } },
      stamped: { configs: { 'message.timestamp.type': 'LogAppendTime', 'compression.type': 'zstd' } },
      synced: { configs: { 'flush.messages': '1', 'max.message.bytes': '2000000' } },
      emptied: {},
      deleted: {},
      grown: { partitions: 1 },
      ...Object.fromEntries(COMPRESSION_NAMES.map(codec => [codec, {}])),
    }
    for (const [topic, how] of Object.entries(topics))
      await createTopic(client, { name: `${name}-${topic}`, partitions: 1, ...how })
    for (const topic of ['plain', 'compacted', 'stamped', 'synced', 'emptied', 'grown'])
      await fill(client, `${name}-${topic}`)
    for (const codec of COMPRESSION_NAMES) await fill(client, `${name}-${codec}`, codec)
    await fill(client, `${name}-rolled`, 'none', 2500, 1000)
    await deleteTopic(client, `${name}-deleted`)
    await createPartitions(client, `${name}-grown`, 4)
    await fill(client, `${name}-grown`)
    if (deletesRecords)
      await deleteRecords(client, [
        { topic: `${name}-plain`, partition: 1, offset: 2 },
        { topic: `${name}-emptied`, partition: 0, offset: 60 },
      ])
    await configure(client, name)
    await commit(client, name)
    return await leaveProducer(server, `${name}-plain`)
  } finally {
    client.close()
  }
}

async function fill(
  client: Client,
  topic: string,
  compression: (typeof COMPRESSION_NAMES)[number] = 'none',
  count = 60,
  size = 10,
) {
  const producer = new Producer(client, { compression })
  const compacted = topic.endsWith('compacted')
  const records = Array.from({ length: count }, (_, index) => ({
    key: index % 7 === 0 && !compacted ? null : `key-${index % 20}`,
    value: index % 11 === 10 ? null : `${index}:`.padEnd(size, '.'),
    headers:
      index % 3 === 0
        ? [
            { key: 'index', value: String(index) },
            { key: 'none', value: null },
          ]
        : [],
    // Every tenth goes back in time.
    timestamp: TIME + index * 1000 - (index % 10 === 9 ? 5000 : 0),
  }))
  // In several requests, so that there are several batches.
  for (let at = 0; at < count; at += 20) await producer.send(topic, records.slice(at, at + 20))
  await producer.close()
}

async function configure(client: Client, name: string): Promise<void> {
  const rolled = { type: 'topic', name: `${name}-rolled` } as const
  await alterConfigs(client, rolled, [{ name: 'retention.bytes', op: 'set', value: '100000000' }])
  await alterConfigs(client, rolled, [
    { name: 'retention.ms', op: 'delete' },
    { name: 'segment.ms', op: 'set', value: '86400000' },
  ])
  await alterConfigs(client, { type: 'broker', name: '' }, [{ name: 'message.max.bytes', op: 'set', value: '1500000' }])
  await alterConfigs(client, { type: 'broker', name: '1' }, [
    { name: 'log.segment.delete.delay.ms', op: 'set', value: '30000' },
  ])
}

async function commit(client: Client, name: string): Promise<void> {
  const consumer = new Consumer(client, { group: `${name}-members`, offsetReset: 'earliest', autoCommitIntervalMs: 0 })
  consumer.subscribe([`${name}-plain`, `${name}-gzip`])
  for (let records = 0; records < 100; ) records += (await consumer.poll()).length
  await consumer.commit()
  await consumer.close()
  const topic = `${name}-plain`
  await commitOffsets(client, `${name}-tools`, [
    { topic, partition: 0, offset: 3, leaderEpoch: -1, metadata: 'a note — ñ' },
    { topic, partition: 2, offset: 7, leaderEpoch: 0 },
  ])
  await commitOffsets(client, `${name}-tools`, [{ topic, partition: 2, offset: 9, leaderEpoch: 0 }])
}

async function leaveProducer(server: Server, topic: string): Promise<LeftProducer> {
  const channel = await channelOf(server)
  const producer = await RawProducer.create(channel)
  let lastBatch: Buffer = Buffer.alloc(0)
  let lastOffset = -1
  for (let number = 0; number < 7; number++) {
    lastBatch = producer.batch([`raw ${number}`, `raw ${number} too`], number * 2)
    const { errorCode, baseOffset } = await producer.send(channel, topic, 0, lastBatch)
    assert.equal(errorCode, 0)
    lastOffset = baseOffset
  }
  channel.close()
  return { topic, producer, lastBatch, lastOffset, nextSequence: 14 }
}

/** The producer goes on where it was: its last batch again is no second copy, a gap is refused, the next one is taken. */
export async function goOn(server: Server, left: LeftProducer): Promise<LeftProducer> {
  const { topic, producer, nextSequence } = left
  const channel = await channelOf(server)
  const again = await producer.send(channel, topic, 0, left.lastBatch)
  assert.deepEqual(again, { errorCode: 0, baseOffset: left.lastOffset }, 'the last batch again')
  const gap = await producer.send(channel, topic, 0, producer.batch(['after a gap'], nextSequence + 5))
  assert.equal(gap.errorCode, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
  const lastBatch = producer.batch([`raw at ${nextSequence}`], nextSequence)
  const next = await producer.send(channel, topic, 0, lastBatch)
  assert.equal(next.errorCode, 0)
  channel.close()
  return { ...left, lastBatch, lastOffset: next.baseOffset, nextSequence: nextSequence + 1 }
}

/**
 * All that clients can see of what is stored: topics, records, offsets by time, configurations, commits. Of `others` only
 * that they are there and how they are configured.
 */
export async function stateOf(server: Server, others: readonly string[] = []) {
  const client = await clientOf(server)
  try {
    const topics = await listTopics(client)
    const state = {
      topics: new Map<string, unknown>(
        topics.map(({ name, id, partitions }) => [name, { id, partitions: partitions.length }]),
      ),
      records: new Map<string, unknown>(),
      offsets: new Map<string, unknown>(),
      configs: new Map<string, unknown>(),
      commits: new Map<string, unknown>(),
    }
    for (const { name, partitions } of topics) {
      state.configs.set(name, await overrides(client, 'topic', name))
      if (name.startsWith('__') || others.includes(name)) continue
      for (const { partition } of partitions) {
        const records = await readAll(client, name, partition)
        state.records.set(`${name}-${partition}`, records)
        state.offsets.set(`${name}-${partition}`, await offsetsOf(client, name, partition))
      }
    }
    for (const broker of ['', '1']) state.configs.set(`broker ${broker}`, await overrides(client, 'broker', broker))
    for (const { group } of await listGroups(client)) {
      const offsets = await fetchOffsets(client, group)
      offsets.sort((a, b) => a.topic.localeCompare(b.topic) || a.partition - b.partition)
      state.commits.set(group, offsets)
    }
    return state
  } finally {
    client.close()
  }
}

async function offsetsOf(client: Client, topic: string, partition: number) {
  const specs = ['earliest', 'latest', 'max-timestamp', { timestamp: TIME + 20_500 }] as const
  const found = []
  for (const spec of specs) {
    const [{ offset, timestamp } = { offset: -2, timestamp: -2 }] = await listOffsets(client, [
      { topic, partition, spec },
    ])
    found.push({ offset, timestamp })
  }
  return found
}

/** What was set while the server ran, not what its file or the release says. */
async function overrides(client: Client, type: 'topic' | 'broker', name: string) {
  const sources = type === 'topic' ? ['topic', 'cluster', 'broker'] : ['broker', 'cluster']
  const entries = await describeConfigs(client, { type, name })
  return entries
    .filter(({ source }) => sources.includes(source))
    .map(({ name: key, value, source }) => `${key}=${value} (${source})`)
}

type State = Awaited<ReturnType<typeof stateOf>>

/** Whether two servers show the same. Says the first difference of each kind: the whole would be too much to print. */
export function assertSame(actual: State, expected: State): void {
  const differences: string[] = []
  for (const kind of ['topics', 'records', 'offsets', 'configs', 'commits'] as const) {
    for (const key of new Set([...expected[kind].keys(), ...actual[kind].keys()])) {
      const [is, should] = [actual[kind].get(key), expected[kind].get(key)]
      if (isDeepStrictEqual(is, should)) continue
      differences.push(`${kind} of ${key}: ${firstDifference(is, should)}`)
    }
  }
  assert.equal(differences.slice(0, 20).join('\n'), '')
}

function firstDifference(is: unknown, should: unknown): string {
  const [a, b] = [is, should].map(value => (Array.isArray(value) ? value : [value]))
  const at = (b as unknown[]).findIndex((each, index) => !isDeepStrictEqual(each, a?.[index]))
  const index = at < 0 ? (b?.length ?? 0) : at
  const shown = (value: unknown) => JSON.stringify(value)?.slice(0, 300)
  return `${a?.length} entries, ${b?.length} expected; at ${index} ${shown(a?.[index])}, expected ${shown(b?.[index])}`
}
