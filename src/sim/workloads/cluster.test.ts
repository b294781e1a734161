import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runSimulation } from '../kernel.ts'
import { cluster } from './cluster.ts'

/** Seeds that failed once, each before the fix of another fault. */
const FAILED_ONCE = [11]
/** How many seeds every run of the tests tries, beside those; `npm run sim` tries any number. */
const MORE_SEEDS = Number(process.env.TIDEMARK_SIM_CLUSTER_SEEDS ?? 4)

async function holds(seed: number): Promise<void> {
  const { error } = await runSimulation({ seed, workload: cluster })
  assert.equal(error, undefined, `npm run sim -- --workload cluster --seed ${seed}\n${error?.stack}`)
}

test('a cluster keeps its promises where it did not once', async () => {
  for (const seed of FAILED_ONCE) await holds(seed)
})

test(`a cluster keeps its promises through ${MORE_SEEDS} seeds`, async () => {
  // Always the same, so that the same tree has the same colour; `npm run sim` draws anew.
  for (let index = 0; index < MORE_SEEDS; index++) await holds(2001 + index)
})

test('the same seed twice is the same trace', async () => {
  const first = await runSimulation({ seed: 2, workload: cluster })
  const second = await runSimulation({ seed: 2, workload: cluster })
  assert.equal(first.hash, second.hash)
})
