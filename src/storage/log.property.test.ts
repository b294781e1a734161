import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SeededRandom } from '#base/random.ts'
import * as batch from '#records/batch.ts'
import type { LogConfig } from './log-config.ts'
import { MemoryDisk } from './testing/memory-disk.ts'
import { appendTo, buildBatch, LastBatchFold, ManualClock, openRig, type Rig, readAll } from './testing/rig.ts'

const T0 = 1_700_000_000_000
const SEEDS = Number(process.env.STORAGE_SEEDS ?? 150)

/** The log as a list: what was acknowledged, in order. */
class Model {
  batches: { readonly base: number; readonly times: readonly number[]; readonly bytes: Buffer }[] = []
  /** With those that were deleted since. */
  history: { readonly base: number; readonly bytes: Buffer }[] = []
  start = 0
  end = 0

  truncate(offset: number, emptyEnd: number): void {
    while ((this.batches.at(-1)?.base ?? -1) + (this.batches.at(-1)?.times.length ?? 0) > offset) this.batches.pop()
    this.history = this.history.filter(({ base }) => base < offset && this.isThere(base, emptyEnd))
    const last = this.batches.at(-1)
    // Without a batch it ends where its segment begins.
    this.end = last === undefined ? Math.min(emptyEnd, offset) : last.base + last.times.length
    this.start = Math.min(this.start, this.end)
  }

  isThere(base: number, cut: number): boolean {
    return this.batches.length === 0 ? base < cut : base <= (this.batches.at(-1)?.base ?? -1)
  }

  bytesFrom(offset: number): Buffer {
    return Buffer.concat(this.batches.filter(b => b.base + b.times.length > offset).map(b => b.bytes))
  }

  firstAt(timestamp: number): number | undefined {
    for (const { base, times } of this.batches) {
      const index = times.findIndex((time, i) => time >= timestamp && base + i >= this.start)
      if (index >= 0) return base + index
    }
    return undefined
  }

  max(): number | undefined {
    let best: { time: number; offset: number } | undefined
    for (const { base, times } of this.batches) {
      times.forEach((time, index) => {
        if (best === undefined || time > best.time) best = { time, offset: base + index }
      })
    }
    return best?.offset
  }
}

function randomBatch(random: SeededRandom, base: number, epoch: number) {
  const records = Array.from({ length: random.between(1, 6) }, () => ({
    timestamp: T0 + random.below(5000),
    value: 'v'.repeat(random.below(400)),
  }))
  const compression = random.pick(['none', 'none', 'gzip', 'lz4'] as const)
  const producer = random.chance(0.5)
    ? { producerId: random.below(3), producerEpoch: 0, baseSequence: base % 1000 }
    : {}
  const bytes = buildBatch(base, records, { compression, leaderEpoch: epoch, ...producer })
  return { base, times: records.map(record => record.timestamp), bytes }
}

function randomConfig(random: SeededRandom): Partial<LogConfig> {
  return {
    segmentBytes: random.between(1000, 6000),
    indexIntervalBytes: random.pick([1, 500, 4096]),
    segmentIndexBytes: random.pick([100, 10_000]),
    flushMessages: random.pick([1, 7, Number.POSITIVE_INFINITY]),
  }
}

/** The fold as it must be after these batches. */
function foldOf(batches: readonly { readonly bytes: Buffer }[]): LastBatchFold {
  const fold = new LastBatchFold()
  for (const { bytes } of batches) fold.apply(bytes, 0)
  return fold
}

/** Producers whose last batch was deleted may be known or not. */
function checkFold({ fold }: Rig, { batches, history }: Model): void {
  const known = foldOf(batches).producers
  const ever = foldOf(history).producers
  for (const [id, entry] of known) assert.deepEqual(fold.producers.get(id), entry)
  for (const [id, entry] of fold.producers) assert.deepEqual(entry, ever.get(id))
}

