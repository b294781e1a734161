import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as batch from './batch.ts'
import { BatchBuilder, type BatchOptions } from './builder.ts'
import { type ProducedOptions, validateProduced } from './produced.ts'

const NOW = 1_700_000_000_000
const HOUR = 3_600_000
const TOPIC: ProducedOptions = {
  messageBytesMax: 1_048_588,
  segmentBytes: 1_073_741_824,
  timestampType: 'CreateTime',
  timestampBeforeMaxMs: Number.MAX_SAFE_INTEGER,
  timestampAfterMaxMs: HOUR,
  compacted: false,
  now: NOW,
  records: 'unread',
}

function built(times: readonly number[], options: BatchOptions = {}, keys: readonly (string | null)[] = []): Buffer {
  const builder = new BatchBuilder(options)
  for (const [index, time] of times.entries()) {
    const key = keys[index] ?? null
    builder.append(time, key === null ? null : Buffer.from(key), Buffer.from('value'))
  }
  return builder.build()
}

function answer(bytes: Buffer, options: Partial<ProducedOptions> = {}) {
  return validateProduced(bytes, 0, bytes.length, { ...TOPIC, ...options })
}

describe('a produced batch', () => {
  test('is accepted, whatever its codec, and untouched', () => {
    for (const compression of batch.COMPRESSION_NAMES) {
      for (const records of ['unread', 'plain', 'all'] as const) {
        const bytes = built([NOW, NOW - 1, -1], { compression })
        const before = Buffer.from(bytes)
        assert.equal(answer(bytes, { records }), undefined)
        assert.ok(bytes.equals(before))
      }
    }
  })

  test('names the records whose time is out of range', () => {
    for (const compression of ['none', 'lz4'] as const) {
      const late = answer(built([NOW, NOW + HOUR + 1, NOW + HOUR], { compression }))
      assert.equal(late?.code, 'INVALID_TIMESTAMP')
      assert.deepEqual(
        late?.recordErrors?.map(error => error.batchIndex),
        [1],
      )
      const early = answer(built([NOW - 11, NOW, -1, NOW - 10], { compression }), { timestampBeforeMaxMs: 10 })
      assert.equal(early?.code, 'INVALID_TIMESTAMP')
      assert.deepEqual(
        early?.recordErrors?.map(error => error.batchIndex),
        [0],
      )
    }
  })

  test('needs keys on a compacted topic', () => {
    for (const compression of ['none', 'zstd'] as const) {
      const bytes = built([NOW, NOW, NOW], { compression }, ['a', null, null])
      assert.equal(answer(bytes), undefined)
      const refused = answer(bytes, { compacted: true })
      assert.equal(refused?.code, 'INVALID_RECORD')
      assert.deepEqual(
        refused?.recordErrors?.map(error => error.batchIndex),
        [1, 2],
      )
      assert.equal(answer(built([NOW], { compression }, ['']), { compacted: true }), undefined)
    }
  })

  test('has size limits', () => {
    const bytes = built([NOW])
    assert.equal(answer(bytes, { messageBytesMax: bytes.length }), undefined)
    assert.equal(answer(bytes, { messageBytesMax: bytes.length - 1 })?.code, 'MESSAGE_TOO_LARGE')
    assert.equal(answer(bytes, { segmentBytes: bytes.length - 1 })?.code, 'RECORD_LIST_TOO_LARGE')
  })

  test('with zstd needs version 7', () => {
    const bytes = built([NOW], { compression: 'zstd' })
    assert.equal(answer(bytes, { apiVersion: 6 })?.code, 'UNSUPPORTED_COMPRESSION_TYPE')
    assert.equal(answer(bytes, { apiVersion: 7 }), undefined)
  })

  test('may not bring an append time where the topic sets it, and loses it where the topic does not', () => {
    const refused = answer(built([NOW], { logAppendTime: NOW }), { timestampType: 'LogAppendTime' })
    assert.equal(refused?.code, 'INVALID_TIMESTAMP')
    const bytes = built([5], { logAppendTime: NOW })
    assert.equal(answer(bytes), undefined)
    assert.deepEqual([batch.timestampType(bytes, 0), batch.maxTimestamp(bytes, 0)], ['CreateTime', NOW])
    assert.equal(batch.checkCrc(bytes, 0), undefined)
  })

  test('gets the highest time of its records when they are read', () => {
    const bytes = built([NOW - 5, NOW - 7])
    batch.stampMaxTimestamp(bytes, 0, 'CreateTime', NOW)
    assert.equal(answer(bytes, { records: 'all' }), undefined)
    assert.equal(batch.maxTimestamp(bytes, 0), NOW - 5)
    assert.equal(batch.checkCrc(bytes, 0), undefined)
  })

  test('that grows beyond the limit is refused before it has grown', () => {
    for (const compression of ['gzip', 'snappy', 'lz4', 'zstd'] as const) {
      const builder = new BatchBuilder({ compression })
      builder.append(NOW, null, Buffer.alloc(4_000_000))
      const refused = answer(builder.build(), { records: 'all', decompressedBytesMax: 1_000_000 })
      assert.equal(refused?.code, 'MESSAGE_TOO_LARGE', compression)
    }
  })

  test('may be followed by a cut one, not by a whole one', () => {
    const bytes = built([NOW])
    assert.equal(answer(Buffer.concat([bytes, bytes.subarray(0, 30)])), undefined)
    assert.equal(answer(Buffer.concat([bytes, bytes]))?.code, 'INVALID_RECORD')
    assert.equal(answer(bytes.subarray(0, 30))?.code, 'INVALID_RECORD')
  })
})
