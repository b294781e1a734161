import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DecodeError } from '#base/bytes.ts'
import * as batch from './batch.ts'
import { BatchBuilder, type BatchOptions } from './builder.ts'

function built(options: BatchOptions = {}, records = 3): Buffer {
  const builder = new BatchBuilder(options)
  for (let index = 0; index < records; index++) builder.append(1000 + index, null, Buffer.from(`value ${index}`))
  return builder.build()
}

test('a batch is read in the middle of a buffer', () => {
  const bytes = built({ baseOffset: 40, leaderEpoch: 6, producerId: 2 ** 40, producerEpoch: 5, baseSequence: 9 })
  const buffer = Buffer.concat([Buffer.alloc(7, 0xff), bytes, Buffer.alloc(3)])
  assert.equal(batch.checkBatch(buffer, 7, buffer.length), undefined)
  assert.equal(batch.checkCrc(buffer, 7), undefined)
  const view = new batch.BatchView(buffer, 7)
  assert.equal(view.sizeInBytes, bytes.length)
  assert.deepEqual([view.baseOffset, view.lastOffset, view.leaderEpoch, view.recordsCount], [40, 42, 6, 3])
  assert.deepEqual([view.producerId, view.producerEpoch, view.baseSequence, view.lastSequence], [2 ** 40, 5, 9, 11])
  assert.deepEqual([view.baseTimestamp, view.maxTimestamp, view.timestampType], [1000, 1002, 'CreateTime'])
  assert.deepEqual([view.isControl, view.isTransactional, view.hasDeleteHorizon], [false, false, false])
  assert.ok(view.bytes().equals(bytes))
})

test('stamps of offset and epoch leave the CRC right, the append time renews it', () => {
  const bytes = built()
  const before = batch.crc(bytes, 0)
  batch.stamp(bytes, 0, 2 ** 45 + 3, 17)
  assert.equal(batch.crc(bytes, 0), before)
  assert.equal(batch.checkCrc(bytes, 0), undefined)
  assert.deepEqual([batch.baseOffset(bytes, 0), batch.leaderEpoch(bytes, 0)], [2 ** 45 + 3, 17])
  batch.stampLogAppendTime(bytes, 0, 123_456)
  assert.notEqual(batch.crc(bytes, 0), before)
  assert.equal(batch.checkCrc(bytes, 0), undefined)
  assert.deepEqual([batch.timestampType(bytes, 0), batch.maxTimestamp(bytes, 0)], ['LogAppendTime', 123_456])
  batch.stampMaxTimestamp(bytes, 0, 'CreateTime', 1002)
  assert.equal(batch.crc(bytes, 0), before)
})

test('the sequence after 2147483647 is 0', () => {
  const bytes = built({ producerId: 1, producerEpoch: 0, baseSequence: 0x7fff_fffe })
  assert.equal(batch.lastSequence(bytes, 0), 0)
  assert.equal(batch.sequenceAfter(0x7fff_ffff, 1), 0)
  assert.equal(batch.lastSequence(built(), 0), -1)
})

test('batches are walked up to a cut one, wherever it is cut', () => {
  const [first, second] = [built({}, 1), built({ compression: 'gzip' }, 5)]
  const both = Buffer.concat([first, second])
  for (let end = first.length; end < both.length; end++) {
    assert.deepEqual([...batch.batchesOf(both, 0, end)], [0])
    assert.notEqual(batch.checkBatch(both, first.length, end), undefined)
  }
  assert.deepEqual([...batch.batchesOf(both)], [0, first.length])
  assert.throws(() => [...batch.batchesOf(Buffer.concat([first, Buffer.alloc(20)]))], DecodeError)
})

test('64-bit fields that a number cannot hold are refused, never rounded', () => {
  for (const [at, code] of [
    [batch.BASE_OFFSET_AT, 'INVALID_RECORD'],
    [batch.PRODUCER_ID_AT, 'INVALID_RECORD'],
    [batch.BASE_TIMESTAMP_AT, 'INVALID_TIMESTAMP'],
    [batch.MAX_TIMESTAMP_AT, 'INVALID_TIMESTAMP'],
  ] as const) {
    const bytes = built()
    for (const value of [2n ** 53n, -(2n ** 53n), 2n ** 63n - 1n, -(2n ** 63n)]) {
      bytes.writeBigInt64BE(value, at)
      assert.equal(batch.checkBatch(bytes, 0, bytes.length)?.code, code)
      assert.ok(Number.isNaN(batch.exactInt64(bytes, at)))
    }
    if (at === batch.BASE_OFFSET_AT) {
      bytes.writeBigInt64BE(2n ** 53n - 2n, at) // exact, but the last offset is not
      assert.equal(batch.checkBatch(bytes, 0, bytes.length)?.code, code)
    }
    for (const value of [2n ** 53n - 3n, -(2n ** 53n) + 1n, -1n, 0n]) {
      bytes.writeBigInt64BE(value, at)
      assert.equal(batch.checkBatch(bytes, 0, bytes.length), undefined)
      assert.equal(BigInt(batch.exactInt64(bytes, at)), value)
    }
  }
})
