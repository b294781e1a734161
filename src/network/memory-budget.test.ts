import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Clock } from '#world/world.ts'
import { BUDGET_BYTES_DEFAULT, MemoryBudget, type Reader } from './memory-budget.ts'

class ReaderDouble implements Reader {
  readonly budget: MemoryBudget
  partial = false
  unread = 0
  lastActive = 0
  reading = true
  closed: string | undefined

  constructor(budget: MemoryBudget) {
    this.budget = budget
    budget.join(this)
  }

  goOn(): void {
    this.reading = !this.budget.mustWait(this)
  }

  closeStalled(what: string): void {
    this.closed = what
    this.budget.part(this)
  }
}

function rig(bytesMax: number) {
  let now = 0
  const soon: (() => void)[] = []
  let timers: { at: number; run: () => void }[] = []
  const clock: Clock = {
    now: () => now,
    monotonic: () => now,
    after: (delay, run) => {
      timers.push({ at: now + delay, run })
      return { cancel() {} }
    },
    soon: run => void soon.push(run),
  }
  const budget = new MemoryBudget(bytesMax, clock)
  const pass = (ms: number) => {
    now += ms
    const due = timers.filter(({ at }) => at <= now)
    timers = timers.filter(({ at }) => at > now)
    for (const { run } of due) run()
  }
  const readers = (count: number) => Array.from({ length: count }, () => new ReaderDouble(budget))
  return { budget, pass, readers, turn: () => soon.shift()?.() }
}

test('-1 is the default', () => {
  const { budget, readers } = rig(-1)
  const [one] = readers(1) as [ReaderDouble]
  budget.add(BUDGET_BYTES_DEFAULT - 1)
  assert.equal(budget.mustWait(one), false)
  budget.add(1)
  assert.equal(budget.mustWait(one), true)
})

test('who waits goes on in order, some in each turn, until the memory is used up again', () => {
  const { budget, readers, turn } = rig(100)
  const all = readers(20)
  budget.add(100)
  for (const each of all) each.goOn()
  const reading = () => all.filter(each => each.reading).length
  assert.equal(reading(), 0)
  budget.remove(10)
  assert.equal(reading(), 0)
  turn()
  assert.deepEqual(
    all.map(each => each.reading),
    all.map((_, index) => index < 8),
  )
  budget.add(10)
  turn()
  assert.equal(reading(), 8)
  all[0]?.goOn()
  assert.equal(all[0]?.reading, false)
  budget.remove(10)
  turn()
  assert.equal(all[0]?.reading, false, 'behind those who waited before')
  assert.equal(reading(), 15)
  turn()
  assert.equal(reading(), 20)
})

test('one at a time finishes a frame that has begun, however far beyond the limit, unless whole ones can be waited for', () => {
  const { budget, readers } = rig(100)
  const all = readers(4)
  const [idle, first, second, third] = all as [ReaderDouble, ReaderDouble, ReaderDouble, ReaderDouble]
  for (const each of [first, second, third]) {
    each.partial = true
    budget.arrived(50)
  }
  for (const each of all) each.goOn()
  const reading = () => all.map(each => each.reading)
  assert.deepEqual(reading(), [false, true, false, false], 'nothing new is begun')
  budget.arrived(100)
  first.goOn()
  assert.deepEqual(reading(), [false, true, false, false])
  first.partial = false
  budget.whole(first, 150)
  first.goOn()
  assert.deepEqual(reading(), [false, false, false, false], 'what is whole must be done first')
  budget.remove(130)
  assert.deepEqual(reading(), [false, false, true, false])
  second.partial = false
  budget.whole(second, 50)
  second.goOn()
  assert.deepEqual(reading(), [false, false, false, false])
  budget.remove(20)
  assert.equal(budget.bytes, 100)
  assert.deepEqual(reading(), [false, false, false, false])
  budget.add(20)
  budget.remove(50)
  assert.equal(idle.reading, false, 'only in the next turn')
})

test('a client that neither sends the rest nor reads, while others wait, loses its connection', () => {
  const { budget, readers, pass } = rig(100)
  const [silent, unreading, slow, waiting] = readers(4) as [ReaderDouble, ReaderDouble, ReaderDouble, ReaderDouble]
  silent.partial = true
  unreading.unread = 50
  slow.unread = 50
  budget.arrived(100)
  silent.goOn()
  waiting.goOn()
  slow.unread = 40
  pass(9_000)
  assert.equal(unreading.closed, undefined)
  pass(1_000)
  assert.equal(silent.closed, 'sends no more of its request')
  assert.equal(unreading.closed, 'reads no answers')
  assert.equal(slow.closed, undefined)
  assert.equal(waiting.closed, undefined)
})

test('nobody is closed while there is memory', () => {
  const { budget, readers, pass } = rig(100)
  const [unreading, waiting] = readers(2) as [ReaderDouble, ReaderDouble]
  unreading.unread = 50
  budget.add(100)
  waiting.goOn()
  budget.remove(1)
  pass(20_000)
  assert.equal(unreading.closed, undefined)
})
