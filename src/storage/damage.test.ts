import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Offset } from '#base/units.ts'
import * as batch from '#records/batch.ts'
import { offsetName } from './files.ts'
import { DamagedLogError, StorageError } from './storage-error.ts'
import type { MemoryDisk } from './testing/memory-disk.ts'
import { appendTo, offsetsIn, openRig, plainBatch, type Rig, readAll, TEST_FOLDER } from './testing/rig.ts'

const T0 = 1_700_000_000_000
/** A few batches of two records to a segment, and an index with entries. */
const CONFIG = { segmentBytes: 2000, indexIntervalBytes: 500 }

/** A log of several segments, and the bases of these. */
async function filled(): Promise<{ readonly rig: Rig; readonly bases: Offset[] }> {
  const rig = await openRig(CONFIG)
  for (let index = 0; index < 30; index++) await appendTo(rig, plainBatch(rig.log.nextOffset, 2, 100, T0 + index))
  return { rig, bases: basesIn(rig.disk) }
}

function basesIn(disk: MemoryDisk): Offset[] {
  const logs = disk.names().filter(name => name.endsWith('.log'))
  return logs.map(name => Number(name.slice(TEST_FOLDER.length + 1, -4)))
}

const pathOf = (base: Offset, suffix = '.log') => `${TEST_FOLDER}/${offsetName(base, suffix)}`

function change(disk: MemoryDisk, base: Offset, to: (bytes: Buffer) => Buffer): void {
  disk.put(pathOf(base), to(Buffer.from(disk.contentOf(pathOf(base)) as Buffer)))
}

/** In the middle of the second of its batches, each of which is this long. */
function flipIn(disk: MemoryDisk, base: Offset): number {
  const size = plainBatch(0, 2, 100, T0).length
  change(disk, base, bytes => {
    bytes[size + 100] = (bytes[size + 100] ?? 0) ^ 1
    return bytes
  })
  return size
}

function contents(disk: MemoryDisk): unknown {
  return disk.names().map(name => [name, disk.contentOf(name)?.toString('latin1')])
}

test('damage below a later segment keeps the log closed and all of its files', async () => {
  const { rig, bases } = await filled()
  await rig.log.checkpoint()
  const disk = rig.disk.afterKill()
  const base = bases[3] as Offset
  const position = flipIn(disk, base)
  const before = contents(disk)
  await assert.rejects(openRig(CONFIG, { disk, clean: false, recoveryPoint: 0 }), damagedAt(base, position))
  assert.deepEqual(contents(disk), before)
})

test('damage below the recovery point, where it is found, keeps the log closed and all of its files', async () => {
  const { rig, bases } = await filled()
  await rig.log.checkpoint()
  const disk = rig.disk.afterKill()
  const base = bases[3] as Offset
  // Nothing but the recovery point vouches for anything, and no index leads past the damage.
  for (const name of disk.names()) if (/\.(snapshot|index|timeindex)$/.test(name)) await disk.remove(name)
  const position = flipIn(disk, base)
  change(disk, base, bytes => bytes.fill(0, position + 8))
  const before = contents(disk)
  const options = { disk, clean: false, recoveryPoint: base + 6 }
  await assert.rejects(openRig(CONFIG, options), damagedAt(base, position))
  assert.deepEqual(contents(disk), before)
})

function damagedAt(base: Offset, position: number) {
  return (error: Error): true => {
    assert.ok(error instanceof DamagedLogError, error.message)
    assert.equal(error.file, pathOf(base))
    assert.equal(error.position, position)
    assert.equal(error.offset, base + 2)
    assert.ok(error.message.endsWith(`truncate -s ${position} ${pathOf(base)}`), error.message)
    return true
  }
}

