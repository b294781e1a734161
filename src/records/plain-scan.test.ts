import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { BatchBuilder } from './builder.ts'
import { scanPlain } from './plain-scan.ts'
import { BatchRecords } from './records.ts'

const bytes = fc.option(fc.uint8Array({ maxLength: 300 }))
const header = fc.record({ key: fc.string({ maxLength: 5 }), value: bytes })
const record = fc.record({
  time: fc.integer({ min: 0, max: 100_000_000 }),
  key: bytes,
  value: bytes,
  headers: fc.array(header, { maxLength: 3 }),
})

function built(records: readonly (typeof record extends fc.Arbitrary<infer R> ? R : never)[]): Buffer {
  const builder = new BatchBuilder()
  for (const { time, key, value, headers } of records) builder.append(time, key, value, headers)
  return builder.build()
}

/** What the thorough reader makes of it: the highest time less the base, or undefined for what it refuses. */
function read(batch: Buffer): number | undefined {
  try {
    const records = new BatchRecords(batch, 0)
    const base = Number(batch.readBigInt64BE(27))
    let highest = Number.NEGATIVE_INFINITY
    while (records.next()) highest = Math.max(highest, records.timestamp - base)
    return highest
  } catch {
    return undefined
  }
}

test('a batch as producers write it passes, with its highest time', () => {
  fc.assert(
    fc.property(fc.array(record, { minLength: 1, maxLength: 20 }), records => {
      const batch = built(records)
      assert.equal(scanPlain(batch, 0), read(batch))
    }),
  )
})

test('what passes is what the thorough reader takes, whatever the bytes', () => {
  let passed = 0
  fc.assert(
    fc.property(
      fc.array(record, { minLength: 1, maxLength: 6 }),
      fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { minLength: 1, maxLength: 3 }),
      (records, changes) => {
        const batch = built(records)
        for (const [at, byte] of changes) batch[61 + (at % (batch.length - 61))] = byte
        const scanned = scanPlain(batch, 0)
        if (scanned === undefined) return
        passed++
        assert.equal(scanned, read(batch))
      },
    ),
    { numRuns: 3000 },
  )
  assert.ok(passed > 100, `${passed} changed batches passed`)
})
