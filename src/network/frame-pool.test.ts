import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FramePool } from './frame-pool.ts'

test('what is given back is lent again, once, and never to two at a time', () => {
  const pool = new FramePool(1024 * 1024)
  const first = pool.take(200_000)
  assert.equal(first.length, 200_000)
  const other = pool.take(200_000)
  assert.notEqual(first.buffer, other.buffer)
  pool.give(first)
  pool.give(first)
  const again = pool.take(150_000)
  assert.equal(again.buffer, first.buffer)
  assert.notEqual(pool.take(150_000).buffer, first.buffer)
})

test('no more is kept than allowed, and nothing that is not the pool’s own', () => {
  const pool = new FramePool(300_000)
  const frames = [pool.take(262_144), pool.take(262_144)]
  for (const frame of frames) pool.give(frame)
  assert.equal(pool.freeBytes, 262_144)
  pool.give(Buffer.allocUnsafeSlow(65_536))
  assert.equal(pool.freeBytes, 262_144)
  assert.equal(pool.take(10).length, 10)
})
