import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ZERO_UUID } from '#base/uuid.ts'
import type { FetchRequest } from '#protocol/messages/fetch.ts'
import { type FetchContext, FetchSessions } from './fetch-sessions.ts'

const ID_A = 'aaaaaaaaaaaaaaaaaaaaaA'
const names = new Map([[ID_A, 'a']])

interface Asked {
  readonly sessionId?: number
  readonly sessionEpoch?: number
  readonly partitions?: readonly number[]
  readonly offset?: number
  readonly forgotten?: readonly number[]
}

function request({
  sessionId = 0,
  sessionEpoch = -1,
  partitions = [],
  offset = 0,
  forgotten = [],
}: Asked): FetchRequest {
  return {
    sessionId,
    sessionEpoch,
    replicaId: -1,
    replicaState: { replicaId: -1, replicaEpoch: -1 },
    topics: [
      {
        topic: 'a',
        topicId: ZERO_UUID,
        partitions: partitions.map(partition => ({
          partition,
          currentLeaderEpoch: -1,
          fetchOffset: offset,
          lastFetchedEpoch: -1,
          logStartOffset: -1,
          partitionMaxBytes: 100,
        })),
      },
    ],
    forgottenTopicsData: [{ topic: 'a', topicId: ZERO_UUID, partitions: forgotten }],
  } as unknown as FetchRequest
}

let drawn = 100
function open(sessions: FetchSessions, asked: Asked, now = 0, version = 12): FetchContext {
  return sessions.open(
    request(asked),
    version,
    now,
    () => ++drawn,
    id => names.get(id),
  )
}

function idOf(context: FetchContext): number {
  assert.ok(context.kind === 'full' || context.kind === 'incremental', context.kind)
  return context.session.id
}

function indexes(context: FetchContext): number[] {
  assert.notEqual(context.kind, 'refused')
  return context.kind === 'refused' ? [] : context.partitions.map(({ index }) => index)
}

test('epoch -1 is no session, epoch 0 begins one, later ones name only what changes', () => {
  const sessions = new FetchSessions(10)
  assert.equal(open(sessions, { partitions: [0] }).kind, 'sessionless')
  const first = open(sessions, { sessionEpoch: 0, partitions: [0, 1, 2] })
  const sessionId = idOf(first)
  const second = open(sessions, { sessionId, sessionEpoch: 1, partitions: [1], offset: 7, forgotten: [2] })
  assert.equal(second.kind, 'incremental')
  assert.deepEqual(indexes(second), [0, 1])
  assert.equal(second.kind === 'incremental' ? second.partitions[1]?.fetchOffset : -1, 7)
  assert.deepEqual(indexes(open(sessions, { sessionId, sessionEpoch: 2, partitions: [5] })), [0, 1, 5])
})

test('an unknown session, a wrong epoch and a change of naming are told apart', () => {
  const sessions = new FetchSessions(10)
  const sessionId = idOf(open(sessions, { sessionEpoch: 0, partitions: [0] }))
  const refused = (error: string) => ({ kind: 'refused', error })
  assert.deepEqual(open(sessions, { sessionId: 7, sessionEpoch: 1 }), refused('FETCH_SESSION_ID_NOT_FOUND'))
  assert.deepEqual(open(sessions, { sessionId, sessionEpoch: 2 }), refused('INVALID_FETCH_SESSION_EPOCH'))
  assert.deepEqual(open(sessions, { sessionId, sessionEpoch: 1 }, 0, 13), refused('FETCH_SESSION_TOPIC_ID_ERROR'))
  // None of these has used the epoch up.
  assert.equal(open(sessions, { sessionId, sessionEpoch: 1 }).kind, 'incremental')
})

test('epoch -1 with an id ends that session', () => {
  const sessions = new FetchSessions(10)
  const sessionId = idOf(open(sessions, { sessionEpoch: 0, partitions: [0] }))
  assert.equal(open(sessions, { sessionId, sessionEpoch: -1, partitions: [0] }).kind, 'sessionless')
  assert.equal(sessions.size, 0)
})

test('a session without partitions ends', () => {
  const sessions = new FetchSessions(10)
  const sessionId = idOf(open(sessions, { sessionEpoch: 0, partitions: [0] }))
  assert.deepEqual(indexes(open(sessions, { sessionId, sessionEpoch: 1, forgotten: [0] })), [])
  assert.equal(sessions.size, 0)
})

test('a full cache gives the place of an idle session, or of an old smaller one, and of no other', () => {
  const sessions = new FetchSessions(2, 1000)
  const small = idOf(open(sessions, { sessionEpoch: 0, partitions: [0] }, 0))
  const large = idOf(open(sessions, { sessionEpoch: 0, partitions: [0, 1, 2] }, 0))
  assert.equal(open(sessions, { sessionEpoch: 0, partitions: [0, 1] }, 500).kind, 'sessionless')
  // Both are used; the small one is old enough to give way to a larger one.
  open(sessions, { sessionId: small, sessionEpoch: 1 }, 900)
  open(sessions, { sessionId: large, sessionEpoch: 1 }, 900)
  assert.equal(open(sessions, { sessionEpoch: 0, partitions: [0, 1] }, 1500).kind, 'full')
  assert.equal(open(sessions, { sessionId: small, sessionEpoch: 2 }, 1500).kind, 'refused')
  // The large one has not been used for long.
  assert.equal(open(sessions, { sessionEpoch: 0, partitions: [0] }, 2400).kind, 'full')
  assert.equal(open(sessions, { sessionId: large, sessionEpoch: 2 }, 2400).kind, 'refused')
})

test('what gave data is served last the next time', () => {
  const sessions = new FetchSessions(10)
  const first = open(sessions, { sessionEpoch: 0, partitions: [0, 1, 2] })
  const sessionId = idOf(first)
  if (first.kind !== 'full') assert.fail()
  first.session.serveLast(first.partitions[0] as (typeof first.partitions)[number])
  assert.deepEqual(indexes(open(sessions, { sessionId, sessionEpoch: 1 })), [1, 2, 0])
})

test('all sessions together hold a bounded number of partitions', () => {
  const sessions = new FetchSessions(10, 1000, 4)
  const range = (count: number) => Array.from({ length: count }, (_, index) => index)
  assert.equal(open(sessions, { sessionEpoch: 0, partitions: range(5) }).kind, 'sessionless')
  const first = idOf(open(sessions, { sessionEpoch: 0, partitions: range(2) }))
  const second = idOf(open(sessions, { sessionEpoch: 0, partitions: range(1) }))
  assert.equal(open(sessions, { sessionEpoch: 0, partitions: range(2) }).kind, 'sessionless')
  // One that outgrows what is left ends, and what it held is free.
  const grown = open(sessions, { sessionId: first, sessionEpoch: 1, partitions: range(4) })
  assert.deepEqual(grown, { kind: 'refused', error: 'FETCH_SESSION_ID_NOT_FOUND' })
  const third = idOf(open(sessions, { sessionEpoch: 0, partitions: range(3) }))
  // Forgotten partitions make room, and so does a session that its client ends.
  open(sessions, { sessionId: third, sessionEpoch: 1, forgotten: [2] })
  idOf(open(sessions, { sessionEpoch: 0, partitions: range(1) }))
  open(sessions, { sessionId: second, sessionEpoch: -1 })
  idOf(open(sessions, { sessionEpoch: 0, partitions: range(1) }))
  // Idle ones go until there is room.
  assert.equal(open(sessions, { sessionEpoch: 0, partitions: range(4) }, 5000).kind, 'full')
  assert.equal(sessions.size, 1)
})
