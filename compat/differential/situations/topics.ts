import { API } from '#protocol/apis.ts'
import { pick, type Twin } from '../twin.ts'
import { configList, createTopic, NO_ID, type Situation, UNKNOWN_ID, untilGone, untilThere } from './tools.ts'

const TIMEOUT = { timeoutMs: 20_000 }

const WRONG_NAMES = [
  '',
  '.',
  '..',
  'a b',
  'a/b',
  'ünï',
  'x'.repeat(249),
  'x'.repeat(250),
  'a\u0000b',
  '_ok',
  '__consumer_offsets',
]

/** Every way in which a topic can be asked for that is not there yet; created in no version but the last. */
async function refused(twin: Twin): Promise<void> {
  for (const version of twin.versionsOf(API.CreateTopics)) {
    const create = (topic: object, validateOnly = true) =>
      twin.call(API.CreateTopics, version, { topics: [topic], validateOnly, ...TIMEOUT })
    for (const name of WRONG_NAMES) await create({ name, numPartitions: 1, replicationFactor: 1 })
    for (const [numPartitions, replicationFactor] of [
      [0, 1], [-2, 1], [-1, 1], [1, 0], [1, -2], [1, -1], [-1, -1], [1, 2], [1, 0x7fff], [3, 1], [10_001, 1], [20_001, 1],
    ] as const) await create({ name: 't-counts', numPartitions, replicationFactor }) // biome-ignore format: pairs
    const assignments = (...list: [number, number[]][]): object => ({
      name: 't-assigned',
      numPartitions: -1,
      replicationFactor: -1,
      assignments: list.map(([partitionIndex, brokerIds]) => ({ partitionIndex, brokerIds })),
    })
    await create(assignments([0, [1]]))
    await create(assignments([0, [1]], [1, [1]]))
    await create(assignments([1, [1]]))
    await create(assignments([0, [1]], [0, [1]]))
    await create(assignments([0, [1]], [2, [1]]))
    await create(assignments([0, []]))
    await create(assignments([0, [1, 1]]))
    await create(assignments([0, [9]]))
    await create(assignments([0, [-1]]))
    await create(assignments([-1, [1]]))
    await create({ ...assignments([0, [1]]), numPartitions: 1 })
    await create({ ...assignments([0, [1]]), replicationFactor: 1 })
    await create({
      name: 't-dup',
      numPartitions: 1,
      replicationFactor: 1,
      configs: [{ name: 'retention.ms', value: null }],
    })
    for (const [name, value] of WRONG_CONFIGS) {
      await create({ name: 't-config', numPartitions: 1, replicationFactor: 1, configs: [{ name, value }] })
    }
    const one = { name: 't-twice', numPartitions: 1, replicationFactor: 1 }
    await twin.call(API.CreateTopics, version, { topics: [one, one], validateOnly: true, ...TIMEOUT })
    await twin.call(API.CreateTopics, version, { topics: [], validateOnly: true, ...TIMEOUT })
    const twice = [{ name: 'retention.ms', value: '1' }, { name: 'retention.ms', value: '2' }] // biome-ignore format: a pair
    await create({ ...one, configs: twice })
    await twin.call(API.CreateTopics, version, {
      topics: [one, { ...one, name: 't-other' }, { ...one, name: '' }, { ...one, name: 't-zero', numPartitions: 0 }],
      validateOnly: true,
      ...TIMEOUT,
    })
    await create({ name: 't-collide', numPartitions: 1, replicationFactor: 1 }, false)
    await untilThere(twin, 't-collide', 1)
    await create({ name: 't-collide', numPartitions: 1, replicationFactor: 1 }, false)
    await create({ name: 't-collide', numPartitions: 1, replicationFactor: 1 })
    await create({ name: 't.collide', numPartitions: 1, replicationFactor: 1 }, false)
    await create({ name: 't_collide', numPartitions: 1, replicationFactor: 1 })
  }
}

