import assert from 'node:assert/strict'
import { test } from 'node:test'
import { INT32_MAX } from '#base/units.ts'
import { SessionEpoch } from './session-epoch.ts'

test('epochs count up from the fetch that opened the session, and begin anew at 1', () => {
  const session = new SessionEpoch()
  assert.deepEqual([session.id, session.epoch], [0, 0])
  for (const epoch of [1, 2, 3]) {
    assert.ok(session.answered(0, 7))
    assert.deepEqual([session.id, session.epoch], [7, epoch])
  }
  session.epoch = INT32_MAX
  session.answered(0, 7)
  assert.equal(session.epoch, 1)
})

test('where no session is kept every fetch is a full one', () => {
  const session = new SessionEpoch()
  session.answered(0, 0)
  assert.deepEqual([session.id, session.epoch], [0, 0])
})

test('after an error the next fetch opens anew, and closes the one that is known', () => {
  for (const [errorCode, id] of [
    [70, 0],
    [71, 7],
  ] as const) {
    const session = new SessionEpoch()
    session.answered(0, 7)
    assert.equal(session.answered(errorCode, 0), false)
    assert.deepEqual([session.id, session.epoch], [id, 0])
  }
})

test('so it does when no answer came', () => {
  const session = new SessionEpoch()
  session.answered(0, 7)
  session.failed()
  assert.deepEqual([session.id, session.epoch], [7, 0])
})
