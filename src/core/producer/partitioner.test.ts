import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SeededRandom } from '#base/random.ts'
import { murmur2, partitionForKey } from './murmur2.ts'
import { StickyPartitioner } from './partitioner.ts'

test('murmur2 gives what other clients of Kafka give', () => {
  const known: [string, number][] = [
    ['21', -973932308],
    ['foobar', -790332482],
    ['a-little-bit-long-string', -985981536],
    ['a-little-bit-longer-string', -1486304829],
    ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
    ['abc', 479470107],
  ]
  for (const [text, hash] of known) assert.equal(murmur2(Buffer.from(text)), hash, text)
  assert.equal(partitionForKey(Buffer.from('foobar'), 1000), (-790332482 & 0x7fff_ffff) % 1000)
})

test('a partition is kept until its batch is full, and at most for two', () => {
  const random = new SeededRandom(1)
  const loads = [0, 1, 2, 3].map(partition => ({ partition, queued: 0 }))
  const partitioner = new StickyPartitioner(100)
  const first = partitioner.partition(loads, () => 0)
  partitioner.appended(99, true)
  assert.equal(
    partitioner.partition(loads, () => random.fraction()),
    first,
  )
  partitioner.appended(50, true)
  assert.equal(
    partitioner.partition(loads, () => 0.99),
    first,
    'the batch is still open',
  )
  partitioner.appended(51, true)
  assert.equal(
    partitioner.partition(loads, () => 0.99),
    3,
    'twice the size ends it',
  )
  partitioner.appended(100, false)
  assert.equal(
    partitioner.partition(loads, () => 0),
    0,
  )
})

test('a partition without a leader is left at once', () => {
  const partitioner = new StickyPartitioner(100)
  assert.equal(
    partitioner.partition([{ partition: 5, queued: 0 }], () => 0),
    5,
  )
  assert.equal(
    partitioner.partition([{ partition: 2, queued: 0 }], () => 0),
    2,
  )
})

test('short queues are drawn more often', () => {
  const random = new SeededRandom(3)
  const drawn = [0, 0, 0]
  const loads = [0, 3, 1].map((queued, partition) => ({ partition, queued }))
  for (let round = 0; round < 8000; round++) {
    const partition = new StickyPartitioner(1).partition(loads, () => random.fraction())
    drawn[partition] = (drawn[partition] ?? 0) + 1
  }
  // Of eight parts the queues of 0, 3 and 1 get four, one and three.
  for (const [partition, parts] of [4, 1, 3].entries()) {
    assert.ok(Math.abs((drawn[partition] ?? 0) - parts * 1000) < 200, `${drawn}`)
  }
})
