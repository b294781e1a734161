import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LogFolders } from './log-folders.ts'
import { StorageError } from './storage-error.ts'
import { folderOptions, openPartition, T0 } from './testing/folders.ts'
import { MemoryDisk } from './testing/memory-disk.ts'
import { appendTo, ManualClock, plainBatch } from './testing/rig.ts'

test('a disk that is full is complained of once for all of its logs, and again while it lasts', async () => {
  const disk = new MemoryDisk()
  const clock = new ManualClock()
  const world = { ...folderOptions(disk, { paths: ['/a'] }), clock }
  const folders = await LogFolders.open(world)
  const partitions = []
  for (let index = 0; index < 4; index++) partitions.push(await openPartition(folders, index))
  disk.fault = operation => (operation === 'write' ? 'ENOSPC' : undefined)
  for (const each of partitions) await assert.rejects(appendTo(each, plainBatch(0, 5, 10, T0)), StorageError)
  const said = () => world.log.lines.filter(line => line.startsWith('error'))
  assert.equal(said().length, 1, said().join('\n'))
  for (let turn = 0; turn < 20; turn++) {
    clock.advance(6000)
    for (const { log } of partitions) await log.flush().catch(() => undefined)
  }
  assert.ok(said().length === 2 || said().length === 3, said().join('\n'))
  assert.match(said()[1] as string, /free space.*"unsaid":\d+/)
  disk.fault = () => undefined
  await folders.close()
})
