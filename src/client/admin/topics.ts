import type { Millis, NodeId, Offset } from '#base/units.ts'
import { type Uuid, ZERO_UUID } from '#base/uuid.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { CreatePartitionsRequest, CreatePartitionsResponse } from '#protocol/messages/create-partitions.ts'
import { CreateTopicsRequest, CreateTopicsResponse } from '#protocol/messages/create-topics.ts'
import { DeleteRecordsRequest, DeleteRecordsResponse } from '#protocol/messages/delete-records.ts'
import { DeleteTopicsRequest, DeleteTopicsResponse } from '#protocol/messages/delete-topics.ts'
import {
  DescribeTopicPartitionsRequest,
  DescribeTopicPartitionsResponse,
} from '#protocol/messages/describe-topic-partitions.ts'
import type { Client } from '../client.ts'
import { brokerError, ClientError, throwIfError } from '../errors.ts'
import type { Partition, Topic } from '../metadata.ts'
import { perLeader, type TopicPartition } from '../per-leader.ts'

const CREATE_TOPICS = { request: CreateTopicsRequest, response: CreateTopicsResponse }
const DELETE_TOPICS = { request: DeleteTopicsRequest, response: DeleteTopicsResponse }
const CREATE_PARTITIONS = { request: CreatePartitionsRequest, response: CreatePartitionsResponse }
const DELETE_RECORDS = { request: DeleteRecordsRequest, response: DeleteRecordsResponse }
const DESCRIBE_PARTITIONS = { request: DescribeTopicPartitionsRequest, response: DescribeTopicPartitionsResponse }

/** For how long a broker may wait for others: its answer that it waited in vain is to come before the request ends here. */
function waitsMs({ options }: Client): Millis {
  return Math.round(0.8 * options.requestTimeoutMs)
}

/** All topics, by name. */
export async function listTopics(client: Client): Promise<Topic[]> {
  const { topics } = await client.retrying(() => client.metadata.refresh('all'))
  return [...topics].sort((a, b) => (a.name < b.name ? -1 : 1))
}

export interface DescribedPartition extends Partition {
  /** Replicas outside of the ISR that have all that is committed (KIP-966); null where the broker is too old to tell. */
  readonly eligible: readonly NodeId[] | null
  /** The ISR that the partition had before it lost all of it and them; null as above. */
  readonly lastKnownEligible: readonly NodeId[] | null
}

export interface DescribedTopic extends Topic {
  readonly partitions: readonly DescribedPartition[]
}

/** A topic as `Client.topic` has it, with its eligible leader replicas. Rejects if there is none. */
export async function describeTopic(client: Client, name: string): Promise<DescribedTopic> {
  const channel = await client.retrying(() => client.channel('any'))
  if (channel.versionFor(DescribeTopicPartitionsRequest) === undefined) {
    const topic = await client.topic(name, { fresh: true })
    const partitions = topic.partitions.map(each => ({ ...each, eligible: null, lastKnownEligible: null }))
    return { ...topic, partitions }
  }
  const partitions: DescribedPartition[] = []
  for (let cursor: { topicName: string; partitionIndex: number } | null = null; ; ) {
    const answer: DescribeTopicPartitionsResponse = await client.ask(
      'first',
      DESCRIBE_PARTITIONS,
      { topics: [{ name }], cursor },
      { check: ({ topics }) => check(topics[0], `topic "${name}"`, MISSING) },
    )
    const topic = answer.topics[0]
    partitions.push(
      ...(topic?.partitions ?? []).map(each => ({
        partition: each.partitionIndex,
        leader: each.leaderId,
        leaderEpoch: each.leaderEpoch,
        replicas: each.replicaNodes,
        isr: each.isrNodes,
        offline: each.offlineReplicas,
        eligible: each.eligibleLeaderReplicas,
        lastKnownEligible: each.lastKnownElr,
      })),
    )
    cursor = answer.nextCursor
    if (cursor !== null) continue
    partitions.sort((a, b) => a.partition - b.partition)
    return { name, id: topic?.topicId ?? '', internal: topic?.isInternal ?? false, partitions }
  }
}

export interface NewTopic {
  readonly name: string
  /** The broker's default where it is left out. */
  readonly partitions?: number
  readonly replicationFactor?: number
  readonly configs?: Readonly<Record<string, string>>
  /** Replicas by partition, in place of the two numbers. */
  readonly assignments?: readonly (readonly NodeId[])[]
}

export interface CreatedTopic {
  readonly name: string
  readonly id: Uuid
  /** -1 where the broker is too old to tell. */
  readonly partitions: number
  readonly replicationFactor: number
}

