import { API } from '#protocol/apis.ts'
import type { Twin } from '../twin.ts'
import { batchOf, createTopic, produce, type Situation, T0 } from './tools.ts'

const TIMES = [
  -1,
  -2,
  -3,
  -4,
  -5,
  -6,
  -7,
  -100,
  0,
  T0 - 1,
  T0,
  T0 + 1,
  T0 + 7,
  T0 + 25,
  T0 + 49,
  T0 + 50,
  T0 + 150,
  T0 + 1000,
  2 ** 52,
]

async function everyTime(twin: Twin, name: string): Promise<void> {
  for (const version of twin.versionsOf(API.ListOffsets)) {
    for (const timestamp of TIMES) {
      for (const isolationLevel of version >= 2 ? [0, 1] : [0]) {
        await twin.call(API.ListOffsets, version, {
          replicaId: -1,
          isolationLevel,
          topics: [{ name, partitions: [{ partitionIndex: 0, timestamp }] }],
        })
      }
    }
  }
}

export const listOffsets: Situation = {
  name: 'list offsets',
  async perform(twin) {
    await createTopic(twin, 'l-times', 3)
    await everyTime(twin, 'l-times')
    await produce(twin, 'l-times', batchOf(50, { compression: 'gzip' }))
    await produce(twin, 'l-times', batchOf(10, {}, T0 + 200))
    // Back in time, then on.
    await produce(twin, 'l-times', batchOf(10, { compression: 'zstd' }, T0 + 100))
    await produce(twin, 'l-times', batchOf(3, {}, T0 + 199, -1))
    await everyTime(twin, 'l-times')
    await twin.call(API.DeleteRecords, 2, {
      topics: [{ name: 'l-times', partitions: [{ partitionIndex: 0, offset: 20 }] }],
      timeoutMs: 20_000,
    })
    await everyTime(twin, 'l-times')
    for (const version of twin.versionsOf(API.ListOffsets)) {
      const ask = (
        ...topics: {
          name: string
          partitions: { partitionIndex: number; timestamp: number; currentLeaderEpoch?: number }[]
        }[]
      ) => twin.call(API.ListOffsets, version, { replicaId: -1, topics })
      const of = (partitionIndex: number, timestamp = -1) => ({ partitionIndex, timestamp })
      await ask()
      await ask({ name: 'l-times', partitions: [of(0), of(0)] })
      await ask({ name: 'l-times', partitions: [of(0, -2), of(0, -1), of(1)] })
      await ask({ name: 'l-times', partitions: [of(0)] }, { name: 'l-times', partitions: [of(0)] })
      await ask({ name: 'l-none', partitions: [of(0)] })
      await ask({ name: 'l-none', partitions: [of(0, -3), of(1, -4), of(2, -5), of(3, -6), of(4, -9)] })
      await ask({ name: 'l-none', partitions: [of(0), of(0)] })
      await ask({ name: '', partitions: [of(0)] })
      await ask({ name: 'l-times', partitions: [of(3), of(-1), of(2)] })
      await ask({ name: 'l-times', partitions: [] })
      if (version >= 4)
        for (const currentLeaderEpoch of [0, 1, -1])
          await ask({ name: 'l-times', partitions: [{ ...of(0), currentLeaderEpoch }] })
      for (const replicaId of [-2, 1])
        await twin.call(API.ListOffsets, version, {
          replicaId,
          topics: [{ name: 'l-times', partitions: [of(0), of(1, -3)] }],
        })
    }
    await createTopic(twin, 'l-append', 1, { 'message.timestamp.type': 'LogAppendTime' })
    await produce(twin, 'l-append', batchOf(5))
    await produce(twin, 'l-append', batchOf(5, { compression: 'snappy' }))
    await everyTime(twin, 'l-append')
    await twin.vary(API.ListOffsets, 250, {
      replicaId: -1,
      topics: [
        {
          name: 'l-times',
          partitions: [
            { partitionIndex: 0, timestamp: -1 },
            { partitionIndex: 1, timestamp: T0 },
          ],
        },
        { name: 'l-append', partitions: [{ partitionIndex: 0, timestamp: T0 }] },
      ],
    })
    for (const version of twin.versionsOf(API.DeleteRecords)) {
      for (const offset of [-2, -1, 0, 3, 4, 4, 2, 100]) {
        await twin.call(API.DeleteRecords, version, {
          topics: [{ name: 'l-append', partitions: [{ partitionIndex: 0, offset }] }],
          timeoutMs: 20_000,
        })
      }
      await produce(twin, 'l-append', batchOf(5))
      const one = { partitionIndex: 0, offset: 0 }
      await twin.call(API.DeleteRecords, version, {
        topics: [
          { name: 'l-append', partitions: [one, one, { partitionIndex: 4, offset: 0 }] },
          { name: 'l-none', partitions: [one] },
          { name: '', partitions: [one] },
        ],
        timeoutMs: 20_000,
      })
      await twin.call(API.DeleteRecords, version, { topics: [], timeoutMs: 20_000 })
    }
    await twin.vary(API.DeleteRecords, 60, {
      topics: [{ name: 'l-append', partitions: [{ partitionIndex: 0, offset: 3 }] }],
      timeoutMs: 20_000,
    })
  },
}
