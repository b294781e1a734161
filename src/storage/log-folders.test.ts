import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { SeededRandom } from '#base/random.ts'
import type { Uuid } from '#base/uuid.ts'
import { realWorld } from '#world/real/real.ts'
import { LOG_CONFIG_DEFAULT } from './log-config.ts'
import { LogFolders, type LogFoldersOptions, type OpenedPartition } from './log-folders.ts'
import { ForeignFolderError } from './meta-properties.ts'
import { parsePartitionFolderName, suffixedFolderName } from './partition-folder.ts'
import { DamagedLogError, StorageError } from './storage-error.ts'
import { MemoryDisk } from './testing/memory-disk.ts'
import { appendTo, LastBatchFold, LinesLogger, ManualClock, offsetsIn, plainBatch, readAll } from './testing/rig.ts'

const TOPIC_A = 'AAAAAAAAAAAAAAAAAAAAAg' as Uuid
const TOPIC_B = 'AAAAAAAAAAAAAAAAAAAAAw' as Uuid
const T0 = 1_700_000_000_000

function options(disk: MemoryDisk, more: Partial<LogFoldersOptions> = {}): LogFoldersOptions & { log: LinesLogger } {
  const random = new SeededRandom(1)
  return {
    disk,
    clock: new ManualClock(),
    random,
    log: new LinesLogger(),
    paths: ['/a', '/b'],
    nodeId: 1,
    ...more,
  } as LogFoldersOptions & { log: LinesLogger }
}

async function openPartition(
  folders: LogFolders,
  partition: number,
  topicId: Uuid = TOPIC_A,
): Promise<OpenedPartition & { readonly fold: LastBatchFold }> {
  const fold = new LastBatchFold()
  return { fold, ...(await folders.open({ topic: 'topic', topicId, partition, config: LOG_CONFIG_DEFAULT, fold })) }
}

test('an empty folder becomes a cluster, and is found again', async () => {
  const disk = new MemoryDisk()
  const folders = await LogFolders.open(options(disk))
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

  const again = await LogFolders.open(options(disk))
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
  const folders = await LogFolders.open(options(disk, { paths: ['/a'] }))
  await appendTo(await openPartition(folders, 0), plainBatch(0, 3, 10, T0))
  await folders.checkpoint()
  const killed = disk.afterKill()
  const second = await LogFolders.open(options(killed, { paths: ['/a'] }))
  await second.close(1)
  assert.equal(killed.contentOf('/a/.kafka_cleanshutdown'), undefined)
  assert.match(String(killed.contentOf('/a/recovery-point-offset-checkpoint')), /topic 0 3/)
  const third = await LogFolders.open(options(killed, { paths: ['/a'] }))
  await openPartition(third, 0)
  await third.close(1)
  assert.notEqual(killed.contentOf('/a/.kafka_cleanshutdown'), undefined)
})

