import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MetadataImage } from '#core/metadata/image.ts'
import { StorageError } from '#storage/storage-error.ts'
import { LinesLogger, ManualClock } from '#storage/testing/rig.ts'
import type { Folded, MetadataLog } from './metadata-log.ts'
import { Standby } from './standby.ts'

test('a log that cannot be read is said once a minute, and read as soon as it can be', async () => {
  const clock = new ManualClock()
  const logger = new LinesLogger()
  const folded = { image: new MetadataImage(), endOffset: 5, lastTimestamp: 0 } as Folded
  let reads = 0
  let isWell = false
  const log = {
    folder: '/data/__cluster_metadata-0',
    endOffset: 6,
    fold: () => {
      reads++
      return isWell ? Promise.resolve(folded) : Promise.reject(new StorageError('EIO', '/data', 'it fails'))
    },
  } as unknown as MetadataLog
  const standby = new Standby({ log, clock, logger, changed: () => {}, unreadable: () => {} }, folded)
  standby.lend(5, () => {})
  standby.giveBack(6, 5, 0)
  const pass = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      clock.advance(1000)
      await new Promise(setImmediate)
    }
  }
  await pass(50)
  assert.ok(reads >= 50, `${reads}`)
  const told = () => logger.lines.filter(line => line.startsWith('warn')).length
  assert.equal(told(), 1)
  await pass(20)
  assert.equal(told(), 2)
  isWell = true
  await pass(2)
  assert.ok(standby.image !== undefined)
  standby.stop()
})
