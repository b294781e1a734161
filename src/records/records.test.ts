import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import * as batch from './batch.ts'
import { BatchBuilder, batchSizeUpperBound } from './builder.ts'
import { firstAtOrAfter, openRecords, recordsOf } from './records.ts'

const bytes = fc.option(fc.uint8Array({ maxLength: 300 }).map(array => Buffer.from(array)))
const header = fc.record(
  { key: fc.string({ unit: 'grapheme', maxLength: 8 }), value: bytes },
  { noNullPrototype: true },
)
const record = fc.record({
  gap: fc.nat({ max: 3 }),
  timestamp: fc.oneof(fc.constant(-1), fc.maxSafeNat(), fc.integer({ min: 0, max: 2 ** 31 })),
  key: bytes,
  value: bytes,
  headers: fc.array(header, { maxLength: 3 }),
})

test('what is built is read again, in every codec', () => {
  for (const compression of batch.COMPRESSION_NAMES) {
    fc.assert(
      fc.property(
        fc.array(record, { minLength: 1, maxLength: 20 }),
        fc.nat({ max: 2 ** 31 }),
        (records, baseOffset) => {
          const builder = new BatchBuilder({ compression, baseOffset, leaderEpoch: 3 })
          let offset = baseOffset
          const wanted = records.map(({ gap, timestamp, key, value, headers }) => {
            offset += gap
            builder.appendAt(offset, timestamp, key, value, headers)
            return { offset: offset++, timestamp, key, value, headers }
          })
          const estimate = builder.sizeEstimate
          const built = builder.build()
          if (compression === 'none') assert.equal(built.length, estimate)
          assert.equal(batch.checkBatch(built, 0, built.length) ?? batch.checkCrc(built, 0), undefined)
          assert.deepEqual([...recordsOf(built)], wanted)
          assert.equal(batch.lastOffset(built, 0), offset - 1)
        },
      ),
      { numRuns: 40 },
    )
  }
})

test('a record fits exactly when the batch stays within its limit', () => {
  fc.assert(
    fc.property(
      fc.array(record, { minLength: 1, maxLength: 20 }),
      fc.integer({ min: 62, max: 2000 }),
      (records, bytesMax) => {
        const builder = new BatchBuilder({ bytesMax })
        for (const { timestamp, key, value, headers } of records) {
          const fits = builder.wouldFit(timestamp, key, value, headers)
          const first = builder.recordsCount === 0
          builder.append(timestamp, key, value, headers)
          if (!first) assert.equal(fits, builder.sizeEstimate <= bytesMax)
          else assert.ok(fits && builder.sizeEstimate <= batchSizeUpperBound(key, value, headers))
          if (!fits) break
        }
      },
    ),
  )
})

test('looking up the time of a record in a compressed batch gives its own offset', () => {
  for (const compression of batch.COMPRESSION_NAMES) {
    const builder = new BatchBuilder({ compression, baseOffset: 100 })
    for (let index = 0; index < 50; index++) builder.append(1000 + 10 * index, null, Buffer.from('x'))
    const built = builder.build()
    for (let index = 0; index < 50; index++) {
      const found = { offset: 100 + index, timestamp: 1000 + 10 * index }
      assert.deepEqual(firstAtOrAfter(built, 0, 1000 + 10 * index), found)
      assert.deepEqual(firstAtOrAfter(built, 0, 991 + 10 * index), found)
    }
    assert.equal(firstAtOrAfter(built, 0, 1491), undefined)
    assert.deepEqual(firstAtOrAfter(built, 0, 0, 149), { offset: 149, timestamp: 1490 })
  }
})

test('a batch that compaction emptied has no records', () => {
  const built = new BatchBuilder({ baseOffset: 300, lastOffset: 308, maxTimestamp: 5, compression: 'gzip' }).build()
  assert.deepEqual([...recordsOf(built)], [])
  assert.deepEqual([batch.lastOffset(built, 0), batch.recordsCount(built, 0), built.length], [308, 0, 61])
})

test('with LogAppendTime all records have the time of the batch', () => {
  const builder = new BatchBuilder({ logAppendTime: 77 })
  builder.append(1, null, null)
  builder.append(2, null, null)
  assert.deepEqual(
    [...recordsOf(builder.build())].map(found => found.timestamp),
    [77, 77],
  )
})

test('reading a field and keeping a record need not go together', () => {
  const builder = new BatchBuilder({ compression: 'lz4' })
  builder.append(5, Buffer.from('a'), null, [{ key: 'h', value: Buffer.from('1') }])
  const records = openRecords(builder.build())
  assert.ok(records.next())
  assert.deepEqual([records.offset, records.timestamp, records.value], [0, 5, null])
  assert.deepEqual(records.headers, [{ key: 'h', value: Buffer.from('1') }])
  assert.ok(!records.next())
})
