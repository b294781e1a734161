import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { SeededRandom } from '#base/random.ts'
import { realWorld } from '#world/real/real.ts'
import { LogFolders } from './log-folders.ts'
import { ForeignFolderError } from './meta-properties.ts'
import { parsePartitionFolderName, suffixedFolderName } from './partition-folder.ts'
import { StorageError } from './storage-error.ts'
import { folderOptions, openPartition, T0, TOPIC_A, TOPIC_B } from './testing/folders.ts'
import { MemoryDisk } from './testing/memory-disk.ts'
import { appendTo, LinesLogger, ManualClock, offsetsIn, plainBatch, readAll } from './testing/rig.ts'

test('an empty folder becomes a cluster, and is found again', async () => {
  const disk = new MemoryDisk()
  const folders = await LogFolders.open(folderOptions(disk))
  const opened = [await openPartition(folders, 0), await openPartition(folders, 1), await openPartition(folders, 2)]
  assert.deepEqual(
    opened.map(({ log }) => log.folder),
    ['/a/topic-0', '/b/topic-1', '/a/topic-2'],
  )
  for (const one of opened) await appendTo(one, plainBatch(0, 3, 10, T0))
  assert.equal(folders.previousBrokerEpoch, -1)
  await folders.close(42)
  assert.match(String(disk.contentOf('/a/meta.properties')), /cluster.id=\S+\ndirectory.id=\S+\nnode.id=1\nversion=1/)
  assert.equal(String(disk.contentOf('/a/recovery-point-offset-checkpoint')), '0\n2\ntopic 0 3\ntopic 2 3\n')
  assert.equal(String(disk.contentOf('/b/.kafka_cleanshutdown')), '{"version":0,"brokerEpoch":42}')

  const again = await LogFolders.open(folderOptions(disk))
  assert.equal(again.clusterId, folders.clusterId)
  assert.deepEqual(again.directoryIds, folders.directoryIds)
  assert.equal(again.previousBrokerEpoch, 42)
  assert.equal(disk.contentOf('/a/.kafka_cleanshutdown'), undefined)
  assert.deepEqual(again.unopened.toSorted(), ['topic-0', 'topic-1', 'topic-2'])
  const { log, highWatermark } = await openPartition(again, 1)
  assert.equal(log.folder, '/b/topic-1')
  assert.equal(highWatermark, 3)
  assert.deepEqual(offsetsIn(await readAll(log)), [0, 1, 2])
  await again.close()
})

test('a stop after an unclean one leaves no mark while a log was not checked', async () => {
  const disk = new MemoryDisk()
  const folders = await LogFolders.open(folderOptions(disk, { paths: ['/a'] }))
  await appendTo(await openPartition(folders, 0), plainBatch(0, 3, 10, T0))
  await folders.checkpoint()
  const killed = disk.afterKill()
  const second = await LogFolders.open(folderOptions(killed, { paths: ['/a'] }))
  await second.close(1)
  assert.equal(killed.contentOf('/a/.kafka_cleanshutdown'), undefined)
  assert.match(String(killed.contentOf('/a/recovery-point-offset-checkpoint')), /topic 0 3/)
  const third = await LogFolders.open(folderOptions(killed, { paths: ['/a'] }))
  await openPartition(third, 0)
  await third.close(1)
  assert.notEqual(killed.contentOf('/a/.kafka_cleanshutdown'), undefined)
})

test('folders of another node or cluster are refused by name', async () => {
  const disk = new MemoryDisk()
  await (await LogFolders.open(folderOptions(disk))).close()
  await assert.rejects(LogFolders.open(folderOptions(disk, { nodeId: 2 })), ForeignFolderError)
  await assert.rejects(LogFolders.open(folderOptions(disk, { clusterId: TOPIC_B })), /\/a belongs to cluster/)
})

