import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DiskPace, paceOf } from './disk-pace.ts'

test('the first write on the loop that waits is the last one there for a while', () => {
  const pace = new DiskPace()
  assert.ok(pace.isBrisk(0))
  pace.wroteOnLoop(0, 0.02)
  assert.ok(pace.isBrisk(1))
  pace.wroteOnLoop(1, 9)
  assert.ok(!pace.isBrisk(9))
  assert.ok(!pace.isBrisk(408))
  assert.ok(pace.isBrisk(409), 'fifty times as long')
})

test('writes that wait a little, one after another, leave the loop as well; now and then they may', () => {
  const steady = new DiskPace()
  let now = 0
  let lostMs = 0
  while (now < 10_000) {
    if (steady.isBrisk(now)) {
      steady.wroteOnLoop(now, now + 2)
      lostMs += 2
    }
    now += 2
  }
  assert.ok(lostMs < 300, `${lostMs} of 10000 ms were lost`)

  const rare = new DiskPace()
  for (now = 0; now < 10_000; now += 50) {
    assert.ok(rare.isBrisk(now))
    rare.wroteOnLoop(now, now + 3)
  }
})

test('a write on the pool that does not return keeps others off the loop, and so does one that was slow', () => {
  const pace = new DiskPace()
  const stuck = pace.tripBegins(100)
  const quick = pace.tripBegins(120)
  assert.ok(pace.isBrisk(150))
  pace.tripEnds(quick, 151)
  assert.ok(!pace.isBrisk(151))
  assert.ok(!pace.isBrisk(60_000))
  pace.tripEnds(stuck, 60_000)
  assert.ok(!pace.isBrisk(119_999))
  assert.ok(pace.isBrisk(120_000), 'a minute is enough for everybody')
})

test('a sync that takes long keeps writes off the loop until it is over', () => {
  const pace = new DiskPace()
  const sync = pace.syncBegins(0)
  assert.ok(pace.isBrisk(900))
  assert.ok(!pace.isBrisk(1_100))
  pace.syncEnds(sync)
  assert.ok(pace.isBrisk(1_101))
})

test('files of one file system share what is known of it', () => {
  assert.equal(paceOf(7), paceOf(7))
  assert.notEqual(paceOf(7), paceOf(8))
})
