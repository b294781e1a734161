import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SeededRandom } from '#base/random.ts'
import { LOG_CONFIG_DEFAULT } from '#storage/log-config.ts'
import { LogFolders } from '#storage/log-folders.ts'
import { StorageError } from '#storage/storage-error.ts'
import { MemoryDisk } from '#storage/testing/memory-disk.ts'
import { LastBatchFold, LinesLogger, ManualClock, plainBatch } from '#storage/testing/rig.ts'
import { FailingFolders } from './failing-folders.ts'
import type { Partition } from './partition.ts'

const TOPIC = 'AAAAAAAAAAAAAAAAAAAAAg'

test('a folder that is given up gets no new partitions, though it has the fewest', async () => {
  const disk = new MemoryDisk()
  const clock = new ManualClock()
  const log = new LinesLogger()
  const folders = await LogFolders.open({
    disk,
    clock,
    log,
    random: new SeededRandom(1),
    paths: ['/a', '/b'],
    nodeId: 1,
  })
  const place = async (partition: number, directoryId?: string) => {
    const wanted = { topic: 'topic', topicId: TOPIC, partition, config: LOG_CONFIG_DEFAULT, fold: new LastBatchFold() }
    return (await folders.open({ ...wanted, directoryId })).log
  }
  const failing = await place(0)
  const [, other] = folders.directoryIds
  for (const partition of [1, 2, 3]) assert.match((await place(partition, other)).folder, /^\/b/)

  disk.fault = (operation, path) => (operation === 'write' && path.startsWith('/a/') ? 'EIO' : undefined)
  await assert.rejects(failing.append(plainBatch(0, 1, 10, clock.now())), StorageError)
  const partitions = [{ log: failing } as Partition]
  const look = new FailingFolders(folders, log)
  assert.deepEqual(look.look(partitions, clock.monotonic()), [])
  clock.advance(10_000)
  assert.equal(look.look(partitions, clock.monotonic()).length, 1)
  assert.deepEqual(folders.directoryIds, [other])
  assert.match((await place(4)).folder, /^\/b/)
  await folders.close()
})
