import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SeededRandom } from '#base/random.ts'
import { FrameReader } from '#protocol/frame-reader.ts'
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

test('memory that frames share is lent again when all of them and its reader have given it back', () => {
  const pool = new FramePool(1024 * 1024)
  const shared = pool.take(65_536)
  const frames = [shared.subarray(0, 100), shared.subarray(100, 60_000)] as const
  for (const frame of frames) pool.share(frame)
  pool.give(frames[1])
  pool.give(shared)
  assert.equal(pool.freeBytes, 0)
  assert.notEqual(pool.take(65_536).buffer, shared.buffer)
  pool.give(frames[0])
  assert.equal(pool.freeBytes, 65_536)
  assert.equal(pool.take(65_536).buffer, shared.buffer)
})

test('a frame stays as it came until it is given back, and what a client sends then costs no new memory', () => {
  for (let seed = 1; seed <= 20; seed++) {
    const random = new SeededRandom(seed)
    const pool = new FramePool(1024 * 1024)
    const reader = new FrameReader(1 << 20, pool)
    const memories = new Set<ArrayBufferLike>()
    const lent: { frame: Buffer; mark: number }[] = []
    for (let round = 0; round < 2000; round++) {
      const mark = random.uint32() & 0xff
      const body = Buffer.alloc(random.uint32() % (round % 50 === 0 ? 60_000 : 8_000), mark)
      const bytes = Buffer.alloc(4 + body.length)
      bytes.writeInt32BE(body.length)
      body.copy(bytes, 4)
      for (let at = 0; at < bytes.length; ) {
        const space = reader.space()
        const count = bytes.copy(space, 0, at, at + space.length)
        at += count
        reader.received(count)
        for (let frame = reader.next(); frame !== undefined; frame = reader.next()) {
          assert.equal(frame.length, body.length)
          lent.push({ frame, mark })
          if (frame.length > 0) memories.add(frame.buffer)
        }
      }
      while (lent.length > random.uint32() % 6) {
        const [{ frame, mark: expected }] = lent.splice(random.uint32() % lent.length, 1) as [(typeof lent)[number]]
        assert.ok(frame.every(byte => byte === expected))
        frame.fill(0xdb)
        pool.give(frame)
      }
    }
    assert.ok(memories.size < 20, `${memories.size} buffers`)
  }
})
