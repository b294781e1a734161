import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ManualClock } from './testing/rig.ts'
import { WriteTurns } from './write-turns.ts'

/** Enters for each name, and notes in which order they may start. */
function starter(turns: WriteTurns): { readonly started: string[]; enter(name: string): void } {
  const started: string[] = []
  return {
    started,
    enter(name) {
      const turn = turns.enter()
      if (turn === undefined) started.push(name)
      else void turn.then(() => started.push(name))
    },
  }
}

const settled = () => new Promise(resolve => setImmediate(resolve))

test('a write that comes alone starts at once, others wait until one is done', async () => {
  const turns = new WriteTurns(2, new ManualClock())
  const { started, enter } = starter(turns)
  for (const name of ['a', 'b', 'c', 'd']) enter(name)
  assert.deepEqual(started, ['a', 'b'])
  turns.leave()
  await settled()
  assert.deepEqual(started, ['a', 'b', 'c'])
  turns.leave()
  turns.leave()
  await settled()
  assert.deepEqual(started, ['a', 'b', 'c', 'd'])
  turns.leave()
  enter('e')
  assert.deepEqual(started.at(-1), 'e')
})

test('a stream of writes goes in rounds, and what comes during a round waits for the next', async () => {
  const clock = new ManualClock()
  const turns = new WriteTurns(2, clock)
  const { started, enter } = starter(turns)
  for (let each = 0; each < 8; each++) {
    enter(`${each}`)
    turns.leave()
  }
  assert.equal(started.length, 8)
  for (const name of ['a', 'b', 'c']) enter(name)
  await settled()
  assert.equal(started.length, 8)
  clock.advance(1)
  enter('d')
  await settled()
  assert.deepEqual(started.slice(8), ['a', 'b'])
  turns.leave()
  turns.leave()
  await settled()
  assert.deepEqual(started.slice(8), ['a', 'b', 'c'])
  turns.leave()
  clock.advance(1)
  await settled()
  assert.deepEqual(started.slice(8), ['a', 'b', 'c', 'd'])
  turns.leave()
  // The stream has ended.
  clock.advance(100)
  enter('e')
  assert.equal(started.at(-1), 'e')
})
