import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LogFolders } from './log-folders.ts'
import { StorageError } from './storage-error.ts'
import { folderOptions, openPartition, T0, TOPIC_B } from './testing/folders.ts'
import { MemoryDisk } from './testing/memory-disk.ts'
import { appendTo, type ManualClock, offsetsIn, plainBatch, readAll } from './testing/rig.ts'

test('a deleted partition is gone at once, its files later, and its name is free', async () => {
  const disk = new MemoryDisk()
  const world = folderOptions(disk, { paths: ['/a'] })
  const folders = await LogFolders.open(world)
  const first = await openPartition(folders, 0)
  await appendTo(first, plainBatch(0, 3, 10, T0))
  await folders.remove(first.log)
  const second = await openPartition(folders, 0, TOPIC_B)
  assert.equal(second.log.endOffset, 0)
  assert.ok(disk.names().some(name => /\/a\/topic-0\.[0-9a-f]{32}-delete\//.test(name)))
  ;(world.clock as ManualClock).advance(60_000)
  await folders.checkpoint()
  assert.ok(!disk.names().some(name => name.includes('-delete/')))
  await folders.close()
})

test('a deleted partition that leaves while the folders close stays until the next start', async () => {
  const disk = new MemoryDisk()
  const world = folderOptions(disk, { paths: ['/a'] })
  const folders = await LogFolders.open(world)
  const { log, fold } = await openPartition(folders, 0)
  await appendTo({ log, fold }, plainBatch(0, 3, 10, T0))
  const removed = folders.remove(log)
  await folders.close()
  await removed
  ;(world.clock as ManualClock).advance(60_000)
  await new Promise(setImmediate)
  const isLeft = () => disk.names().some(name => name.includes('-delete/'))
  assert.ok(isLeft(), 'the folder may be that of another process by now')
  await (await LogFolders.open(folderOptions(disk, { paths: ['/a'] }))).close()
  assert.ok(!isLeft())
})

test('the name of a deleted partition is free though the disk did not sync that its folder was moved aside', async () => {
  const disk = new MemoryDisk()
  const folders = await LogFolders.open(folderOptions(disk, { paths: ['/a'] }))
  const { log } = await openPartition(folders, 0)
  disk.fault = operation => (operation === 'syncFolder' ? 'EIO' : undefined)
  await folders.remove(log)
  disk.fault = () => undefined
  const made: string[] = []
  const makeFolder = disk.makeFolder.bind(disk)
  disk.makeFolder = path => {
    made.push(path)
    return makeFolder(path)
  }
  await openPartition(folders, 0, TOPIC_B)
  assert.deepEqual(made, ['/a/topic-0'], 'nothing is there to be opened')
  await folders.close()
})

test('a log that could not be taken away is checked when it is opened again, in this life or the next', async () => {
  const disk = new MemoryDisk()
  await (await LogFolders.open(folderOptions(disk, { paths: ['/a'] }))).close(1)
  const folders = await LogFolders.open(folderOptions(disk, { paths: ['/a'] }))
  const first = await openPartition(folders, 0)
  for (const leaderEpoch of [0, 1, 2]) {
    await appendTo(
      first,
      plainBatch(first.log.nextOffset, 3, 10, T0, { leaderEpoch, producerId: 7, producerEpoch: 0, baseSequence: 0 }),
    )
  }
  disk.fault = operation => (operation === 'rename' ? 'EIO' : undefined)
  await folders.remove(first.log)
  disk.fault = () => undefined
  const left = disk.afterKill()
  const again = await openPartition(folders, 0)
  assert.deepEqual([again.log.epochs, again.fold.snapshot()], [first.log.epochs, first.fold.snapshot()])
  await folders.close(2)

  const next = await LogFolders.open(folderOptions(left, { paths: ['/a'] }))
  const other = await openPartition(next, 0)
  assert.deepEqual(other.log.epochs, first.log.epochs)
  await next.close(3)
})

test('no stop is clean that leaves behind what it could not take away', async () => {
  const disk = new MemoryDisk()
  await (await LogFolders.open(folderOptions(disk, { paths: ['/a'] }))).close(1)
  const folders = await LogFolders.open(folderOptions(disk, { paths: ['/a'] }))
  const { log } = await openPartition(folders, 0)
  disk.fault = operation => (operation === 'rename' ? 'EIO' : undefined)
  await folders.remove(log)
  disk.fault = () => undefined
  await folders.close(2)
  assert.equal(disk.contentOf('/a/.kafka_cleanshutdown'), undefined)
})

test('a folder that could not be taken away does not become that of a new topic', async () => {
  const disk = new MemoryDisk()
  const folders = await LogFolders.open(folderOptions(disk, { paths: ['/a'] }))
  const first = await openPartition(folders, 0)
  await appendTo(first, plainBatch(0, 3, 10, T0))
  disk.fault = operation => (operation === 'rename' ? 'EIO' : undefined)
  await folders.remove(first.log)
  await assert.rejects(openPartition(folders, 0, TOPIC_B), StorageError)
  disk.fault = () => undefined
  const second = await openPartition(folders, 0, TOPIC_B)
  assert.equal(second.log.endOffset, 0)
  await appendTo(second, plainBatch(0, 1, 10, T0))
  assert.deepEqual(offsetsIn(await readAll(second.log)), [0])
  await folders.close()
})
