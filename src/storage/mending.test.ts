import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StorageError } from './storage-error.ts'
import type { MemoryDisk } from './testing/memory-disk.ts'
import { appendTo, offsetsIn, openRig, plainBatch, type Rig, readAll, TEST_FOLDER } from './testing/rig.ts'

const T0 = 1_700_000_000_000
const FILE = `${TEST_FOLDER}/00000000000000000000.log`

/** Without entries in its index, so that whoever seeks has to walk. */
async function filled(batches: number, size = 100): Promise<Rig> {
  const rig = await openRig({ indexIntervalBytes: 1_000_000 })
  for (let index = 0; index < batches; index++) await appendTo(rig, plainBatch(index * 2, 2, size, T0 + index * 2))
  return rig
}

/** Reads take a turn of the loop, and give as many bytes as `limit` says. */
function slowReads(disk: MemoryDisk, limit: (bytes: number) => number = bytes => bytes): void {
  const open = disk.open.bind(disk)
  disk.open = async (path, how) => {
    const file = await open(path, how)
    const read = async (into: Uint8Array, position: number): Promise<number> => {
      await new Promise(setImmediate)
      return file.read(into.subarray(0, limit(into.length)), position)
    }
    return { ...file, read }
  }
}

/** Lets the log try to mend itself. */
async function mend({ clock, log }: Rig): Promise<void> {
  clock.advance(6000)
  await log.flush().catch(() => undefined)
}

test('while a failed write is cut off, readers find all that lies below the end offset', async () => {
  const disk = (await openRig()).disk
  slowReads(disk)
  const rig = await openRig({ indexIntervalBytes: 1_000_000 }, { disk })
  for (let index = 0; index < 200; index++) await appendTo(rig, plainBatch(index * 2, 2, 100, T0 + index * 2))
  rig.disk.fault = (operation, path) => (operation === 'write' && path === FILE ? 'ENOSPC' : undefined)
  await assert.rejects(appendTo(rig, plainBatch(400, 2, 100, T0 + 9999)), StorageError)
  rig.disk.fault = () => undefined

  const ask = async (from: number): Promise<void> => {
    const range = await rig.log.read(from, 1000, 400)
    assert.ok(range !== undefined, `found nothing at ${from}`)
    assert.equal(offsetsIn(await rig.log.readBytes(range))[0], from)
    assert.equal((await rig.log.offsetForTimestamp(T0 + from))?.offset, from)
    assert.equal((await rig.log.offsetOfMaxTimestamp())?.timestamp, T0 + 398)
  }
  const asked: Promise<void>[] = []
  const wrong: unknown[] = []
  rig.clock.advance(6000)
  while (rig.log.failure !== undefined) {
    for (const from of [390, (asked.length * 14) % 400]) asked.push(ask(from).catch(error => void wrong.push(error)))
    await new Promise(setImmediate)
  }
  assert.ok(asked.length > 10)
  await Promise.all(asked)
  assert.deepEqual(wrong, [])
  assert.deepEqual([rig.log.endOffset, rig.log.sizeInBytes], [400, rig.disk.contentOf(FILE)?.length])
  await rig.log.close()
})

test('a disk that gives back less than was written is a failure of the disk, and nothing is written over by it', async () => {
  const disk = (await openRig()).disk
  let most = Number.POSITIVE_INFINITY
  slowReads(disk, bytes => Math.min(bytes, most))
  const rig = await openRig({ indexIntervalBytes: 1_000_000 }, { disk })
  await appendTo(rig, plainBatch(0, 2, 20_000, T0))
  await appendTo(rig, plainBatch(2, 2, 20_000, T0))
  const before = Buffer.from(rig.disk.contentOf(FILE) as Buffer)

  most = 4096
  await assert.rejects(rig.log.offsetForTimestamp(T0), StorageError)
  await assert.rejects(rig.log.offsetOfMaxTimestamp(), StorageError)

  // After a sync that failed all that was not synced is written once more, as it is read.
  rig.disk.fault = operation => (operation === 'sync' ? 'EIO' : undefined)
  await assert.rejects(rig.log.flush(), StorageError)
  rig.disk.fault = () => undefined
  await mend(rig)
  assert.equal(rig.log.failure?.errno, 'EIO')
  assert.ok(rig.disk.contentOf(FILE)?.equals(before))
  most = Number.POSITIVE_INFINITY
  await mend(rig)
  assert.equal(rig.log.failure, undefined)
  assert.ok(rig.disk.contentOf(FILE)?.equals(before))
  await rig.log.close()
})

