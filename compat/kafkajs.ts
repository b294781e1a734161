/** kafkajs against a server; scenario.ts says how it is run. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import kafkajs, { type Consumer, type IHeaders, type KafkaMessage, type Message } from 'kafkajs'
import { compressFrameSync, decompressFrameSync } from 'lz4-napi'
import { compressSync, uncompressSync } from 'snappy'
import {
  address,
  assertSameRecords,
  COMPRESSIONS,
  finish,
  type Pair,
  recordsOfEveryShape,
  restartServer,
  scenario,
  unique,
  until,
} from './scenario.ts'

const { CompressionCodecs, CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = kafkajs

// kafkajs brings gzip only; these are the shapes that its usual plug-ins write: xerial blocks, an lz4 frame, a zstd frame.
const XERIAL = Buffer.from('82534e41505059000000000100000001', 'hex')

function snappyBlocks(bytes: Buffer): Buffer {
  const parts: Buffer[] = [XERIAL]
  for (let at = 0; at < bytes.length; at += 32 * 1024) {
    const block = compressSync(bytes.subarray(at, at + 32 * 1024))
    const size = Buffer.alloc(4)
    size.writeInt32BE(block.length)
    parts.push(size, block)
  }
  return Buffer.concat(parts)
}

function fromSnappyBlocks(bytes: Buffer): Buffer {
  if (!bytes.subarray(0, 8).equals(XERIAL.subarray(0, 8))) return Buffer.from(uncompressSync(bytes))
  const parts: Buffer[] = []
  for (let at = XERIAL.length; at < bytes.length; ) {
    const size = bytes.readInt32BE(at)
    parts.push(Buffer.from(uncompressSync(bytes.subarray(at + 4, at + 4 + size))))
    at += 4 + size
  }
  return Buffer.concat(parts)
}

function codec(compress: (bytes: Buffer) => Buffer, decompress: (bytes: Buffer) => Buffer): () => object {
  return () => ({
    compress: async ({ buffer }: { buffer: Buffer }) => compress(buffer),
    decompress: async (buffer: Buffer) => decompress(buffer),
  })
}
CompressionCodecs[CompressionTypes.Snappy] = codec(snappyBlocks, fromSnappyBlocks)
CompressionCodecs[CompressionTypes.LZ4] = codec(bytes => compressFrameSync(bytes), decompressFrameSync)
CompressionCodecs[CompressionTypes.ZSTD] = codec(zstdCompressSync, zstdDecompressSync)
const TYPES = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}

const kafka = new Kafka({
  clientId: 'compat-kafkajs',
  brokers: [address],
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 50, maxRetryTime: 1_000, retries: 40 },
})
const admin = kafka.admin()
await admin.connect()

const topicNamed = (name: string): string => `kafkajs-${name}-${unique}`

async function topic(name: string, numPartitions: number): Promise<string> {
  await admin.createTopics({ topics: [{ topic: topicNamed(name), numPartitions }], waitForLeaders: true })
  return topicNamed(name)
}

/** What a message says, in the words of every suite: headers in order, repeated ones one by one. */
function pair({ key, value, headers }: KafkaMessage): Pair {
  return { key, value, headers: Object.entries(headers ?? {}).flatMap(([name, held]) => each(name, held)) }
}

function each(name: string, held: IHeaders[string]): [string, Buffer][] {
  if (held === undefined) return []
  return (Array.isArray(held) ? held : [held]).map(value => [name, Buffer.from(value)])
}

/** Reads a partition from its start until `count` messages have come. */
async function read(name: string, count: number): Promise<KafkaMessage[]> {
  const consumer = kafka.consumer({ groupId: `${name}-${randomBytes(4).toString('hex')}`, maxWaitTimeInMs: 100 })
  const messages: KafkaMessage[] = []
  await consumer.connect()
  await consumer.subscribe({ topic: name, fromBeginning: true })
  await consumer.run({ eachMessage: async ({ message }) => void messages.push(message) })
  try {
    await until(`${count} messages of ${name}, ${messages.length} came`, () => messages.length >= count)
  } finally {
    await consumer.disconnect()
  }
  return messages
}

