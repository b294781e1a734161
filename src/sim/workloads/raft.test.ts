import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runSimulation } from '../kernel.ts'
import { RAFT_MUTANTS } from '../mutants/raft-mutants.ts'
import { raft } from './raft.ts'

/** Of seeds that begin anywhere, so many were enough to catch each broken build. */
const SEEDS = 60

/** What the checkers say of each. */
const CAUGHT: Readonly<Record<string, RegExp>> = {
  'vote-forgotten': /voted for/,
  'sync-lies': /durabl[ey]/,
  'older-log-elected': /without committed|cuts? off|something else/,
  'older-epoch-committed': /copies of epoch/,
  'own-end-undurable': /durably/,
  'two-votes': /voted for/,
  'truncates-committed': /cuts off what is committed/,
  'pre-vote-counts': /lead epoch|without committed/,
  'promise-early': /no vote of its own|not stored/,
  'minority-elects': /lead epoch|without committed/,
  'minority-commits': /without committed|cuts? off|something else|nobody leads|did not become one/,
  'changes-overlap': /before the last change is committed/,
  'divergence-kept': /did not become one/,
  'epoch-reused': /nobody leads|lead epoch/,
}

test('every broken build of raft has an entry', () => {
  assert.deepEqual(Object.keys(CAUGHT).toSorted(), Object.keys(RAFT_MUTANTS).toSorted())
})

for (const [mutant, by] of Object.entries(CAUGHT)) {
  test(`the checkers catch ${mutant} within ${SEEDS} seeds`, async () => {
    let error: Error | undefined
    for (let seed = 1; seed <= SEEDS && error === undefined; seed++) {
      error = (await runSimulation({ seed, workload: raft, mutant })).error
    }
    assert.match(error?.message ?? 'nothing was caught', by)
  })
}

test('the same seed of raft twice is the same trace', async () => {
  const first = await runSimulation({ seed: 5, workload: raft })
  const second = await runSimulation({ seed: 5, workload: raft })
  assert.equal(first.hash, second.hash)
  assert.equal(first.events, second.events)
})