test('folders of a node that joins belong to no cluster until it knows which', async () => {
  const disk = new MemoryDisk()
  const text = async (path: string) => Buffer.from((await disk.readFile(`${path}/meta.properties`)) ?? []).toString()
  const folders = await LogFolders.open(folderOptions(disk, { awaitsCluster: true }))
  assert.equal(folders.clusterId, undefined)
  assert.doesNotMatch(await text('/a'), /cluster\.id/)
  const { directoryIds } = folders
  // The log of a quorum is there before its first leader founded the cluster.
  await disk.makeFolder('/a/__cluster_metadata-0')
  await folders.close()
  const again = await LogFolders.open(folderOptions(disk, { awaitsCluster: true }))
  assert.deepEqual(again.directoryIds, directoryIds)
  await again.found(TOPIC_B)
  assert.equal(again.clusterId, TOPIC_B)
  for (const path of ['/a', '/b']) assert.match(await text(path), new RegExp(`^cluster\\.id=${TOPIC_B}$`, 'm'))
  await again.close()
  const third = await LogFolders.open(folderOptions(disk, { awaitsCluster: true }))
  assert.equal(third.clusterId, TOPIC_B)
  await third.close()
})

test('a folder with metadata and without its cluster does not become a new one', async () => {
  const disk = new MemoryDisk()
  await (await LogFolders.open(folderOptions(disk, { awaitsCluster: true }))).close()
  await disk.makeFolder('/a/__cluster_metadata-0')
  await assert.rejects(LogFolders.open(folderOptions(disk)), /was to join a cluster .*--join/)
})

test('a folder that fails is offline and the other goes on', async () => {
  const disk = new MemoryDisk()
  await (await LogFolders.open(folderOptions(disk))).close(7)
  disk.fault = (operation, name) => (operation === 'readFile' && name.startsWith('/a/') ? 'EIO' : undefined)
  const world = folderOptions(disk)
  const folders = await LogFolders.open(world)
  assert.deepEqual(
    folders.folders.map(({ online }) => online),
    [false, true],
  )
  assert.equal(folders.directoryIds.length, 1)
  assert.equal(folders.previousBrokerEpoch, -1)
  assert.match(world.log.lines.join('\n'), /the folder is offline/)
  assert.equal((await openPartition(folders, 0)).log.folder, '/b/topic-0')
  await folders.close()
  disk.fault = () => 'EIO'
  await assert.rejects(LogFolders.open(folderOptions(disk)), StorageError)
})

test('names of folders, as Kafka makes them', () => {
  assert.deepEqual(parsePartitionFolderName('my-topic.x-12'), { topic: 'my-topic.x', partition: 12, state: 'live' })
  const name = suffixedFolderName('t'.repeat(249), 3, 'delete', new Uint8Array(16))
  assert.equal(name.length, 255)
  assert.equal(parsePartitionFolderName(name)?.state, 'delete')
  assert.equal(parsePartitionFolderName('remote-log-index-cache'), undefined)
})

test('on the real disk: lock, two lives, and a range that is read after its segment was deleted', async () => {
  const root = await mkdtemp(path.join(os.tmpdir(), 'tidemark-folders-'))
  const { disk, clock, random } = realWorld({ log: { level: 'silent' } })
  const how = { disk, clock, random, log: new LinesLogger(), paths: [root], nodeId: 1 }
  try {
    const folders = await LogFolders.open(how)
    await assert.rejects(LogFolders.open(how), /in use by another process/)
    const one = await openPartition(folders, 0)
    one.log.configure({ ...one.log.config, segmentBytes: 2000, retentionBytes: 0, flushMessages: 1 })
    for (let index = 0; index < 20; index++) await appendTo(one, plainBatch(index * 2, 2, 200, T0))
    const range = await one.log.read(0, 1000, 40)
    assert.ok(range !== undefined)
    assert.ok((await one.log.retain(T0, 40)) > 0)
    assert.deepEqual(offsetsIn(await one.log.readBytes(range)), [0, 1, 2, 3])
    await folders.close()
    const again = await LogFolders.open(how)
    const { log } = await openPartition(again, 0)
    assert.equal(log.endOffset, 40)
    assert.equal(log.startOffset, one.log.startOffset)
    await again.close()
  } finally {
    await rm(root, { recursive: true, force: true })
  }
})

