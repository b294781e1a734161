import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findSeed } from '../find.ts'
import { runSimulation } from '../kernel.ts'
import { cluster } from './cluster.ts'

/** How many seeds every run of the tests tries; `npm run sim` tries any number. */
const MORE_SEEDS = Number(process.env.TIDEMARK_SIM_CLUSTER_SEEDS ?? 3)

async function holds(seed: number): Promise<void> {
  const { error } = await runSimulation({ seed, workload: cluster })
  assert.equal(error, undefined, `npm run sim -- --workload cluster --seed ${seed}\n${error?.stack}`)
}

test(`a cluster keeps its promises through ${MORE_SEEDS} seeds`, async () => {
  // Always the same, so that the same tree has the same colour; `npm run sim` draws anew.
  for (let index = 0; index < MORE_SEEDS; index++) await holds(2001 + index)
})

test('the same seed twice is the same trace', async () => {
  const first = await runSimulation({ seed: 14, workload: cluster })
  const second = await runSimulation({ seed: 14, workload: cluster })
  assert.equal(first.hash, second.hash)
})

/** What the checkers say of each broken build, and a seed that has shown it; others are tried when it does not. */
const CAUGHT: Record<string, readonly [seed: number, says: RegExp]> = {
  'ack-before-watermark': [3, /acknowledged|was there|is committed to|was committed/],
  'watermark-of-a-majority': [1, /in sync, ends at|was committed in epoch|acknowledged/],
  'sent-counts-as-held': [4, /in sync, ends at|was committed in epoch|acknowledged/],
  'isr-shrunk-alone': [1, /in sync, ends at|was committed in epoch|acknowledged/],
  'isr-expanded-early': [16, /in sync, ends at|was committed in epoch/],
  'watermark-despite-too-few': [4, /was committed in epoch|acknowledged|is committed to/],
  'broker-epoch-ignored': [5, /out of sync|in sync, ends at|was committed in epoch|acknowledged/],
  'elected-outside-isr': [25, /was committed in epoch|acknowledged|was there/],
  'truncation-skipped': [17, /both lead|out of sync|differ below|acknowledged|was committed|take no acks=all write/],
  'unclean-taken-for-clean': [45, /was acknowledged|was committed in epoch|was there|watermark of .* fell/],
  'vote-forgotten': [13, /voted for|both active|was committed/],
  'quorum-of-one': [4, /the quorum committed|controller .* is active .* was committed|both lead/],
  'answered-before-commit': [6, /the quorum committed/],
  'producers-not-followed': [2, /is there twice|comes behind/],
  'groups-forgotten': [2, /was committed|both own/],
  'commit-early': [18, /was committed|both own/],
  'follower-shows-all': [17, /takes all below|is read where|was acknowledged/],
  'leader-never-resigns': [28, /out of sync|acks=all/],
  'hang-unnoticed': [48, /take no acks=all write .* after the disk of/],
  'wall-unnoticed': [3, /take no acks=all write .* was walled in/],
  'lost-folder-kept': [31, /take no acks=all write .* after .* lost|out of sync/],
  'crash-unnoticed': [13, /take no acks=all write/],
}
/** Every broken build is found within so many seeds. */
const MUTANT_SEEDS = 50
/** What shows it shows it soon: a change of behaviour may have moved what the seed draws. */
const SHOWN_EVENTS_MAX = 250_000

for (const mutant of cluster.mutants) {
  test(`the checkers catch ${mutant}`, async () => {
    const [shown, says] = CAUGHT[mutant] ?? [1, /an entry in CAUGHT/]
    const first = await runSimulation({ seed: shown, workload: cluster, mutant, eventsMax: SHOWN_EVENTS_MAX })
    const others = Array.from({ length: MUTANT_SEEDS }, (_, index) => 1 + index)
    const error = first.error ?? (await findSeed(cluster, mutant, others))?.error
    assert.match(error?.message ?? 'nothing was caught', says)
  })
}
