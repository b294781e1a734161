import assert from 'node:assert/strict'
import { test } from 'node:test'
import { joined, portionsOf } from './portions.ts'

interface Topic {
  readonly name: string
  readonly partitions: readonly number[]
}

const split = (topics: readonly Topic[]) => [
  ...portionsOf(
    topics,
    ({ partitions }) => partitions,
    (topic, partitions) => ({ ...topic, partitions }),
  ),
]
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index)

test('portions of any request are bounded, and joined again they are what was asked', () => {
  const requests: Topic[][] = [
    [],
    [{ name: 'empty', partitions: [] }],
    [{ name: 'one', partitions: [0] }],
    ...[1998, 1999, 2000, 2001, 3999, 4000, 4001, 20_000].map(count => [{ name: 'large', partitions: upTo(count) }]),
    upTo(5001).map(index => ({ name: `topic-${index}`, partitions: upTo(index % 3) })),
    [
      { name: 'a', partitions: upTo(1999) },
      { name: 'b', partitions: [] },
      { name: 'c', partitions: upTo(4000) },
    ],
  ]
  for (const topics of requests) {
    const portions = split(topics)
    assert.ok(portions.length > 0)
    for (const { topics: portion } of portions) {
      const size = portion.reduce((sum, { partitions }) => sum + partitions.length, 0)
      assert.ok(size <= 2000 && portion.length <= 2000, `${size} partitions of ${portion.length} topics`)
    }
    assert.deepEqual(joined<number, Topic>(portions), topics)
  }
})
