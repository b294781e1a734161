import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as batch from '#records/batch.ts'
import { buildEndMarker } from '#records/control.ts'
import { StorageError } from './storage-error.ts'
import {
  appendNowTo,
  appendTo,
  buildBatch,
  offsetsIn,
  openRig,
  plainBatch,
  type Rig,
  readAll,
  TEST_FOLDER,
} from './testing/rig.ts'

const T0 = 1_700_000_000_000

async function fill(rig: Rig, batches: number, records = 2, size = 100): Promise<void> {
  for (let index = 0; index < batches; index++) {
    await appendTo(rig, plainBatch(rig.log.nextOffset, records, size, T0 + rig.log.nextOffset))
  }
}

/** All that runs now has ended. */
const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, index) => from + index)
}

test('what was appended is read, and appends of one turn are one write', async () => {
  const rig = await openRig()
  const writes: number[] = []
  rig.disk.fault = (operation, _path, bytes) => {
    if (operation === 'write') writes.push(bytes)
    return undefined
  }
  const first = appendTo(rig, plainBatch(0, 2, 100, T0))
  const second = appendTo(rig, plainBatch(2, 3, 100, T0))
  assert.equal(first, second)
  assert.equal(rig.log.nextOffset, 5)
  assert.equal(rig.log.endOffset, 0)
  await first
  assert.equal(rig.log.endOffset, 5)
  assert.equal(writes.length, 1)
  assert.deepEqual(offsetsIn(await readAll(rig.log)), range(0, 5))
  await rig.log.close()
})

test('an append that comes alone is written within it, and one that follows at once with others at the end of the turn', async () => {
  const rig = await openRig()
  const append = (base: number): Promise<void> | undefined => appendNowTo(rig, plainBatch(base, 1, 100, T0))
  rig.disk.isBrisk = true
  // The file is not open yet.
  await append(0)
  await turn()
  assert.equal(append(1), undefined)
  assert.equal(rig.log.endOffset, 2)
  assert.equal(rig.log.nextOffset, 2)
  const second = append(2)
  assert.ok(second instanceof Promise)
  rig.clock.advance(1)
  // What waits goes first.
  const third = append(3)
  assert.equal(third, second)
  assert.equal(rig.log.endOffset, 2)
  await third
  await turn()
  assert.equal(rig.log.endOffset, 4)
  rig.clock.advance(1)
  assert.equal(append(4), undefined)
  assert.deepEqual(offsetsIn(await readAll(rig.log)), range(0, 5))
  await rig.log.close()
})

test('a write within the append that fails goes the way of all others, which tells of it', async () => {
  const rig = await openRig()
  await appendTo(rig, plainBatch(0, 1, 100, T0))
  await turn()
  rig.disk.isBrisk = true
  let failing: readonly string[] = ['writeNow']
  rig.disk.fault = operation => (failing.includes(operation) ? 'EIO' : undefined)
  const taken = rig.log.appendNow(plainBatch(1, 1, 100, T0))
  failing = []
  await taken
  await turn()
  assert.equal(rig.log.endOffset, 2)
  rig.clock.advance(1)
  failing = ['writeNow', 'write']
  const refused = rig.log.appendNow(plainBatch(2, 1, 100, T0))
  await assert.rejects(refused as Promise<void>, StorageError)
  assert.equal(rig.log.endOffset, 2)
  assert.equal(rig.log.nextOffset, 2)
})

test('where each append is to be synced none is done within it', async () => {
  const rig = await openRig({ flushMessages: 1 })
  rig.disk.isBrisk = true
  for (const base of range(0, 3)) {
    rig.clock.advance(1)
    const written = rig.log.appendNow(plainBatch(base, 1, 100, T0))
    assert.ok(written instanceof Promise)
    await written
    await turn()
    assert.equal(rig.log.durableOffset, base + 1)
  }
  await rig.log.close()
})