test('with flush.messages, what a dead process left unsynced is durable before it is served', async () => {
  const disk = new MemoryDisk()
  const folders = await LogFolders.open(options(disk, { paths: ['/a'] }))
  await appendTo(await openPartition(folders, 0), plainBatch(0, 3, 10, T0))
  const open = async (flushMessages: number) => {
    const again = await LogFolders.open(options(disk.afterKill(), { paths: ['/a'] }))
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
  const folders = await LogFolders.open(options(disk, { paths: ['/a'] }))
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
  const again = await LogFolders.open(options(disk, { paths: ['/a'], log }))
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

test('folders of another node or cluster are refused by name', async () => {
  const disk = new MemoryDisk()
  await (await LogFolders.open(options(disk))).close()
  await assert.rejects(LogFolders.open(options(disk, { nodeId: 2 })), ForeignFolderError)
  await assert.rejects(LogFolders.open(options(disk, { clusterId: TOPIC_B })), /\/a belongs to cluster/)
})

test('folders of a node that joins belong to no cluster until it knows which', async () => {
  const disk = new MemoryDisk()
  const text = async (path: string) => Buffer.from((await disk.readFile(`${path}/meta.properties`)) ?? []).toString()
  const folders = await LogFolders.open(options(disk, { awaitsCluster: true }))
  assert.equal(folders.clusterId, undefined)
  assert.doesNotMatch(await text('/a'), /cluster\.id/)
  const { directoryIds } = folders
  // The log of a quorum is there before its first leader founded the cluster.
  await disk.makeFolder('/a/__cluster_metadata-0')
  await folders.close()
  const again = await LogFolders.open(options(disk, { awaitsCluster: true }))
  assert.deepEqual(again.directoryIds, directoryIds)
  await again.found(TOPIC_B)
  assert.equal(again.clusterId, TOPIC_B)
  for (const path of ['/a', '/b']) assert.match(await text(path), new RegExp(`^cluster\\.id=${TOPIC_B}$`, 'm'))
  await again.close()
  const third = await LogFolders.open(options(disk, { awaitsCluster: true }))
  assert.equal(third.clusterId, TOPIC_B)
  await third.close()
})

test('a folder with metadata and without its cluster does not become a new one', async () => {
  const disk = new MemoryDisk()
  await (await LogFolders.open(options(disk, { awaitsCluster: true }))).close()
  await disk.makeFolder('/a/__cluster_metadata-0')
  await assert.rejects(LogFolders.open(options(disk)), /does not say whose folder this is/)
})

test('a folder that fails is offline and the other goes on', async () => {
  const disk = new MemoryDisk()
  await (await LogFolders.open(options(disk))).close(7)
  disk.fault = (operation, name) => (operation === 'readFile' && name.startsWith('/a/') ? 'EIO' : undefined)
  const world = options(disk)
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
  await assert.rejects(LogFolders.open(options(disk)), StorageError)
})

test('a deleted partition is gone at once, its files later, and its name is free', async () => {
  const disk = new MemoryDisk()
  const world = options(disk, { paths: ['/a'] })
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
  const world = options(disk, { paths: ['/a'] })
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
  await (await LogFolders.open(options(disk, { paths: ['/a'] }))).close()
  assert.ok(!isLeft())
})

test('the name of a deleted partition is free though the disk did not sync that its folder was moved aside', async () => {
  const disk = new MemoryDisk()
  const folders = await LogFolders.open(options(disk, { paths: ['/a'] }))
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

test('a topic made anew under its name waits for the folder of the one before', async () => {
  const disk = new MemoryDisk()
  const world = options(disk, { paths: ['/a'] })
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
  const again = await LogFolders.open(options(disk, { paths: ['/a'] }))
  assert.deepEqual(offsetsIn(await readAll((await openPartition(again, 0, TOPIC_B)).log)), [0, 1])
  await again.close()
})

test('a folder that could not be taken away does not become that of a new topic', async () => {
  const disk = new MemoryDisk()
  const folders = await LogFolders.open(options(disk, { paths: ['/a'] }))
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

test('a log that could not be opened does not come back over the one that was opened after it', async () => {
  for (const failing of ['sync', 'rename']) {
    const disk = new MemoryDisk()
    const folders = await LogFolders.open(options(disk, { paths: ['/a'] }))
    const first = await openPartition(folders, 0)
    for (let batch = 0; batch < 3; batch++) await appendTo(first, plainBatch(batch * 2, 2, 10, T0))
    first.log.deleteRecordsBefore(2)
    await folders.keepStartOffset(first.log)
    const left = disk.afterKill()
    // Before the log is served what was not synced has to be, or a recovery point that is too high to be lowered.
    const point = failing === 'sync' ? 0 : 100
    left.put('/a/recovery-point-offset-checkpoint', Buffer.from(`0\n1\ntopic 0 ${point}\n`))

    const world = options(left, { paths: ['/a'] })
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
  const folders = await LogFolders.open(options(disk, { paths: ['/a'] }))
  await appendTo(await openPartition(folders, 0), plainBatch(0, 3, 10, T0))
  await openPartition(folders, 1)
  await folders.close()
  const again = await LogFolders.open(options(disk, { paths: ['/a'] }))
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
    const first = await LogFolders.open(options(disk, { paths: ['/a'] }))
    await appendTo(await openPartition(first, 0), plainBatch(0, 3, 10, T0))
    await first.close()
    const clock = new ManualClock()
    const folders = await LogFolders.open(options(disk, { paths: ['/a'], clock }))
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
  const folders = await LogFolders.open(options(new MemoryDisk(), { paths: ['/a'], clock }))
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
  const folders = await LogFolders.open(options(disk, { paths: ['/a'] }))
  const opened = await openPartition(folders, 0)
  for (let batch = 0; batch < 5; batch++) await appendTo(opened, plainBatch(batch * 2, 2, 10, T0))
  opened.log.deleteRecordsBefore(7)
  await folders.keepStartOffset(opened.log)

  const killed = await openPartition(await LogFolders.open(options(disk.afterKill(), { paths: ['/a'] })), 0)
  assert.deepEqual([killed.log.startOffset, killed.log.endOffset], [7, 10])
  // A power cut may take the records and leave the start: then the log begins where it was said to.
  const cut = await openPartition(
    await LogFolders.open(options(disk.afterPowerCut(new SeededRandom(3)), { paths: ['/a'] })),
    0,
  )
  assert.ok(cut.log.startOffset >= 7 && cut.log.endOffset >= cut.log.startOffset)
})

test('the log of the metadata, which others open, is no partition that waits to be checked', async () => {
  const disk = new MemoryDisk()
  const one = { paths: ['/a'] }
  const folders = await LogFolders.open(options(disk, one))
  await appendTo(await openPartition(folders, 0), plainBatch(0, 3, 10, T0))
  await disk.makeFolder('/a/__cluster_metadata-0')

  const killed = disk.afterKill()
  const line = options(killed, one)
  const again = await LogFolders.open(line)
  await openPartition(again, 0)
  assert.deepEqual(again.unopened, [])
  assert.match(line.log.lines.join('\n'), /opened 1 of 1 logs, checking/)
  await again.close(7)
  assert.equal((await LogFolders.open(options(killed.afterKill(), one))).previousBrokerEpoch, 7)
})

test('who dies and rises on a machine that went on knows its epoch, unless a sync failed; after a power cut nobody does', async () => {
  const disk = new MemoryDisk()
  const one = { paths: ['/a'] }
  const previous = async (found: MemoryDisk) => (await LogFolders.open(options(found, one))).previousBrokerEpoch
  const folders = await LogFolders.open(options(disk, one))
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

test('who was killed before it heard of its epoch registers under the same id again, once', async () => {
  const one = { paths: ['/a'] }
  const disk = new MemoryDisk()
  await (await LogFolders.open(options(disk, one))).registered(7)
  const second = disk.afterKill()
  assert.equal(await (await LogFolders.open(options(second, one))).register(TOPIC_A), TOPIC_A)
  const third = second.afterKill()
  const folders = await LogFolders.open(options(third, one))
  assert.equal(folders.previousBrokerEpoch, 7)
  assert.equal(await folders.register(TOPIC_B), TOPIC_A)
  await folders.registered(8)
  const fourth = await LogFolders.open(options(third.afterKill(), one))
  assert.equal(fourth.previousBrokerEpoch, 8)
  assert.equal(await fourth.register(TOPIC_B), TOPIC_B)
})

test('where a log begins: a disk that does not take it is said, a full one is not, and who comes together shares a write', async () => {
  const disk = new MemoryDisk()
  const world = options(disk, { paths: ['/a'] })
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
  assert.equal(world.log.lines.filter(line => line.includes('could not write a checkpoint')).length, 2)
  disk.fault = () => undefined
  await folders.checkpoint()
  assert.equal(String(disk.contentOf('/a/log-start-offset-checkpoint')), '0\n1\ntopic 0 3\n')
  await folders.close()
})

test('partitions in a folder that does not say whose it is are not taken for new', async () => {
  const disk = new MemoryDisk()
  const one = { paths: ['/a'] }
  const folders = await LogFolders.open(options(disk, one))
  await openPartition(folders, 0)
  await folders.close()
  const properties = disk.contentOf('/a/meta.properties') as Buffer
  for (const useless of ['', 'version=1\n', 'cluster.id=x\nnode.id=\n']) {
    disk.put('/a/meta.properties', Buffer.from(useless))
    await assert.rejects(
      LogFolders.open(options(disk, one)),
      (error: unknown) =>
        error instanceof ForeignFolderError && /\/a\/meta\.properties.*topic-0.*restore/.test(error.message),
    )
    assert.equal(String(disk.contentOf('/a/meta.properties')), useless)
  }
  disk.put('/a/meta.properties', properties)
  const again = await LogFolders.open(options(disk, one))
  assert.equal(again.clusterId, folders.clusterId)
  await again.close()
})

test('a mark of before that the disk does not give up is tried again, and a clean stop outdoes it', async () => {
  const one = { paths: ['/a'] }
  const disk = new MemoryDisk()
  const clock = new ManualClock()
  const folders = await LogFolders.open({ ...options(disk, one), clock })
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
  assert.equal((await LogFolders.open(options(disk.afterKill(), one))).previousBrokerEpoch, 8)
  await folders.close(8)
  assert.equal(await (await LogFolders.open(options(disk.afterKill(), one))).register(TOPIC_B), TOPIC_B)
})
