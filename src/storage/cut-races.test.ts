import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StorageError } from './storage-error.ts'
import { MemoryDisk } from './testing/memory-disk.ts'
import { appendNowTo, appendTo, offsetsIn, openRig, plainBatch, readAll } from './testing/rig.ts'

const T0 = 1_700_000_000_000

/** Holds removals of files until they are let go. */
function hold(disk: MemoryDisk): { readonly held: () => number; letGo(): void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  let held = 0
  const remove = disk.remove.bind(disk)
  disk.remove = async path => {
    held++
    await promise
    await remove(path)
  }
  return { held: () => held, letGo: resolve }
}

async function turns(count = 20): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate)
}

test('what is known of producers is not written down while a cut reads it anew', async () => {
  const rig = await openRig()
  for (let index = 0; index < 4; index++) {
    await appendTo(rig, plainBatch(index * 2, 2, 100, T0, { producerId: index + 1, producerEpoch: 0, baseSequence: 0 }))
  }
  await rig.log.checkpoint()
  for (let index = 4; index < 8; index++) {
    await appendTo(rig, plainBatch(index * 2, 2, 100, T0, { producerId: index + 1, producerEpoch: 0, baseSequence: 0 }))
  }
  const restore = rig.fold.restore.bind(rig.fold)
  let restored = false
  rig.fold.restore = entries => {
    restore(entries)
    restored = true
  }
  const apply = rig.fold.apply.bind(rig.fold)
  let checkpoint: Promise<void> | undefined
  rig.fold.apply = (buffer, at) => {
    if (restored) checkpoint ??= rig.log.checkpoint()
    return apply(buffer, at)
  }
  await rig.log.truncateTo(14)
  await checkpoint
  assert.ok(checkpoint !== undefined)
  assert.equal(rig.fold.producers.size, 7)
  await rig.log.close()
  const again = await openRig({}, { disk: rig.disk })
  assert.deepEqual([...again.fold.producers.keys()], [1, 2, 3, 4, 5, 6, 7])
})

test('a log that begins anew while retention takes away all that it held ends where it begins', async () => {
  const rig = await openRig({ segmentBytes: 1000, retentionMs: 1000 })
  for (let index = 0; index < 4; index++) await appendTo(rig, plainBatch(index * 2, 2, 100, T0))
  const gate = hold(rig.disk)
  const anew = rig.log.truncateFullyAndStartAt(100)
  while (gate.held() === 0) await turns(1)
  const retained = rig.log.retain(T0 + 1_000_000, 8)
  await turns()
  gate.letGo()
  await anew
  await retained.catch(() => undefined)
  await turns()
  assert.deepEqual([rig.log.startOffset, rig.log.endOffset, rig.log.nextOffset], [100, 100, 100])
  await appendTo(rig, plainBatch(100, 2, 100, T0))
  assert.deepEqual(offsetsIn(await readAll(rig.log)), [100, 101])
  await rig.log.close()
})

test('a roll that comes while the log is cut leaves it where it was cut', async () => {
  const rig = await openRig({ segmentBytes: 600 })
  for (let index = 0; index < 4; index++) await appendTo(rig, plainBatch(index * 2, 2, 100, T0))
  const gate = hold(rig.disk)
  const cut = rig.log.truncateTo(2)
  while (gate.held() === 0) await turns(1)
  const rolled = rig.log.roll()
  gate.letGo()
  await Promise.all([cut, rolled])
  assert.deepEqual([rig.log.endOffset, rig.log.nextOffset], [2, 2])
  await appendTo(rig, plainBatch(2, 2, 100, T0))
  assert.deepEqual([rig.log.endOffset, rig.log.nextOffset], [4, 4])
  await rig.log.close()
  const again = await openRig({}, { disk: rig.disk })
  assert.deepEqual(offsetsIn(await readAll(again.log)), [0, 1, 2, 3])
})

