import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UNASSIGNED_DIRECTORY } from '#core/metadata/partition-image.ts'
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

test('a replica that is new here is made in a folder that works, though another one is offline', async () => {
  const made: (string | undefined)[] = []
  const partition = {
    replicas: [2, 1],
    directories: ['of another', UNASSIGNED_DIRECTORY],
    isr: [2],
    eligibleLeaderReplicas: [] as number[],
    lastKnownElr: [] as number[],
    leader: 2,
    partitionEpoch: 7,
  }
  const options = {
    nodeId: 1,
    folders: {
      directoryIds: ['well'],
      folders: [{ path: '/a', online: false }],
      has: () => false,
      open: ({ directoryId }: { directoryId: string | undefined }) => {
        made.push(directoryId)
        return Promise.reject(new StorageError('EIO', '/b', 'far enough'))
      },
    },
    image: () => ({ partition: () => partition }),
    clock: new ManualClock(),
    log: new LinesLogger(),
    again: () => {},
  }
  const openings = new Openings(options as unknown as OpeningsOptions)
  const topic = { id: 'orders-id', name: 'orders', terms: { log: {} } } as unknown as OpenedTopic
  await openings.open(topic, 0)
  assert.deepEqual(made, [undefined])
  // Of one that is believed to hold something the folder that is offline may be the place.
  for (const believed of [{ isr: [2, 1] }, { eligibleLeaderReplicas: [1] }, { lastKnownElr: [1] }, { leader: 1 }]) {
    Object.assign(partition, { isr: [2], eligibleLeaderReplicas: [], lastKnownElr: [], leader: 2 }, believed)
    await openings.open(topic, 0)
  }
  Object.assign(partition, { isr: [2], lastKnownElr: [], leader: 2, directories: ['of another', 'not here'] })
  await openings.open(topic, 0)
  assert.deepEqual(made, [undefined])
})