test('a reader who has caught up is served without a promise, whole batches within its bytes and bound', async () => {
  const rig = await openRig()
  await fill(rig, 10)
  const size = plainBatch(0, 2, 100, T0).length
  const at = async (from: number, bytes: number, upTo: number, minOne: boolean) => {
    const found = minOne ? rig.log.read(from, bytes, upTo) : rig.log.readFitting(from, bytes, upTo)
    assert.ok(!(found instanceof Promise), 'in the recent tail')
    return found === undefined ? undefined : [...new Set(offsetsIn(await rig.log.readBytes(found)))]
  }
  assert.deepEqual(await at(4, size * 2, 20, false), range(4, 8))
  assert.deepEqual(await at(5, size * 2 + 10, 20, false), range(4, 8))
  assert.deepEqual(await at(4, 1_000_000, 9, false), range(4, 8))
  assert.deepEqual(await at(4, 1, 20, true), range(4, 6))
  assert.equal(await at(4, 1, 20, false), undefined)
  assert.equal(await at(4, 1, 5, true), undefined)
  assert.equal(await at(20, 100, 20, true), undefined)
  await rig.log.close()
})

test('segments roll by size, by record time, by full index and by offset distance', async () => {
  const bySize = await openRig({ segmentBytes: 1000 })
  await fill(bySize, 10)
  assert.equal(bySize.log.segmentCount, 4)
  assert.deepEqual(offsetsIn(await readAll(bySize.log)), range(0, 20))

  const byTime = await openRig({ segmentMs: 1000 })
  await appendTo(byTime, plainBatch(0, 1, 10, T0))
  await appendTo(byTime, plainBatch(1, 1, 10, T0 + 1000))
  assert.equal(byTime.log.segmentCount, 1)
  await appendTo(byTime, plainBatch(2, 1, 10, T0 + 1001))
  assert.equal(byTime.log.segmentCount, 2)

  const byIndex = await openRig({ segmentIndexBytes: 60, indexIntervalBytes: 100 })
  await fill(byIndex, 20)
  assert.ok(byIndex.log.segmentCount > 2)
  assert.deepEqual(offsetsIn(await readAll(byIndex.log)), range(0, 40))

  const byDistance = await openRig()
  await appendTo(byDistance, plainBatch(0, 1, 10, T0))
  await appendTo(byDistance, plainBatch(3_000_000_000, 1, 10, T0))
  assert.equal(byDistance.log.activeSegment.baseOffset, 3_000_000_000)
  assert.deepEqual(offsetsIn(await readAll(byDistance.log)), [0, 3_000_000_000])
})

test('a clean restart finds everything and scans nothing', async () => {
  const rig = await openRig({ segmentBytes: 2000 })
  for (let index = 0; index < 30; index++) {
    const options = { producerId: 7, producerEpoch: 1, baseSequence: index * 2 }
    await appendTo(rig, plainBatch(rig.log.nextOffset, 2, 100, T0 + index, { ...options, leaderEpoch: index >> 4 }))
  }
  await rig.log.close()
  const names = rig.disk.names()
  assert.ok(names.includes(`${TEST_FOLDER}/00000000000000000060.snapshot`), names.join('\n'))
  assert.ok(names.includes(`${TEST_FOLDER}/leader-epoch-checkpoint`))

  const again = await openRig({ segmentBytes: 2000 }, { disk: rig.disk.afterKill(), clean: true, recoveryPoint: 60 })
  assert.equal(again.log.endOffset, 60)
  assert.equal(again.log.durableOffset, 60)
  assert.equal(again.fold.applied, 0)
  assert.deepEqual(again.fold.snapshot(), rig.fold.snapshot())
  assert.deepEqual(again.log.epochs, [
    { epoch: 0, startOffset: 0 },
    { epoch: 1, startOffset: 32 },
  ])
  assert.deepEqual(offsetsIn(await readAll(again.log)), range(0, 60))
  await appendTo(again, plainBatch(60, 2, 100, T0 + 60))
  assert.deepEqual(offsetsIn(await readAll(again.log, 58)), range(58, 62))
})

