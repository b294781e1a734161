import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runSimulation } from './kernel.ts'
import { echo } from './workloads/echo.ts'

test('the same seed twice gives the same trace, byte for byte', async () => {
  const hashes = new Set<string>()
  for (let seed = 1; seed <= 20; seed++) {
    const first = await runSimulation({ seed, workload: echo, keepTrace: true })
    const second = await runSimulation({ seed, workload: echo, keepTrace: true })
    assert.equal(first.error, undefined)
    assert.deepEqual(first.lines, second.lines)
    assert.equal(first.lines?.join('\n'), second.lines?.join('\n'))
    assert.equal(first.hash, second.hash)
    assert.ok(first.events > 100, `${first.events} events`)
    hashes.add(first.hash)
    const withoutLines = await runSimulation({ seed, workload: echo })
    assert.equal(withoutLines.hash, first.hash)
  }
  assert.equal(hashes.size, 20)
})

test('what goes wrong inside, and what never ends, is the result of the run', async () => {
  const fails = await runSimulation({
    seed: 1,
    workload: {
      name: 'fails',
      mutants: [],
      run: async simulation => {
        simulation.schedule.after(5, () => {
          throw new Error('an event broke')
        })
        await simulation.wait(1000)
      },
    },
  })
  assert.equal(fails.error?.message, 'an event broke')
  const stuck = await runSimulation({
    seed: 1,
    workload: { name: 'stuck', mutants: [], run: () => new Promise(() => {}) },
  })
  assert.match(stuck.error?.message ?? '', /stuck/)
})
