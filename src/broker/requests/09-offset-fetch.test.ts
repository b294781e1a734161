import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OffsetFetchGroup } from '#core/group/commands.ts'
import { offsetCommitValue } from '#core/group/entries.ts'
import { GroupShard } from '#core/group/shard.ts'
import { Turns } from '#network/turns.ts'
import { realClock } from '#world/real/clock.ts'
import type { Broker } from '../broker.ts'
import { offsetFetch } from './09-offset-fetch.ts'

const EARLIER = 'AAAAAAAAAAAAAAAAAAAAAg'
const LATER = 'AAAAAAAAAAAAAAAAAAAAAw'

test('what was committed for an earlier topic of the same name is not told of the later one', async () => {
  const shard = new GroupShard()
  for (const [partition, topicId] of [EARLIER, LATER].entries()) {
    const commit = { offset: 100, leaderEpoch: 0, metadata: '', commitTimestamp: 0, expireTimestamp: -1, topicId }
    const value = offsetCommitValue(commit)
    shard.apply({ kind: 'OffsetCommit', group: 'group', topic: 'topic', partition, value }, partition)
  }
  const gone = { offset: 7, leaderEpoch: 0, metadata: '', commitTimestamp: 0, expireTimestamp: -1, topicId: EARLIER }
  shard.apply({ kind: 'OffsetCommit', group: 'group', topic: 'gone', partition: 0, value: offsetCommitValue(gone) }, 2)
  shard.decide({ kind: 'Lead' }, 0)
  const now = { id: LATER, name: 'topic' }
  const broker = {
    turns: new Turns(realClock),
    metadata: {
      image: {
        topic: (id: string) => (id === LATER ? now : undefined),
        topicByName: (name: string) => (name === 'topic' ? now : undefined),
      },
    },
    groups: {
      ask: async (_group: string, _caller: unknown, command: (call: number) => never) => {
        const [reply] = shard.decide(command(1), 0).answer
        return reply
      },
    },
  } as unknown as Broker
  const asked = async (apiVersion: number, topics: OffsetFetchGroup['topics']) => {
    const request = { groups: [{ groupId: 'group', memberId: null, memberEpoch: -1, topics }] }
    const answer = await offsetFetch(broker).handle(request as never, { apiVersion } as never)
    const [group] = (answer as { groups: { topics: { partitions: { committedOffset: number }[] }[] }[] }).groups
    return group?.topics.map(({ partitions }) => partitions.map(({ committedOffset }) => committedOffset))
  }
  const partitionIndexes = [0, 1]
  const zero = 'AAAAAAAAAAAAAAAAAAAAAA'
  assert.deepEqual(await asked(8, [{ name: 'topic', topicId: zero, partitionIndexes }]), [[-1, 100]])
  assert.deepEqual(await asked(10, [{ name: '', topicId: LATER, partitionIndexes }]), [[-1, 100]])
  // Nobody has taken the name of one that is gone.
  assert.deepEqual(await asked(8, [{ name: 'gone', topicId: zero, partitionIndexes: [0] }]), [[7]])
  // Who asks for all is told as little of the earlier topic, and of one topic at once what names it by its id or by its name.
  assert.deepEqual(await asked(8, null), [[100], [7]])
  assert.deepEqual(await asked(10, null), [[100], [7]])
  const unnamed = { offset: 5, leaderEpoch: 0, metadata: '', commitTimestamp: 0, expireTimestamp: -1 }
  shard.apply(
    { kind: 'OffsetCommit', group: 'group', topic: 'topic', partition: 2, value: offsetCommitValue(unnamed) },
    3,
  )
  assert.deepEqual(await asked(8, null), [[100, 5], [7]])
  assert.deepEqual(await asked(10, null), [[100, 5], [7]])
})