test('a reader that is on its way while the log is cut leaves nothing behind that later ones would believe', async () => {
  const disk = new MemoryDisk()
  const open = disk.open.bind(disk)
  let gate: Promise<void> | undefined
  let held = 0
  disk.open = async (path, how) => {
    const file = await open(path, how)
    const read = async (into: Uint8Array, position: number): Promise<number> => {
      const count = await file.read(into, position)
      if (gate !== undefined) held++
      await gate
      return count
    }
    return { ...file, read }
  }
  const rig = await openRig({ indexIntervalBytes: 1_000_000 }, { disk })
  // More than the recent ones, of which the log knows the ends without a look.
  for (let index = 0; index < 1100; index++) await appendTo(rig, plainBatch(index * 2, 2, 100, T0))
  // Found in the file, and its end with it.
  const first = await rig.log.read(0, 600, 2200)
  assert.equal(first?.nextOffset, 4)
  const { promise, resolve } = Promise.withResolvers<void>()
  gate = promise
  const late = Promise.resolve(rig.log.read(4, 600, 2200))
  while (held === 0) await turns(1)
  // The cut overtakes it.
  gate = undefined
  await rig.log.truncateTo(2)
  resolve()
  const nextOffset = (await late)?.nextOffset
  assert.equal(nextOffset, 8)
  for (let index = 0; index < 1300; index++) await appendTo(rig, plainBatch(2 + index * 2, 2, 77, T0))
  const range = await rig.log.read(8, 600, 2000)
  assert.deepEqual(range && offsetsIn(await rig.log.readBytes(range)).slice(0, 2), [8, 9])
  await rig.log.close()
})

test('segments that retention takes away while they are synced do not fail the log', async () => {
  const written = await openRig({ segmentBytes: 600 })
  for (let index = 0; index < 6; index++) await appendTo(written, plainBatch(index * 2, 2, 100, T0))
  // Checked after a crash: nothing of it counts as synced, and no file is open.
  const rig = await openRig({ segmentBytes: 600, retentionMs: 1000 }, { disk: written.disk, clean: false })
  const { promise, resolve } = Promise.withResolvers<void>()
  const open = rig.disk.open.bind(rig.disk)
  let held = 0
  rig.disk.open = async (path, how) => {
    const file = await open(path, how)
    const sync = async (): Promise<void> => {
      held++
      if (held === 1) await promise
      await file.sync()
    }
    return { ...file, sync }
  }
  const flushed = rig.log.flush()
  while (held === 0) await turns(1)
  const retained = rig.log.retain(T0 + 1_000_000, 8)
  await turns()
  resolve()
  await flushed
  assert.equal(await retained, 2)
  assert.equal(rig.log.failure, undefined)
  await rig.log.close()
})

test('two retentions at once take away what is too old, and no more', async () => {
  const rig = await openRig({ segmentBytes: 600, retentionMs: 1000 })
  for (let index = 0; index < 12; index++) await appendTo(rig, plainBatch(index * 2, 2, 100, T0 + index * 1000))
  const count = rig.log.segmentCount
  const taken = await Promise.all([rig.log.retain(T0 + 5000, 24), rig.log.retain(T0 + 5000, 24)])
  assert.equal(rig.log.segmentCount, count - 2)
  assert.deepEqual(taken, [2, 0])
  assert.equal(rig.log.startOffset, 8)
  await rig.log.close()
})

test('a file that a roll could not begin with is not taken away when the log begins anew under its name', async () => {
  const rig = await openRig({ segmentBytes: 600 })
  for (let index = 0; index < 2; index++) await appendTo(rig, plainBatch(index * 2, 2, 100, T0))
  rig.disk.fault = operation => (operation === 'size' ? 'EIO' : undefined)
  await assert.rejects(appendTo(rig, plainBatch(4, 2, 100, T0)), StorageError)
  rig.disk.fault = () => undefined
  await rig.log.truncateFullyAndStartAt(4)
  rig.clock.advance(6000)
  await turns(100)
  assert.equal(rig.log.failure, undefined)
  await appendTo(rig, plainBatch(4, 2, 100, T0))
  const again = await openRig({ segmentBytes: 600 }, { disk: rig.disk.afterKill(), clean: false })
  assert.deepEqual(offsetsIn(await readAll(again.log)), [4, 5])
})

