import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { QuorumReplica } from '#client/admin/quorum.ts'
import { quorumTable } from './voters.ts'

test('voters and followers are listed by number, and another folder under the number of the leader leads nothing', () => {
  const replica = (id: number, directoryId: string): QuorumReplica => ({
    id,
    directoryId,
    logEndOffset: 10,
    lastFetchTimestamp: -1,
    lastCaughtUpTimestamp: -1,
  })
  const voters = [replica(3, 'c'), replica(1, 'a'), replica(2, 'b')]
  const observers = [replica(5, 'e'), replica(1, 'other')]
  const quorum = { leaderId: 1, leaderEpoch: 1, highWatermark: 10, voters, observers, nodes: [] }
  const rows = quorumTable(quorum, true)
    .split('\n')
    .slice(1)
    .map(line => line.split(/ +/))
  assert.deepEqual(
    rows.map(cells => [cells[0] === '' ? cells[1] : cells[0], cells.at(-1)].join(' ')),
    ['1 a', '2 b', '3 c', '1 other', '5 e'],
  )
  assert.deepEqual(
    rows.map(cells => cells.find(cell => /^[a-z]{5,}$/.test(cell))),
    ['leader', 'voter', 'voter', 'observer', 'observer'],
  )
})