test('what was deleted stays so when the process dies, once that is kept', async () => {
  const disk = new MemoryDisk()
  const folders = await LogFolders.open(folderOptions(disk, { paths: ['/a'] }))
  const opened = await openPartition(folders, 0)
  for (let batch = 0; batch < 5; batch++) await appendTo(opened, plainBatch(batch * 2, 2, 10, T0))
  opened.log.deleteRecordsBefore(7)
  await folders.keepStartOffset(opened.log)

  const killed = await openPartition(await LogFolders.open(folderOptions(disk.afterKill(), { paths: ['/a'] })), 0)
  assert.deepEqual([killed.log.startOffset, killed.log.endOffset], [7, 10])
  // A power cut may take the records and leave the start: then the log begins where it was said to.
  const cut = await openPartition(
    await LogFolders.open(folderOptions(disk.afterPowerCut(new SeededRandom(3)), { paths: ['/a'] })),
    0,
  )
  assert.ok(cut.log.startOffset >= 7 && cut.log.endOffset >= cut.log.startOffset)
})

test('the log of the metadata, which others open, is no partition that waits to be checked', async () => {
  const disk = new MemoryDisk()
  const one = { paths: ['/a'] }
  const folders = await LogFolders.open(folderOptions(disk, one))
  await appendTo(await openPartition(folders, 0), plainBatch(0, 3, 10, T0))
  await disk.makeFolder('/a/__cluster_metadata-0')

  const killed = disk.afterKill()
  const line = folderOptions(killed, one)
  const again = await LogFolders.open(line)
  await openPartition(again, 0)
  assert.deepEqual(again.unopened, [])
  assert.match(line.log.lines.join('\n'), /opened 1 of 1 logs, checking/)
  await again.close(7)
  assert.equal((await LogFolders.open(folderOptions(killed.afterKill(), one))).previousBrokerEpoch, 7)
})

test('a folder that is added has no mark of a clean stop, and the logs of the others are not said to be checked for it', async () => {
  const disk = new MemoryDisk()
  const folders = await LogFolders.open(folderOptions(disk, { paths: ['/a'] }))
  await appendTo(await openPartition(folders, 0), plainBatch(0, 3, 10, T0))
  await folders.close(7)

  const line = folderOptions(disk, { paths: ['/a', '/b'] })
  await openPartition(await LogFolders.open(line), 0)
  assert.match(line.log.lines.join('\n'), /opened 1 of 1 logs/)
  assert.doesNotMatch(line.log.lines.join('\n'), /checking/)
})

test('who dies and rises on a machine that went on knows its epoch, unless a sync failed; after a power cut nobody does', async () => {
  const disk = new MemoryDisk()
  const one = { paths: ['/a'] }
  const previous = async (found: MemoryDisk) => (await LogFolders.open(folderOptions(found, one))).previousBrokerEpoch
  const folders = await LogFolders.open(folderOptions(disk, one))
  assert.equal(folders.previousBrokerEpoch, -1)
  await folders.registered(12)
  await folders.registered(13)
  assert.equal(await previous(disk.afterKill()), 13)
  for (let seed = 1; seed < 5; seed++) assert.equal(await previous(disk.afterPowerCut(new SeededRandom(seed))), -1)

  const { log } = await openPartition(folders, 0)
  await log.append(plainBatch(0, 3, 10, T0), 0, plainBatch(0, 3, 10, T0).length)
  disk.fault = operation => (operation === 'sync' ? 'EIO' : undefined)
  await assert.rejects(log.flush())
  disk.fault = () => undefined
  await folders.registered(14)
  assert.equal(await previous(disk.afterKill()), -1)
})