test('after a kill the torn tail is cut, and nothing that was written whole is lost', async () => {
  const rig = await openRig({ segmentBytes: 2000 })
  await fill(rig, 30)
  const path = `${TEST_FOLDER}/${String(rig.log.activeSegment.baseOffset).padStart(20, '0')}.log`
  const disk = rig.disk.afterKill()
  const whole = disk.contentOf(path) as Buffer
  const half = plainBatch(60, 2, 100, T0)
  disk.put(path, Buffer.concat([whole, half.subarray(0, 200)]))
  const again = await openRig({ segmentBytes: 2000 }, { disk, clean: false, recoveryPoint: 0 })
  assert.equal(again.log.endOffset, 60)
  assert.equal(disk.contentOf(path)?.length, whole.length)
  assert.match(again.logger.lines.join('\n'), /cut off the end of the log/)
  assert.deepEqual(offsetsIn(await readAll(again.log)), range(0, 60))

  const zeros = rig.disk.afterKill()
  zeros.put(path, Buffer.concat([whole, Buffer.alloc(5000)]))
  const third = await openRig({ segmentBytes: 2000 }, { disk: zeros, clean: false, recoveryPoint: 50 })
  assert.equal(third.log.endOffset, 60)
})

test('recovery takes time in proportion to what was not synced', async () => {
  const rig = await openRig({}, {})
  await fill(rig, 400, 2, 500)
  await rig.log.checkpoint()
  const { recoveryPoint } = rig.log
  assert.equal(recoveryPoint, 800)
  await fill(rig, 10)
  const disk = rig.disk.afterKill()
  // Damage before the recovery point is not looked at; a scan of it would cut the log there.
  const path = `${TEST_FOLDER}/00000000000000000000.log`
  const data = Buffer.from(disk.contentOf(path) as Buffer)
  data[100] = (data[100] as number) ^ 1
  disk.put(path, data)
  const again = await openRig({}, { disk, clean: false, recoveryPoint })
  assert.equal(again.log.endOffset, 820)
  assert.equal(again.fold.applied, 10)
  assert.equal(again.log.durableOffset, 800)
})

test('kafka leaves index files with 10 MiB of zeros behind after an unclean stop', async () => {
  const rig = await openRig()
  await fill(rig, 100)
  await rig.log.close()
  const disk = rig.disk.afterKill()
  for (const suffix of ['index', 'timeindex']) {
    const path = `${TEST_FOLDER}/00000000000000000000.${suffix}`
    disk.put(path, Buffer.concat([disk.contentOf(path) as Buffer, Buffer.alloc(1_000_000)]))
  }
  for (const clean of [true, false]) {
    const again = await openRig({}, { disk: disk.afterKill(), clean, recoveryPoint: 0 })
    assert.equal(again.log.endOffset, 200)
    assert.deepEqual(await again.log.offsetForTimestamp(T0 + 100), { timestamp: T0 + 100, offset: 100, leaderEpoch: 0 })
    assert.deepEqual(offsetsIn(await readAll(again.log)), range(0, 200))
  }
})

test('a look-up by time is exact within a compressed batch', async () => {
  const rig = await openRig()
  const records = range(0, 50).map(index => ({ timestamp: T0 + index * 10, value: 'x' }))
  await appendTo(rig, buildBatch(0, records, { compression: 'lz4', leaderEpoch: 3 }))
  for (const index of range(0, 50)) {
    const expected = { timestamp: T0 + index * 10, offset: index, leaderEpoch: 3 }
    assert.deepEqual(await rig.log.offsetForTimestamp(T0 + index * 10), expected)
    assert.deepEqual(await rig.log.offsetForTimestamp(T0 + index * 10 - 5), expected)
  }
  assert.equal(await rig.log.offsetForTimestamp(T0 + 491), undefined)
  assert.equal((await rig.log.offsetOfMaxTimestamp())?.offset, 49)
})

test('times that go backwards: the first record in offset order at or after the time', async () => {
  const rig = await openRig({ indexIntervalBytes: 1, segmentBytes: 1500 })
  const times = [500, 100, 300, 900, 200, 900, 50, 1000, 10]
  for (const time of times) await appendTo(rig, plainBatch(rig.log.nextOffset, 1, 300, T0 + time))
  for (const wanted of [0, 100, 301, 500, 501, 900, 901, 1000, 1001]) {
    const expected = times.findIndex(time => time >= wanted)
    assert.equal(
      (await rig.log.offsetForTimestamp(T0 + wanted))?.offset,
      expected < 0 ? undefined : expected,
      `${wanted}`,
    )
  }
  assert.equal((await rig.log.offsetOfMaxTimestamp())?.offset, 7)
})

