import assert from 'node:assert/strict'
import { test } from 'node:test'
import { InSyncReplicas } from './in-sync-replicas.ts'

const LAG_MS = 30_000

function withFollower(): InSyncReplicas {
  const options = {
    nodeId: 1,
    epoch: 5,
    replicas: [1, 2],
    isr: [1, 2],
    partitionEpoch: 1,
    minInSync: 1,
    lagTimeMaxMs: LAG_MS,
    eligibleEpoch: () => 9,
    now: 0,
  }
  return new InSyncReplicas(options, 100)
}

const AT_END = { offset: 100, startOffset: 0, leaderStart: 0, brokerEpoch: 9 }

test('a follower at rest was caught up when its session fetched last, however long ago it was named', () => {
  const replicas = withFollower()
  const contact = { at: 10 }
  replicas.fetched(2, AT_END, 100, 10, contact)
  contact.at = 1_000_000
  replicas.endMoves()
  assert.equal(replicas.propose(110, 100, 1_000_000 + LAG_MS), undefined)
  assert.equal(replicas.wakeAt(110, 1_000_000), 1_000_000 + LAG_MS + 1)
  // From then on only what it fetches itself counts.
  contact.at = 2_000_000
  replicas.endMoves()
  const proposal = replicas.propose(120, 100, 1_000_000 + LAG_MS + 1)
  assert.deepEqual(
    proposal?.isr.map(({ brokerId }) => brokerId),
    [1],
  )
})

test('nobody speaks for a follower that lacks something', () => {
  const replicas = withFollower()
  const contact = { at: 10 }
  replicas.fetched(2, AT_END, 100, 10, contact)
  replicas.fetched(2, AT_END, 105, 20, contact)
  contact.at = 1_000_000
  replicas.endMoves()
  // It had all until it fetched the time before.
  assert.equal(replicas.wakeAt(110, 20), 10 + LAG_MS + 1)
})

test('whom the controller takes out is waited for again only once it fetches', () => {
  const replicas = withFollower()
  const contact = { at: 10 }
  replicas.fetched(2, AT_END, 100, 10, contact)
  assert.equal(replicas.heldByAll(110, 11), 100)
  replicas.assigned([1, 2], [1], 2, 20)
  assert.equal(replicas.propose(100, 100, 21), undefined, 'it had all, and is not let in again by that')
  contact.at = 30
  replicas.endMoves()
  assert.equal(replicas.heldByAll(110, 31), 110)
  replicas.fetched(2, { ...AT_END, offset: 110 }, 110, 40)
  assert.equal(replicas.heldByAll(115, 41), 110)
  assert.deepEqual(
    replicas.propose(110, 110, 42)?.isr.map(({ brokerId }) => brokerId),
    [1, 2],
  )
})

test('who has yet to delete what the leader deleted is not let in: as the next leader it would show that again', () => {
  const replicas = withFollower()
  replicas.assigned([1, 2], [1], 2, 5)
  const at = { ...AT_END, startOffset: 40, leaderStart: 90 }
  replicas.fetched(2, at, 100, 10)
  assert.equal(replicas.propose(100, 100, 10), undefined)
  replicas.fetched(2, { ...at, startOffset: 90 }, 100, 20)
  assert.deepEqual(
    replicas.propose(100, 100, 20)?.isr.map(({ brokerId }) => brokerId),
    [1, 2],
  )
})
