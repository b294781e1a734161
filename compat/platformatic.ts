/** \@platformatic/kafka against a server; scenario.ts says how it is run. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import {
  Admin,
  ConfigResourceTypes,
  Consumer,
  IncrementalAlterConfigOperationTypes,
  type Message,
  type MessagesStream,
  Producer,
} from '@platformatic/kafka'
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

const options = { clientId: 'compat-platformatic', bootstrapBrokers: [address], retries: 60, retryDelay: 250 }
const admin = new Admin(options)

const topicNamed = (name: string): string => `platformatic-${name}-${unique}`

async function topic(name: string, partitions: number): Promise<string> {
  await admin.createTopics({ topics: [topicNamed(name)], partitions, replicas: 1 })
  return topicNamed(name)
}

function pair({ key, value, headerEntries }: Message): Pair {
  return {
    key: key ?? null,
    value: value ?? null,
    headers: headerEntries.map(([name, held]) => [name.toString(), held] as const),
  }
}

/** What a record is to this client, which leaves out what is null. */
function message(name: string, { key, value, headers }: Pair, partition = 0) {
  return {
    topic: name,
    partition,
    ...(key === null ? {} : { key }),
    ...(value === null ? {} : { value }),
    headers: new Map(headers.map(([header, held]) => [Buffer.from(header), held])),
  }
}

const text = (name: string, value: string, partition = 0) =>
  message(name, { key: null, value: Buffer.from(value), headers: [] }, partition)

/** Reads from the start until `count` messages have come. */
async function read(name: string, count: number): Promise<Message[]> {
  const consumer = new Consumer({ ...options, groupId: `${name}-${randomBytes(4).toString('hex')}`, maxWaitTime: 100 })
  const stream = await consumer.consume({ topics: [name], mode: 'earliest', autocommit: false })
  const messages: Message[] = []
  stream.on('data', came => messages.push(came))
  try {
    await until(`${count} messages of ${name}`, () => messages.length >= count)
  } finally {
    await consumer.close(true)
  }
  return messages
}