test('a failed write counts for nothing, is complained about once, and cures itself', async () => {
  const rig = await openRig()
  await fill(rig, 5)
  let full = true
  rig.disk.fault = (operation, path) => (full && operation === 'write' && path.endsWith('.log') ? 'ENOSPC' : undefined)
  const lost = appendTo(rig, plainBatch(10, 2, 100, T0, { producerId: 9, producerEpoch: 0, baseSequence: 0 }))
  await assert.rejects(lost, (error: unknown) => error instanceof StorageError && error.errno === 'ENOSPC')
  assert.equal(rig.log.endOffset, 10)
  await assert.rejects(appendTo(rig, plainBatch(10, 2, 100, T0)), StorageError)
  assert.deepEqual(offsetsIn(await readAll(rig.log)), range(0, 10))
  for (let index = 0; index < 5; index++) {
    rig.clock.advance(6000)
    await rig.log.flush().catch(() => undefined)
  }
  assert.equal(rig.log.failure?.errno, 'ENOSPC')
  const complaints = rig.logger.lines.filter(line => line.startsWith('error'))
  assert.equal(complaints.length, 1)
  assert.match(complaints[0] as string, /\/data\/topic-0.*free space/)

  full = false
  rig.clock.advance(6000)
  await rig.log.flush().catch(() => undefined)
  assert.equal(rig.log.failure, undefined)
  assert.equal(rig.log.nextOffset, 10)
  assert.equal(rig.fold.producers.size, 0, 'the fold forgot what was not written')
  await fill(rig, 5)
  assert.deepEqual(offsetsIn(await readAll(rig.log)), range(0, 20))
  const file = rig.disk.contentOf(`${TEST_FOLDER}/00000000000000000000.log`) as Buffer
  assert.equal(file.length, rig.log.sizeInBytes)
  assert.match(rig.logger.lines.at(-1) as string, /takes writes again/)
})

test('a roll that cannot make its file fails the append and no other', async () => {
  const rig = await openRig({ segmentBytes: 1000 })
  await fill(rig, 3)
  rig.disk.fault = (operation, path) => (operation === 'open' && path.endsWith('06.log') ? 'ENOSPC' : undefined)
  await assert.rejects(appendTo(rig, plainBatch(6, 2, 100, T0)), StorageError)
  rig.disk.fault = () => undefined
  rig.clock.advance(6000)
  await rig.log.flush().catch(() => undefined)
  await fill(rig, 4)
  assert.deepEqual(offsetsIn(await readAll(rig.log)), range(0, 14))
})

test('flush.messages=1: the end offset waits for the sync, which appends share', async () => {
  const rig = await openRig({ flushMessages: 1 })
  let syncs = 0
  rig.disk.fault = operation => {
    if (operation === 'sync') syncs++
    return undefined
  }
  await fill(rig, 1)
  assert.equal(rig.log.durableOffset, 2)
  assert.equal(syncs, 1)
  const failing = rig.disk
  failing.fault = operation => (operation === 'sync' ? 'EIO' : undefined)
  await assert.rejects(appendTo(rig, plainBatch(2, 2, 100, T0)), StorageError)
  assert.equal(rig.log.endOffset, 2)
  failing.fault = () => undefined
  rig.clock.advance(6000)
  await rig.log.flush().catch(() => undefined)
  await fill(rig, 2)
  assert.equal(rig.log.durableOffset, 6)
  assert.deepEqual(offsetsIn(await readAll(rig.log)), range(0, 6))
})

test('flush.ms syncs in the background', async () => {
  const rig = await openRig({ flushMs: 500 })
  await fill(rig, 1)
  assert.equal(rig.log.durableOffset, 0)
  rig.clock.advance(500)
  await rig.log.flush()
  assert.equal(rig.log.durableOffset, 2)
})