test('what the message says to do gives up the rest of one segment and nothing else', async () => {
  const { rig, bases } = await filled()
  await rig.log.checkpoint()
  const disk = rig.disk.afterKill()
  const [, , third = 0, fourth = 0] = bases
  const position = flipIn(disk, third)
  await assert.rejects(openRig(CONFIG, { disk, clean: false, recoveryPoint: 0 }), DamagedLogError)
  change(disk, third, bytes => bytes.subarray(0, position))
  for (const recoveryPoint of [0, 60]) {
    const again = await openRig(CONFIG, { disk: disk.afterKill(), clean: false, recoveryPoint })
    const whole = Array.from({ length: 60 }, (_, offset) => offset)
    assert.deepEqual(
      offsetsIn(await readAll(again.log)),
      whole.filter(offset => offset < third + 2 || offset >= fourth),
    )
    const lines = again.logger.lines.filter(line => /does not end where the next one begins/.test(line))
    assert.equal(lines.length, 1, again.logger.lines.join('\n'))
    assert.match(lines[0] ?? '', new RegExp(`"segment":${third},.*"endOffset":${third + 2},"nextSegment":${fourth}`))
  }
})

test('where nothing says that it was synced the log is cut at the first bad batch, and the line says how much', async () => {
  const { rig, bases } = await filled()
  await rig.log.checkpoint()
  const disk = rig.disk.afterKill()
  for (const name of disk.names()) if (name.endsWith('.snapshot')) await disk.remove(name)
  const base = bases[3] as Offset
  flipIn(disk, base)
  const again = await openRig(CONFIG, { disk, clean: false, recoveryPoint: base })
  assert.equal(again.log.endOffset, base + 2)
  assert.deepEqual(basesIn(disk), bases.slice(0, 4))
  const lines = again.logger.lines.filter(line => /cut off the end of the log/.test(line))
  assert.equal(lines.length, 1)
  assert.match(lines[0] ?? '', new RegExp(`nothing says that it was ever synced.*"segmentsAfter":${bases.length - 4},`))
})

test('a sealed segment that is shorter than it was is said in one line, after every kind of stop', async () => {
  const { rig, bases } = await filled()
  await rig.log.close()
  const batchBytes = plainBatch(0, 2, 100, T0).length
  const [, second = 0, third = 0] = bases
  // By a whole batch, by half of one, by so much that the index speaks of more, and to nothing.
  for (const size of [(third - second) / 2 - 1, (third - second) / 2 - 1.5, 1.5, 0]) {
    for (const clean of [true, false]) {
      const disk = rig.disk.afterKill()
      change(disk, second, bytes => bytes.subarray(0, size * batchBytes))
      const again = await openRig(CONFIG, { disk, clean, recoveryPoint: 60 })
      assert.equal(again.log.endOffset, 60)
      const lines = again.logger.lines.filter(line => /does not end where the next one begins/.test(line))
      assert.equal(lines.length, 1, `${size} batches, clean ${clean}: ${again.logger.lines.join('\n')}`)
      const end = second + Math.floor(size) * 2
      assert.match(lines[0] ?? '', new RegExp(`"segment":${second},.*"endOffset":${end},"nextSegment":${third}`))
    }
  }
  // Compaction leaves such gaps, though no index that speaks of what is not there.
  const disk = rig.disk.afterKill()
  disk.put(pathOf(second, '.index'), Buffer.alloc(0))
  change(disk, second, bytes => bytes.subarray(0, batchBytes))
  const compacted = { ...CONFIG, cleanupPolicy: new Set(['compact'] as const) }
  const again = await openRig(compacted, { disk, clean: true, recoveryPoint: 60 })
  assert.deepEqual(again.logger.lines, [])
})

