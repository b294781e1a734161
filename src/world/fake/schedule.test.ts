import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Schedule } from './schedule.ts'

test('events happen in order of time, then of making, each with all promises of the one before run out', async () => {
  const schedule = new Schedule()
  const seen: string[] = []
  const chain = async (name: string): Promise<void> => {
    for (let i = 0; i < 50; i++) await undefined
    seen.push(`${name} at ${schedule.now}`)
  }
  schedule.after(2, () => void chain('c'))
  schedule.after(1, () => void chain('a'))
  schedule.after(1, () => void chain('b'))
  const cancelled = schedule.after(1, () => void chain('never'))
  schedule.cancel(cancelled)
  await schedule.run(() => false)
  assert.deepEqual(seen, ['a at 1', 'b at 1', 'c at 2'])
  assert.equal(schedule.count, 3)
})

test('a run ends when it is done, at its limit, or with what an event throws', async () => {
  const schedule = new Schedule()
  for (let i = 1; i <= 1000; i++) schedule.after(i, () => {})
  await schedule.run(() => schedule.now >= 300)
  assert.equal(schedule.now, 300)
  await schedule.run(() => false, 400)
  assert.equal(schedule.count, 400)
  schedule.after(5, () => {
    throw new Error('broken')
  })
  await assert.rejects(
    schedule.run(() => false),
    /broken/,
  )
  assert.equal(schedule.now, 405)
})
