import assert from 'node:assert/strict'
import { test } from 'node:test'
import { simulateQuorum } from './testing/sim-chaos.ts'
import type { SimMember } from './testing/sim-member.ts'
import { SimQuorum } from './testing/sim-quorum.ts'

/** How many seeds every run of the tests tries; `npm run sim -- --workload raft` tries any number. */
const SEEDS = Number(process.env.TIDEMARK_SIM_SEEDS ?? 150)
const CALM_SEEDS = 100

test(`raft keeps its promises and heals through ${SEEDS} seeds`, () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const quorum = new SimQuorum(seed)
    try {
      simulateQuorum(quorum)
    } catch (error) {
      throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error })
    }
  }
})

/** A calm quorum of voters, after ten seconds, with its leader. */
function calm(seed: number, members: number): { readonly quorum: SimQuorum; readonly leader: SimMember } {
  const quorum = new SimQuorum(seed, { members, founders: members, isStatic: true })
  for (const member of quorum.members) member.start()
  quorum.appendUntil(60_000)
  quorum.runUntil(10_000)
  const leader = quorum.members.find(member => member.isLeader)
  assert.ok(leader !== undefined, `seed ${seed}: ${quorum.describe()}`)
  return { quorum, leader }
}

/** How long nobody can commit after this happened to the leader. */
function gapMs(seed: number, members: number, end: (quorum: SimQuorum, leader: SimMember) => void): number {
  const { quorum, leader } = calm(seed, members)
  end(quorum, leader)
  const began = quorum.now
  const epoch = leader.raft?.epoch ?? leader.stored.leaderEpoch
  const next = () => quorum.members.find(({ isLeader, term = 0 }) => isLeader && term > epoch)
  const hasCommitted = () => {
    const log = next()?.log
    return log !== undefined && log.at((next()?.raft?.highWatermark ?? 0) - 1)?.epoch === next()?.term
  }
  quorum.runUntil(began + 20_000, hasCommitted)
  assert.ok(hasCommitted(), `seed ${seed}: ${quorum.describe()}`)
  return quorum.now - began
}

function quantiles(gaps: number[]): { readonly median: number; readonly worst: number } {
  const sorted = gaps.toSorted((a, b) => a - b)
  return { median: sorted[Math.floor(sorted.length / 2)] ?? 0, worst: sorted.at(-1) ?? 0 }
}

for (const members of [3, 5]) {
  const seeds = Array.from({ length: CALM_SEEDS }, (_, index) => index + 1)

  test(`of ${members} voters, another one leads within half a second when the leader's process dies`, t => {
    const gaps = seeds.map(seed => gapMs(seed, members, (quorum, leader) => quorum.kill(leader)))
    const { median, worst } = quantiles(gaps)
    t.diagnostic(`median ${median} ms, worst of ${CALM_SEEDS} ${worst} ms`)
    assert.ok(median <= 60, `${median} ms`)
    assert.ok(worst <= 500, `${worst} ms`)
  })

  test(`of ${members} voters, another one leads soon after the fetch timeout when the leader's machine falls silent`, t => {
    const silence = (quorum: SimQuorum, leader: SimMember) => {
      for (const { id } of quorum.members) {
        quorum.cut.add(quorum.way(id, leader.id))
        quorum.cut.add(quorum.way(leader.id, id))
      }
    }
    const { median, worst } = quantiles(seeds.map(seed => gapMs(seed, members, silence)))
    t.diagnostic(`median ${median} ms, worst of ${CALM_SEEDS} ${worst} ms`)
    assert.ok(worst <= 3500, `${worst} ms`)
  })

  test(`of ${members} voters, another one leads when the leader's disk hangs`, t => {
    const hang = (quorum: SimQuorum, leader: SimMember) => {
      quorum.hangUntil.set(leader.id, quorum.now + 60_000)
      leader.append({ epoch: leader.term ?? 0, value: quorum.nextValue() })
    }
    const { median, worst } = quantiles(seeds.map(seed => gapMs(seed, members, hang)))
    t.diagnostic(`median ${median} ms, worst of ${CALM_SEEDS} ${worst} ms`)
    assert.ok(worst <= 5000, `${worst} ms`)
  })

  test(`of ${members} voters, another one leads at once when the leader stops`, t => {
    const { median, worst } = quantiles(
      seeds.map(seed => gapMs(seed, members, (_, leader) => leader.step({ kind: 'stop' }))),
    )
    t.diagnostic(`median ${median} ms, worst of ${CALM_SEEDS} ${worst} ms`)
    assert.ok(worst <= 500, `${worst} ms`)
  })

  test(`of ${members} voters, one that is refused by the leader disturbs nobody`, () => {
    for (const seed of seeds.slice(0, 20)) {
      const { quorum, leader } = calm(seed, members)
      const other = quorum.members.find(member => member !== leader)
      assert.ok(other !== undefined)
      const { term } = leader
      quorum.refusing.add(quorum.way(other.id, leader.id))
      for (let i = 0; i < 20; i++) {
        other.step({ kind: 'peer-gone', id: leader.id })
        quorum.runUntil(quorum.now + 1000)
        assert.equal(leader.term, term, `seed ${seed}: ${quorum.describe()}`)
      }
      quorum.refusing.clear()
      quorum.runUntil(quorum.now + 3000)
      assert.equal(other.raft?.highWatermark, leader.raft?.highWatermark, `seed ${seed}: ${quorum.describe()}`)
    }
  })
}
