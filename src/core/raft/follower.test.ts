import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ZERO_UUID } from '#base/uuid.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { LogView, Position } from './log-view.ts'
import type { RaftEffect, RaftEvent } from './messages.ts'
import { KRAFT_VERSIONS, NO_QUORUM_STATE } from './quorum.ts'
import { Raft } from './raft.ts'

const OWN = 'OOOOOOOOOOOOOOOOOOOOOA'

/** A log of ten records of epoch 4; of the epochs behind, no record is there. */
class TenRecords implements LogView {
  readonly startOffset = 0
  readonly nextOffset = 10
  readonly endOffset = 10
  readonly earliestSnapshot = undefined
  readonly latestSnapshot = undefined
  lastEpoch: number

  constructor(lastEpoch: number) {
    this.lastEpoch = lastEpoch
  }

  endOffsetForEpoch(epoch: number) {
    return epoch < this.lastEpoch ? { epoch: 4, endOffset: 10 } : { epoch: this.lastEpoch, endOffset: 10 }
  }
}

/** Node 1, which follows the leader 2 of epoch 6. */
class Follower {
  now = 0
  readonly raft: Raft
  #fetch = -1

  constructor(log: LogView) {
    const voters = [1, 2, 3].map(id => {
      return { id, directoryId: ZERO_UUID, endpoints: [], kraftVersion: KRAFT_VERSIONS }
    })
    const state = { ...NO_QUORUM_STATE, leaderEpoch: 5 }
    this.raft = new Raft({ nodeId: 1, directoryId: OWN, voters, state, log, retryMs: 1000 })
    this.step({ kind: 'start' })
    const begin = { leaderId: 2, epoch: 6, voter: { id: 1, directoryId: OWN } }
    this.step({ kind: 'begin-epoch', call: 1, begin })
    assert.equal(this.raft.role, 'follower')
  }

  step(event: RaftEvent): RaftEffect[] {
    const effects: RaftEffect[] = []
    for (const effect of this.raft.step(event, this.now)) {
      effects.push(effect)
      if (effect.kind === 'store-state') effects.push(...this.step({ kind: 'state-stored', state: effect.state }))
      if (effect.kind === 'send' && effect.message.kind === 'fetch') this.#fetch = effect.request
    }
    return effects
  }

  /** What it does with this answer to its fetch. */
  answered(position: Position): RaftEffect[] {
    const same = { errorCode: ErrorCode.NONE, upTo: 0, highWatermark: 12, leaderId: 2, leaderEpoch: 6 }
    const response = { kind: 'fetch', answer: { ...same, position }, endOffset: 10 } as const
    return this.step({ kind: 'answered', request: this.#fetch, response })
  }

  /** Runs until it fetches again; how long that took. */
  fetchesAfter(): number {
    const began = this.now
    for (let effects: RaftEffect[] = []; !effects.some(({ kind }) => kind === 'send'); ) {
      this.now = this.raft.wakeAt() ?? assert.fail('it waits for nothing')
      effects = this.step({ kind: 'tick' })
    }
    assert.equal(this.raft.role, 'follower')
    return this.now - began
  }
}

test('an epoch in which this node led and could append nothing goes, so that the log goes on from the record before', () => {
  const follower = new Follower(new TenRecords(5))
  const effects = follower.answered({ kind: 'diverging', epoch: 4, endOffset: 12 })
  assert.deepEqual(
    effects.filter(({ kind }) => kind === 'truncate'),
    [{ kind: 'truncate', endOffset: 10 }],
  )
})

test('a log that parts from the leader where nothing can be cut is not cut', () => {
  const follower = new Follower(new TenRecords(4))
  const effects = follower.answered({ kind: 'diverging', epoch: 4, endOffset: 12 })
  assert.deepEqual(effects, [])
})

test('a leader that lacks what is committed has nothing cut: it is doubted', () => {
  const follower = new Follower(new TenRecords(4))
  follower.answered({ kind: 'valid' })
  assert.equal(follower.raft.highWatermark, 10)
  follower.step({ kind: 'tick' })
  const effects = follower.answered({ kind: 'diverging', epoch: 4, endOffset: 3 })
  assert.deepEqual(effects, [])
  for (let wakes = 0; follower.raft.role === 'follower'; wakes++) {
    assert.ok(wakes < 10, 'it stands soon')
    follower.now = follower.raft.wakeAt() ?? assert.fail('it waits for nothing')
    for (const { kind } of follower.step({ kind: 'tick' })) assert.notEqual(kind, 'truncate')
  }
  assert.equal(follower.raft.role, 'prospective')
  assert.ok(follower.now < 1000, `${follower.now} ms`)
})

test('a snapshot that cannot be had is asked for less and less often', () => {
  const follower = new Follower(new TenRecords(4))
  const pauses: number[] = []
  for (let failures = 0; failures < 12; failures++) {
    const id = { endOffset: 20, epoch: 6 }
    const effects = follower.answered({ kind: 'snapshot', id })
    assert.ok(effects.some(({ kind }) => kind === 'load-snapshot'))
    // It takes longer than a leader may be silent.
    follower.now += 5000
    const sent = follower.step({ kind: 'snapshot-failed', id }).filter(({ kind }) => kind === 'send')
    assert.deepEqual(sent, [])
    pauses.push(follower.fetchesAfter())
  }
  assert.ok(
    pauses.every((pause, index) => pause >= (pauses[index - 1] ?? 1)),
    `${pauses}`,
  )
  assert.equal(pauses.at(-1), 10_000)
})

test('an answer of before that comes after the leader said that it goes keeps nobody from standing', () => {
  const follower = new Follower(new TenRecords(4))
  const successors = [3, 1].map(id => ({ id, directoryId: ZERO_UUID }))
  follower.step({ kind: 'end-epoch', call: 2, end: { leaderId: 2, epoch: 6, successors } })
  const standsAt = follower.raft.wakeAt() ?? 0
  follower.answered({ kind: 'valid' })
  while (follower.now < standsAt) {
    follower.now = Math.min(standsAt, follower.raft.wakeAt() ?? standsAt)
    follower.step({ kind: 'tick' })
  }
  assert.equal(follower.raft.role, 'prospective')
})
