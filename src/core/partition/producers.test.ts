import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stamp } from '#records/batch.ts'
import { BatchBuilder } from '#records/builder.ts'
import { ProducerRoom } from './producer-room.ts'
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

/** What a client sends that makes a producer for each batch. */
function lonely(offset: number, id: number, sequence = 0): Buffer {
  const builder = new BatchBuilder({ producerId: id, producerEpoch: 0, baseSequence: sequence })
  builder.append(1000, null, Buffer.from('v'))
  const bytes = builder.build()
  stamp(bytes, 0, offset, 0)
  return bytes
}

test('of too many producers those are forgotten that have been idle for longest, and may go on with any sequence', () => {
  const room = new ProducerRoom()
  const states = new ProducerStates(room, 4)
  let offset = 0
  for (let id = 100; id < 200; id++) {
    states.apply(lonely(offset++, id), 0)
    states.apply(batch(offset, offset - 1 - (id - 100)), 0) // producer 9 goes on all the while
    offset++
  }
  assert.equal(states.size, 4)
  assert.equal(room.count, 4)
  assert.equal(states.check(batch(0, 99), 0).kind, 'duplicate')
  assert.equal(states.check(batch(0, 101), 0).kind, 'refused')
  assert.equal(states.check(lonely(0, 199), 0).kind, 'duplicate')
  assert.equal(states.check(lonely(0, 196), 0).kind, 'new')
  assert.equal(states.check(lonely(0, 196, 77), 0).kind, 'new')
})

test('who folds the same log knows the same producers, from its beginning or from a snapshot in any order', () => {
  const whole = new ProducerStates(undefined, 4)
  for (let offset = 0; offset < 10; offset++) {
    whole.admit(lonely(offset, offset % 7), 0)
    whole.stored(offset + 1)
  }
  const entries = whole.snapshot(10)
  const restored = new ProducerStates(undefined, 4)
  restored.restore(entries.toReversed())
  const follower = new ProducerStates(undefined, 4)
  for (let offset = 0; offset < 10; offset++) follower.apply(lonely(offset, offset % 7), 0)
  for (let offset = 10; offset < 13; offset++) {
    for (const states of [whole, restored, follower]) states.apply(lonely(offset, offset), 0)
    assert.deepEqual(restored.snapshot(20), whole.snapshot(20))
    assert.deepEqual(follower.snapshot(20), whole.snapshot(20))
  }
})

test('nobody is forgotten of whom something is under way or whose transaction is open', () => {
  const states = new ProducerStates(undefined, 2)
  const none = { epoch: 0, lastSequence: -1, lastOffset: -1, offsetDelta: 0, timestamp: 0, coordinatorEpoch: 0 }
  states.restore([{ ...none, producerId: 1, currentTxnFirstOffset: 3 }])
  for (let id = 10; id < 20; id++) states.admit(lonely(id, id), 0)
  assert.equal(states.size, 11)
  states.stored(100)
  for (let id = 20; id < 40; id++) states.apply(lonely(100 + id, id), 0)
  assert.ok(states.snapshot(1000).some(({ producerId }) => producerId === 1))
})

test('beyond what a broker has room for, the partition with the most producers forgets', () => {
  const room = new ProducerRoom(10)
  const quiet = new ProducerStates(room)
  const flooded = new ProducerStates(room)
  for (let id = 0; id < 3; id++) quiet.apply(lonely(id, id), 0)
  for (let id = 0; id < 1000; id++) flooded.apply(lonely(id, id), 0)
  assert.deepEqual([quiet.size, flooded.size, room.count], [3, 7, 10])
  flooded.expire(2000)
  assert.equal(room.count, 3)
  quiet.leaveRoom()
  assert.equal(room.count, 0)
  quiet.apply(lonely(5, 5), 0)
  assert.deepEqual([quiet.size, room.count], [4, 0])
})
