import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { plainReason, startFailure } from './start-failure.ts'

const failed = (message: string, fields: object): Error => Object.assign(new Error(message), fields)

test('what keeps a node from starting is said with its cause and cure, without the names of system calls', () => {
  assert.equal(
    startFailure(failed('listen on :9092: listen EADDRINUSE: address already in use :::9092', { code: 'EADDRINUSE' })),
    'cannot listen on :9092: another process listens there; stop it, or choose another port with --port (a controller takes the next one, too) or listeners',
  )
  const folder = failed("/data: make folder /data/x: EACCES: permission denied, mkdir '/data/x'", {
    code: 'KAFKA_STORAGE_ERROR',
    errno: 'EACCES',
  })
  assert.match(startFailure(folder), /^cannot use the folder \/data: this user may not; choose/)
  assert.match(
    startFailure(failed('listen on :80: listen EACCES: permission denied', { code: 'EACCES' })),
    /privileges/,
  )
  assert.equal(startFailure(new Error('/data is in use by another process')), '/data is in use by another process')
})

test('a file that cannot be read is said so', () => {
  for (const [path, reason] of [
    ['/no/such/file', 'there is no such file or folder'],
    ['/', 'it is a folder'],
  ] as const) {
    assert.throws(
      () => readFileSync(path),
      (error: unknown) => plainReason(error) === reason,
    )
  }
})