for (const compression of COMPRESSIONS) {
  await scenario(`records of every shape, ${compression}`, async () => {
    const name = await topic(compression, 1)
    const producer = kafka.producer()
    await producer.connect()
    const records = recordsOfEveryShape()
    const messages = records.map(
      ({ key, value, headers }): Message => ({ key, value, headers: Object.fromEntries(headers) }),
    )
    const [sent] = await producer.send({ topic: name, messages, compression: TYPES[compression], acks: -1 })
    await producer.disconnect()
    assert.equal(sent?.baseOffset, '0')
    const came = await read(name, records.length)
    assertSameRecords(came.map(pair), records)
    assert.deepEqual(
      came.map(({ offset }) => Number(offset)),
      records.map((_, i) => i),
    )
  })
}

await scenario('records of 1 MB', async () => {
  const name = await topic('large', 1)
  const producer = kafka.producer()
  await producer.connect()
  const values = [1, 2, 3].map(() => randomBytes(1_000_000))
  for (const value of values) await producer.send({ topic: name, messages: [{ value }] })
  const tooLarge = producer.send({ topic: name, messages: [{ value: randomBytes(1_100_000) }] })
  await assert.rejects(tooLarge, /MESSAGE_TOO_LARGE|larger than the max|too large/i)
  await producer.disconnect()
  const came = await read(name, values.length)
  came.forEach((message, i) => {
    assert.ok(message.value?.equals(values[i] as Buffer), `record ${i} of 1 MB came back changed`)
  })
})

await scenario('a topic made by its first record', async () => {
  const name = topicNamed('auto')
  const producer = kafka.producer({ allowAutoTopicCreation: true })
  await producer.connect()
  await producer.send({ topic: name, messages: [{ key: 'k', value: 'first' }] })
  await producer.disconnect()
  assert.equal((await read(name, 1))[0]?.value?.toString(), 'first')
})

await scenario('admin', async () => {
  const name = topicNamed('admin')
  const configEntries = [{ name: 'retention.ms', value: '3600000' }]
  assert.equal(await admin.createTopics({ topics: [{ topic: name, numPartitions: 2, configEntries }] }), true)
  assert.equal(await admin.createTopics({ topics: [{ topic: name, numPartitions: 2 }] }), false)
  assert.ok((await admin.listTopics()).includes(name))

  const described = await admin.describeConfigs({
    includeSynonyms: false,
    resources: [{ type: ConfigResourceTypes.TOPIC, name, configNames: ['retention.ms'] }],
  })
  assert.deepEqual(
    described.resources[0]?.configEntries.map(entry => [entry.configName, entry.configValue]),
    [['retention.ms', '3600000']],
  )
  await admin.alterConfigs({
    validateOnly: false,
    resources: [
      { type: ConfigResourceTypes.TOPIC, name, configEntries: [{ name: 'cleanup.policy', value: 'delete' }] },
    ],
  })
  await admin.createPartitions({ topicPartitions: [{ topic: name, count: 5 }] })
  const metadata = await admin.fetchTopicMetadata({ topics: [name] })
  assert.equal(metadata.topics[0]?.partitions.length, 5)

  const producer = kafka.producer()
  await producer.connect()
  await producer.send({
    topic: name,
    messages: Array.from({ length: 10 }, (_, i) => ({ partition: 0, value: `${i}` })),
  })
  await producer.disconnect()
  // A partition may be told of before it is led, and this call, which deleteTopicRecords makes too, gives up at once.
  const offsets = async () => {
    for (let attempt = 0; ; attempt++) {
      try {
        return await admin.fetchTopicOffsets(name)
      } catch (error) {
        if (attempt === 100 || !/not the leader/.test(String(error))) throw error
        await new Promise(resolve => setTimeout(resolve, 50))
      }
    }
  }
  await offsets()
  await admin.deleteTopicRecords({ topic: name, partitions: [{ partition: 0, offset: '4' }] })
  const [first] = (await admin.fetchTopicOffsets(name)).filter(({ partition }) => partition === 0)
  assert.deepEqual([first?.low, first?.high], ['4', '10'])

  const cluster = await admin.describeCluster()
  assert.equal(cluster.brokers.length, 1)
  assert.equal(cluster.controller, cluster.brokers[0]?.nodeId)
  await admin.deleteTopics({ topics: [name] })
  assert.ok(!(await admin.listTopics()).includes(name))
})