test('who stopped cleanly and is killed as it starts again, or is refused there, has still lost nothing', async () => {
  const disk = new MemoryDisk()
  const two = { paths: ['/a', '/b'] }
  await (await LogFolders.open(folderOptions(disk, two))).close(7)
  await (await LogFolders.open(folderOptions(disk, { paths: ['/of-another'], nodeId: 9 }))).close()
  const three = folderOptions(disk, { paths: [...two.paths, '/of-another'] })
  await assert.rejects(LogFolders.open(three), ForeignFolderError)
  // Killed at any moment.
  for (let operations = 0, isThrough = false; !isThrough; operations++) {
    const killed = disk.afterKill()
    let left = operations
    killed.fault = () => (left-- > 0 ? undefined : 'EIO')
    isThrough = await LogFolders.open(folderOptions(killed, two)).then(
      () => left >= 0,
      () => false,
    )
    const next = await LogFolders.open(folderOptions(killed.afterKill(), two))
    assert.equal(next.previousBrokerEpoch, 7, `after ${operations} operations`)
  }
})

test('who was killed before it heard of its epoch registers under the same id again, once', async () => {
  const one = { paths: ['/a'] }
  const disk = new MemoryDisk()
  await (await LogFolders.open(folderOptions(disk, one))).registered(7)
  const second = disk.afterKill()
  assert.equal(await (await LogFolders.open(folderOptions(second, one))).register(TOPIC_A), TOPIC_A)
  const third = second.afterKill()
  const folders = await LogFolders.open(folderOptions(third, one))
  assert.equal(folders.previousBrokerEpoch, 7)
  assert.equal(await folders.register(TOPIC_B), TOPIC_A)
  await folders.registered(8)
  const fourth = await LogFolders.open(folderOptions(third.afterKill(), one))
  assert.equal(fourth.previousBrokerEpoch, 8)
  assert.equal(await fourth.register(TOPIC_B), TOPIC_B)
})

test('where a log begins: a disk that does not take it is said, a full one is not, and who comes together shares a write', async () => {
  const disk = new MemoryDisk()
  const world = folderOptions(disk, { paths: ['/a'] })
  const folders = await LogFolders.open(world)
  const { log, fold } = await openPartition(folders, 0)
  await appendTo({ log, fold }, plainBatch(0, 5, 10, T0))
  let code = 'EIO'
  let writes = 0
  disk.fault = (operation, path) => {
    if (operation !== 'write' || !path.includes('log-start-offset')) return undefined
    writes++
    return code
  }
  log.deleteRecordsBefore(3)
  const together = () => Promise.allSettled([1, 2, 3].map(() => folders.keepStartOffset(log)))
  for (const outcome of await together()) {
    assert.ok(outcome.status === 'rejected' && outcome.reason instanceof StorageError)
  }
  assert.equal(writes, 1)
  code = 'ENOSPC'
  for (const { status } of await together()) assert.equal(status, 'fulfilled')
  assert.equal(writes, 2)
  assert.equal(world.log.lines.filter(line => line.startsWith('warn could not write a checkpoint')).length, 2)
  disk.fault = () => undefined
  await folders.checkpoint()
  assert.equal(String(disk.contentOf('/a/log-start-offset-checkpoint')), '0\n1\ntopic 0 3\n')
  await folders.close()
})

test('a log that is taken away while it is written down is no complaint about its disk', async () => {
  const disk = new MemoryDisk()
  const world = folderOptions(disk, { paths: ['/a'] })
  const clock = new ManualClock()
  const folders = await LogFolders.open({ ...world, clock })
  for (let turns = 0; turns < 40; turns++) {
    clock.advance(10)
    const one = await openPartition(folders, turns)
    await appendTo(one, plainBatch(0, 3, 10, T0))
    const checkpoint = folders.checkpoint()
    for (let turn = 0; turn < turns; turn++) await Promise.resolve()
    await Promise.all([checkpoint, folders.remove(one.log)])
  }
  assert.deepEqual(
    world.log.lines.filter(line => line.startsWith('warn')),
    [],
  )
  await folders.close()
})