async function checkAll(rig: Rig, model: Model, random: SeededRandom): Promise<void> {
  const { log } = rig
  checkFold(rig, model)
  assert.equal(log.endOffset, model.end)
  assert.equal(log.startOffset, model.start)
  assert.equal(log.nextOffset, model.end)
  assert.ok((await readAll(log, log.startOffset, random.between(1, 3000))).equals(model.bytesFrom(log.startOffset)))
  for (let index = 0; index < 5; index++) {
    const from = random.between(log.startOffset, log.endOffset)
    const upTo = random.between(from, log.endOffset + 1)
    const maxBytes = random.between(1, 4000)
    const range = await log.read(from, maxBytes, upTo)
    const expected: Buffer[] = []
    let size = 0
    for (const { base, times, bytes } of model.batches) {
      if (base + times.length <= from) continue
      if (base + times.length > upTo || (size > 0 && size + bytes.length > maxBytes)) break
      size += bytes.length
      expected.push(bytes)
    }
    if (range === undefined) assert.equal(expected.length, 0, `read(${from}, ${maxBytes}, ${upTo}) found nothing`)
    else {
      const found = await log.readBytes(range)
      const wanted = Buffer.concat(expected)
      // A range ends with its segment at the latest.
      assert.ok(
        found.length > 0 && wanted.subarray(0, found.length).equals(found),
        `read(${from}, ${maxBytes}, ${upTo})`,
      )
      assert.equal(batch.wholeBatchSize(wanted, 0, found.length) > 0, true)
    }
    const timestamp = T0 + random.below(5100)
    assert.equal((await log.offsetForTimestamp(timestamp))?.offset, model.firstAt(timestamp))
  }
  assert.equal((await log.offsetOfMaxTimestamp())?.offset, model.max())
}

async function play(seed: number): Promise<void> {
  const random = new SeededRandom(seed)
  const clock = new ManualClock()
  let config = randomConfig(random)
  let rig = await openRig(config, { clock })
  const model = new Model()
  let epoch = 0
  for (let step = 0; step < 60; step++) {
    const dice = random.below(100)
    if (dice < 60) {
      const waits: Promise<void>[] = []
      for (let count = random.between(1, 5); count > 0; count--) {
        const next = randomBatch(random, rig.log.nextOffset, epoch)
        waits.push(appendTo(rig, next.bytes))
        model.batches.push(next)
        model.history.push(next)
        model.end = next.base + next.times.length
      }
      await Promise.all(waits)
    } else if (dice < 66) {
      const offset = random.between(rig.log.startOffset, rig.log.endOffset)
      await rig.log.truncateTo(offset)
      if (offset < model.end) model.truncate(offset, rig.log.endOffset)
      epoch++
      checkFold(rig, model)
    } else if (dice < 70) {
      const offset = random.between(rig.log.startOffset, rig.log.endOffset)
      rig.log.deleteRecordsBefore(offset)
      model.start = rig.log.startOffset
      await rig.log.retain(clock.now(), rig.log.endOffset)
      clock.advance(70_000)
      while (model.batches.length > 0) {
        const [first] = model.batches
        if (first === undefined || first.base + first.times.length > firstOffsetOnDisk(rig)) break
        model.batches.shift()
      }
    } else if (dice < 74) {
      await rig.log.checkpoint()
    } else if (dice < 78) {
      config = randomConfig(random)
      rig.log.configure({ ...rig.log.config, ...config })
    } else if (dice < 82) {
      await rig.log.roll()
    } else if (dice < 92) {
      const { startOffset, recoveryPoint: saved } = rig.log
      const clean = random.chance(0.5)
      if (clean) await rig.log.close()
      const recoveryPoint = clean ? rig.log.recoveryPoint : random.chance(0.3) ? 0 : saved
      const disk = rig.disk.afterKill()
      rig = await openRig(config, { disk, clock, clean, recoveryPoint, startOffset })
      assert.equal(rig.log.startOffset, startOffset)
    } else {
      await checkAll(rig, model, random)
    }
  }
  await checkAll(rig, model, random)
}

function firstOffsetOnDisk({ disk }: Rig): number {
  const name = disk.names().find(candidate => candidate.endsWith('.log')) ?? ''
  return Number(name.slice(name.lastIndexOf('/') + 1, -4))
}

