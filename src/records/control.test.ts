import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as batch from './batch.ts'
import { buildControlBatch, buildEndMarker, controlKey, controlTypeOf, coordinatorEpochOf } from './control.ts'
import { recordsOf } from './records.ts'

test('an end marker has its producer, no sequence, and the coordinator epoch', () => {
  const marker = { producerId: 8, producerEpoch: 2, coordinatorEpoch: 77, timestamp: 1000 }
  for (const type of ['commit', 'abort'] as const) {
    const view = new batch.BatchView(buildEndMarker({ type, ...marker }, { baseOffset: 5 }))
    assert.deepEqual([view.isControl, view.isTransactional], [true, true])
    assert.deepEqual([view.producerId, view.producerEpoch, view.baseSequence, view.lastSequence], [8, 2, -1, -1])
    const [record] = [...recordsOf(view.buffer)]
    assert.equal(controlTypeOf(record?.key ?? null), type)
    assert.equal(coordinatorEpochOf(record?.value ?? null), 77)
  }
})

test('a batch of raft holds several control records', () => {
  const value = Buffer.from([0, 1])
  const types = ['leaderChange', 'snapshotHeader', 'kraftVersion', 'kraftVoters', 'snapshotFooter'] as const
  const bytes = buildControlBatch(
    { baseOffset: 3, leaderEpoch: 4, timestamp: 9 },
    types.map(type => ({ type, value })),
  )
  assert.deepEqual([batch.isControl(bytes, 0), batch.isTransactional(bytes, 0)], [true, false])
  assert.deepEqual(
    [...recordsOf(bytes)].map(({ key }) => controlTypeOf(key)),
    [...types],
  )
})

test('unknown keys and values are no error', () => {
  for (const key of [null, Buffer.alloc(3), Buffer.from([0, 0, 0, 99]), Buffer.from([0xff, 0xff, 0, 0])]) {
    assert.equal(controlTypeOf(key), undefined)
  }
  assert.equal(controlTypeOf(Buffer.concat([controlKey('abort'), Buffer.alloc(2)])), 'abort')
  for (const value of [null, Buffer.alloc(5), Buffer.alloc(6, 0xff)]) assert.equal(coordinatorEpochOf(value), undefined)
})
