import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LOG_CONFIG_DEFAULT } from './log-config.ts'
import { LogFolders } from './log-folders.ts'
import { DamagedLogError, StorageError } from './storage-error.ts'
import { folderOptions, openPartition, T0, TOPIC_A, TOPIC_B } from './testing/folders.ts'
import { MemoryDisk } from './testing/memory-disk.ts'
import { appendTo, LastBatchFold, LinesLogger, ManualClock, offsetsIn, plainBatch, readAll } from './testing/rig.ts'

test('with flush.messages, what a dead process left unsynced is durable before it is served', async () => {
  const disk = new MemoryDisk()
  const folders = await LogFolders.open(folderOptions(disk, { paths: ['/a'] }))
  await appendTo(await openPartition(folders, 0), plainBatch(0, 3, 10, T0))
  const open = async (flushMessages: number) => {
    const again = await LogFolders.open(folderOptions(disk.afterKill(), { paths: ['/a'] }))
    const config = { ...LOG_CONFIG_DEFAULT, flushMessages }
    const wanted = { topic: 'topic', topicId: TOPIC_A, partition: 0, config, fold: new LastBatchFold() }
    const { log } = await again.open(wanted)
    assert.equal(log.endOffset, 3)
    return log.durableOffset
  }
  assert.equal(await open(1), 3)
  assert.equal(await open(Number.POSITIVE_INFINITY), 0)
})

test('an offset that changed on the disk after a clean stop is found, and the log stays closed until it is cut there', async () => {
  const disk = new MemoryDisk()
  const folders = await LogFolders.open(folderOptions(disk, { paths: ['/a'] }))
  const first = await openPartition(folders, 0)
  await appendTo(first, plainBatch(0, 3, 10, T0))
  await appendTo(first, plainBatch(3, 3, 10, T0))
  await folders.close(1)
  const path = '/a/topic-0/00000000000000000000.log'
  const size = (disk.contentOf(path) ?? Buffer.alloc(0)).length
  const file = await disk.open(path, { create: false, write: true })
  await file.write([Buffer.of(0x5a)], size / 2 + 3)
  await file.close()
  const log = new LinesLogger()
  const again = await LogFolders.open(folderOptions(disk, { paths: ['/a'], log }))
  const before = disk.contentOf(path)
  await assert.rejects(openPartition(again, 0), (error: Error) => {
    assert.ok(error instanceof DamagedLogError)
    assert.match(error.message, new RegExp(`${path} is damaged at position ${size / 2}, offset 3 .*up to offset 6`))
    return true
  })
  assert.ok(log.lines.some(line => /does not end where the last stop/.test(line)))
  assert.equal(disk.contentOf(path), before)
  // It is asked for again and again; while the file is what it was, nothing is read for the same answer.
  const { operations } = disk
  await assert.rejects(openPartition(again, 0), DamagedLogError)
  assert.ok(disk.operations - operations < 5, `${disk.operations - operations}`)
  // The cure that the message names works without a restart.
  disk.put(path, (before as Buffer).subarray(0, size / 2))
  const second = await openPartition(again, 0)
  assert.equal(second.log.endOffset, 3)
  assert.ok(log.lines.some(line => /ends before what was synced/.test(line)))
  await again.close(2)
})

test('a topic made anew under its name waits for the folder of the one before', async () => {
  const disk = new MemoryDisk()
  const world = folderOptions(disk, { paths: ['/a'] })
  const folders = await LogFolders.open(world)
  const first = await openPartition(folders, 0)
  const slow = Promise.withResolvers<void>()
  const rename = disk.rename.bind(disk)
  disk.rename = async (from, to) => {
    await slow.promise
    await rename(from, to)
  }
  await appendTo(first, plainBatch(0, 3, 10, T0))
  const removed = folders.remove(first.log)
  const written = openPartition(folders, 0, TOPIC_B).then(second => appendTo(second, plainBatch(0, 2, 10, T0 + 1)))
  await new Promise(setImmediate)
  slow.resolve()
  await Promise.all([removed, written])
  ;(world.clock as ManualClock).advance(60_000)
  await folders.close()
  const again = await LogFolders.open(folderOptions(disk, { paths: ['/a'] }))
  assert.deepEqual(offsetsIn(await readAll((await openPartition(again, 0, TOPIC_B)).log)), [0, 1])
  await again.close()
})

