import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ByteRate } from './replication-throttle.ts'

test('a rate gives a second of itself at once, and then makes who comes wait until it is even', () => {
  const rate = new ByteRate()
  assert.equal(rate.waitMs(1000, 0), 0)
  rate.take(3000)
  assert.equal(rate.waitMs(1000, 1500), 501)
  assert.equal(rate.waitMs(1000, 2001), 0)
  rate.take(1)
  assert.equal(rate.waitMs(1000, 60_000), 0)
  rate.take(1000)
  assert.ok(rate.waitMs(1000, 60_000) > 0, 'a long rest is worth a second, no more')
})

test('a rate of nothing lets nothing through', () => {
  const rate = new ByteRate()
  for (const now of [0, 1000, 1e9]) assert.ok(rate.waitMs(0, now) > 0)
})

test('whoever waits asks again within a second, as the rate may have been raised or taken away', () => {
  const rate = new ByteRate()
  assert.equal(rate.waitMs(0, 0), 1000)
  rate.take(1_000_000)
  assert.equal(rate.waitMs(10, 0), 1000)
  assert.equal(rate.waitMs(100_000_000, 100), 0)
})
