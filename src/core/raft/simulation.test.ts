import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SimQuorum } from './testing/sim-quorum.ts'

/** How many seeds every run of the tests tries; `npm run sim -- --workload raft` tries any number. */
const SEEDS = Number(process.env.TIDEMARK_SIM_SEEDS ?? 150)

test(`raft keeps its promises and heals through ${SEEDS} seeds`, () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const quorum = new SimQuorum(seed)
    assert.doesNotThrow(
      () => quorum.run(),
      (error: Error) => {
        error.message = `seed ${seed}: ${error.message}`
        return false
      },
    )
    assert.ok(quorum.truth.committed.length > 0 || quorum.steps > 0)
  }
})
