import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Clock, Logger } from '#world/world.ts'
import type { MetadataLog } from './metadata-log.ts'
import { SnapshotTaker } from './snapshot-taker.ts'

test('a snapshot that is due and cannot be taken yet wakes nobody again at once', () => {
  let now = 0
  const clock = { monotonic: () => now } as Clock
  const log = { appendedBytes: 10 } as MetadataLog
  const taker = new SnapshotTaker(log, clock, {} as Logger, { snapshotIntervalMs: 1000 })
  const source = { state: () => undefined, whenCommitted: () => Promise.resolve(0) }
  taker.consider(source)
  assert.equal(taker.wakeAt(), 1000)
  for (let woken = 0; woken < 3; woken++) {
    now = taker.wakeAt() ?? 0
    taker.consider(source)
    assert.ok((taker.wakeAt() ?? 0) > now)
  }
})
