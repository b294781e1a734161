import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Clock } from '#world/world.ts'
import { Deadlines } from './deadlines.ts'

/** A clock that a test moves, with the timers that are set on it. */
function movedClock(): Clock & { move(ms: number): void; readonly timers: number } {
  let now = 0
  let timers: { at: number; run: () => void }[] = []
  return {
    now: () => now,
    monotonic: () => now,
    soon: run => queueMicrotask(run),
    after(delay, run) {
      const timer = { at: now + delay, run }
      timers.push(timer)
      return {
        cancel() {
          timers = timers.filter(each => each !== timer)
        },
      }
    },
    move(ms) {
      now += ms
      for (const timer of timers.filter(({ at }) => at <= now)) {
        timers = timers.filter(each => each !== timer)
        timer.run()
      }
    },
    get timers() {
      return timers.length
    },
  }
}

test('deadlines pass in their order, with one timer for all of them', () => {
  const clock = movedClock()
  const deadlines = new Deadlines(clock)
  const passed: string[] = []
  deadlines.after(30, () => passed.push('c'))
  deadlines.after(10, () => passed.push('a'))
  deadlines.after(20, () => passed.push('b'))
  assert.equal(clock.timers, 1)
  clock.move(10)
  assert.deepEqual(passed, ['a'])
  assert.equal(clock.timers, 1)
  clock.move(25)
  assert.deepEqual(passed, ['a', 'b', 'c'])
  assert.equal(clock.timers, 0)
})

test('one that is cancelled does not pass, also from within another', () => {
  const clock = movedClock()
  const deadlines = new Deadlines(clock)
  const passed: string[] = []
  const second = deadlines.after(10, () => passed.push('second'))
  deadlines.after(5, () => {
    passed.push('first')
    deadlines.cancel(second)
    deadlines.after(1, () => passed.push('third'))
  })
  clock.move(10)
  clock.move(10)
  assert.deepEqual(passed, ['first', 'third'])
  deadlines.cancel(second)
  assert.equal(deadlines.size, 0)
})

test('after stop nothing passes', () => {
  const clock = movedClock()
  const deadlines = new Deadlines(clock)
  deadlines.after(5, () => assert.fail('stopped'))
  deadlines.stop()
  clock.move(10)
  assert.equal(clock.timers, 0)
})

test('when the loop was held up, what lies in the sockets is read before anything expires', async () => {
  const clock = movedClock()
  const deadlines = new Deadlines(clock)
  const session = deadlines.after(10, () => assert.fail('its heartbeat was there'))
  deadlines.after(20, () => passed.push('other'))
  const passed: string[] = []
  clock.move(500)
  // The heartbeat that was waiting in a socket.
  deadlines.cancel(session)
  await Promise.resolve()
  assert.deepEqual(passed, ['other'])
})
