import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryDisk } from '#storage/testing/memory-disk.ts'
import { LinesLogger, ManualClock } from '#storage/testing/rig.ts'
import { MetadataLog } from './metadata-log.ts'
import { Term } from './term.ts'

test('what was appended in a term that is over is told when it is on the disk, or is not', async () => {
  const clock = new ManualClock()
  const log = await MetadataLog.open({ disk: new MemoryDisk(), clock, log: new LinesLogger(), folder: '/data' })
  const told: string[] = []
  const term = new Term({
    epoch: 1,
    log,
    clock,
    stored: () => void told.push('stored'),
    failed: error => void told.push(String(error)),
  })
  const written = Promise.withResolvers<void>()
  const refused = Promise.withResolvers<void>()
  const batch = Buffer.alloc(0)
  term.control({ batch, done: written.promise })
  term.control({ batch, done: refused.promise })
  // A process that was stopped finds that others have elected, while its writes are on their way.
  term.end()
  written.resolve()
  refused.reject('refused')
  await new Promise(setImmediate)
  assert.deepEqual(told, ['stored', 'refused'])
  await log.close()
})
