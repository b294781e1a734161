import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { realClock } from '#world/real/clock.ts'
import { Looks } from './looks.ts'

/** Many who wait for one thing, each of whom looks at so many partitions when it moves. */
class Crowd {
  looked = 0
  readonly #looks = new Looks(realClock)
  readonly #partitions: number
  readonly #all: { lookNow(): void }[]

  constructor(size: number, partitions: number) {
    this.#partitions = partitions
    this.#all = Array.from({ length: size }, () => ({
      lookNow: () => {
        this.looked += partitions
      },
    }))
  }

  move(): void {
    for (const one of this.#all) {
      if (this.#looks.mayNow(this.#partitions)) one.lookNow()
      else this.#looks.soon(one, this.#partitions)
    }
  }

  leave(): void {
    for (const one of this.#all) this.#looks.cancel(one)
  }
}

/** The most that was looked at in one go, and all. */
async function goesOf(crowd: Crowd): Promise<{ most: number; all: number }> {
  let most = crowd.looked
  for (let before = -1; before !== crowd.looked; ) {
    before = crowd.looked
    await setImmediate()
    most = Math.max(most, crowd.looked - before)
  }
  return { most, all: crowd.looked }
}

test('a few look at once', () => {
  const crowd = new Crowd(10, 8)
  crowd.move()
  assert.equal(crowd.looked, 80)
})

test('tens of thousands look in turns, and each of them does', async () => {
  const crowd = new Crowd(20_000, 8)
  crowd.move()
  const { most, all } = await goesOf(crowd)
  assert.equal(all, 160_000)
  assert.ok(most <= 1032, `${most} in one go`)
})

test('what moves again before it was looked at is looked at once', async () => {
  const crowd = new Crowd(100, 4000)
  crowd.move()
  crowd.move()
  const { most, all } = await goesOf(crowd)
  assert.equal(all, 101 * 4000, 'the first looked at once, and again')
  assert.ok(most <= 4000, `${most} in one go`)
})

test('who has gone does not look', async () => {
  const crowd = new Crowd(100, 4000)
  crowd.move()
  crowd.leave()
  assert.equal((await goesOf(crowd)).all, 4000)
})