test(`random appends, cuts, rolls, deletions and restarts agree with a list (${SEEDS} seeds)`, async () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    try {
      await play(seed)
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error })
    }
  }
})

/** Appends while the disk fails, then cuts the power or kills the process, and looks at what is left. */
async function crash(seed: number): Promise<void> {
  const random = new SeededRandom(seed)
  const clock = new ManualClock()
  const durable = random.chance(0.5)
  const config = { ...randomConfig(random), flushMessages: durable ? 1 : Number.POSITIVE_INFINITY }
  const disk = new MemoryDisk()
  let rig = await openRig(config, { disk, clock, fresh: true })
  const ever: Buffer[] = []
  const sent: { readonly base: number; readonly bytes: Buffer }[] = []
  let acknowledged = 0
  let recoveryPoint = 0
  for (let life = 0; life < 3; life++) {
    let crashAt = random.between(1, 250)
    let frozen = false
    rig.disk.fault = operation => {
      if (--crashAt <= 0) frozen = true
      if (frozen) return 'EIO'
      if (random.chance(0.01) && operation !== 'read') return random.pick(['ENOSPC', 'EIO'])
      return undefined
    }
    while (!frozen) {
      const base = rig.log.nextOffset
      const { bytes } = randomBatch(random, base, life)
      const writing = appendTo(rig, bytes)
      // Only while it is accepted: a refused one leaves the offset to the next.
      const accepted = rig.log.nextOffset > base
      if (accepted) {
        while ((sent.at(-1)?.base ?? -1) >= base) sent.pop()
        sent.push({ base, bytes })
        ever.push(bytes)
      }
      const settled = writing.then(
        () => {
          acknowledged = Math.max(acknowledged, rig.log.endOffset)
        },
        () => undefined,
      )
      if (!accepted || random.chance(0.4)) await settled
      if (rig.log.failure !== undefined) {
        await settled
        await rig.log.flush().catch(() => undefined)
        clock.advance(6000)
        await rig.log.flush().catch(() => undefined)
        if (--crashAt <= 0) frozen = true
      }
      if (random.chance(0.05)) {
        await rig.log.checkpoint().catch(() => undefined)
        // As the folder's checkpoint would have it; lowered ones do not occur here, because nothing truncates.
        recoveryPoint = rig.log.recoveryPoint
      }
      if (random.chance(0.03)) await rig.log.roll().catch(() => undefined)
    }
    await rig.log.abandon().catch(() => undefined)
    const powerCut = durable && random.chance(0.7)
    rig.disk.fault = () => undefined
    const left = powerCut ? rig.disk.afterPowerCut(random) : rig.disk.afterKill()
    rig = await openRig(config, { disk: left, clock, clean: false, recoveryPoint })
    assert.ok(rig.log.endOffset >= acknowledged, `acknowledged ${acknowledged}, found ${rig.log.endOffset}`)
    const found = await readAll(rig.log)
    const wanted = Buffer.concat(sent.filter(({ base }) => base < acknowledged).map(({ bytes }) => bytes))
    assert.ok(found.subarray(0, wanted.length).equals(wanted), 'what was acknowledged is what is read')
    // Behind it may be what was refused, as far as it reached the disk, but only as it was sent.
    sent.length = 0
    for (const at of batch.batchesOf(found)) {
      const [base, bytes] = [batch.baseOffset(found, at), found.subarray(at, at + batch.sizeInBytes(found, at))]
      assert.ok(base < acknowledged || ever.some(candidate => candidate.equals(bytes)), 'a batch that nobody sent')
      assert.equal(base, sent.length === 0 ? 0 : batch.lastOffset((sent.at(-1) as { bytes: Buffer }).bytes, 0) + 1)
      sent.push({ base, bytes })
    }
    assert.deepEqual(rig.fold.snapshot(), foldOf(sent).snapshot(), 'the fold is that of the log')
    acknowledged = rig.log.endOffset
  }
}

test(`nothing acknowledged is lost by kill, power cut, failing and full disks (${SEEDS * 2} seeds)`, async () => {
  for (let seed = 1; seed <= SEEDS * 2; seed++) {
    try {
      await crash(seed)
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error })
    }
  }
})
