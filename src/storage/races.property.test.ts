import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SeededRandom } from '#base/random.ts'
import { LOG_CONFIG_DEFAULT } from './log-config.ts'
import { StorageError } from './storage-error.ts'
import { MemoryDisk } from './testing/memory-disk.ts'
import { ManualClock, offsetsIn, openRig, plainBatch, readAll } from './testing/rig.ts'

const SEEDS = 150
const STEPS = 120

interface Appended {
  readonly first: number
  readonly last: number
}

async function turn(): Promise<void> {
  await new Promise(setImmediate)
}

/** Every operation takes some turns of the loop. */
function slow(disk: MemoryDisk, random: SeededRandom): void {
  const late = <Args extends unknown[], Result>(run: (...args: Args) => Promise<Result>) => {
    return async (...args: Args): Promise<Result> => {
      for (let turns = random.below(4); turns > 0; turns--) await turn()
      const result = await run(...args)
      for (let turns = random.below(4); turns > 0; turns--) await turn()
      return result
    }
  }
  const { open } = disk
  Object.assign(disk, {
    rename: late(disk.rename.bind(disk)),
    remove: late(disk.remove.bind(disk)),
    readFile: late(disk.readFile.bind(disk)),
    syncFolder: late(disk.syncFolder.bind(disk)),
    open: late(async (path: string, how: { create: boolean; write: boolean }) => {
      const file = await open.call(disk, path, how)
      const { read, write, truncate, sync, size } = file
      return {
        ...file,
        read: late(read),
        write: late(write),
        truncate: late(truncate),
        sync: late(sync),
        size: late(size),
      }
    }),
  })
}

/** Appends, rolls, cuts, retention, checkpoints and reads that do not wait for each other, on a disk that fails at times. */
async function live(seed: number): Promise<void> {
  const random = new SeededRandom(seed)
  const disk = new MemoryDisk()
  disk.isBrisk = random.chance(0.5)
  slow(disk, random)
  let faults = 0
  disk.fault = () => {
    if (faults === 0 || !random.chance(0.05)) return undefined
    faults--
    return 'EIO'
  }
  const clock = new ManualClock()
  const config = {
    segmentBytes: random.chance(0.7) ? 900 : LOG_CONFIG_DEFAULT.segmentBytes,
    retentionMs: 5000,
    indexIntervalBytes: 300,
    flushMessages: random.chance(0.3) ? 3 : LOG_CONFIG_DEFAULT.flushMessages,
  }
  const rig = await openRig(config, { disk, clock })
  const { log, fold } = rig
  let taken: Appended[] = []
  let isCutting = false
  let epoch = 0
  const under = new Set<Promise<unknown>>()
  const underWay = (work: Promise<unknown>): void => {
    const ended: Promise<unknown> = work.then(
      () => under.delete(ended),
      error => {
        under.delete(ended)
        if (!(error instanceof StorageError)) throw error
      },
    )
    under.add(ended)
  }
  const append = (): void => {
    // While a follower's log is cut nothing is appended to it.
    if (isCutting || log.failure !== undefined) return
    const first = log.nextOffset
    const [producerId, count] = [1 + random.below(5), 1 + random.below(3)]
    const producer = { producerId, producerEpoch: 0, baseSequence: first, leaderEpoch: epoch }
    const bytes = plainBatch(first, count, 50 + random.below(100), clock.now(), producer)
    const written = log.appendNow(bytes)
    fold.apply(bytes, 0)
    const entry = { first, last: first + count - 1 }
    if (written === undefined) taken.push(entry)
    else underWay(written.then(() => taken.push(entry)))
  }
  const cut = (): void => {
    if (isCutting || log.nextOffset !== log.endOffset) return
    isCutting = true
    const isAnew = random.chance(0.2)
    const cutting = isAnew
      ? log.truncateFullyAndStartAt(log.endOffset + random.below(50))
      : log.truncateTo(Math.max(0, log.endOffset - random.below(12)))
    const ended = cutting.finally(() => {
      isCutting = false
      taken = isAnew ? [] : taken.filter(({ last }) => last < log.endOffset)
    })
    underWay(ended)
  }
  const rest = async (): Promise<void> => {
    for (let turns = 0; under.size > 0 || log.failure !== undefined; turns++) {
      assert.ok(turns < 4000, `seed ${seed}: ${under.size} under way, ${log.failure?.message}`)
      if (turns % 40 === 39) clock.advance(300)
      await turn()
    }
  }
  let endBefore = 0
  const check = (): void => {
    const { startOffset, endOffset, nextOffset, failure, activeSegment } = log
    assert.ok(startOffset <= endOffset, `seed ${seed}: starts at ${startOffset} and ends at ${endOffset}`)
    assert.ok(endOffset <= nextOffset, `seed ${seed}: ends at ${endOffset} and goes on at ${nextOffset}`)
    if (isCutting || failure !== undefined) {
      endBefore = 0
      return
    }
    assert.ok(activeSegment.baseOffset <= nextOffset, `seed ${seed}: ${activeSegment.baseOffset} before ${nextOffset}`)
    assert.ok(endOffset >= endBefore, `seed ${seed}: ends at ${endOffset} after ${endBefore}`)
    endBefore = endOffset
  }
  for (let step = 0; step < STEPS; step++) {
    const what = random.below(14)
    if (what < 7) append()
    else if (what === 7) underWay(log.checkpoint())
    else if (what === 8) underWay(log.retain(clock.now(), log.endOffset))
    else if (what === 9) underWay(log.roll())
    else if (what === 10) clock.advance(random.below(3000))
    else if (what === 11) epoch++
    else if (what === 12) cut()
    else underWay(Promise.resolve(log.read(random.between(log.startOffset, log.endOffset), 400, log.endOffset)))
    if (random.chance(0.03)) faults = 1
    check()
    if (random.chance(0.6)) await turn()
    check()
  }
  faults = 0
  await rest()
  append()
  await rest()

  const { startOffset, endOffset, recoveryPoint } = log
  const offsets = async (of: typeof log): Promise<number[]> =>
    offsetsIn(await readAll(of)).filter(offset => offset >= startOffset)
  const wanted: number[] = []
  for (const { first, last } of taken.toSorted((a, b) => a.first - b.first)) {
    for (let offset = first; offset <= last; offset++) if (offset >= startOffset) wanted.push(offset)
  }
  assert.deepEqual(await offsets(log), wanted, `seed ${seed}`)
  const producers = [...fold.producers.values()].filter(({ lastOffset }) => lastOffset >= startOffset)
  const isKilled = random.chance(0.5)
  if (!isKilled) await log.close()
  const again = await openRig(config, {
    disk: isKilled ? disk.afterKill() : disk,
    clean: !isKilled,
    startOffset,
    recoveryPoint,
  })
  assert.deepEqual([again.log.startOffset, again.log.endOffset], [startOffset, endOffset], `seed ${seed}`)
  assert.deepEqual(await offsets(again.log), wanted, `seed ${seed}`)
  for (const { producerId, lastOffset } of producers) {
    assert.equal(again.fold.producers.get(producerId)?.lastOffset, lastOffset, `seed ${seed}: producer ${producerId}`)
  }
}

test('whatever comes at the same time, a log keeps what it took and what it knows of producers', async () => {
  for (let seed = 1; seed <= SEEDS; seed++) await live(seed)
})