/** Creates a topic, or with `validateOnly` says what would come of it. Rejects with the broker's reason. */
export async function createTopic(
  client: Client,
  topic: NewTopic,
  options: { readonly validateOnly?: boolean } = {},
): Promise<CreatedTopic> {
  const assignments = (topic.assignments ?? []).map((brokerIds, partitionIndex) => ({ partitionIndex, brokerIds }))
  const answer = await client.ask(
    'any',
    CREATE_TOPICS,
    {
      topics: [
        {
          name: topic.name,
          numPartitions: assignments.length > 0 ? -1 : (topic.partitions ?? -1),
          replicationFactor: assignments.length > 0 ? -1 : (topic.replicationFactor ?? -1),
          assignments,
          configs: Object.entries(topic.configs ?? {}).map(([name, value]) => ({ name, value })),
        },
      ],
      timeoutMs: waitsMs(client),
      validateOnly: options.validateOnly ?? false,
    },
    { check: ({ topics }) => check(topics[0], `topic "${topic.name}"`) },
  )
  const created = answer.topics[0]
  client.metadata.forget(topic.name)
  return {
    name: topic.name,
    id: created?.topicId ?? '',
    partitions: created?.numPartitions ?? -1,
    replicationFactor: created?.replicationFactor ?? -1,
  }
}

/**
 * Deletes a topic, where brokers take it by its id (KIP-516): a request that was given up may arrive after it was asked once
 * more, and must not meet a later topic of that name. Rejects with UNKNOWN_TOPIC_OR_PARTITION if there is none.
 */
export async function deleteTopic(client: Client, name: string): Promise<void> {
  const about = `topic "${name}"`
  for (let unknown: Uuid | undefined; ; ) {
    const { topics: found } = await client.retrying(() => client.metadata.refresh([name]))
    const topicId = found[0]?.id ?? ZERO_UUID
    // Who was asked for the id may have been late. By its name it might be one that somebody made meanwhile.
    if (unknown !== undefined && (topicId === unknown || topicId === ZERO_UUID)) throw missing(about)
    const topics = [topicId === ZERO_UUID ? { name } : { name: null, topicId }]
    const { responses } = await client.ask(
      'any',
      DELETE_TOPICS,
      { topics, topicNames: [name], timeoutMs: waitsMs(client) },
      { check: ({ responses: [first] }) => first?.errorCode === UNKNOWN_ID || check(first, about) },
    )
    if (responses[0]?.errorCode !== UNKNOWN_ID) {
      client.metadata.gone(name, topicId)
      return
    }
    // A controller that is cut off may not have heard of it: that alone is no reason never to believe in it again.
    client.metadata.forget(name)
    unknown = topicId
  }
}

/** Raises the number of partitions to `count`. */
export async function createPartitions(
  client: Client,
  name: string,
  count: number,
  options: { readonly validateOnly?: boolean } = {},
): Promise<void> {
  const topics = [{ name, count, assignments: null }]
  await client.ask(
    'any',
    CREATE_PARTITIONS,
    { topics, timeoutMs: waitsMs(client), validateOnly: options.validateOnly ?? false },
    { check: ({ results }) => check(results[0], `topic "${name}"`) },
  )
  client.metadata.forget(name)
}

/** Deletes what lies before the given offsets (-1: all there is); returns the new first offset of each partition. */
export async function deleteRecords(
  client: Client,
  before: readonly (TopicPartition & { readonly offset: Offset })[],
): Promise<(TopicPartition & { readonly lowWatermark: Offset })[]> {
  return await perLeader(client, before, async (leader, partitions) => {
    const topics = [...Map.groupBy(partitions, each => each.topic)].map(([name, list]) => ({
      name,
      partitions: list.map(({ partition, offset }) => ({ partitionIndex: partition, offset })),
    }))
    const answer = await leader.ask(DELETE_RECORDS, { topics, timeoutMs: waitsMs(client) })
    return answer.topics.flatMap(({ name: topic, partitions: answers }) =>
      answers.map(({ partitionIndex: partition, errorCode, lowWatermark }) => {
        throwIfError(errorCode, `partition ${topic}-${partition}`)
        return { topic, partition, lowWatermark }
      }),
    )
  })
}

/** A topic that is missing may only be late; who asks about one does not wait for it. */
const MISSING = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
const UNKNOWN_ID = ErrorCode.UNKNOWN_TOPIC_ID

function check(
  answer: { readonly errorCode: number; readonly errorMessage?: string | null } | undefined,
  about: string,
  final?: number,
): void {
  if (answer !== undefined && answer.errorCode === final) throw missing(about)
  const error = answer === undefined ? undefined : brokerError(answer.errorCode, about, answer.errorMessage)
  if (error !== undefined) throw error
}

function missing(about: string): ClientError {
  return new ClientError('UNKNOWN_TOPIC_OR_PARTITION', `there is no ${about}`, { errorCode: MISSING })
}
