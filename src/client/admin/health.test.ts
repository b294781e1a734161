import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Topic } from '../metadata.ts'
import { healthOf } from './health.ts'

const topicOf = (name: string, partitions: readonly (readonly [leader: number, replicas: number[], isr: number[]])[]) =>
  ({
    name,
    id: '',
    internal: false,
    partitions: partitions.map(([leader, replicas, isr], partition) => ({
      partition,
      leader,
      leaderEpoch: 0,
      replicas,
      isr,
      offline: [],
    })),
  }) satisfies Topic

test('partitions are counted by what is wrong with them', () => {
  const health = healthOf(
    [
      topicOf('a', [
        [1, [1, 2, 3], [1, 2, 3]],
        [3, [2, 3, 1], [3]],
        [-1, [3, 1, 2], []],
      ]),
      topicOf('b', [[2, [2], [2]]]),
    ],
    new Map([['a', 2]]),
  )
  assert.deepEqual([health.topics, health.partitions, health.replicas], [2, 4, 10])
  assert.deepEqual(health.offline, [{ topic: 'a', partition: 2 }])
  assert.deepEqual(
    health.underMinIsr.map(({ partition }) => partition),
    [1, 2],
  )
  assert.deepEqual(
    health.underReplicated.map(({ partition }) => partition),
    [1, 2],
  )
  assert.deepEqual(health.notPreferred, [{ topic: 'a', partition: 1, electable: false }])
  assert.deepEqual(health.brokers.get(2), { leads: 1, replicas: 4, preferred: 2, behind: 2 })
  assert.deepEqual(health.brokers.get(3), { leads: 1, replicas: 3, preferred: 1, behind: 1 })
})

test('one replica may be fewer than min.insync.replicas while nothing is behind', () => {
  const health = healthOf([topicOf('a', [[1, [1], [1]]])], new Map([['a', 2]]))
  assert.deepEqual([health.underMinIsr.length, health.underReplicated.length], [1, 0])
})

test('what a reassignment adds is not missing, and who is in sync can be elected', () => {
  const topics = [topicOf('a', [[1, [2, 1, 3], [1, 2]]])]
  const health = healthOf(topics, new Map(), [{ topic: 'a', partition: 0, adding: [3] }])
  assert.deepEqual(health.underReplicated, [])
  assert.deepEqual(health.notPreferred, [{ topic: 'a', partition: 0, electable: true }])
  assert.equal(healthOf(topics, new Map()).underReplicated.length, 1)
})