test('partitions in a folder that does not say whose it is are not taken for new', async () => {
  const disk = new MemoryDisk()
  const one = { paths: ['/a'] }
  const folders = await LogFolders.open(folderOptions(disk, one))
  await openPartition(folders, 0)
  await folders.close()
  const properties = disk.contentOf('/a/meta.properties') as Buffer
  for (const useless of ['', 'version=1\n', 'cluster.id=x\nnode.id=\n']) {
    disk.put('/a/meta.properties', Buffer.from(useless))
    await assert.rejects(
      LogFolders.open(folderOptions(disk, one)),
      (error: unknown) =>
        error instanceof ForeignFolderError && /\/a\/meta\.properties.*topic-0.*restore/.test(error.message),
    )
    assert.equal(String(disk.contentOf('/a/meta.properties')), useless)
  }
  disk.put('/a/meta.properties', properties)
  const again = await LogFolders.open(folderOptions(disk, one))
  assert.equal(again.clusterId, folders.clusterId)
  await again.close()
})

test('a mark of before that the disk does not give up is tried again, and a clean stop outdoes it', async () => {
  const one = { paths: ['/a'] }
  const disk = new MemoryDisk()
  const clock = new ManualClock()
  const folders = await LogFolders.open({ ...folderOptions(disk, one), clock })
  assert.equal(await folders.register(TOPIC_A), TOPIC_A)
  let failures = 0
  disk.fault = (operation, path) =>
    operation === 'remove' && path.endsWith('boot') && failures++ < 2 ? 'EIO' : undefined
  let done = false
  const registered = folders.registered(8).then(() => {
    done = true
  })
  for (let tries = 0; tries < 10 && !done; tries++) {
    await new Promise(resolve => setImmediate(resolve))
    clock.advance(1000)
  }
  await registered
  assert.equal(failures, 3)
  assert.equal((await LogFolders.open(folderOptions(disk.afterKill(), one))).previousBrokerEpoch, 8)
  await folders.close(8)
  assert.equal(await (await LogFolders.open(folderOptions(disk.afterKill(), one))).register(TOPIC_B), TOPIC_B)
})

test('a full disk, which takes no mark, holds up nobody who registers, and keeps none of before', async () => {
  const one = { paths: ['/a'] }
  const disk = new MemoryDisk()
  const before = await LogFolders.open(folderOptions(disk, one))
  await before.registered(7)
  const killed = disk.afterKill()
  const folders = await LogFolders.open(folderOptions(killed, one))
  assert.equal(folders.previousBrokerEpoch, 7)
  killed.fault = (operation, path) => (operation === 'write' && path.endsWith('boot') ? 'ENOSPC' : undefined)
  await folders.registered(8)
  assert.equal((await LogFolders.open(folderOptions(killed.afterKill(), one))).previousBrokerEpoch, -1)
})

test('what was written down of a deleted topic says nothing of one that is made anew under its name', async () => {
  const disk = new MemoryDisk()
  const folders = await LogFolders.open(folderOptions(disk, { paths: ['/a'] }))
  const first = await openPartition(folders, 0)
  await appendTo(first, plainBatch(0, 10, 10, T0))
  first.log.deleteRecordsBefore(8)
  await folders.checkpoint()
  await folders.remove(first.log)
  const second = await openPartition(folders, 0, TOPIC_B)
  await appendTo(second, plainBatch(0, 3, 10, T0))

  const again = await LogFolders.open(folderOptions(disk.afterKill(), { paths: ['/a'] }))
  const { log, highWatermark } = await openPartition(again, 0, TOPIC_B)
  assert.deepEqual([log.startOffset, log.endOffset, highWatermark], [0, 3, 0])
  assert.deepEqual(offsetsIn(await readAll(log)), [0, 1, 2])
})

