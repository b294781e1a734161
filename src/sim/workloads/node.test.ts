import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findSeed } from '../find.ts'
import { runSimulation } from '../kernel.ts'
import { node } from './node.ts'

/** How many seeds every run of the tests tries, beside those that failed once; `npm run sim` tries any number. */
const MORE_SEEDS = Number(process.env.TIDEMARK_SIM_NODE_SEEDS ?? 8)
/** Seeds that failed once, each before the fix of another fault. */
const FAILED_ONCE = [1, 2, 5, 100, 120, 141, 183, 320, 5011, 5039, 5153, 5674, 2261569304]

async function holds(seed: number): Promise<void> {
  const { error } = await runSimulation({ seed, workload: node })
  assert.equal(error, undefined, `npm run sim -- --workload node --seed ${seed}\n${error?.stack}`)
}

test('a node keeps its promises where it did not once', async () => {
  for (const seed of FAILED_ONCE) await holds(seed)
})

test(`a node keeps its promises through ${MORE_SEEDS} seeds`, async () => {
  // Always the same, so that the same tree has the same colour; `npm run sim` draws anew.
  const first = 1001
  for (let index = 0; index < MORE_SEEDS; index++) await holds((first + index) >>> 0)
})

test('the same seed twice is the same trace', async () => {
  const first = await runSimulation({ seed: 8, workload: node, keepTrace: true })
  const second = await runSimulation({ seed: 8, workload: node, keepTrace: true })
  assert.deepEqual(first.lines, second.lines)
  assert.equal(first.hash, second.hash)
})

/** What the checkers say of each broken build, and a seed that has shown it; others are tried when it does not. */
const CAUGHT: Record<string, readonly [seed: number, says: RegExp]> = {
  'sync-lies': [2, /start was refused|was there|is there twice|was committed|given twice|settings|missing/],
  'crash-loses-writes': [17, /was there|was committed|there twice|acknowledged/],
  'ack-early': [5, /acknowledged|was there|comes behind|committed|there twice/],
  'high-watermark-ahead': [1, /nothing comes behind|was there/],
  'producers-forgotten': [7, /is there twice|comes behind/],
  'repeats-written': [7, /is there twice|comes behind/],
  'commit-early': [2, /was committed/],
  'groups-forgotten': [1, /was committed/],
  'topic-configs-lost': [1, /settings/],
  'producer-ids-reused': [1, /given twice|INVALID_PRODUCER_EPOCH|acknowledged|there twice/],
  'topics-undeletable': [1, /was deleted and is there/],
  'answers-missing': [14, /was answered after/],
  'log-start-forgotten': [30, /is deleted/],
}
const MUTANT_SEEDS = 60

for (const mutant of node.mutants) {
  test(`the checkers catch ${mutant}`, async () => {
    const [shown, says] = CAUGHT[mutant] ?? [1, /an entry in CAUGHT/]
    const first = await runSimulation({ seed: shown, workload: node, mutant })
    const others = Array.from({ length: MUTANT_SEEDS }, (_, index) => 1 + index)
    const error = first.error ?? (await findSeed(node, mutant, others))?.error
    assert.match(error?.message ?? 'nothing was caught', says)
  })
}
