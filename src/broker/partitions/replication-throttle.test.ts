import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ByteRate } from './replication-throttle.ts'

test('a rate gives a second of itself at once, and then makes who comes wait until it is even', () => {
  const rate = new ByteRate()
  assert.equal(rate.waitMs(1000, 0), 0)
  rate.take(3000)
  assert.equal(rate.waitMs(1000, 0), 2001)
  assert.equal(rate.waitMs(1000, 1000), 1001)
  assert.equal(rate.waitMs(1000, 2001), 0)
  rate.take(1)
  assert.equal(rate.waitMs(1000, 60_000), 0)
  rate.take(1000)
  assert.ok(rate.waitMs(1000, 60_000) > 0, 'a long rest is worth a second, no more')
})

test('a rate of nothing lets nothing through', () => {
  assert.equal(new ByteRate().waitMs(0, 0), Number.MAX_SAFE_INTEGER)
})
