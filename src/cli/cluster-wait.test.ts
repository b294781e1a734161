import assert from 'node:assert/strict'
import { test } from 'node:test'
import { healthOf } from '#client/admin/health.ts'
import { Client, ClientError } from '#client/client.ts'
import type { Overview } from './cluster-overview.ts'
import { whenWell } from './cluster-wait.ts'
import { world } from './context.ts'

const client = new Client({ world, bootstrap: '127.0.0.1:1' })

const leaderless: Overview = {
  description: { clusterId: 'c', controllerId: -1, brokers: [] },
  quorum: undefined,
  isLeaderless: true,
  isSilent: false,
  health: healthOf([], new Map()),
  reassignments: undefined,
}

test('a wait ends when all is well', async () => {
  const looks = [leaderless, { ...leaderless, isLeaderless: false }]
  const found = await whenWell(client, undefined, () => Promise.resolve(looks.shift() ?? leaderless))
  assert.equal(found.isLeaderless, false)
})

for (const [what, look, message] of [
  ['that is not well', () => Promise.resolve(leaderless), /^not well after 50 ms: no active controller$/],
  ['that does not answer', () => new Promise<never>(() => {}), /^not well after 50 ms: nobody has answered$/],
  [
    'that refuses',
    () => Promise.reject(new ClientError('CONNECTION_FAILED', 'refused', { retriable: true })),
    /^not well after 50 ms: refused$/,
  ],
] as const) {
  test(`a wait for a cluster ${what} ends with its time`, { timeout: 5000 }, async () => {
    await assert.rejects(
      whenWell(client, 50, look),
      (error: unknown) => error instanceof ClientError && error.code === 'TIMED_OUT' && message.test(error.message),
    )
  })
}