export const WRONG_CONFIGS: readonly (readonly [string, string | null])[] = [
  ['no.such.config', '1'], ['', '1'], ['retention.ms', ''], ['retention.ms', 'soon'], ['retention.ms', '-2'],
  ['retention.ms', '-1'], ['retention.ms', ' 100 '], ['retention.ms', '1e3'], ['retention.ms', '9223372036854775808'],
  ['retention.ms', '99999999999'], ['retention.bytes', '-5'], ['segment.bytes', '0'], ['segment.bytes', '14'],
  ['segment.bytes', '1048576'], ['segment.bytes', '1048575'], ['segment.bytes', '2147483648'], ['segment.ms', '0'],
  ['cleanup.policy', 'keep'], ['cleanup.policy', ''], ['cleanup.policy', 'compact,delete'], ['cleanup.policy', 'delete,delete'],
  ['cleanup.policy', 'compact, delete'], ['cleanup.policy', 'COMPACT'], ['compression.type', 'brotli'], ['compression.type', 'none'],
  ['compression.type', 'uncompressed'], ['compression.type', 'zstd'], ['compression.gzip.level', '10'], ['compression.gzip.level', '0'],
  ['compression.gzip.level', '-1'], ['compression.lz4.level', '18'], ['compression.zstd.level', '23'], ['compression.zstd.level', '-131073'],
  ['min.insync.replicas', '0'], ['min.insync.replicas', '2'], ['max.message.bytes', '-1'], ['max.message.bytes', '0'],
  ['message.timestamp.type', 'createtime'], ['message.timestamp.type', 'LogAppendTime'], ['message.timestamp.before.max.ms', '-1'],
  ['min.cleanable.dirty.ratio', '1.1'], ['min.cleanable.dirty.ratio', '0.3'],
  ['preallocate', 'yes'], ['preallocate', 'TRUE'], ['preallocate', 'true'], ['unclean.leader.election.enable', 'maybe'],
  ['remote.storage.enable', 'true'], ['remote.storage.enable', 'false'], ['local.retention.ms', '-3'], ['local.retention.ms', '1'],
  ['local.retention.bytes', '99999999999'], ['leader.replication.throttled.replicas', '*'], ['leader.replication.throttled.replicas', '0:1,1:1'],
  ['leader.replication.throttled.replicas', 'abc'], ['flush.messages', '0'], ['flush.messages', '1'], ['flush.ms', '-1'],
  ['index.interval.bytes', '-1'], ['segment.index.bytes', '3'], ['segment.jitter.ms', '-1'], ['delete.retention.ms', '-1'],
  ['file.delete.delay.ms', '-1'], ['min.compaction.lag.ms', '-1'], ['max.compaction.lag.ms', '0'], ['retention.ms', null],
  ['internal.segment.bytes', '1000'], ['follower.replication.throttled.replicas', ''], ['message.format.version', '3.0'],
  ['remote.log.copy.disable', 'true'], ['remote.log.delete.on.disable', 'true'], ['num.partitions', '3'],
] // biome-ignore format: a table

