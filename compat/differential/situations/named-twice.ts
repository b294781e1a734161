import { API } from '#protocol/apis.ts'
import { batchOf, createTopic, produce, type Situation, untilThere } from './tools.ts'

const TIMEOUT = { timeoutMs: 20_000 }
const GROUP = { groupId: 'n-group', generationIdOrMemberEpoch: -1, memberId: '' }

/**
 * The same topic or partition twice in one request: side by side, with something between, and in one topic or two. What
 * such a request does is compared by what both say afterwards.
 */
export const namedTwice: Situation = {
  name: 'named twice',
  async perform(twin) {
    await twin.settle(API.FindCoordinator, 2, { key: 'n', keyType: 0 }, answer => answer.errorCode === 0)
    await untilThere(twin, '__consumer_offsets', 50)
    const ids = await createTopic(twin, 'n-one', 2)
    const otherIds = await createTopic(twin, 'n-two', 1)
    await produce(twin, 'n-one', batchOf(10), batchOf(10))
    await produce(twin, 'n-two', batchOf(10))
    /** Of an array of topics, how one can be named twice. */
    const ways = <T>(topic: (name: string, ...partitions: number[]) => T): T[][] => [
      [topic('n-one', 0, 0)],
      [topic('n-one', 0, 1, 0)],
      [topic('n-one', 0), topic('n-one', 0)],
      [topic('n-one', 0), topic('n-one', 1)],
      [topic('n-one', 0), topic('n-two', 0), topic('n-one', 0)],
      [topic('n-one', 0), topic('n-two', 0), topic('n-one', 1)],
      [topic('n-none', 0, 0)],
      [topic('n-none', 0), topic('n-none', 1)],
      [topic('n-one', 7, 7)],
      [topic('n-one', 0), topic('n-one')],
    ]
    const ends = async () => {
      for (const [name, partitions] of [
        ['n-one', 2],
        ['n-two', 1],
      ] as const)
        for (const timestamp of [-1, -2])
          for (let partitionIndex = 0; partitionIndex < partitions; partitionIndex++)
            await twin.call(API.ListOffsets, 7, {
              replicaId: -1,
              topics: [{ name, partitions: [{ partitionIndex, timestamp }] }],
            })
    }

    for (const version of twin.versionsOf(API.Produce, 7, 12)) {
      for (const acks of [-1, 1])
        for (const topicData of ways((name, ...indexes) => ({
          name,
          partitionData: indexes.map((index, nth) => ({ index, records: batchOf(nth + 1) })),
        })))
          await twin.call(API.Produce, version, { acks, ...TIMEOUT, topicData })
      await ends()
    }
    for (const version of twin.versionsOf(API.Fetch, 4)) {
      const names = { 'n-one': ids, 'n-two': otherIds } as Record<string, readonly [string, string]>
      for (const index of ways(() => 0).keys())
        for (const sessionEpoch of version >= 7 ? [-1, 0] : [-1])
          await twin.call(API.Fetch, version, side => ({
            replicaId: -1,
            maxWaitMs: 0,
            minBytes: 0,
            maxBytes: 1 << 20,
            sessionEpoch,
            topics: ways((name, ...partitions) => ({
              ...(version >= 13 ? { topicId: names[name]?.[side] ?? 'bm8tc3VjaC10b3BpYy1pZA' } : { topic: name }),
              partitions: partitions.map((partition, nth) => ({
                partition,
                fetchOffset: nth,
                partitionMaxBytes: 1 << 20,
              })),
            }))[index] as never,
          }))
    }
    for (const version of twin.versionsOf(API.ListOffsets))
      for (const topics of ways((name, ...indexes) => ({
        name,
        partitions: indexes.map((partitionIndex, nth) => ({ partitionIndex, timestamp: -1 - (nth % 2) })),
      })))
        await twin.call(API.ListOffsets, version, { replicaId: -1, topics })
    for (const version of twin.versionsOf(API.OffsetForLeaderEpoch, 2))
      for (const topics of ways((topic, ...indexes) => ({
        topic,
        partitions: indexes.map(partition => ({ partition, leaderEpoch: 0 })),
      })))
        await twin.call(API.OffsetForLeaderEpoch, version, { topics })
    for (const version of twin.versionsOf(API.DeleteRecords)) {
      for (const topics of ways((name, ...indexes) => ({
        name,
        partitions: indexes.map((partitionIndex, nth) => ({ partitionIndex, offset: 2 * version + 2 - nth })),
      })))
        await twin.call(API.DeleteRecords, version, { topics, ...TIMEOUT })
      await ends()
    }
    for (const version of twin.versionsOf(API.OffsetCommit, 2, 9))
      for (const topics of ways((name, ...indexes) => ({
        name,
        partitions: indexes.map((partitionIndex, nth) => ({ partitionIndex, committedOffset: nth })),
      }))) {
        await twin.call(API.OffsetCommit, version, { ...GROUP, topics })
        await twin.call(API.OffsetFetch, 7, { groupId: 'n-group', topics: null })
      }
    for (const version of twin.versionsOf(API.OffsetFetch, 1, 7))
      for (const topics of ways((name, ...partitionIndexes) => ({ name, partitionIndexes })))
        await twin.call(API.OffsetFetch, version, { groupId: 'n-group', topics })
    for (const version of twin.versionsOf(API.OffsetFetch, 8, 9))
      for (const topics of ways((name, ...partitionIndexes) => ({ name, partitionIndexes })))
        await twin.call(API.OffsetFetch, version, {
          groups: [
            { groupId: 'n-group', topics },
            { groupId: 'n-group', topics },
          ],
        })
    for (const topics of ways((name, ...indexes) => ({
      name,
      partitions: indexes.map(partitionIndex => ({ partitionIndex })),
    })))
      await twin.everyVersion(API.OffsetDelete, { groupId: 'n-group', topics })
    for (const groups of [
      ['n-group', 'n-group'],
      ['n-group', 'n-none', 'n-group'],
      ['n-none', 'n-none'],
    ]) {
      await twin.everyVersion(API.DescribeGroups, { groups })
      for (const version of twin.versionsOf(API.FindCoordinator, 4))
        await twin.call(API.FindCoordinator, version, { keyType: 0, coordinatorKeys: groups })
      await twin.everyVersion(API.DeleteGroups, { groupsNames: groups })
    }

    for (const topics of ways((topic, ...partitions) => ({ topic, partitions }))) {
      await twin.everyVersion(API.DescribeLogDirs, { topics })
      for (const version of twin.versionsOf(API.ElectLeaders))
        for (const electionType of version >= 1 ? [0, 1] : [0])
          await twin.call(API.ElectLeaders, version, { topicPartitions: topics, electionType, ...TIMEOUT })
    }
    for (const topics of ways((name, ...partitionIndexes) => ({ name, partitionIndexes }))) {
      await twin.everyVersion(API.DescribeProducers, { topics })
      await twin.everyVersion(API.ListPartitionReassignments, { topics, ...TIMEOUT })
    }
    for (const replicas of [[1], null, [], [2]])
      for (const topics of ways((name, ...indexes) => ({
        name,
        partitions: indexes.map(partitionIndex => ({ partitionIndex, replicas })),
      })))
        await twin.everyVersion(API.AlterPartitionReassignments, { topics, ...TIMEOUT })

    const topic = (name: string, numPartitions = 1) => ({ name, numPartitions, replicationFactor: 1 })
    for (const version of twin.versionsOf(API.CreateTopics)) {
      for (const topics of [
        [topic('n-new'), topic('n-new')],
        [topic('n-new'), topic('n-new', 2)],
        [topic('n-new'), topic(`n-between-${version}`), topic('n-new')],
        [topic('n-one'), topic('n-one')],
        [topic('a b'), topic('a b')],
        [topic('n-new'), topic('n-new'), topic('n-new')],
      ])
        await twin.call(API.CreateTopics, version, { topics, ...TIMEOUT })
    }
    const grow = (name: string, count: number) => ({ name, count, assignments: null })
    for (const topics of [
      [grow('n-one', 3), grow('n-one', 3)],
      [grow('n-one', 3), grow('n-one', 4)],
      [grow('n-one', 1), grow('n-two', 1), grow('n-one', 1)],
      [grow('n-none', 3), grow('n-none', 3)],
      [grow('n-none', 3), grow('n-none', 3), grow('n-none', 3)],
    ])
      await twin.everyVersion(API.CreatePartitions, { topics, validateOnly: true, ...TIMEOUT })
    for (const names of [
      ['n-none', 'n-none'],
      ['n-none', 'n-none', 'n-none'],
      ['n-none', 'n-also-none', 'n-none'],
    ]) {
      await twin.everyVersion(API.DeleteTopics, (_, version) => ({
        ...(version >= 6 ? { topics: names.map(name => ({ name })) } : { topicNames: names }),
        ...TIMEOUT,
      }))
      await twin.everyVersion(API.Metadata, (_, version) => ({
        topics: names.map(name => ({ name })),
        allowAutoTopicCreation: version < 4,
      }))
    }

    const resource = (resourceName: string, value = '1') => ({
      resourceType: 2,
      resourceName,
      configs: [{ name: 'retention.ms', configOperation: 0, value }],
    })
    // Kafka never answers AlterConfigs of a resource that is named twice, nor of a key that is.
    for (const resources of [
      [resource('n-one', '5'), resource('n-one', '6')],
      [resource('n-one', '5'), resource('n-two', '6'), resource('n-one', '7')],
      [resource('n-none'), resource('n-none')],
    ]) {
      await twin.everyVersion(API.IncrementalAlterConfigs, { resources, validateOnly: false })
      await twin.everyVersion(API.DescribeConfigs, {
        resources: resources.map(({ resourceName }) => ({
          resourceType: 2,
          resourceName,
          configurationKeys: ['retention.ms'],
        })),
      })
    }
    const [retention] = resource('n-one').configs as [ReturnType<typeof resource>['configs'][0]]
    for (const configs of [
      [retention, retention],
      [retention, { ...retention, configOperation: 1 }],
    ]) {
      const resources = [{ resourceType: 2, resourceName: 'n-one', configs }]
      await twin.everyVersion(API.IncrementalAlterConfigs, { resources, validateOnly: false })
      await twin.everyVersion(API.DescribeConfigs, {
        resources: [{ resourceType: 2, resourceName: 'n-one', configurationKeys: ['retention.ms', 'retention.ms'] }],
      })
    }
  },
}
