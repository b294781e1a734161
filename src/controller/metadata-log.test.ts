import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SeededRandom } from '#base/random.ts'
import { StorageError } from '#storage/storage-error.ts'
import { SyncedOffset } from '#storage/synced-offset.ts'
import { MemoryDisk } from '#storage/testing/memory-disk.ts'
import { LinesLogger, ManualClock } from '#storage/testing/rig.ts'
import { MetadataLog } from './metadata-log.ts'

const TOPIC_ID = 'AAAAAAAAAAAAAAAAAAAAAg'
const TOPICS = 100

test('a log that is being mended is not taken for a shorter one', async () => {
  const disk = new MemoryDisk()
  const open = disk.open.bind(disk)
  disk.open = async (path, how) => {
    const file = await open(path, how)
    const read = async (into: Uint8Array, position: number) => {
      // The end is where a log is mended.
      for (let turn = position > 10_000 ? 20 : 0; turn > 0; turn--) await new Promise(setImmediate)
      return await file.read(into, position)
    }
    return { ...file, read }
  }
  const clock = new ManualClock()
  const log = await MetadataLog.open({ disk, clock, log: new LinesLogger(), folder: '/data' })
  const append = (name: string) =>
    log.appendRecords(1, [{ type: 'Topic', version: 0, value: { name, topicId: TOPIC_ID } }]).done
  for (let topic = 0; topic < TOPICS; topic++) await append(`${'long'.repeat(30)}-${topic}`)

  disk.fault = (operation, path) => (operation === 'write' && path.endsWith('.log') ? 'ENOSPC' : undefined)
  await assert.rejects(append('refused'), StorageError)
  const offsets: Promise<number | undefined>[] = []
  const fold = async (): Promise<number | undefined> => {
    try {
      return (await log.fold()).image.offset
    } catch (error) {
      assert.ok(error instanceof StorageError)
      return undefined
    }
  }
  disk.fault = () => undefined
  clock.advance(6000)
  for (let turn = 0; turn < 300; turn++) {
    offsets.push(fold())
    await new Promise(setImmediate)
  }
  for (const offset of await Promise.all(offsets)) assert.ok(offset === undefined || offset === TOPICS - 1, `${offset}`)
  await append('later')
  assert.equal(await fold(), TOPICS)
  await log.close()
})

/** A metadata log with so many topics, one batch each, as a dead process leaves it. */
async function killed(topics: number): Promise<MemoryDisk> {
  const disk = new MemoryDisk()
  const log = await MetadataLog.open({ disk, clock: new ManualClock(), log: new LinesLogger(), folder: '/data' })
  for (let topic = 0; topic < topics; topic++) {
    await log.appendRecords(1, [{ type: 'Topic', version: 0, value: { name: `topic-${topic}`, topicId: TOPIC_ID } }])
      .done
  }
  await new Promise(setImmediate)
  return disk.afterKill()
}

const FILE = '/data/__cluster_metadata-0/00000000000000000000.log'
const SYNCED = '/data/__cluster_metadata-0/synced-offset'

const reopen = (disk: MemoryDisk) =>
  MetadataLog.open({ disk, clock: new ManualClock(), log: new LinesLogger(), folder: '/data' })

function flip(disk: MemoryDisk, path: string, at: number): void {
  const bytes = Buffer.from(disk.contentOf(path) ?? Buffer.alloc(0))
  bytes[at] = (bytes[at] ?? 0) ^ 1
  disk.put(path, bytes)
}

test('damage in what was synced refuses the start, changes nothing, and says file, position and cure', async () => {
  const disk = await killed(10)
  const whole = disk.contentOf(FILE) as Buffer
  const batch = whole.length / 10
  flip(disk, FILE, batch * 4 + 80)
  const before = disk.contentOf(FILE)
  await assert.rejects(reopen(disk), (error: Error) => {
    assert.equal(error.name, 'LostMetadataError')
    assert.match(
      error.message,
      new RegExp(`${FILE} is damaged at position ${batch * 4}, offset 4 .*synced up to offset 10`),
    )
    assert.ok(error.message.endsWith(`truncate -s ${batch * 4} ${FILE} && rm -f ${SYNCED}`), error.message)
    return true
  })
  assert.equal(disk.contentOf(FILE), before)
  // The cure that the message names.
  disk.put(FILE, (before as Buffer).subarray(0, batch * 4))
  await disk.remove(SYNCED)
  const log = await reopen(disk)
  assert.equal(log.endOffset, 4)
  await log.close()
})

test('a log that is shorter than what was synced refuses the start', async () => {
  const disk = await killed(10)
  const whole = disk.contentOf(FILE) as Buffer
  disk.put(FILE, whole.subarray(0, (whole.length / 10) * 7))
  await assert.rejects(reopen(disk), /ends at offset 7 and was synced up to 10/)
  await disk.remove(FILE)
  await assert.rejects(reopen(disk), /ends at offset 0 and was synced up to 10/)
})

test('what no sync vouched for is cut off as a torn tail, also when whole batches follow', async () => {
  const disk = await killed(10)
  const batch = (disk.contentOf(FILE) as Buffer).length / 10
  // As a power cut may leave it: the file was not synced, so it speaks of less.
  const older = await killed(6)
  disk.put(SYNCED, older.contentOf(SYNCED) as Buffer)
  flip(disk, FILE, batch * 7 + 80)
  const log = await reopen(disk)
  assert.equal(log.endOffset, 7)
  await log.close()
})

