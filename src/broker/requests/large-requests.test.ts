import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ByteReader } from '#base/bytes.ts'
import { BrokerConfigs } from '#core/config/broker-configs.ts'
import type { ServedApi } from '#network/service.ts'
import { Turns } from '#network/turns.ts'
import { decode, encodeToBuffer } from '#protocol/codec.ts'
import { realClock } from '#world/real/clock.ts'
import type { Broker } from '../broker.ts'
import { offsetCommit } from './08-offset-commit.ts'
import { offsetFetch } from './09-offset-fetch.ts'
import { describeConfigs } from './32-describe-configs.ts'
import { offsetDelete } from './47-offset-delete.ts'

const COUNT = 150_000
const TOPIC_ID = 'AAAAAAAAAAAAAAAAAAAAAg'

/** One topic, one partition; the coordinator says yes to everything. */
const turns = new Turns(realClock)
const broker = {
  turns,
  nodeId: 1,
  configs: new BrokerConfigs({ nodeId: 1 }),
  metadata: {
    image: {
      topic: (id: string) => (id === TOPIC_ID ? TOPIC : undefined),
      topicByName: (name: string) => (name === 'known' ? TOPIC : undefined),
    },
  },
  groups: {
    ask: async (_group: string, _caller: unknown, command: (call: number) => { request: { topics: Topics } }) => ({
      response: { errorCode: 0, topics: command(1).request.topics },
    }),
  },
} as unknown as Broker
const TOPIC = { name: 'known', id: TOPIC_ID, partitions: [{}] }
type Topics = readonly { readonly name: string; readonly partitions: readonly object[] }[]

async function ask(served: ServedApi, apiVersion: number, body: object): Promise<Record<string, Topics>> {
  const bytes = encodeToBuffer(served.api.request, apiVersion, body)
  const request = decode(served.api.request, apiVersion, new ByteReader(bytes))
  const call = { apiVersion, clientId: null, caller: {} }
  return (await served.handle(request, call as never)) as unknown as Record<string, Topics>
}

function times<T>(one: T): T[] {
  return Array.from({ length: COUNT }, () => one)
}

// Each is a few megabytes of request: what costs more than its size would stop every other client for minutes.
test('a request that names something very often costs no more than it is large', { timeout: 60_000 }, async () => {
  const partition = { partitionIndex: 0, committedOffset: 1, committedMetadata: null }
  const committed = await ask(offsetCommit(broker), 9, {
    groupId: 'group',
    generationIdOrMemberEpoch: -1,
    topics: [{ name: 'known', partitions: times(partition) }],
  })
  assert.equal(committed.topics?.[0]?.partitions.length, COUNT)

  const unknown = { topicId: 'AAAAAAAAAAAAAAAAAAAAAw', partitionIndexes: [0] }
  const groups = [{ groupId: 'group', memberId: null, memberEpoch: -1, topics: times(unknown) }]
  const fetched = await ask(offsetFetch(broker), 10, { groups, requireStable: false })
  const [group] = fetched.groups as unknown as readonly { topics: Topics }[]
  assert.equal(group?.topics.length, COUNT)

  const missing = Array.from({ length: COUNT }, (_, index) => ({
    name: `missing-${index}`,
    partitions: [{ partitionIndex: 0 }],
  }))
  const known = times({ name: 'known', partitions: [{ partitionIndex: 0 }] })
  const deleted = await ask(offsetDelete(broker), 0, { groupId: 'group', topics: [...known, ...missing] })
  assert.equal(deleted.topics?.length, 2 * COUNT)

  const resource = { resourceType: 4, resourceName: '9', configurationKeys: [] }
  const described = await ask(describeConfigs(broker), 4, { resources: times(resource) })
  assert.equal(described.results?.length, COUNT)
  // Of each of the 150,000 at most some thousand are gone over before others are served.
  assert.ok(turns.count > 200, `${turns.count} turns`)
})