async function created(twin: Twin): Promise<void> {
  const version7 = await twin.call(API.CreateTopics, 7, {
    topics: [
      {
        name: 't-full',
        numPartitions: 3,
        replicationFactor: 1,
        configs: configList({ 'retention.ms': '5000', 'cleanup.policy': 'compact' }),
      },
      { name: 't-default', numPartitions: -1, replicationFactor: -1 },
      {
        name: 't-by-hand',
        numPartitions: -1,
        replicationFactor: -1,
        assignments: [
          { partitionIndex: 0, brokerIds: [1] },
          { partitionIndex: 1, brokerIds: [1] },
        ],
      },
    ],
    ...TIMEOUT,
  })
  const id = pick(version7, answer => answer.topics.find(topic => topic.name === 't-full')?.topicId, NO_ID)
  await untilThere(twin, 't-full', 3)
  await untilThere(twin, 't-default', 3)
  await untilThere(twin, 't-by-hand', 2)
  for (const version of twin.versionsOf(API.CreateTopics)) {
    const name = `t-v${version}`
    const configs = configList({ 'segment.bytes': '2000000', preallocate: 'false' })
    await twin.call(API.CreateTopics, version, {
      topics: [{ name, numPartitions: 2, replicationFactor: 1, configs }],
      ...TIMEOUT,
    })
    await untilThere(twin, name, 2)
  }
  await twin.vary(API.CreateTopics, 150, {
    topics: [
      {
        name: 't-full',
        numPartitions: 1,
        replicationFactor: 1,
        configs: [{ name: 'retention.ms', value: '1' }],
        assignments: [],
      },
      { name: 't-new', numPartitions: 1, replicationFactor: 1, assignments: [] },
    ],
    validateOnly: true,
    ...TIMEOUT,
  })

  await twin.call(API.Metadata, 3, { topics: [{ name: 't-asked' }] })
  await untilThere(twin, 't-asked', 3)
  await twin.everyVersion(API.Metadata, (_, version) => ({
    topics: [
      { name: 't-full' },
      { name: version < 4 ? 't-asked' : 't-none' },
      { name: 't-default' },
      { name: '' },
      { name: 'a b' },
    ],
    allowAutoTopicCreation: version < 4,
    includeTopicAuthorizedOperations: version >= 8,
    includeClusterAuthorizedOperations: version >= 8 && version <= 10,
  }))
  for (const version of twin.versionsOf(API.Metadata, 10)) {
    const ask = (topics: (side: 0 | 1) => { topicId?: string; name?: string | null }[]) =>
      twin.call(API.Metadata, version, side => ({ topics: topics(side), allowAutoTopicCreation: false }))
    await ask(side => [{ topicId: id[side], name: null }])
    await ask(() => [{ topicId: UNKNOWN_ID, name: null }])
    await ask(() => [{ topicId: NO_ID, name: null }])
    await ask(side => [{ topicId: id[side], name: 't-default' }])
    await ask(side => [
      { topicId: id[side], name: null },
      { topicId: UNKNOWN_ID, name: null },
    ])
    await ask(side => [
      { topicId: id[side], name: null },
      { topicId: id[side], name: null },
    ])
  }
  for (const name of ['t-full', 't-asked', '', 'a b']) {
    for (const version of [0, 1, 4, 8, 12])
      await twin.call(API.Metadata, version, { topics: [{ name }, { name }], allowAutoTopicCreation: version < 4 })
  }
  await twin.vary(
    API.Metadata,
    120,
    { topics: [{ name: 't-full' }, { name: 't-v3' }], allowAutoTopicCreation: false },
    4,
  )
}

async function partitions(twin: Twin): Promise<void> {
  await createTopic(twin, 't-grow', 2)
  for (const version of twin.versionsOf(API.CreatePartitions)) {
    const grow = (
      count: number,
      assignments: { brokerIds: number[] }[] | null = null,
      validateOnly = true,
      name = 't-grow',
    ) => twin.call(API.CreatePartitions, version, { topics: [{ name, count, assignments }], validateOnly, ...TIMEOUT })
    for (const count of [-1, 0, 1, 2, 3, 4, 20_000]) await grow(count)
    await grow(3, [{ brokerIds: [1] }])
    await grow(4, [{ brokerIds: [1] }])
    await grow(3, [{ brokerIds: [] }])
    await grow(3, [{ brokerIds: [1, 1] }])
    await grow(3, [{ brokerIds: [5] }])
    await grow(3, [{ brokerIds: [1, 5] }])
    await grow(3, [])
    await grow(3, null, true, 't-none')
    await grow(3, null, true, '')
    await grow(100, null, true, '__consumer_offsets')
    const one = { name: 't-grow', count: 3, assignments: null }
    await twin.call(API.CreatePartitions, version, { topics: [one, one], ...TIMEOUT })
    await twin.call(API.CreatePartitions, version, { topics: [], ...TIMEOUT })
  }
  await twin.call(API.CreatePartitions, 3, { topics: [{ name: 't-grow', count: 4, assignments: null }], ...TIMEOUT })
  await untilThere(twin, 't-grow', 4)
  await twin.vary(API.CreatePartitions, 60, {
    topics: [
      { name: 't-grow', count: 5, assignments: [{ brokerIds: [1] }] },
      { name: 't-v4', count: 3, assignments: null },
    ],
    validateOnly: true,
    ...TIMEOUT,
  })

  const describe = (
    names: string[],
    responsePartitionLimit = 2000,
    cursor: { topicName: string; partitionIndex: number } | null = null,
  ) =>
    twin.call(API.DescribeTopicPartitions, 0, { topics: names.map(name => ({ name })), responsePartitionLimit, cursor })
  await describe(['t-grow', 't-none', 't-full', ''])
  await describe(['t-grow', 't-grow'])
  for (const limit of [-1, 0, 1, 2, 3, 5, 2001]) await describe(['t-full', 't-grow', 't-by-hand'], limit)
  for (const [topicName, partitionIndex] of [
    ['t-grow', 2],
    ['t-grow', 0],
    ['t-grow', 9],
    ['t-grow', -1],
    ['t-g', 0],
    ['zzz', 0],
    ['', 0],
  ] as const) {
    await describe(['t-full', 't-grow', 't-by-hand'], 3, { topicName, partitionIndex })
  }
  await twin.vary(API.DescribeTopicPartitions, 60, {
    topics: [{ name: 't-grow' }, { name: 't-full' }],
    responsePartitionLimit: 3,
    cursor: { topicName: 't-full', partitionIndex: 1 },
  })
}