test('truncation cuts whole batches, epochs, producers and segments', async () => {
  const rig = await openRig({ segmentBytes: 1000 })
  for (let index = 0; index < 12; index++) {
    const options = { producerId: index, producerEpoch: 0, baseSequence: 0, leaderEpoch: index }
    await appendTo(rig, plainBatch(index * 2, 2, 100, T0 + index, options))
  }
  assert.equal(await rig.log.truncateTo(24), 24)
  assert.equal(await rig.log.truncateTo(13), 12)
  assert.equal(rig.log.nextOffset, 12)
  assert.equal(rig.log.latestEpoch, 5)
  assert.deepEqual([...rig.fold.producers.keys()], range(0, 6))
  assert.deepEqual(offsetsIn(await readAll(rig.log)), range(0, 12))
  assert.equal((await rig.log.offsetOfMaxTimestamp())?.timestamp, T0 + 5)
  await fill(rig, 3)
  assert.deepEqual(offsetsIn(await readAll(rig.log)), range(0, 18))
  await rig.log.close()
  const again = await openRig({ segmentBytes: 1000 }, { disk: rig.disk.afterKill(), clean: false })
  assert.deepEqual(offsetsIn(await readAll(again.log)), range(0, 18))
  await again.log.truncateFullyAndStartAt(100)
  assert.equal(again.log.startOffset, 100)
  await fill(again, 1)
  assert.deepEqual(offsetsIn(await readAll(again.log)), [100, 101])
  const third = await openRig({}, { disk: again.disk.afterKill(), clean: false })
  assert.equal(third.log.endOffset, 102)
  assert.equal(third.log.startOffset, 100)
})

test('epochs answer where they ended as the protocol wants', async () => {
  const { log } = await openRig()
  log.assignEpoch(2, 0)
  log.assignEpoch(5, 0)
  assert.deepEqual(log.epochs, [{ epoch: 5, startOffset: 0 }])
  assert.deepEqual(log.endOffsetForEpoch(5), { leaderEpoch: 5, endOffset: 0 })
  assert.deepEqual(log.endOffsetForEpoch(3), { leaderEpoch: 3, endOffset: 0 })
  assert.equal(log.endOffsetForEpoch(6), undefined)
  assert.equal(log.endOffsetForEpoch(-1), undefined)
})

test('retention deletes by size, time and start offset, below the high watermark, and frees the files later', async () => {
  const rig = await openRig({ segmentBytes: 1000, retentionBytes: 2000, retentionMs: -1, fileDeleteDelayMs: 60_000 })
  await fill(rig, 30)
  await rig.log.flush()
  const { segmentCount } = rig.log
  assert.equal(await rig.log.retain(T0, 0), 0)
  const removed = await rig.log.retain(T0, 60)
  assert.ok(removed > 0 && rig.log.segmentCount === segmentCount - removed)
  assert.ok(rig.log.sizeInBytes >= 2000 && rig.log.sizeInBytes < 3000)
  const start = rig.log.startOffset
  assert.deepEqual(offsetsIn(await readAll(rig.log)), range(start, 60))
  assert.ok(rig.disk.names().some(name => name.endsWith('.log.deleted')))
  rig.clock.advance(60_000)
  await rig.log.checkpoint()
  assert.ok(!rig.disk.names().some(name => name.endsWith('.deleted')), rig.disk.names().join('\n'))

  rig.log.deleteRecordsBefore(start + 9)
  assert.equal(rig.log.startOffset, start + 9)
  assert.equal(await rig.log.retain(T0, 60), 1)

  rig.log.configure({ ...rig.log.config, retentionMs: 1000, retentionBytes: -1 })
  await rig.log.retain(T0 + 1_000_000, 60)
  assert.equal(rig.log.segmentCount, 1)
  assert.equal(rig.log.startOffset, 60)
  assert.equal(rig.log.endOffset, 60)
  assert.equal(await rig.log.retain(T0 + 2_000_000, 60), 0)
  await fill(rig, 1)
  await rig.log.close()
  const again = await openRig({}, { disk: rig.disk.afterKill(), startOffset: 60 })
  assert.equal(again.log.startOffset, 60)
  assert.equal(again.log.endOffset, 62)
})