/** A member of a group that remembers what it owns and what it was given. */
class Member {
  readonly consumer: Consumer
  readonly values: string[] = []
  owned = 0

  constructor(groupId: string) {
    this.consumer = kafka.consumer({ groupId, sessionTimeout: 10_000, heartbeatInterval: 300, maxWaitTimeInMs: 100 })
    this.consumer.on(this.consumer.events.GROUP_JOIN, ({ payload }) => {
      this.owned = Object.values(payload.memberAssignment).flat().length
    })
  }

  async join(name: string): Promise<void> {
    await this.consumer.connect()
    await this.consumer.subscribe({ topic: name, fromBeginning: true })
    await this.consumer.run({
      autoCommitThreshold: 10,
      eachMessage: async ({ message }) => void this.values.push(String(message.value)),
    })
  }
}

await scenario('group of two, rebalance, commit, restart, reading on', async () => {
  const name = await topic('group', 4)
  const groupId = `kafkajs-group-${unique}`
  // Idempotent, so that a retry over the restart leaves no second copy to count.
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
  await producer.connect()
  let sent = 0
  const send = async (count: number): Promise<void> => {
    const messages = Array.from({ length: count }, (_, i) => ({ partition: (sent + i) % 4, value: String(sent + i) }))
    await producer.send({ topic: name, messages })
    sent += count
  }
  const committed = async (): Promise<number> => {
    const [offsets] = await admin.fetchOffsets({ groupId, topics: [name] })
    return offsets?.partitions.reduce((sum, { offset }) => sum + Math.max(0, Number(offset)), 0) ?? 0
  }
  const first = new Member(groupId)
  const second = new Member(groupId)
  const distinct = (): number => new Set([...first.values, ...second.values]).size

  await send(400)
  await first.join(name)
  await until('the first member owns all', () => first.owned === 4 && distinct() === 400)
  await second.join(name)
  await until('two members share', () => first.owned === 2 && second.owned === 2)
  const described = await admin.describeGroups([groupId])
  assert.equal(described.groups[0]?.state, 'Stable')
  assert.equal(described.groups[0]?.members.length, 2)
  await send(400)
  await until('two members read all', () => distinct() === 800)
  assert.ok(second.values.length > 0, 'the second member was given records')
  await second.consumer.disconnect()
  await until('the first member owns all again', () => first.owned === 4)

  await restartServer()
  await send(200)
  await until('the first member reads on after the restart', () => distinct() === 1_000)
  await first.consumer.disconnect()
  assert.equal(await committed(), 1_000)

  const third = new Member(groupId)
  await third.join(name)
  await until('the third member owns all', () => third.owned === 4)
  await send(50)
  await until('the third member reads on', () => third.values.length >= 50)
  await third.consumer.disconnect()
  assert.deepEqual(
    third.values.map(Number).sort((a, b) => a - b),
    Array.from({ length: 50 }, (_, i) => 1_000 + i),
  )
  await producer.disconnect()
  assert.ok((await admin.listGroups()).groups.some(group => group.groupId === groupId))
  await admin.deleteGroups([groupId])
  assert.ok(!(await admin.listGroups()).groups.some(group => group.groupId === groupId))
})

await scenario('idempotent producer over a restart', async () => {
  const name = await topic('idempotent', 1)
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
  await producer.connect()
  let sent = 0
  let stop = false
  const sending = (async () => {
    while (!stop) {
      await producer.send({ topic: name, acks: -1, messages: [{ value: String(sent) }, { value: String(sent + 1) }] })
      sent += 2
    }
  })()
  await until('some are sent', () => sent >= 100)
  await restartServer()
  const before = sent
  await until('sending goes on', () => sent >= before + 100)
  stop = true
  await sending
  await producer.disconnect()
  const came = (await read(name, sent)).map(({ value }) => Number(value))
  assert.deepEqual(
    came,
    Array.from({ length: sent }, (_, i) => i),
  )
})

await admin.disconnect()
finish()
