import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ReplicaSession } from './replica-session.ts'

test('after a full fetch only what changed is named, and what is not wanted any more', () => {
  const session = new ReplicaSession<string, object>()
  const [a, b, c] = [{}, {}, {}]
  const wanted = new Map<string, object>([
    ['a', a],
    ['b', b],
  ])
  const first = session.next(wanted, [])
  assert.deepEqual(first, {
    sessionId: 0,
    sessionEpoch: 0,
    changed: [
      ['a', a],
      ['b', b],
    ],
    forgotten: [],
  })
  assert.ok(session.answered(0, 7))
  // Touched, and the same as before.
  assert.deepEqual(session.next(wanted, ['a']), { sessionId: 7, sessionEpoch: 1, changed: [], forgotten: [] })
  assert.ok(session.answered(0, 7))
  wanted.set('a', c)
  wanted.delete('b')
  const third = session.next(wanted, ['a', 'b', 'never there'])
  assert.deepEqual(third, { sessionId: 7, sessionEpoch: 2, changed: [['a', c]], forgotten: ['b'] })
})

test('a session that failed or is not known begins anew with all', () => {
  const session = new ReplicaSession<string, object>()
  const wanted = new Map<string, object>([['a', {}]])
  session.next(wanted, [])
  session.answered(0, 7)
  session.failed()
  const anew = session.next(wanted, [])
  assert.deepEqual([anew.sessionId, anew.sessionEpoch, anew.changed.length], [7, 0, 1], 'the one before is closed')
  session.answered(0, 8)
  session.next(wanted, [])
  assert.equal(session.answered(70, 0), false)
  const again = session.next(wanted, [])
  assert.deepEqual([again.sessionId, again.sessionEpoch, again.changed.length], [0, 0, 1])
  // No session was given: all is named each time.
  session.answered(0, 0)
  assert.equal(session.next(wanted, []).changed.length, 1)
})
