import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Turns } from './turns.ts'

test('the long work of many goes on one in a turn', async () => {
  const steps: (() => void)[] = []
  const clock = { now: () => 0, monotonic: () => 0, after: () => ({ cancel() {} }) }
  const turns = new Turns({ ...clock, soon: run => void steps.push(run) })
  const done: string[] = []
  const tasks = ['a', 'b', 'c'].map(async name => {
    await turns.pieces().map(Array.from({ length: 3000 }), () => done.push(name))
  })
  const counts: number[] = []
  while (steps.length > 0) {
    const before = done.length
    steps.shift()?.()
    await new Promise(setImmediate)
    counts.push(done.length - before)
  }
  await Promise.all(tasks)
  assert.equal(done.length, 9000)
  assert.ok(
    counts.every(count => count <= 1025),
    counts.join(),
  )
  assert.deepEqual(counts.length, turns.count)
})
