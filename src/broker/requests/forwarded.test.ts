import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ErrorCode } from '#protocol/errors.ts'
import type { Broker } from '../broker.ts'
import { createTopics } from './19-create-topics.ts'
import { deleteTopics } from './20-delete-topics.ts'
import { alterConfigs } from './33-alter-configs.ts'
import { createPartitions } from './37-create-partitions.ts'
import { electLeaders } from './43-elect-leaders.ts'
import { incrementalAlterConfigs } from './44-incremental-alter-configs.ts'
import { listPartitionReassignments } from './46-list-partition-reassignments.ts'
import { describeQuorum } from './55-describe-quorum.ts'
import { updateFeatures } from './57-update-features.ts'

type Refuse = (errorCode: number) => object

/** A broker whose controllers take nothing: every request is refused in its own form. */
const broker = {
  metadata: {
    image: { topicIds: new Map() },
    appliedOffset: 0,
    caughtUp: async (until: () => boolean) => void assert.ok(until(), 'nothing was done, so nothing is waited for'),
  },
  forwarding: {
    forward: (_api: unknown, _call: unknown, _request: unknown, refused: Refuse) =>
      Promise.resolve(refused(ErrorCode.NOT_CONTROLLER)),
    forwardAndFollow: (_api: unknown, _call: unknown, _request: unknown, refused: Refuse) =>
      Promise.resolve(refused(ErrorCode.NOT_CONTROLLER)),
  },
} as unknown as Broker

const TOPIC_ID = 'AAAAAAAAAAAAAAAAAAAAAg'
const REQUESTS: Readonly<Record<string, object>> = {
  CreateTopics: { topics: [{ name: 'a' }], validateOnly: false },
  DeleteTopics: { topicNames: ['a'], topics: [{ name: null, topicId: TOPIC_ID }] },
  CreatePartitions: { topics: [{ name: 'a', count: 3 }], validateOnly: false },
  AlterConfigs: { resources: [{ resourceType: 2, resourceName: 'a', configs: [] }], validateOnly: false },
  IncrementalAlterConfigs: { resources: [{ resourceType: 2, resourceName: 'a', configs: [] }], validateOnly: false },
  UpdateFeatures: { featureUpdates: [], validateOnly: false },
  ElectLeaders: { topicPartitions: [{ topic: 'a', partitions: [0] }] },
  ListPartitionReassignments: { topics: null, timeoutMs: 1000 },
  DescribeQuorum: { topics: [] },
}

const APIS = [
  createTopics,
  deleteTopics,
  createPartitions,
  alterConfigs,
  incrementalAlterConfigs,
  updateFeatures,
  electLeaders,
  listPartitionReassignments,
  describeQuorum,
]

test('what no controller takes is refused in the form of each API, wherever it has an error', async () => {
  for (const api of APIS) {
    const served = api(broker)
    const request = REQUESTS[served.api.name]
    assert.ok(request !== undefined, `there is a request for ${served.api.name}`)
    const answer = await served.handle(request, { apiVersion: served.versions.last } as never)
    const codes = [...JSON.stringify(answer).matchAll(/"errorCode":(-?\d+)/g)].map(([, code]) => Number(code))
    assert.ok(codes.length > 0, served.api.name)
    assert.ok(
      codes.every(code => code === ErrorCode.NOT_CONTROLLER),
      `${served.api.name}: ${codes}`,
    )
    // Nobody may wait for it in the queue of another connection's changes either.
    if (served.api.name !== 'DescribeQuorum' && served.api.name !== 'ListPartitionReassignments') {
      assert.ok(served.barrier, `${served.api.name} changes the cluster`)
    }
  }
})

test('a topic is deleted when this broker has forgotten it, also by a version whose answer names no id', async () => {
  const topics = new Set([TOPIC_ID])
  const asked: boolean[] = []
  const deleting = {
    metadata: {
      image: { topicIds: new Map([['a', TOPIC_ID]]), topic: (id: string) => (topics.has(id) ? {} : undefined) },
      caughtUp: async (until: () => boolean) => {
        asked.push(until())
        topics.clear()
        asked.push(until())
      },
    },
    forwarding: {
      forward: () => Promise.resolve({ responses: [{ name: 'a', topicId: 'AAAAAAAAAAAAAAAAAAAAAA', errorCode: 0 }] }),
    },
  } as unknown as Broker
  await deleteTopics(deleting).handle({ topicNames: ['a'], topics: [] } as never, { apiVersion: 1 } as never)
  assert.deepEqual(asked, [false, true])
})