test('a log whose batches cannot be walked is not cut, and is read as far as it can be', async () => {
  const rig = await filled(100)
  const content = rig.disk.contentOf(FILE) as Buffer
  const at = content.length >> 1
  const good = Buffer.from(content)
  content.fill(0xff, at)
  await assert.rejects(rig.log.truncateTo(190), StorageError)
  assert.equal(rig.disk.contentOf(FILE)?.length, good.length)
  assert.equal(offsetsIn(await rig.log.readBytes((await rig.log.read(20, 1000, 190)) as never))[0], 20)
  await mend(rig)
  assert.equal(rig.log.failure?.errno, 'EIO')
  good.copy(content)
  await mend(rig)
  assert.equal(rig.log.failure, undefined)
  assert.equal(rig.log.endOffset, 190)
  assert.equal(offsetsIn(await readAll(rig.log)).length, 190)
  await rig.log.close()
})

test('retention that fails half way goes on where it stopped', async () => {
  const rig = await openRig({ segmentBytes: 1000, retentionBytes: 0, retentionMs: -1 })
  for (let index = 0; index < 20; index++) await appendTo(rig, plainBatch(index * 2, 2, 100, T0))
  // All of it goes, so an empty one is made first.
  const segmentCount = rig.log.segmentCount + 1
  const logs = () => rig.disk.names().filter(name => /\.log(\.deleted)?$/.test(name))
  let renames = 0
  rig.disk.fault = (operation, path) =>
    operation === 'rename' && path.endsWith('.log') && ++renames === 3 ? 'EIO' : undefined
  await assert.rejects(rig.log.retain(T0, 40), StorageError)
  assert.equal(rig.log.segmentCount, segmentCount - 2)
  assert.equal(rig.log.startOffset, 40)
  rig.clock.advance(100_000)
  await rig.log.checkpoint()
  assert.equal(logs().length, segmentCount - 2)

  rig.disk.fault = () => undefined
  assert.equal(await rig.log.retain(T0, 40), segmentCount - 3)
  rig.clock.advance(100_000)
  await rig.log.flush()
  await rig.log.close()
  assert.deepEqual([logs().length, rig.log.segmentCount], [1, 1])
})

test('the next offset falls back to the end as soon as an append or a cut fails', async () => {
  const rig = await filled(10)
  rig.disk.fault = operation => (operation === 'write' ? 'EIO' : undefined)
  await assert.rejects(appendTo(rig, plainBatch(20, 2, 100, T0)), StorageError)
  assert.deepEqual([rig.log.nextOffset, rig.log.endOffset], [20, 20])
  rig.disk.fault = () => undefined
  await mend(rig)
  // Whoever keeps what is appended has to know at once how much of it is void, and not when the disk is well again.
  rig.disk.fault = operation => (operation === 'truncate' ? 'EIO' : undefined)
  await assert.rejects(rig.log.truncateTo(10), StorageError)
  assert.deepEqual([rig.log.nextOffset, rig.log.endOffset], [10, 10])
  rig.disk.fault = () => undefined
  await mend(rig)
  assert.deepEqual([rig.log.failure, rig.log.nextOffset, rig.log.endOffset], [undefined, 10, 10])
  await rig.log.close()
})

test('a sync that fails while the log is mended has what it was for written once more', async () => {
  const rig = await openRig({ flushMs: 251 })
  await appendTo(rig, plainBatch(0, 2, 100, T0))
  rig.disk.fault = (operation, path) => (operation === 'write' && path === FILE ? 'ENOSPC' : undefined)
  await assert.rejects(appendTo(rig, plainBatch(2, 2, 100, T0)), StorageError)
  let syncs = 0
  let writes = 0
  rig.disk.fault = (operation, path) => {
    if (path !== FILE) return undefined
    if (operation === 'write') writes++
    return operation === 'sync' && syncs++ === 0 ? 'EIO' : undefined
  }
  // The mending begins, and in the midst of it what was appended before is to be synced.
  rig.clock.advance(250)
  rig.clock.advance(1)
  for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate)
  assert.ok(syncs >= 1 && rig.log.failure !== undefined)
  writes = 0
  await mend(rig)
  for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate)
  assert.equal(rig.log.failure, undefined)
  // The unsynced batch, and the probe.
  assert.equal(writes, 2)
})
