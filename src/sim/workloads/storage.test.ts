import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LOG_CONFIG_DEFAULT } from '#storage/log-config.ts'
import { LogFolders } from '#storage/log-folders.ts'
import { appendTo, LastBatchFold, plainBatch } from '#storage/testing/rig.ts'
import type { Simulation } from '#world/fake/simulation.ts'
import { runSimulation, type Workload } from '../kernel.ts'
import { storage } from './storage.ts'

/** How many seeds every run of the tests tries; `npm run sim` tries any number. */
const SEEDS = Number(process.env.TIDEMARK_SIM_SEEDS ?? 60)

test(`a log keeps its promises through ${SEEDS} seeds`, async () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { error } = await runSimulation({ seed, workload: storage })
    assert.equal(error, undefined, `npm run sim -- --workload storage --seed ${seed}\n${error?.stack}`)
  }
})

for (const firstLife of ['crash', 'clean stop'] as const) {
  test(`a partition's folder that saw no record before a ${firstLife} is kept once a record in it is durable`, async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const lost: Workload = { name: 'folder', mutants: [], run: simulation => keepFolder(simulation, firstLife) }
      const { error } = await runSimulation({ seed, workload: lost })
      assert.equal(error, undefined, `seed ${seed}: ${error?.stack}`)
    }
  })
}

async function keepFolder(simulation: Simulation, firstLife: 'crash' | 'clean stop'): Promise<void> {
  const node = simulation.node('broker')
  await node.world.disk.makeFolder('/data')
  await node.world.disk.syncFolder('/')
  const open = async () => {
    const folders = await LogFolders.open({ ...node.world, paths: ['/data'], nodeId: 1 })
    const fold = new LastBatchFold()
    const partition = {
      topic: 'topic',
      topicId: 'AAAAAAAAAAAAAAAAAAAAAQ',
      partition: 0,
      config: LOG_CONFIG_DEFAULT,
      fold,
    }
    return { folders, fold, log: (await folders.open(partition)).log }
  }
  const first = await open()
  if (firstLife === 'clean stop') await first.folders.close()
  node.crash()
  const second = await open()
  await appendTo(second, plainBatch(0, 1, 10, 0))
  await second.log.flush()
  node.powerCut()
  assert.equal((await open()).log.endOffset, 1)
}

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
  'bit-flip': /is corrupt|is no batch|was never appended|was asked for and batch/,
  gap: /should come and batch|was asked for and batch/,
  'start-refused': /start was refused/,
  // Or it hangs, and so does all that waits for it.
  'never-cured': /refuses writes|the work is stuck/,
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
