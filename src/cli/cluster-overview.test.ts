import assert from 'node:assert/strict'
import { test } from 'node:test'
import { healthOf } from '#client/admin/health.ts'
import { nodesOf, type Overview, troublesOf } from './cluster-overview.ts'
import { reportOf } from './cluster-report.ts'

const NOW = 1_000_000

function voter(id: number, caughtUp: number) {
  const at = { logEndOffset: 10, lastFetchTimestamp: caughtUp, lastCaughtUpTimestamp: caughtUp }
  return { id, directoryId: `folder-${id}`, ...at }
}

function broker(id: number, fenced = false) {
  return { id, host: `host-${id}`, port: 9092, rack: null, fenced }
}

function overview(change: Partial<Overview> & { readonly isr?: number[]; readonly leader?: number }): Overview {
  const { isr = [1, 2], leader = 1, ...rest } = change
  const partition = { partition: 0, leader, leaderEpoch: 0, replicas: [1, 2], isr, offline: [] }
  const topics = [{ name: 'a', id: '', internal: false, partitions: [partition] }]
  const voters = [voter(1, NOW), voter(2, NOW - 600)]
  const at = { leaderId: 1, leaderEpoch: 1, highWatermark: 10 }
  return {
    description: { clusterId: 'c', controllerId: 1, brokers: [broker(1), broker(2)] },
    quorum: { ...at, voters, observers: [voter(3, NOW - 60_000)], nodes: [] },
    isLeaderless: false,
    isSilent: false,
    health: healthOf(topics, new Map([['a', 2]])),
    reassignments: [],
    ...rest,
  }
}

test('all is well while a follower of the metadata asks twice a second, whoever leads and whoever only follows', () => {
  assert.deepEqual(troublesOf(overview({})), [])
  assert.deepEqual(troublesOf(overview({ leader: 2 })), [])
  const few = [{ partition: 0, leader: 1, leaderEpoch: 0, replicas: [1], isr: [1], offline: [] }]
  const health = healthOf([{ name: 'a', id: '', internal: false, partitions: few }], new Map([['a', 2]]))
  assert.deepEqual([health.underMinIsr.length, troublesOf(overview({ health }))], [1, []])
})

test('what keeps another node from being stopped is named', () => {
  const { description, quorum } = overview({})
  assert.deepEqual(
    troublesOf(overview({ isr: [1], description: { ...description, brokers: [broker(1), broker(2, true)] } })),
    ['1 fenced broker (2)', '1 partition under-replicated'],
  )
  assert.deepEqual(troublesOf(overview({ leader: -1 })), ['1 partition offline'])
  assert.ok(quorum !== undefined)
  const behind = [voter(1, NOW), voter(2, NOW - 6000), voter(3, -1)]
  assert.deepEqual(troublesOf(overview({ quorum: { ...quorum, voters: behind } })), ['2 voters behind (2, 3)'])
  assert.deepEqual(troublesOf(overview({ quorum: undefined, isLeaderless: true })), ['no active controller'])
  const silent = overview({ quorum: undefined, isSilent: true })
  assert.deepEqual(troublesOf(silent), ['the active controller does not answer'])
})

test('controllers alone are active while they ask for the metadata log, whether they vote or follow', () => {
  const { quorum } = overview({})
  assert.ok(quorum !== undefined)
  const node = (id: number) => ({ id, listeners: [{ name: 'CONTROLLER', host: `host-${id}`, port: 9093 }] })
  const voters = [voter(11, NOW), voter(12, NOW - 600), voter(13, NOW - 6000), voter(14, -1)]
  const observers = [voter(1, NOW - 600), voter(15, NOW - 600)]
  const nodes = [11, 12, 13, 15, 16].map(node)
  const found = overview({ quorum: { ...quorum, leaderId: 11, voters, observers, nodes } })
  assert.deepEqual(
    nodesOf(found).map(({ id, roles, state, host }) => [id, roles.join(), state, host]),
    [
      [1, 'broker', 'active', 'host-1'],
      [2, 'broker', 'active', 'host-2'],
      [11, 'controller', 'active', 'host-11'],
      [12, 'controller', 'active', 'host-12'],
      [13, 'controller', 'silent', 'host-13'],
      [14, 'controller', 'silent', null],
      [15, 'controller', 'active', 'host-15'],
    ],
  )
  // One that is slow to catch up lives all the same.
  const slow = { ...voter(12, NOW - 600), lastCaughtUpTimestamp: NOW - 60_000 }
  const behind = overview({ quorum: { ...quorum, leaderId: 11, voters: [voter(11, NOW), slow], nodes } })
  assert.equal(nodesOf(behind).find(({ id }) => id === 12)?.state, 'active')
  // Before v1 DescribeQuorum has no times.
  const untimed = overview({ quorum: { ...quorum, leaderId: 11, voters: [voter(11, -1), voter(12, -1)], nodes } })
  assert.equal(nodesOf(untimed).find(({ id }) => id === 12)?.state, 'unknown')
})

test('without an active controller that is said first, and no election is advised', () => {
  const advice = 'give leadership back with: tidemark cluster elect'
  assert.ok(reportOf(overview({ leader: 2 })).includes(advice))
  for (const [how, first] of [
    [{ isLeaderless: true }, /^no controller leads/],
    [{ isSilent: true }, /^the active controller does not answer/],
  ] as const) {
    const lines = reportOf(overview({ leader: 2, quorum: undefined, reassignments: undefined, ...how }))
    assert.match(lines.filter(line => line !== '')[1] ?? '', first)
    assert.ok(!lines.includes(advice))
    assert.ok(lines.some(line => line.includes('not preferred')))
  }
  assert.deepEqual(troublesOf(overview({ leader: -1, quorum: undefined, isLeaderless: true })), [
    'no active controller',
    '1 partition offline',
  ])
})