test('an empty cleanup policy deletes only what DeleteRecords did', async () => {
  const rig = await openRig({ segmentBytes: 1000, retentionBytes: 0, retentionMs: 0, cleanupPolicy: new Set() })
  await fill(rig, 10)
  assert.equal(await rig.log.retain(T0 + 1e9, 20), 0)
  rig.log.deleteRecordsBefore(7)
  assert.equal(await rig.log.retain(T0 + 1e9, 20), 1)
})

test('aborted transactions are kept in segments, and come back from a lost index', async () => {
  const rig = await openRig({ segmentBytes: 1000 })
  for (let index = 0; index < 8; index++) {
    const producer = { producerId: index, producerEpoch: 0 }
    await appendTo(rig, plainBatch(index * 2, 1, 100, T0, { ...producer, baseSequence: 0, transactional: true }))
    const type = index % 2 === 0 ? 'abort' : 'commit'
    const marker = buildEndMarker(
      { ...producer, type, coordinatorEpoch: 0, timestamp: T0 },
      { baseOffset: index * 2 + 1, leaderEpoch: 0 },
    )
    const written = rig.log.append(marker)
    await written
    const { lastOffset, producerId } = { lastOffset: index * 2 + 1, producerId: index }
    if (type === 'abort') {
      rig.log.appendAborted({ producerId, firstOffset: lastOffset - 1, lastOffset, lastStableOffset: lastOffset - 1 })
    }
  }
  const ids = async (log: Rig['log'], from: number, upTo: number) =>
    (await log.abortedTransactions(from, upTo)).map(transaction => transaction.producerId)
  assert.deepEqual(await ids(rig.log, 0, 16), [0, 2, 4, 6])
  assert.deepEqual(await ids(rig.log, 5, 12), [2, 4])
  await rig.log.close()
  const again = await openRig({ segmentBytes: 1000 }, { disk: rig.disk.afterKill() })
  assert.deepEqual(await ids(again.log, 0, 16), [0, 2, 4, 6])
})

test('what compaction left half done is finished or thrown away', async () => {
  const rig = await openRig({ segmentBytes: 1000 })
  await fill(rig, 9)
  await rig.log.close()
  const disk = rig.disk.afterKill()
  const of = (base: number, suffix: string) => `${TEST_FOLDER}/${String(base).padStart(20, '0')}${suffix}`
  const first = disk.contentOf(of(0, '.log')) as Buffer
  const second = disk.contentOf(of(6, '.log')) as Buffer
  const kept = batch.sizeInBytes(first, 0)
  disk.put(of(0, '.log.swap'), Buffer.concat([first.subarray(0, kept), second]))
  disk.put(of(0, '.index.swap'), Buffer.alloc(0))
  disk.put(of(0, '.timeindex.swap'), Buffer.alloc(0))
  disk.put(of(12, '.log.cleaned'), Buffer.from('half'))
  disk.put(of(3, '.log.deleted'), Buffer.from('old'))
  const again = await openRig({ segmentBytes: 1000 }, { disk })
  assert.deepEqual(offsetsIn(await readAll(again.log)), [0, 1, ...range(6, 18)])
  assert.ok(!disk.names().some(name => /\.(swap|cleaned|deleted)$/.test(name)))
})

test('retention leaves alone what is still under way to the disk', async () => {
  const rig = await openRig({ flushMessages: 1 })
  let written = false
  const appended = appendTo(rig, plainBatch(0, 3, 100, T0)).then(() => {
    written = true
  })
  while (!written) assert.equal(await rig.log.retain(T0, rig.log.endOffset), 0)
  await appended
  assert.deepEqual([rig.log.startOffset, rig.log.endOffset], [0, 3])
  await rig.log.close()
})

test('what retention found to be old before a log began anew says nothing of what came since', async () => {
  const config = { segmentBytes: 300, retentionMs: 1000 }
  const before = await openRig(config)
  await fill(before, 2)
  await before.log.close()
  const rig = await openRig(config, { disk: before.disk })
  const held = Promise.withResolvers<void>()
  const { disk, log } = rig
  const readFile = disk.readFile.bind(disk)
  disk.readFile = async path => {
    const bytes = await readFile(path)
    await held.promise
    return bytes
  }
  const retained = log.retain(T0 + 1_000_000, 4)
  disk.readFile = readFile
  await log.truncateFullyAndStartAt(100)
  for (let batches = 0; batches < 4; batches++) {
    await appendTo(rig, plainBatch(log.nextOffset, 2, 100, T0 + 1_000_000))
  }
  held.resolve()
  assert.equal(await retained, 0)
  assert.deepEqual(offsetsIn(await readAll(log)), range(100, 108))
  await log.close()
})