for (const compression of COMPRESSIONS) {
  await scenario(`records of every shape, ${compression}`, async () => {
    const name = await topic(compression, 1)
    const producer = new Producer(options)
    const records = recordsOfEveryShape()
    const sent = await producer.send({ messages: records.map(record => message(name, record)), compression, acks: -1 })
    await producer.close()
    assert.equal(sent.offsets?.[0]?.offset, 0n)
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
  const producer = new Producer(options)
  const values = [1, 2, 3].map(() => randomBytes(1_000_000))
  for (const value of values)
    await producer.send({ messages: [message(name, { key: null, value, headers: [] })], acks: -1 })
  const tooLarge = message(name, { key: null, value: randomBytes(1_100_000), headers: [] })
  await assert.rejects(producer.send({ messages: [tooLarge], acks: -1 }))
  await producer.close()
  const came = await read(name, values.length)
  came.forEach(({ value }, i) => {
    assert.ok(value.equals(values[i] as Buffer), `record ${i} of 1 MB came back changed`)
  })
})

await scenario('a topic made by its first record', async () => {
  const name = topicNamed('auto')
  const producer = new Producer({ ...options, autocreateTopics: true })
  await producer.send({ messages: [text(name, 'first')], acks: -1 })
  await producer.close()
  assert.equal((await read(name, 1))[0]?.value.toString(), 'first')
})

await scenario('admin', async () => {
  const name = topicNamed('admin')
  const configs = [{ name: 'retention.ms', value: '3600000' }]
  const [created] = await admin.createTopics({ topics: [name], partitions: 2, replicas: 1, configs })
  assert.deepEqual([created?.partitions, created?.replicas], [2, 1])
  assert.equal(created?.configuration['retention.ms'], '3600000')
  await assert.rejects(admin.createTopics({ topics: [name], partitions: 2, replicas: 1 }))
  assert.ok((await admin.listTopics()).includes(name))

  const resource = { resourceType: ConfigResourceTypes.TOPIC, resourceName: name }
  const described = await admin.describeConfigs({
    resources: [{ ...resource, configurationKeys: ['retention.ms'] }],
    includeSynonyms: true,
    includeDocumentation: true,
  })
  const [entry, ...others] = described[0]?.configs ?? []
  assert.deepEqual([entry?.name, entry?.value, others.length], ['retention.ms', '3600000', 0])
  await admin.incrementalAlterConfigs({
    resources: [
      {
        ...resource,
        configs: [
          { name: 'retention.ms', configOperation: IncrementalAlterConfigOperationTypes.SET, value: '7200000' },
        ],
      },
    ],
  })
  // What is altered is described as soon as the broker has read of it, which on Kafka can be after the answer.
  const retention = async (): Promise<string | null | undefined> => {
    const [again] = await admin.describeConfigs({ resources: [{ ...resource, configurationKeys: ['retention.ms'] }] })
    return again?.configs[0]?.value
  }
  await until('the altered value is described', async () => (await retention()) === '7200000')

  await admin.createPartitions({ topics: [{ name, count: 5, assignments: null }] })
  const metadata = await admin.metadata({ topics: [name], forceUpdate: true })
  assert.equal(metadata.topics.get(name)?.partitionsCount, 5)
  assert.equal(metadata.brokers.size, 1)

  const producer = new Producer(options)
  await producer.send({ messages: Array.from({ length: 10 }, (_, i) => text(name, String(i))), acks: -1 })
  await producer.close()
  const [deleted] = await admin.deleteRecords({ topics: [{ name, partitions: [{ partition: 0, offset: 4n }] }] })
  assert.equal(deleted?.partitions[0]?.lowWatermark, 4n)
  const [listed] = await admin.listOffsets({
    topics: [{ name, partitions: [{ partitionIndex: 0, timestamp: -2n }] }],
  })
  assert.equal(listed?.partitions[0]?.offset, 4n)
  const [logDirs] = await admin.describeLogDirs({ topics: [{ name, partitions: [0] }] })
  const found = logDirs?.results.flatMap(result => result.topics).find(dir => dir.name === name)
  assert.equal(found?.partitions[0]?.partitionIndex, 0)

  await admin.deleteTopics({ topics: [name] })
  assert.ok(!(await admin.listTopics()).includes(name))
})

/** A member of a group that remembers what it owns and what it was given. */
class Member {
  readonly consumer: Consumer
  readonly values: string[] = []
  #stream: MessagesStream<Buffer, Buffer, Buffer, Buffer> | undefined

  constructor(groupId: string) {
    const group = { groupId, sessionTimeout: 10_000, rebalanceTimeout: 10_000, heartbeatInterval: 300 }
    this.consumer = new Consumer({ ...options, ...group, maxWaitTime: 100 })
  }

  get owned(): number {
    return this.consumer.assignments?.reduce((sum, { partitions }) => sum + partitions.length, 0) ?? 0
  }

  async join(name: string): Promise<void> {
    this.#stream = await this.consumer.consume({
      topics: [name],
      mode: 'committed',
      fallbackMode: 'earliest',
      autocommit: 100,
    })
    this.#stream.on('data', ({ value }) => this.values.push(value.toString()))
    this.#stream.on('error', error => process.stdout.write(`a member's stream: ${error.message}\n`))
  }

  /** Leaves the group when all that it was given is committed. */
  async leave(): Promise<void> {
    await until('all is committed', () => (this.#stream?.offsetsToCommit.size ?? 0) === 0)
    await this.#stream?.close()
    await this.consumer.close(true)
  }
}

await scenario('group of two, rebalance, commit, restart, reading on', async () => {
  const name = await topic('group', 4)
  const groupId = `platformatic-group-${unique}`
  // Idempotent, so that a retry over the restart leaves no second copy to count.
  const producer = new Producer({ ...options, idempotent: true })
  let sent = 0
  const send = async (count: number): Promise<void> => {
    const messages = Array.from({ length: count }, (_, i) => text(name, String(sent + i), (sent + i) % 4))
    await producer.send({ messages, acks: -1 })
    sent += count
  }
  const committed = async (): Promise<number> => {
    const [group] = await admin.listConsumerGroupOffsets({
      groups: [{ groupId, topics: [{ name, partitionIndexes: [0, 1, 2, 3] }] }],
    })
    const offsets = new Map(
      group?.topics[0]?.partitions.map(held => [held.partitionIndex, Number(held.committedOffset)]),
    )
    return [...offsets.values()].reduce((sum, offset) => sum + offset, 0)
  }
  const first = new Member(groupId)
  const second = new Member(groupId)
  const distinct = (): number => new Set([...first.values, ...second.values]).size

  await send(400)
  await first.join(name)
  await until('the first member owns all', () => first.owned === 4 && distinct() === 400)
  await second.join(name)
  await until('two members share', () => first.owned === 2 && second.owned === 2)
  const described = (await admin.describeGroups({ groups: [groupId] })).get(groupId)
  assert.deepEqual([String(described?.state), described?.members.size], ['Stable', 2])
  await send(400)
  await until('two members read all', () => distinct() === 800)
  assert.ok(second.values.length > 0, 'the second member was given records')
  await second.leave()
  await until('the first member owns all again', () => first.owned === 4)

  await restartServer()
  await send(200)
  await until('the first member reads on after the restart', () => distinct() === 1_000)
  await until('all is committed', async () => (await committed()) === 1_000)
  await first.leave()

  const third = new Member(groupId)
  await third.join(name)
  await until('the third member owns all', () => third.owned === 4)
  await send(50)
  await until('the third member reads on', () => third.values.length >= 50)
  await third.leave()
  assert.deepEqual(
    third.values.map(Number).sort((a, b) => a - b),
    Array.from({ length: 50 }, (_, i) => 1_000 + i),
  )
  await producer.close()
  assert.ok((await admin.listGroups()).has(groupId))
  await admin.deleteGroups({ groups: [groupId] })
  assert.ok(!(await admin.listGroups()).has(groupId))
})

await scenario('idempotent producer over a restart', async () => {
  const name = await topic('idempotent', 1)
  const producer = new Producer({ ...options, idempotent: true })
  let sent = 0
  let stop = false
  const sending = (async () => {
    while (!stop) {
      await producer.send({ messages: [text(name, String(sent)), text(name, String(sent + 1))] })
      sent += 2
    }
  })()
  await until('some are sent', () => sent >= 100)
  await restartServer()
  const before = sent
  await Promise.race([sending, until('sending goes on', () => sent >= before + 100)])
  stop = true
  await sending
  await producer.close()
  const came = (await read(name, sent)).map(({ value }) => Number(value.toString()))
  assert.deepEqual(
    came,
    Array.from({ length: sent }, (_, i) => i),
  )
})

finish()