test('of the file that tells how far the log was synced one slot is always whole', async () => {
  for (let at = 0; at < 64; at++) {
    const disk = await killed(10)
    flip(disk, SYNCED, at)
    const { offset } = await SyncedOffset.read(disk, '/data/__cluster_metadata-0')
    assert.ok(offset === 10 || offset === 9, `${offset} with byte ${at} wrong`)
  }
})

/** Stores a snapshot of all that is below its end. */
async function snapshot(log: MetadataLog, endOffset: number): Promise<{ endOffset: number; epoch: number }> {
  const id = { endOffset, epoch: 1 }
  const { image, lastTimestamp } = await log.fold(endOffset)
  const building = log.snapshotOf({ id, image, kraftVersion: 0, voters: [], lastTimestamp })
  let step = building.next()
  while (step.done !== true) step = building.next()
  await log.storeSnapshot(id, step.value, endOffset)
  return id
}

test('a damaged snapshot is given to nobody: the one before it and the log have all that it had', async () => {
  const disk = await killed(10)
  const before = await reopen(disk)
  const first = await snapshot(before, 5)
  const second = await snapshot(before, 9)
  await before.close()
  flip(disk, '/data/__cluster_metadata-0/00000000000000000009-0000000001.checkpoint', 100)
  const log = await reopen(disk)
  assert.equal((await log.fold()).image.offset, 9)
  assert.deepEqual(log.latestSnapshot, first)
  assert.equal(log.findSnapshot(second), undefined)
  assert.equal(log.startOffset, 5)
  await log.close()
})

test('a snapshot that the disk does not take leaves nothing behind: the log needs the room', async () => {
  const disk = await killed(10)
  const log = await reopen(disk)
  const id = { endOffset: 10, epoch: 1 }
  const { image, lastTimestamp } = await log.fold()
  const building = log.snapshotOf({ id, image, kraftVersion: 0, voters: [], lastTimestamp })
  let step = building.next()
  while (step.done !== true) step = building.next()
  const parts = step.value
  const files = async () =>
    (await disk.list('/data/__cluster_metadata-0')).filter(({ name }) => name.includes('.checkpoint'))
  for (const failing of ['write', 'sync', 'rename'] as const) {
    disk.fault = (operation, path) => (operation === failing && path.includes('.checkpoint') ? 'ENOSPC' : undefined)
    await assert.rejects(log.storeSnapshot(id, parts, 10))
    assert.deepEqual(await files(), [], failing)
  }
  disk.fault = () => undefined
  const incoming = await log.beginSnapshot({ endOffset: 20, epoch: 1 })
  disk.fault = (operation, path) => (operation === 'write' && path.includes('.checkpoint') ? 'ENOSPC' : undefined)
  await assert.rejects(incoming.append(Buffer.alloc(100)))
  await log.forgoSnapshot(incoming)
  assert.deepEqual(await files(), [])
  disk.fault = () => undefined
  await log.storeSnapshot(id, parts, 10)
  assert.equal((await files()).length, 1)
  await log.close()
})

test('what rots on the disk while the log is open is not folded, and not left out either', async () => {
  const disk = await killed(10)
  const log = await reopen(disk)
  const file = disk.contentOf(FILE) as Buffer
  const batch = file.length / 10
  for (const at of [80, 11]) {
    file[batch * 4 + at] = (file[batch * 4 + at] as number) ^ 1
    await assert.rejects(log.fold(), StorageError)
    assert.equal((await log.fold(4)).image.offset, 3)
    file[batch * 4 + at] = (file[batch * 4 + at] as number) ^ 1
    assert.equal((await log.fold()).image.offset, 9)
  }
  // Another batch in its place, whole by itself.
  file.copyWithin(batch * 4, batch * 5, batch * 6)
  await assert.rejects(log.fold(), StorageError)
  await log.close()
})

test('a node that dies while its log begins anew at a snapshot below its end starts again', async () => {
  const source = await killed(5)
  const from = await reopen(source)
  const id = { endOffset: 5, epoch: 2 }
  const { image, lastTimestamp } = await from.fold()
  const building = from.snapshotOf({ id, image, kraftVersion: 0, voters: [], lastTimestamp })
  let step = building.next()
  while (step.done !== true) step = building.next()
  const snapshotBytes = Buffer.concat(step.value)
  await from.close()
  for (let dies = 1, isOver = false; !isOver; dies++) {
    // It holds more than the leader's snapshot, of a term that committed nothing.
    const disk = await killed(10)
    const log = await reopen(disk)
    const incoming = await log.beginSnapshot(id)
    await incoming.append(snapshotBytes)
    assert.equal(await log.install(incoming), true)
    let left = dies
    disk.fault = () => (left-- > 0 ? undefined : 'EIO')
    isOver = await log.restartAt(id).then(
      () => true,
      () => false,
    )
    disk.fault = () => undefined
    // Also when the disk took it the second time.
    for (const isAgain of [false, true]) {
      if (isAgain) await log.restartAt(id)
      for (const after of [disk.afterKill(), disk.afterPowerCut(new SeededRandom(dies))]) {
        const found = await reopen(after)
        const topics = (await found.fold()).image.topics.size
        assert.deepEqual([found.startOffset, found.endOffset, topics], [5, 5, 1], `${dies}`)
        await found.close()
      }
    }
  }
})
