import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StorageError } from '#storage/storage-error.ts'
import { LinesLogger, ManualClock } from '#storage/testing/rig.ts'
import { type OpenedTopic, Openings, type OpeningsOptions } from './openings.ts'

test('a folder that fails is said once for all that lies in it, with what to do about it', async () => {
  const log = new LinesLogger()
  const clock = new ManualClock()
  const options = {
    nodeId: 1,
    folders: {
      open: () => Promise.reject(new StorageError('EACCES', '/data/orders-0', '/data/orders-0: not permitted')),
    },
    image: () => ({ partition: () => undefined }),
    clock,
    log,
    again: () => {},
  }
  const openings = new Openings(options as unknown as OpeningsOptions)
  const topic = { id: 'orders-id', name: 'orders', terms: { log: {} } } as unknown as OpenedTopic
  for (let index = 0; index < 100; index++) assert.equal(await openings.open(topic, index), undefined)
  const lines = log.lines.filter(line => !line.startsWith('debug'))
  assert.equal(lines.length, 1, lines.join('\n'))
  assert.match(
    lines[0] as string,
    /^error .*\(\/data\/orders-0: not permitted\); make the folder writable.* tried again/,
  )
  assert.ok(openings.isOffline('orders-id', 99))
})
