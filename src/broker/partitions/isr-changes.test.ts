import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { IsrProposal } from '#core/partition/in-sync-replicas.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { LinesLogger, ManualClock } from '#storage/testing/rig.ts'
import { IsrChanges, type IsrChangesOptions } from './isr-changes.ts'
import type { Partition } from './partition.ts'

/** As the controller has it (core/metadata/topics). */
const REQUEST_ELEMENTS_MAX = 65_536

interface Request {
  readonly topics: readonly {
    readonly topicId: string
    readonly partitions: readonly { readonly partitionIndex: number; readonly newIsrWithEpochs: readonly object[] }[]
  }[]
}

test('no request for changes of who is in sync is larger than a controller takes, however many replicas there are', async () => {
  const sizes: number[] = []
  const link = {
    ask: (_: object, { topics }: Request) => {
      let elements = 0
      for (const { partitions } of topics) {
        elements++
        for (const { newIsrWithEpochs } of partitions) elements += 1 + newIsrWithEpochs.length
      }
      sizes.push(elements)
      const isTooLarge = elements > REQUEST_ELEMENTS_MAX
      return Promise.resolve(
        isTooLarge
          ? { errorCode: ErrorCode.POLICY_VIOLATION, topics: [] }
          : {
              errorCode: ErrorCode.NONE,
              topics: topics.map(({ topicId, partitions }) => ({
                topicId,
                partitions: partitions.map(({ partitionIndex }) => ({ partitionIndex, errorCode: ErrorCode.NONE })),
              })),
            },
      )
    },
    rest: () => new Promise<void>(resolve => setImmediate(resolve)),
  }
  const options = { nodeId: 1, link, clock: new ManualClock(), log: new LinesLogger(), brokerEpoch: () => 7 }
  const changes = new IsrChanges(options as unknown as IsrChangesOptions)
  let answered = 0
  const isr = Array.from({ length: 20 }, (_, id) => ({ brokerId: id + 1, brokerEpoch: 7 }))
  for (let index = 0; index < 6000; index++) {
    const partition = {
      topicId: `topic ${index}`,
      topic: 't',
      index,
      leads: true,
      leaderEpoch: 3,
      gone: false,
      isrAnswered: () => answered++,
    } as unknown as Partition
    changes.propose(partition, { isr, leaderEpoch: 3, partitionEpoch: 1 } as unknown as IsrProposal)
  }
  for (let turn = 0; turn < 100 && answered < 6000; turn++) await new Promise(setImmediate)
  changes.stop()
  assert.equal(answered, 6000)
  assert.ok(
    sizes.every(size => size <= REQUEST_ELEMENTS_MAX),
    sizes.join(),
  )
})

test('what the controller refuses for now is asked again at once, and then not as fast as it is refused', async () => {
  const rests: number[] = []
  let left = 5
  const link = {
    ask: (_: object, { topics }: Request) => {
      // As a whole while it knows of another life of this broker, and then each by itself.
      const errorCode = left > 2 ? ErrorCode.STALE_BROKER_EPOCH : ErrorCode.NONE
      const of = left-- > 0 ? ErrorCode.UNKNOWN_SERVER_ERROR : ErrorCode.NONE
      const answers = topics.map(({ topicId, partitions }) => ({
        topicId,
        partitions: partitions.map(({ partitionIndex }) => ({ partitionIndex, errorCode: of })),
      }))
      return Promise.resolve({ errorCode, topics: errorCode === ErrorCode.NONE ? answers : [] })
    },
    rest: (ms = 0) => {
      rests.push(ms)
      return Promise.resolve()
    },
  }
  const options = { nodeId: 1, link, clock: new ManualClock(), log: new LinesLogger(), brokerEpoch: () => 7 }
  const changes = new IsrChanges(options as unknown as IsrChangesOptions)
  let answered = 0
  const partition = {
    topicId: 'topic',
    topic: 't',
    index: 0,
    leads: true,
    leaderEpoch: 3,
    gone: false,
    isrAnswered: () => answered++,
  } as unknown as Partition
  const isr = [{ brokerId: 1, brokerEpoch: 7 }]
  changes.propose(partition, { isr, leaderEpoch: 3, partitionEpoch: 1 } as unknown as IsrProposal)
  for (let turn = 0; turn < 100 && answered === 0; turn++) await new Promise(setImmediate)
  changes.stop()
  assert.equal(answered, 1)
  assert.deepEqual(rests, [0, 50, 50, 50, 50])
})
