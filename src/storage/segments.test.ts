import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lastOffset, maxTimestamp } from '#records/batch.ts'
import { Segment } from './segment.ts'
import { SegmentCache } from './segment-cache.ts'
import { Segments } from './segments.ts'
import { syncEach } from './syncs.ts'
import { MemoryDisk } from './testing/memory-disk.ts'
import { ManualClock, plainBatch, TEST_FOLDER } from './testing/rig.ts'

/** The files of a log at offset 0 that holds nothing. */
async function rig() {
  const disk = new MemoryDisk()
  await disk.makeFolder(TEST_FOLDER)
  const clock = new ManualClock()
  const place = { disk, folder: TEST_FOLDER, cache: new SegmentCache(clock) }
  const first = new Segment(place, 0, clock.now())
  await first.resume(0)
  first.nameUnsynced = true
  const segments = new Segments(place, clock, [first], true)
  const grow = async (baseOffset: number, count: number): Promise<void> => {
    const bytes = plainBatch(baseOffset, count, 100, clock.now())
    const { active } = segments
    await (await active.openWritable()).write([bytes], active.size)
    active.added(baseOffset, lastOffset(bytes, 0), bytes.length, maxTimestamp(bytes, 0), 4096)
    active.unsynced = true
  }
  const logs = () =>
    disk
      .names()
      .filter(name => name.endsWith('.log'))
      .map(name => Number.parseInt(name.slice(TEST_FOLDER.length + 1), 10))
  return { disk, segments, grow, logs, syncs: syncEach(disk) }
}

test('another one follows a full one, and takes the place of an empty one', async () => {
  const { segments, grow, logs } = await rig()
  await grow(0, 5)
  const full = await segments.begin(5)
  assert.equal(full?.baseOffset, 0)
  assert.equal(full.busy, false)
  assert.equal(await segments.begin(9), undefined)
  assert.deepEqual(segments.bases(), [0, 9])
  assert.deepEqual(logs(), [0, 9])
})

test('the file of one that could not begin is taken away', async () => {
  const { disk, segments, grow, logs } = await rig()
  await grow(0, 5)
  disk.fault = operation => (operation === 'size' ? 'EIO' : undefined)
  await assert.rejects(segments.begin(5))
  assert.deepEqual([segments.bases(), logs()], [[0], [0, 5]])
  disk.fault = () => undefined
  await segments.removeUnborn()
  assert.deepEqual(logs(), [0])
})

test('older ones are synced first, then the names, and what failed is synced again', async () => {
  const { disk, segments, grow, syncs } = await rig()
  await grow(0, 5)
  await segments.begin(5)
  await grow(5, 5)
  const synced: string[] = []
  let failing = '5.log'
  disk.fault = (operation, path) => {
    if (!operation.startsWith('sync')) return undefined
    if (path.endsWith(failing)) return 'EIO'
    synced.push(path.replace(/^.*\/0*(?=\d)/, ''))
    return undefined
  }
  await assert.rejects(segments.sync(syncs))
  assert.deepEqual(synced, ['0.log'])
  assert.ok(segments.isUnsynced)
  failing = 'none'
  synced.length = 0
  await segments.sync(syncs)
  assert.deepEqual(synced, ['5.log', '/data/topic-0', '/data'])
  assert.equal(segments.isUnsynced, false)
  synced.length = 0
  await segments.sync(syncs)
  assert.deepEqual(synced, [])
})

test('a cut takes the whole batch and all files behind it, whose names do not come back', async () => {
  const { disk, segments, grow, logs } = await rig()
  for (const base of [0, 10, 20]) {
    if (base > 0) await segments.begin(base)
    await grow(base, 5)
    await grow(base + 5, 5)
  }
  const synced: string[] = []
  disk.fault = (operation, path) => {
    if (operation === 'syncFolder') synced.push(path)
    return undefined
  }
  assert.equal(await segments.cut(17), 15)
  assert.deepEqual([segments.bases(), logs(), synced], [[0, 10], [0, 10], [TEST_FOLDER]])
  assert.ok(segments.active.busy)
  assert.equal(await segments.cut(10), 10)
  assert.deepEqual([segments.bases(), segments.active.size], [[0, 10], 0])
})

test('thrown away, they leave an empty one whose name says where the log begins', async () => {
  const { disk, segments, grow, logs } = await rig()
  await grow(0, 5)
  await segments.begin(5)
  await grow(5, 5)
  await segments.restart(42)
  assert.deepEqual([segments.bases(), logs()], [[42], [42]])
  assert.equal(disk.contentOf(segments.active.filePath)?.length, 0)
})
