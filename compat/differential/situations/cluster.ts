import { API } from '#protocol/apis.ts'
import { batchOf, createTopic, produce, type Situation } from './tools.ts'

const TIMEOUT = { timeoutMs: 20_000 }

export const cluster: Situation = {
  name: 'cluster',
  async perform(twin) {
    await createTopic(twin, 'k-plain', 2)
    await produce(twin, 'k-plain', batchOf(10), batchOf(2, { compression: 'gzip' }))
    for (const version of twin.versionsOf(API.DescribeCluster)) {
      for (const includeClusterAuthorizedOperations of [false, true]) {
        await twin.call(API.DescribeCluster, version, { includeClusterAuthorizedOperations })
      }
      if (version >= 1)
        for (const endpointType of [0, 1, 2, 3]) await twin.call(API.DescribeCluster, version, { endpointType })
      if (version >= 2) await twin.call(API.DescribeCluster, version, { includeFencedBrokers: true })
    }
    await twin.everyVersion(API.DescribeLogDirs, { topics: [{ topic: 'k-plain', partitions: [0, 1] }] })
    await twin.everyVersion(API.DescribeLogDirs, {
      topics: [
        { topic: 'k-plain', partitions: [1, 7, -1] },
        { topic: 'k-none', partitions: [0] },
      ],
    })
    await twin.everyVersion(API.DescribeLogDirs, { topics: [] })
    await twin.everyVersion(API.DescribeLogDirs, { topics: [{ topic: 'k-plain', partitions: [] }] })
    await twin.vary(API.DescribeLogDirs, 50, {
      topics: [
        { topic: 'k-plain', partitions: [0] },
        { topic: 'k-none', partitions: [0] },
      ],
    })
    const metadata = '__cluster_metadata'
    await twin.everyVersion(API.DescribeQuorum, {
      topics: [{ topicName: metadata, partitions: [{ partitionIndex: 0 }] }],
    })
    for (const [topicName, partitionIndex] of [
      [metadata, 1],
      ['k-plain', 0],
      ['', 0],
    ] as const) {
      await twin.everyVersion(API.DescribeQuorum, { topics: [{ topicName, partitions: [{ partitionIndex }] }] })
    }
    await twin.everyVersion(API.DescribeQuorum, { topics: [] })
    for (const version of twin.versionsOf(API.UpdateFeatures)) {
      const update = (feature: string, maxVersionLevel: number, options: object = {}) =>
        twin.call(API.UpdateFeatures, version, {
          featureUpdates: [{ feature, maxVersionLevel, ...options }],
          ...(version >= 1 && { validateOnly: true }),
          ...TIMEOUT,
        })
      // Version 0 cannot only ask: there, what is refused in any case.
      await update('no.such.feature', 1)
      await update('metadata.version', 1)
      await update('metadata.version', 0)
      await update('', 1)
      await update('metadata.version', 999)
      await update('group.version', -1)
      if (version >= 1) {
        for (const upgradeType of [0, 1, 2, 3, 4, -1]) await update('group.version', 1, { upgradeType })
        for (const level of [0, 1, 2, 3])
          for (const upgradeType of [1, 2, 3]) await update('transaction.version', level, { upgradeType })
        await update('group.version', 0, { upgradeType: 2 })
        await update('kraft.version', 1)
        await update('metadata.version', 20, { upgradeType: 2 })
      }
      await twin.call(API.UpdateFeatures, version, { featureUpdates: [], ...TIMEOUT })
      const one = { feature: 'no.such.feature', maxVersionLevel: 1 }
      await twin.call(API.UpdateFeatures, version, { featureUpdates: [one, one], ...TIMEOUT })
    }
    for (const version of twin.versionsOf(API.ElectLeaders)) {
      const elect = (topic: string, partitions: number[], electionType = 0) =>
        twin.call(API.ElectLeaders, version, {
          topicPartitions: [{ topic, partitions }],
          ...(version >= 1 && { electionType }),
          ...TIMEOUT,
        })
      for (const electionType of version >= 1 ? [0, 1, 2, -1] : [0]) {
        await elect('k-plain', [0, 1], electionType)
        await elect('k-plain', [7, -1], electionType)
        await elect('k-none', [0], electionType)
      }
      await twin.call(API.ElectLeaders, version, { topicPartitions: [], ...TIMEOUT })
      await twin.call(API.ElectLeaders, version, { topicPartitions: null, ...TIMEOUT })
    }
    for (const version of twin.versionsOf(API.AlterPartitionReassignments)) {
      for (const replicas of [[1], null, [], [1, 1], [2], [1, 2], [-1]]) {
        for (const partitionIndex of [0, 9, -1]) {
          await twin.call(API.AlterPartitionReassignments, version, {
            topics: [{ name: 'k-plain', partitions: [{ partitionIndex, replicas }] }],
            ...TIMEOUT,
          })
        }
        await twin.call(API.AlterPartitionReassignments, version, {
          topics: [{ name: 'k-none', partitions: [{ partitionIndex: 0, replicas }] }],
          ...TIMEOUT,
        })
      }
      await twin.call(API.AlterPartitionReassignments, version, { topics: [], ...TIMEOUT })
    }
    await twin.everyVersion(API.ListPartitionReassignments, { topics: null, ...TIMEOUT })
    await twin.everyVersion(API.ListPartitionReassignments, {
      topics: [
        { name: 'k-plain', partitionIndexes: [0, 9] },
        { name: 'k-none', partitionIndexes: [0] },
      ],
      ...TIMEOUT,
    })
  },
}
