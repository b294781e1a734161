import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SeededRandom } from '#base/random.ts'
import type { Offset } from '#base/units.ts'
import * as batch from '#records/batch.ts'
import type { Log } from './log.ts'
import { DamagedLogError, StorageError } from './storage-error.ts'
import type { MemoryDisk } from './testing/memory-disk.ts'
import { appendTo, openRig, plainBatch, TEST_FOLDER } from './testing/rig.ts'

const SEEDS = Number(process.env.TIDEMARK_SEEDS ?? 200)
const T0 = 1_700_000_000_000
/** Of a batch's header what no checksum covers and nothing else tells: base offset and leader epoch. */
const UNCOVERED = new Set([0, 1, 2, 3, 4, 5, 6, 7, 12, 13, 14, 15])

interface Made {
  readonly disk: MemoryDisk
  readonly config: { readonly segmentBytes: number; readonly indexIntervalBytes: number }
  readonly clean: boolean
  readonly recoveryPoint: Offset
  readonly values: ReadonlyMap<Offset, string>
}

async function make(random: SeededRandom): Promise<Made> {
  const config = { segmentBytes: random.between(600, 5000), indexIntervalBytes: random.pick([100, 500, 4096]) }
  const rig = await openRig(config)
  const clean = random.chance(0.4)
  const checkpointAfter = random.below(40)
  for (let index = 0; index < 40; index++) {
    await appendTo(rig, plainBatch(rig.log.nextOffset, random.between(1, 4), random.between(10, 200), T0 + index))
    if (index === checkpointAfter) await rig.log.checkpoint()
  }
  const values = new Map<Offset, string>()
  for (const found of await readLikeClients(rig.log, []))
    if (found.value !== undefined) values.set(found.offset, found.value)
  if (clean) await rig.log.close()
  const { recoveryPoint } = rig.log
  return { disk: rig.disk.afterKill(), config, clean, recoveryPoint, values }
}

function logsOf(disk: MemoryDisk): string[] {
  return disk.names().filter(name => name.endsWith('.log'))
}

async function damage(disk: MemoryDisk, random: SeededRandom): Promise<string> {
  const path = random.pick(logsOf(disk))
  const bytes = Buffer.from(disk.contentOf(path) as Buffer)
  const at = random.below(bytes.length)
  const kind = random.pick(['flip', 'zeros', 'truncate', 'remove', 'index'])
  if (kind === 'flip') {
    const inBatch = [...batch.batchesOf(bytes)].filter(start => start <= at).map(start => at - start)
    if (UNCOVERED.has(inBatch.at(-1) ?? 0)) return 'nothing'
    bytes[at] = (bytes[at] ?? 0) ^ (1 << random.below(8))
  } else if (kind === 'zeros') bytes.fill(0, at, Math.min(bytes.length, at + random.between(1, 600)))
  if (kind === 'remove') await disk.remove(path)
  else if (kind === 'index') await disk.remove(path.replace(/log$/, 'index'))
  else disk.put(path, kind === 'truncate' ? bytes.subarray(0, at) : bytes)
  return `${kind} ${path} at ${at}`
}

interface Found {
  readonly offset: Offset
  /** Undefined for an error that the reader was told of. */
  readonly value: string | undefined
}

/** All of a log; where a reader gets an error, or bytes that its checks refuse, it goes on with the next of `bases`. */
async function readLikeClients(log: Log, bases: readonly Offset[]): Promise<Found[]> {
  const found: Found[] = []
  let from = log.startOffset
  const refused = (): void => {
    found.push({ offset: from, value: undefined })
    from = bases.find(base => base > from) ?? Number.POSITIVE_INFINITY
  }
  while (from < log.endOffset) {
    try {
      const read = await log.read(from, 700, log.endOffset)
      assert.ok(read !== undefined, `nothing at ${from} of ${log.endOffset}`)
      const bytes = await log.readBytes(read)
      const before = from
      for (let at = 0; at < bytes.length; ) {
        const size = batch.wholeBatchSize(bytes, at, bytes.length)
        if (size <= 0 || batch.checkCrc(bytes, at) !== undefined) break
        const head = bytes.subarray(at, at + size).toString('latin1')
        for (let offset = batch.baseOffset(bytes, at); offset <= batch.lastOffset(bytes, at); offset++)
          if (offset >= from) found.push({ offset, value: head })
        from = Math.max(from, batch.lastOffset(bytes, at) + 1)
        at += size
      }
      if (from === before) refused()
    } catch (error) {
      if (!(error instanceof StorageError)) throw error
      refused()
    }
  }
  return found
}

async function run(seed: number): Promise<string> {
  const random = new SeededRandom(seed)
  const { disk, config, clean, recoveryPoint, values } = await make(random)
  const bases = logsOf(disk).map(name => Number(name.slice(TEST_FOLDER.length + 1, -4)))
  const what = await damage(disk, random)
  const before = logsOf(disk).map(path => [path, disk.contentOf(path)])
  const context = `seed ${seed}: ${what}, clean ${clean}, recovery point ${recoveryPoint}`
  const rig = await openRig(config, { disk, clean, recoveryPoint }).catch((error: unknown) => {
    if (!(error instanceof DamagedLogError)) throw error
    return undefined
  })
  if (rig === undefined) {
    assert.deepEqual(
      logsOf(disk).map(path => [path, disk.contentOf(path)]),
      before,
      `${context}: a log that stays closed stays as it is`,
    )
    assert.notEqual(what, 'nothing', context)
    return 'refused'
  }
  const lines = [...rig.logger.lines]
  const found = await readLikeClients(rig.log, bases).catch((error: unknown) => {
    throw new Error(context, { cause: error })
  })
  const told = found.some(({ value }) => value === undefined)
  for (const { offset, value } of found) {
    if (value !== undefined) assert.equal(value, values.get(offset), `${context}: offset ${offset} is another`)
  }
  const offsets = new Set(found.map(({ offset }) => offset))
  const missing = [...values.keys()].filter(offset => !offsets.has(offset))
  const lost = missing.filter(offset => offset < recoveryPoint)
  // Without its first file a log begins later, as retention leaves it; and one that ends with a whole batch, where nothing
  // says that there was more, ends there.
  const { startOffset, endOffset } = rig.log
  const isHole = missing.some(offset => offset >= startOffset && offset < Math.max(recoveryPoint, endOffset))
  if (isHole && !told) {
    assert.ok(
      lines.length > 0,
      `${context}: ${missing.length} records from ${missing[0]} on are gone and nobody said so`,
    )
  }
  // Nothing that was synced is deleted: it is in the files, or was taken out of them by the damage itself.
  const now = new Map(logsOf(disk).map(path => [path, disk.contentOf(path)]))
  for (const [path, bytes] of before) {
    const size = (bytes as Buffer).length
    const kept = now.get(path as string)?.length ?? 0
    if (kept >= size) continue
    assert.ok(rig.log.endOffset >= recoveryPoint, `${context}: ${path} was cut below the recovery point`)
  }
  return lost.length > 0 ? 'said' : missing.length > 0 ? 'cut' : 'whole'
}

test(`damage is never a silent loss, and what was synced is never deleted for it (${SEEDS} seeds)`, async () => {
  const outcomes = new Map<string, number>()
  for (let seed = 1; seed <= SEEDS; seed++) {
    const outcome = await run(seed)
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
  }
  for (const outcome of ['refused', 'said', 'cut', 'whole']) {
    assert.ok(
      SEEDS < 200 || (outcomes.get(outcome) ?? 0) > 0,
      `${outcome} never came: ${JSON.stringify([...outcomes])}`,
    )
  }
})
