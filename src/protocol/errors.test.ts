import assert from 'node:assert/strict'
import { test } from 'node:test'
import { APIS, apiByKey } from './apis.ts'
import { ERRORS, ErrorCode, errorOf, isRetriable } from './errors.ts'

test('the codes run from -1 to 133 without a gap', () => {
  const codes = Object.values(ERRORS).map(([code]) => code)
  assert.deepEqual(
    codes,
    Array.from({ length: 135 }, (_, index) => index - 1),
  )
})

test('a code leads to its name, and an unknown one to UNKNOWN_SERVER_ERROR', () => {
  assert.equal(ErrorCode.NOT_LEADER_OR_FOLLOWER, 6)
  assert.equal(errorOf(6).name, 'NOT_LEADER_OR_FOLLOWER')
  assert.equal(isRetriable(6), true)
  assert.equal(isRetriable(ErrorCode.TOPIC_ALREADY_EXISTS), false)
  assert.equal(errorOf(9999).name, 'UNKNOWN_SERVER_ERROR')
})

test('every API is found by its key, and request and response agree on their versions', () => {
  assert.equal(APIS.length, 89)
  for (const api of APIS) {
    assert.equal(apiByKey(api.key), api)
    assert.equal(api.request.name, `${api.name}Request`)
    assert.equal(api.response.name, `${api.name}Response`)
    assert.equal(api.response.apiKey, api.key)
    assert.equal(api.request.versions, api.response.versions)
    assert.equal(api.request.flexible, api.response.flexible)
  }
  assert.equal(apiByKey(4), undefined)
  assert.equal(apiByKey(-1), undefined)
  assert.deepEqual(apiByKey(22)?.versions, { first: 0, last: 5 })
})
