import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Turns } from '#network/turns.ts'
import { realClock } from '#world/real/clock.ts'
import { gathered } from './gathered.ts'

test('a partition that is named twice is there once, as it was named last, and known as one that was', async () => {
  const of = (partitionIndex: number, offset: number) => ({ partitionIndex, offset })
  const topics = [
    { name: 'a', partitions: [of(1, 10), of(0, 11)] },
    { name: 'empty', partitions: [] },
    { name: 'b', partitions: [of(0, 12)] },
    { name: 'a', partitions: [of(2, 13), of(1, 14)] },
  ]
  const found = await gathered(topics, new Turns(realClock).pieces())
  assert.deepEqual(
    found.map(({ name, partitions, twice }) => [name, [...partitions.values()], [...twice]]),
    [
      ['a', [of(1, 14), of(0, 11), of(2, 13)], [1]],
      ['b', [of(0, 12)], []],
    ],
  )
})