async function deleted(twin: Twin): Promise<void> {
  for (const version of twin.versionsOf(API.DeleteTopics)) {
    const id = await createTopic(twin, 't-gone', 1)
    const byName = (...names: string[]) =>
      version >= 6 ? { topics: names.map(name => ({ name })), ...TIMEOUT } : { topicNames: names, ...TIMEOUT }
    await twin.call(API.DeleteTopics, version, byName('t-none'))
    await twin.call(API.DeleteTopics, version, byName(''))
    await twin.call(API.DeleteTopics, version, byName())
    await twin.call(API.DeleteTopics, version, byName('t-gone', 't-gone'))
    await twin.call(API.DeleteTopics, version, byName('t-none', 'a b'))
    if (version >= 6) {
      const byId = (...topics: { name?: string | null; topicId?: string }[]) =>
        twin.call(API.DeleteTopics, version, { topics, ...TIMEOUT })
      await byId({ name: null, topicId: UNKNOWN_ID })
      await byId({ name: null, topicId: NO_ID })
      await byId({ name: null, topicId: UNKNOWN_ID }, { name: null, topicId: UNKNOWN_ID })
      const both = (side: 0 | 1) => ({ topics: [{ name: 't-gone', topicId: id[side] }], ...TIMEOUT })
      await twin.call(API.DeleteTopics, version, both)
      await twin.call(API.DeleteTopics, version, side => ({
        topics: [{ name: null, topicId: id[side] }, { name: 't-gone' }],
        ...TIMEOUT,
      }))
      await twin.call(API.DeleteTopics, version, side => ({ topics: [{ name: null, topicId: id[side] }], ...TIMEOUT }))
    } else await twin.call(API.DeleteTopics, version, byName('t-gone', 't-none'))
    await untilGone(twin, 't-gone')
    await twin.call(API.DeleteTopics, version, byName('t-gone'))
  }
  await twin.vary(API.DeleteTopics, 60, {
    topics: [{ name: 't-none' }, { name: 't-nil' }],
    topicNames: ['t-none', 't-nil'],
    ...TIMEOUT,
  })
}

export const topics: Situation = {
  name: 'topics',
  async perform(twin) {
    await refused(twin)
    await created(twin)
    await partitions(twin)
    await deleted(twin)
    // Created by asking.
    for (const version of twin.versionsOf(API.Metadata, 4)) {
      await twin.call(API.Metadata, version, { topics: [{ name: `t-auto-${version}` }], allowAutoTopicCreation: true })
      await untilThere(twin, `t-auto-${version}`, 3)
    }
    for (const name of ['a b', '', '..', 'x'.repeat(250)]) {
      await twin.call(API.Metadata, 12, { topics: [{ name }], allowAutoTopicCreation: true })
    }
    await twin.everyVersion(API.Metadata, (_, version) => ({ topics: version === 0 ? [] : null }))
    await twin.everyVersion(API.Metadata, { topics: [], allowAutoTopicCreation: true })
  },
}