test('a log that is cut below where it began keeps what is appended then, whatever was written down before', async () => {
  const disk = new MemoryDisk()
  const folders = await LogFolders.open(folderOptions(disk, { paths: ['/a'] }))
  const opened = await openPartition(folders, 0)
  await appendTo(opened, plainBatch(0, 10, 10, T0))
  opened.log.deleteRecordsBefore(8)
  await folders.checkpoint()
  // A leader that lacks all of it was elected, as its topic allows.
  await opened.log.truncateTo(2)
  await appendTo(opened, plainBatch(opened.log.nextOffset, 3, 10, T0))
  const { startOffset, endOffset } = opened.log

  const again = await LogFolders.open(folderOptions(disk.afterKill(), { paths: ['/a'] }))
  const { log, highWatermark } = await openPartition(again, 0)
  assert.deepEqual([log.startOffset, log.endOffset, highWatermark], [startOffset, endOffset, startOffset])
})

test('a log that is still being opened when the folders close was not checked in time', async () => {
  const first = new MemoryDisk()
  const before = await LogFolders.open(folderOptions(first, { paths: ['/a'] }))
  for (const partition of [0, 1]) await appendTo(await openPartition(before, partition), plainBatch(0, 3, 10, T0))
  const disk = first.afterKill()
  const folders = await LogFolders.open(folderOptions(disk, { paths: ['/a'] }))
  const opened = await openPartition(folders, 0)
  await appendTo(opened, plainBatch(3, 3, 10, T0))
  const [listed, synced] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const { list, syncAll } = { list: disk.list.bind(disk), syncAll: disk.syncAll.bind(disk) }
  disk.list = folder => listed.promise.then(() => list(folder))
  disk.syncAll = () => synced.promise.then(syncAll)
  const opening = openPartition(folders, 1)
  const closed = folders.close(1)
  const turn = () => new Promise(resolve => setImmediate(resolve))
  await turn()
  listed.resolve()
  await opening
  await turn()
  synced.resolve()
  await closed
  assert.equal(disk.contentOf('/a/.kafka_cleanshutdown'), undefined)
})

test('a disk that hangs while it is written down what it holds keeps no other from it', async () => {
  const disk = new MemoryDisk()
  const options = folderOptions(disk)
  const clock = options.clock as ManualClock
  const folders = await LogFolders.open(options)
  const opened = [await openPartition(folders, 0), await openPartition(folders, 1)] as const
  const rename = disk.rename.bind(disk)
  disk.rename = (from, to) => (from.startsWith('/a/') ? new Promise(() => {}) : rename(from, to))
  for (const round of [1, 2]) {
    for (const one of opened) void appendTo(one, plainBatch(one.log.nextOffset, 1, 10, T0))
    await opened[1].log.flush()
    clock.advance(60_000)
    for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
    assert.equal(String(disk.contentOf('/b/recovery-point-offset-checkpoint')), `0\n1\ntopic 1 ${round}\n`)
  }
})

test('a folder below another one is not taken for it', async () => {
  const disk = new MemoryDisk()
  const folders = await LogFolders.open(folderOptions(disk, { paths: ['/a', '/a/b'] }))
  const opened = [await openPartition(folders, 0), await openPartition(folders, 1)] as const
  assert.deepEqual(
    opened.map(({ log }) => log.folder),
    ['/a/topic-0', '/a/b/topic-1'],
  )
  assert.deepEqual(
    opened.map(({ log }) => folders.directoryOf(log)),
    folders.directoryIds,
  )
  await folders.remove(opened[1].log)
  assert.ok(disk.names().some(name => /^\/a\/b\/topic-1\..*-delete\//.test(name)))
  await folders.close()
})