test('a missing segment, and a missing end, are said', async () => {
  const { rig, bases } = await filled()
  await rig.log.close()
  const last = bases.at(-1) as Offset
  for (const clean of [true, false]) {
    const disk = rig.disk.afterKill()
    await disk.remove(pathOf(bases[2] as Offset))
    const again = await openRig(CONFIG, { disk, clean, recoveryPoint: 60 })
    assert.match(again.logger.lines.join('\n'), new RegExp(`"endOffset":${bases[2]},"nextSegment":${bases[3]}`))
    const shorter = rig.disk.afterKill()
    await shorter.remove(pathOf(last))
    const short = await openRig(CONFIG, { disk: shorter, clean, recoveryPoint: 60 })
    assert.equal(short.log.endOffset, last)
    assert.match(short.logger.lines.join('\n'), /ends before what was synced.*"syncedTo":60/)
  }
})

test('after a clean stop damage in the last segment that its headers show is no torn tail', async () => {
  const { rig, bases } = await filled()
  await rig.log.close()
  const last = bases.at(-1) as Offset
  const size = (rig.disk.contentOf(pathOf(last)) as Buffer).length
  for (const recoveryPoint of [60, 0]) {
    const disk = rig.disk.afterKill()
    change(disk, last, bytes => bytes.subarray(0, size - 10))
    await assert.rejects(openRig(CONFIG, { disk, clean: true, recoveryPoint }), DamagedLogError)
    assert.equal(disk.contentOf(pathOf(last))?.length, size - 10)
  }
})

test('the log of a clean stop says nothing', async () => {
  const { rig } = await filled()
  await rig.log.close()
  for (const clean of [true, false]) {
    const again = await openRig(CONFIG, { disk: rig.disk.afterKill(), clean, recoveryPoint: 60 })
    assert.deepEqual(again.logger.lines, [])
  }
})

test('readers are given all before the damage, an error there, and what comes after by seeking behind it', async () => {
  const { rig, bases } = await filled()
  await rig.log.close()
  const [, second = 0, third = 0] = bases
  const size = plainBatch(0, 2, 100, T0).length
  // Of each batch of the segment the size, so that nothing behind it in the file can be found.
  for (let damaged = 0; damaged < (third - second) / 2; damaged++) {
    const disk = rig.disk.afterKill()
    change(disk, second, bytes => {
      bytes[damaged * size + 8] = 0x7f
      return bytes
    })
    for (const pieceBytes of [100, 600, 10_000]) {
      const { log, logger } = await openRig(CONFIG, { disk: disk.afterKill(), clean: true, recoveryPoint: 60 })
      const found: Offset[] = []
      const reading = async (): Promise<void> => {
        for (let from = 0; from < 60; ) {
          const read = await log.read(from, pieceBytes, 60)
          assert.ok(read !== undefined, `nothing at ${from}`)
          // Between two entries of the index bytes go out without a look, and whoever gets them ends at the damage.
          const offsets = offsetsBeforeDamage(await log.readBytes(read))
          assert.ok(offsets.length > 0, `nothing of use at ${from}`)
          found.push(...offsets)
          from = (offsets.at(-1) ?? 0) + 1
        }
      }
      await assert.rejects(reading(), StorageError)
      await assert.rejects(reading(), StorageError)
      const before = second + damaged * 2
      assert.deepEqual(found.slice(0, before), range(0, before))
      assert.equal(found.length, before * 2)
      assert.equal(logger.lines.filter(line => /^error refusing reads/.test(line)).length, 1, logger.lines.join('\n'))
      assert.match(logger.lines.join('\n'), new RegExp(`position ${damaged * size}: `))
      assert.deepEqual(offsetsIn(await readAll(log, third)), range(third, 60))
    }
  }
})

function offsetsBeforeDamage(bytes: Buffer): Offset[] {
  let at = 0
  for (let size = batch.wholeBatchSize(bytes, 0, bytes.length); size > 0; ) {
    at += size
    size = batch.wholeBatchSize(bytes, at, bytes.length)
  }
  return offsetsIn(bytes.subarray(0, at))
}

function range(from: Offset, to: Offset): Offset[] {
  return Array.from({ length: to - from }, (_, index) => from + index)
}