test('a log that begins anew while it is written down is not taken for what it was', async () => {
  for (let turns = 0; turns < 40; turns++) {
    const rig = await openRig()
    await fill(rig, 2)
    const { log } = rig
    const saved = log.checkpoint()
    for (let turn = 0; turn < turns; turn++) await undefined
    await Promise.all([log.truncateFullyAndStartAt(1), saved])
    for (let batches = 0; batches < 3; batches++) await appendTo(rig, plainBatch(log.nextOffset, 2, 100, T0))
    await log.flush()
    assert.ok(log.recoveryPoint <= 1, `recovery begins at ${log.recoveryPoint} when it began anew ${turns} turns later`)
    await log.close()
  }
})

test('a log that is closed while it is cut is written down as it is then', async () => {
  const config = { segmentBytes: 300 }
  const before = await openRig(config)
  for (let epoch = 0; epoch < 6; epoch++) {
    await appendTo(before, plainBatch(before.log.nextOffset, 2, 100, T0, { leaderEpoch: epoch }))
  }
  const cut = before.log.truncateTo(10)
  await Promise.all([cut, before.log.close()])
  const { epochs, endOffset, recoveryPoint, hasUnsaved } = before.log
  assert.deepEqual([endOffset, recoveryPoint, hasUnsaved], [10, 10, false])
  const { log } = await openRig(config, { disk: before.disk, recoveryPoint })
  assert.deepEqual(log.epochs, epochs)
  await log.close()
})

/** The folder is another's by the time that `work` on its first log goes on with the file that it waits for. */
async function outlived(waitsFor: 'open' | 'readFile', work: (log: Rig['log']) => Promise<unknown>): Promise<Rig> {
  const config = { segmentBytes: 300, retentionMs: 1000 }
  const before = await openRig(config)
  await fill(before, 2)
  await before.log.close()
  const { disk, log, fold } = await openRig(config, { disk: before.disk })
  await appendTo({ log, fold }, plainBatch(4, 1, 10, T0))
  if (waitsFor === 'open') await log.checkpoint()
  const held = Promise.withResolvers<void>()
  const readFile = disk.readFile.bind(disk)
  const open = disk.open.bind(disk)
  if (waitsFor === 'open') disk.open = (path, how) => held.promise.then(() => open(path, how))
  else disk.readFile = path => readFile(path).then(bytes => held.promise.then(() => bytes))
  const working = work(log).catch((error: unknown) => assert.ok(error instanceof StorageError))
  await new Promise(resolve => setImmediate(resolve))
  Object.assign(disk, { readFile, open })
  await log.abandon()
  await disk.rename(TEST_FOLDER, `${TEST_FOLDER}.gone`)
  const rig = await openRig({}, { disk, fresh: true })
  await appendTo(rig, plainBatch(0, 2, 10, T0))
  held.resolve()
  await working
  return rig
}

test('retention that was under way when a log left takes nothing from who has its folder by then', async () => {
  const { disk, log } = await outlived('readFile', before => before.retain(T0 + 1_000_000, 5))
  assert.deepEqual(offsetsIn(await readAll(log)), [0, 1])
  assert.notEqual(disk.contentOf(`${TEST_FOLDER}/00000000000000000000.log`), undefined)
})

test('a read that was under way when a log left finds nothing of who has its folder by then, and makes no index of it', async () => {
  let found: unknown
  const { disk, log } = await outlived('open', async before => {
    found = await before.read(0, 1e6, 100)
  })
  assert.equal(found, undefined)
  assert.deepEqual(offsetsIn(await readAll(log)), [0, 1])
  assert.equal(disk.contentOf(`${TEST_FOLDER}/00000000000000000000.index`), undefined)
})
