import { ZERO_UUID } from '#base/uuid.ts'
import { API } from '#protocol/apis.ts'
import { BatchBuilder, type BatchOptions } from '#records/builder.ts'
import { pick, type Twin, type Two } from '../twin.ts'

/** A time long ago: what is compared must not depend on when the run is. */
export const T0 = 1_700_000_000_000
export const UNKNOWN_ID = 'bm8tc3VjaC10b3BpYy1pZA'
export const NO_ID = ZERO_UUID

export interface Situation {
  readonly name: string
  perform(twin: Twin): Promise<void>
}

type Configs = Readonly<Record<string, string>>

/** Creates a topic and waits until both know it. */
export async function createTopic(
  twin: Twin,
  name: string,
  partitions = 1,
  configs: Configs = {},
): Promise<Two<string>> {
  await twin.call(API.CreateTopics, 7, {
    topics: [{ name, numPartitions: partitions, replicationFactor: 1, configs: configList(configs) }],
    timeoutMs: 20_000,
  })
  return untilThere(twin, name, partitions)
}

/** Waits until both know the topic with so many partitions, and how it is called by its id. */
export async function untilThere(twin: Twin, name: string, partitions: number): Promise<Two<string>> {
  const request = { topics: [{ name }], allowAutoTopicCreation: false }
  const isThere = (topic: { errorCode: number; partitions: readonly { errorCode: number }[] } | undefined): boolean =>
    topic?.errorCode === 0 && topic.partitions.length === partitions && topic.partitions.every(p => p.errorCode === 0)
  await twin.settle(API.Metadata, 12, request, answer => isThere(answer.topics[0]))
  // Known is not yet led: a server may still be opening the log.
  const asked = Array.from({ length: partitions }, (_, partitionIndex) => ({ partitionIndex, timestamp: -1 }))
  await twin.settle(API.ListOffsets, 5, { replicaId: -1, topics: [{ name, partitions: asked }] }, ({ topics }) =>
    topics.every(topic => topic.partitions.every(({ errorCode }) => errorCode === 0)),
  )
  const answers = await twin.call(API.Metadata, 12, request)
  return pick(answers, answer => answer.topics[0]?.topicId, NO_ID)
}

export async function untilGone(twin: Twin, name: string): Promise<void> {
  const request = { topics: [{ name }], allowAutoTopicCreation: false }
  await twin.settle(API.Metadata, 12, request, answer => answer.topics[0]?.errorCode === 3)
}

export function configList(configs: Configs): { name: string; value: string }[] {
  return Object.entries(configs).map(([name, value]) => ({ name, value }))
}

/** Records one millisecond apart, with keys and values that tell them apart. */
export function batchOf(count: number, options: BatchOptions = {}, from = T0, step = 1): Buffer {
  const builder = new BatchBuilder(options)
  for (let i = 0; i < count; i++) {
    builder.append(from + i * step, Buffer.from(`key-${i}`), Buffer.from(`value-${i}-${from}`), [
      { key: 'nth', value: Buffer.from(String(i)) },
    ])
  }
  return builder.build()
}

export function produceRequest(name: string, ...batches: readonly (Uint8Array | null)[]) {
  return {
    acks: -1,
    timeoutMs: 20_000,
    topicData: [{ name, partitionData: batches.map((records, index) => ({ index, records })) }],
  }
}

export async function produce(twin: Twin, name: string, ...batches: readonly Uint8Array[]): Promise<void> {
  await twin.call(API.Produce, 9, produceRequest(name, ...batches))
}
