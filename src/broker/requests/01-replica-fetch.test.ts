import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ZERO_UUID } from '#base/uuid.ts'
import { FetchSession } from '#core/session/fetch-sessions.ts'
import type { Call } from '#network/service.ts'
import type { FetchRequest } from '#protocol/messages/fetch.ts'
import type { LogRange } from '#storage/log-range.ts'
import { ManualClock } from '#storage/testing/rig.ts'
import type { Broker } from '../broker.ts'
import { Deadlines } from '../deadlines.ts'
import type { Partition } from '../partitions/partition.ts'
import { Watchers } from '../partitions/watchers.ts'
import { ReplicaFetchCall } from './01-replica-fetch.ts'

async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
}

test('what a slow disk gives late is not sent in place of what the follower asks for by then', async () => {
  const clock = new ManualClock()
  const reads: PromiseWithResolvers<LogRange>[] = []
  const log = {
    startOffset: 0,
    endOffset: 100,
    read: () => {
      const asked = Promise.withResolvers<LogRange>()
      reads.push(asked)
      return asked.promise
    },
  }
  const partition = {
    log,
    leads: true,
    highWatermark: 50,
    lastStableOffset: 50,
    inSync: [1],
    endWatchers: new Watchers(),
    checkEpoch: () => undefined,
    followerFetched: () => true,
  } as unknown as Partition
  const broker = {
    world: { clock },
    deadlines: new Deadlines(clock),
    metadata: { image: { broker: () => undefined } },
    followersServeConsumers: false,
    partitions: { find: () => partition, throttle: { leaderWaitMs: () => 0, led: () => {} } },
  } as unknown as Broker
  const session = new FetchSession(1, false, true, 0)
  const asked = {
    topicId: ZERO_UUID,
    topic: 't',
    index: 0,
    fetchOffset: 80,
    maxBytes: 1000,
    currentLeaderEpoch: 1,
    lastFetchedEpoch: -1,
    followerLogStart: 0,
    sentHighWatermark: -1,
    sentLogStart: -1,
  }
  const request = { replicaState: { replicaId: 2, replicaEpoch: -1 }, maxWaitMs: 500, minBytes: 1, maxBytes: 1000 }
  const call = { apiVersion: 12, caller: { whenGone: () => () => {} } } as unknown as Call
  const fetch = async () => {
    const context = { kind: 'incremental', partitions: [asked], named: [asked], forgotten: [], session } as const
    const answer = await new ReplicaFetchCall(broker, request as unknown as FetchRequest, call, context).run()
    return typeof answer === 'symbol' ? [] : (answer.responses?.[0]?.partitions ?? [])
  }
  const range = (position: number) => ({ file: {}, position, size: 10, nextOffset: 0 }) as unknown as LogRange
  const first = fetch()
  clock.advance(2000)
  const [empty] = await first
  assert.deepEqual(empty?.records, Buffer.alloc(0))
  // Its log was cut meanwhile.
  asked.fetchOffset = 20
  const second = fetch()
  reads[1]?.resolve(range(20))
  await Promise.resolve()
  reads[0]?.resolve(range(80))
  await settled()
  const [given] = await second
  assert.equal((given?.records as { readonly position?: number } | undefined)?.position, 20)
})