test('a log that begins anew never ends behind the offset that comes next', async () => {
  const rig = await openRig()
  const gate = hold(rig.disk)
  const anew = rig.log.truncateFullyAndStartAt(100)
  while (gate.held() === 0) await turns(1)
  assert.ok(rig.log.endOffset <= rig.log.nextOffset)
  gate.letGo()
  await anew
  await rig.log.close()
})

test('a snapshot of producers that could not be written is cut off with what it speaks of', async () => {
  const rig = await openRig()
  const of = (producerId: number, baseSequence: number) => ({ producerId, producerEpoch: 0, baseSequence })
  await appendTo(rig, plainBatch(0, 2, 100, T0, of(1, 0)))
  rig.disk.fault = (operation, path) => (operation === 'sync' && path.endsWith('.snapshot') ? 'EIO' : undefined)
  await assert.rejects(rig.log.checkpoint(), StorageError)
  rig.disk.fault = () => undefined
  await rig.log.truncateTo(0)
  await appendTo(rig, plainBatch(0, 2, 100, T0, of(2, 0)))
  const again = await openRig({}, { disk: rig.disk.afterKill(), clean: false })
  assert.deepEqual([...again.fold.producers.keys()], [2])
})

test('a segment that retention could not take away keeps what is appended to it after a cut', async () => {
  const rig = await openRig({ segmentBytes: 600, retentionMs: 1000 })
  for (let index = 0; index < 6; index++) await appendTo(rig, plainBatch(index * 2, 2, 100, T0))
  await rig.log.checkpoint()
  rig.disk.fault = (operation, path) => (operation === 'rename' && path.endsWith('.index') ? 'EIO' : undefined)
  await assert.rejects(rig.log.retain(T0 + 1_000_000, 8), StorageError)
  rig.disk.fault = () => undefined
  // A leader that lacks all of it was elected, as its topic allows.
  await rig.log.truncateTo(2)
  await appendTo(rig, plainBatch(2, 2, 100, T0))
  const { startOffset } = rig.log
  const again = await openRig({ segmentBytes: 600 }, { disk: rig.disk.afterKill(), clean: false, startOffset })
  assert.deepEqual([again.log.startOffset, again.log.endOffset], [startOffset, 4])
})

test('the end offset does not pass what a sync is under way for, and never moves back', async () => {
  const disk = new MemoryDisk()
  disk.isBrisk = true
  const open = disk.open.bind(disk)
  const syncs: (() => void)[] = []
  disk.open = async (path, how) => {
    const file = await open(path, how)
    return { ...file, sync: () => new Promise<void>(resolve => syncs.push(resolve)) }
  }
  const rig = await openRig({ flushMessages: 3 }, { disk })
  let end = 0
  const ends: number[] = []
  const append = (count: number): void => {
    const first = rig.log.nextOffset
    void appendNowTo(rig, plainBatch(first, count, 10, T0))
    rig.clock.time += 10
  }
  const look = async (): Promise<void> => {
    await turns(5)
    assert.ok(rig.log.endOffset >= end, `${rig.log.endOffset} after ${end}`)
    end = rig.log.endOffset
    ends.push(end)
  }
  append(1)
  append(3)
  await look()
  // Shares the next sync, though it alone would need none.
  append(1)
  await look()
  syncs.shift()?.()
  await look()
  append(1)
  await look()
  for (let round = 0; round < 5; round++) {
    for (const done of syncs.splice(0)) done()
    await look()
  }
  assert.equal(end, 6)
  assert.ok(ends[3] !== undefined && ends[3] <= 4, ends.join())
})
