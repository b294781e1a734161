import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { buildEndMarker } from '#records/control.ts'
import { realWorld } from '#world/real/real.ts'
import { Log } from './log.ts'
import { LOG_CONFIG_DEFAULT } from './log-config.ts'
import { appendTo, buildBatch, LastBatchFold, LinesLogger } from './testing/rig.ts'

const run = promisify(execFile)
const PEER = path.resolve('../shared/peer')

async function missing(): Promise<string | false> {
  if (!existsSync(path.join(PEER, 'tool'))) return 'the peer tools are not here'
  try {
    await run('java', ['-version'])
    return false
  } catch {
    return 'Java is missing'
  }
}

test('kafka-dump-log and golden verify-log read what the log writes', { skip: await missing() }, async () => {
  const root = await mkdtemp(path.join(os.tmpdir(), 'tidemark-oracle-'))
  try {
    const folder = path.join(root, 'topic-0')
    await writeLog(folder)
    const names = (await readdir(folder)).toSorted()
    const files = names.filter(name => /\.(log|index|timeindex|snapshot|txnindex)$/.test(name))
    for (const suffix of ['.log', '.index', '.timeindex', '.snapshot', '.txnindex']) {
      assert.ok(
        files.some(name => name.endsWith(suffix)),
        `${suffix} in ${names}`,
      )
    }
    const list = files.map(name => path.join(folder, name)).join(',')
    const dump = (...flags: string[]) =>
      run(path.join(PEER, 'tool'), ['kafka-dump-log', ...flags, '--files', list], { maxBuffer: 1 << 28 })
    const [deep, sanity, verify] = [
      await dump('--deep-iteration'),
      await dump('--index-sanity-check'),
      await dump('--verify-index-only'),
    ]
    // The tool counts from -1 in every segment, also in Kafka's own, so that only the first is free of this remark.
    const complaints = deep.stderr
      .split('\n')
      .filter(line => !/^Non-consecutive|^ +-1 is followed by \d+$|^$/.test(line))
    assert.deepEqual(complaints, [])
    assert.match(
      deep.stdout,
      /producerId: 2 producerEpoch: 0 coordinatorEpoch: -1 currentTxnFirstOffset: \S+ lastTimestamp: \d+ firstSequence/,
    )
    assert.match(deep.stdout, /version: 0 producerId: 3 firstOffset: \d+ lastOffset: \d+/)
    assert.doesNotMatch(deep.stdout, /isvalid: false/)
    assert.equal(sanity.stderr, '')
    const sane = files.filter(name => name.endsWith('index') && !name.endsWith('txnindex')).length
    assert.equal(sanity.stdout.match(/passed sanity check|is empty/g)?.length, sane)
    assert.equal(verify.stderr, '')
    const { stdout } = await run(path.join(PEER, 'golden'), ['verify-log', folder], { maxBuffer: 1 << 28 })
    const verdict = JSON.parse(stdout) as { ok: boolean; offsetGaps?: number }
    assert.ok(verdict.ok, stdout)
    assert.equal(verdict.offsetGaps, 0)
  } finally {
    await rm(root, { recursive: true, force: true })
  }
})

/** Several segments, of which the last is closed by a clean stop, written over two lives. */
async function writeLog(folder: string): Promise<void> {
  const { disk, clock } = realWorld({ log: { level: 'silent' } })
  const now = clock.now()
  let recoveryPoint = 0
  for (let life = 0; life < 2; life++) {
    const fold = new LastBatchFold()
    const log = await Log.open({
      disk,
      clock,
      log: new LinesLogger(),
      folder,
      config: { ...LOG_CONFIG_DEFAULT, segmentBytes: 100_000, indexIntervalBytes: 1000 },
      fold,
      recoveryPoint,
      clean: true,
      startOffset: 0,
    })
    for (let index = 0; index < 400; index++) {
      const records = Array.from({ length: 1 + (index % 7) }, (_, at) => ({
        timestamp: now + ((index * 7919 + at * 31) % 5000),
        value: `${index}.${at}`.padEnd(100 + index, 'v'),
      }))
      const compression = (['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const)[index % 5] ?? 'none'
      const producer = { producerId: index % 3, producerEpoch: 0, baseSequence: index }
      await appendTo(
        { log, fold },
        buildBatch(log.nextOffset, records, { compression, leaderEpoch: life, ...producer }),
      )
      if (index % 50 !== 0) continue
      const lastOffset = log.nextOffset
      const marker = { type: 'abort', producerId: 3, producerEpoch: 0, coordinatorEpoch: 0, timestamp: now } as const
      await log.append(buildEndMarker(marker, { baseOffset: lastOffset, leaderEpoch: life }))
      log.appendAborted({ producerId: 3, firstOffset: lastOffset, lastOffset, lastStableOffset: lastOffset })
      if (index === 150) await log.checkpoint()
    }
    await log.close()
    recoveryPoint = log.endOffset
  }
}