test('a log that could not be opened does not come back over the one that was opened after it', async () => {
  for (const failing of ['sync', 'rename']) {
    const disk = new MemoryDisk()
    const folders = await LogFolders.open(folderOptions(disk, { paths: ['/a'] }))
    const first = await openPartition(folders, 0)
    for (let batch = 0; batch < 3; batch++) await appendTo(first, plainBatch(batch * 2, 2, 10, T0))
    first.log.deleteRecordsBefore(2)
    await folders.keepStartOffset(first.log)
    const left = disk.afterKill()
    // Before the log is served what was not synced has to be, or a recovery point that is too high to be lowered.
    const point = failing === 'sync' ? 0 : 100
    left.put('/a/recovery-point-offset-checkpoint', Buffer.from(`0\n1\ntopic 0 ${point}\n`))

    const world = folderOptions(left, { paths: ['/a'] })
    const again = await LogFolders.open(world)
    left.fault = (operation, path) => (operation === failing && /\.log$|recovery-point/.test(path) ? 'EIO' : undefined)
    const config = { ...LOG_CONFIG_DEFAULT, flushMessages: 1 }
    const open = () => again.open({ topic: 'topic', topicId: TOPIC_A, partition: 0, config, fold: new LastBatchFold() })
    await assert.rejects(open(), StorageError)
    left.fault = () => undefined
    const { log } = await open()
    await log.append(plainBatch(6, 2, 10, T0))
    ;(world.clock as ManualClock).advance(10_000)
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
    await log.append(plainBatch(8, 1, 10, T0))
    assert.deepEqual(offsetsIn(await readAll(log)), [2, 3, 4, 5, 6, 7, 8])
    await again.close()
  }
})

test('the log of an earlier topic of the same name is moved aside', async () => {
  const disk = new MemoryDisk()
  const folders = await LogFolders.open(folderOptions(disk, { paths: ['/a'] }))
  await appendTo(await openPartition(folders, 0), plainBatch(0, 3, 10, T0))
  await openPartition(folders, 1)
  await folders.close()
  const again = await LogFolders.open(folderOptions(disk, { paths: ['/a'] }))
  const { log } = await openPartition(again, 0, TOPIC_B)
  assert.equal(log.endOffset, 0)
  assert.equal(await again.moveStrays(() => false), 1)
  const strays = new Set(disk.names().map(name => /topic-\d\.[0-9a-f]{32}-stray/.exec(name)?.[0]))
  strays.delete(undefined)
  assert.equal(strays.size, 2)
  await again.close()
})

for (const ends of ['is taken away by its owner', 'cannot be opened'] as const)
  test(`a topic made anew while the log of the earlier one is still being opened waits until that ${ends}`, async () => {
    const disk = new MemoryDisk()
    const first = await LogFolders.open(folderOptions(disk, { paths: ['/a'] }))
    await appendTo(await openPartition(first, 0), plainBatch(0, 3, 10, T0))
    await first.close()
    const clock = new ManualClock()
    const folders = await LogFolders.open(folderOptions(disk, { paths: ['/a'], clock }))
    const order: string[] = []
    if (ends === 'cannot be opened')
      disk.fault = (what, path) => (what === 'open' && path.endsWith('.log') ? 'EIO' : undefined)
    const earlier = openPartition(folders, 0).then(
      ({ log }) => {
        order.push('earlier')
        assert.equal(log.endOffset, 3)
        // Its owner looks some turns later whether the topic is still there.
        setImmediate(() => void folders.remove(log))
      },
      () => {
        order.push('earlier')
        disk.fault = () => undefined
      },
    )
    const later = openPartition(folders, 0, TOPIC_B).then(opened => {
      order.push('later')
      return opened
    })
    await earlier
    while (order.length < 2) {
      await new Promise(resolve => setImmediate(resolve))
      clock.advance(10)
    }
    const { log } = await later
    assert.deepEqual(order, ['earlier', 'later'])
    assert.equal(log.endOffset, 0, 'nothing of the earlier topic is in it')
    await folders.close()
  })

test('a name whose log is never given up is said to be in use', async () => {
  const clock = new ManualClock()
  const folders = await LogFolders.open(folderOptions(new MemoryDisk(), { paths: ['/a'], clock }))
  const [earlier, later] = [openPartition(folders, 0), openPartition(folders, 0, TOPIC_B)]
  await earlier
  const refused = assert.rejects(later, { name: 'StorageError', errno: 'EBUSY' })
  for (let look = 0; look < 1100; look++) {
    clock.advance(10)
    await new Promise(resolve => setImmediate(resolve))
  }
  await refused
  await folders.close()
})

test('of two folders that hold a partition, the one that the cluster knows is opened', async () => {
  const disk = new MemoryDisk()
  const before = await LogFolders.open(folderOptions(disk, { paths: ['/a'] }))
  await appendTo(await openPartition(before, 0), plainBatch(0, 3, 10, T0))
  const { clusterId } = before
  await before.close(1)
  // The folder was away for a while, and what lay there was followed up in another one.
  const meanwhile = await LogFolders.open(folderOptions(disk, { paths: ['/b'], clusterId }))
  const [directoryId] = meanwhile.directoryIds
  const newer = await openPartition(meanwhile, 0)
  await appendTo(newer, plainBatch(0, 3, 10, T0))
  await appendTo(newer, plainBatch(3, 3, 10, T0))
  await meanwhile.close(2)
  const both = await LogFolders.open(folderOptions(disk, { paths: ['/a', '/b'], clusterId }))
  const wanted = {
    topic: 'topic',
    topicId: TOPIC_A,
    partition: 0,
    config: LOG_CONFIG_DEFAULT,
    fold: new LastBatchFold(),
  }
  const { log } = await both.open({ ...wanted, directoryId })
  assert.equal(log.endOffset, 6)
  await both.close(3)
})
