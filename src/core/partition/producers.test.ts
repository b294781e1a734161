import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stamp } from '#records/batch.ts'
import { BatchBuilder } from '#records/builder.ts'
import { ProducerStates } from './producers.ts'

function batch(offset: number, sequence: number, count = 1, epoch = 0, timestamp = 1000): Buffer {
  const builder = new BatchBuilder({ producerId: 9, producerEpoch: epoch, baseSequence: sequence })
  for (let i = 0; i < count; i++) builder.append(timestamp, null, Buffer.from('v'))
  const bytes = builder.build()
  stamp(bytes, 0, offset, 0)
  return bytes
}

test('the last five batches are known as repeats, an older one is out of order', () => {
  const states = new ProducerStates()
  for (let i = 0; i < 7; i++) states.apply(batch(i, i), 0)
  assert.deepEqual(states.check(batch(0, 2), 0), { kind: 'duplicate', firstOffset: 2, lastOffset: 2, timestamp: 1000 })
  assert.equal(states.check(batch(0, 1), 0).kind, 'refused')
  assert.equal(states.check(batch(0, 7), 0).kind, 'new')
})

test('sequences wrap from 2147483647 to 0', () => {
  const states = new ProducerStates()
  states.apply(batch(0, 2147483646, 2), 0)
  assert.equal(states.check(batch(0, 0), 0).kind, 'new')
  assert.equal(states.check(batch(0, 1), 0).kind, 'refused')
  const wrapping = new ProducerStates()
  wrapping.apply(batch(0, 2147483647, 3), 0)
  assert.equal(wrapping.check(batch(0, 2), 0).kind, 'new')
  assert.equal(wrapping.check(batch(0, 2147483647, 3), 0).kind, 'duplicate')
})

test('a producer that was forgotten may go on with any sequence', () => {
  const states = new ProducerStates()
  states.apply(batch(0, 0, 1, 0, 1000), 0)
  states.expire(1000)
  assert.equal(states.check(batch(0, 5), 0).kind, 'refused')
  states.expire(1001)
  assert.equal(states.check(batch(0, 5), 0).kind, 'new')
})

test('a snapshot restores the batches that are remembered, and none above its offset', () => {
  const states = new ProducerStates()
  states.apply(batch(0, 0, 3), 0)
  states.admit(batch(3, 3, 2), 0)
  states.admit(batch(5, 5, 1), 0)
  const entries = states.snapshot(5)
  const common = { producerId: 9, epoch: 0, timestamp: 1000, coordinatorEpoch: -1, currentTxnFirstOffset: -1 }
  // The youngest last: Kafka reads one after the other and keeps that.
  assert.deepEqual(entries, [
    { ...common, lastSequence: 2, lastOffset: 2, offsetDelta: 2 },
    { ...common, lastSequence: 4, lastOffset: 4, offsetDelta: 1 },
  ])
  const restored = new ProducerStates()
  restored.restore(entries)
  assert.equal(restored.check(batch(0, 0, 3), 0).kind, 'duplicate')
  assert.equal(restored.check(batch(0, 3, 2), 0).kind, 'duplicate')
  assert.equal(restored.check(batch(0, 5), 0).kind, 'new')
  assert.equal(restored.check(batch(0, 6), 0).kind, 'refused')
})

test('a repeat is known also while a batch of the same sequences and an older epoch is on its way to the log', () => {
  const states = new ProducerStates()
  states.admit(batch(0, 0), 0)
  assert.equal(states.check(batch(1, 0, 1, 1), 0).kind, 'new')
  states.admit(batch(1, 0, 1, 1), 0)
  assert.deepEqual(states.check(batch(0, 0, 1, 1), 0), {
    kind: 'duplicate',
    firstOffset: 1,
    lastOffset: 1,
    timestamp: 1000,
  })
})
