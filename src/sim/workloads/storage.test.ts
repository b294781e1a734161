import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runSimulation } from '../kernel.ts'
import { storage } from './storage.ts'

/** How many seeds every run of the tests tries; `npm run sim` tries any number. */
const SEEDS = Number(process.env.TIDEMARK_SIM_SEEDS ?? 60)

test(`a log keeps its promises through ${SEEDS} seeds`, async () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { error } = await runSimulation({ seed, workload: storage })
    assert.equal(error, undefined, `npm run sim -- --workload storage --seed ${seed}\n${error?.stack}`)
  }
})

test('the same seed twice is the same trace', async () => {
  const first = await runSimulation({ seed: 5, workload: storage, keepTrace: true })
  const second = await runSimulation({ seed: 5, workload: storage, keepTrace: true })
  assert.deepEqual(first.lines, second.lines)
  assert.equal(first.hash, second.hash)
})

/** What the checker says of each broken build. */
const CAUGHT: Record<string, RegExp> = {
  'sync-lies': /was acknowledged|is no batch|is corrupt|not restored|start was refused/,
  'ack-unsynced': /was acknowledged/,
  'ack-early': /was acknowledged/,
  'bit-flip': /is corrupt|is no batch|was never appended/,
  gap: /should come and batch|was asked for and batch/,
  'start-refused': /start was refused/,
  'never-cured': /refuses writes/,
  'stale-fold': /producers are not restored/,
}

for (const mutant of storage.mutants) {
  test(`the checker catches ${mutant}`, async () => {
    let error: Error | undefined
    for (let seed = 1; seed <= 60 && error === undefined; seed++) {
      error = (await runSimulation({ seed, workload: storage, mutant })).error
    }
    assert.match(error?.message ?? 'nothing was caught', CAUGHT[mutant] ?? /an entry in CAUGHT/)
  })
}
