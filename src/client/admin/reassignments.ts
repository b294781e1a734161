import type { NodeId } from '#base/units.ts'
import {
  AlterPartitionReassignmentsRequest,
  AlterPartitionReassignmentsResponse,
} from '#protocol/messages/alter-partition-reassignments.ts'
import {
  ListPartitionReassignmentsRequest,
  ListPartitionReassignmentsResponse,
} from '#protocol/messages/list-partition-reassignments.ts'
import type { Client } from '../client.ts'
import { brokerError, type ClientError, throwIfError } from '../errors.ts'
import { byTopic, type TopicPartition } from '../per-leader.ts'
import { describeLogDirs } from './cluster.ts'

export {
  copiesOf,
  type PlanBroker,
  type PlannedChange,
  type PlanPartition,
  planProblem,
  planReassignment,
} from '#core/metadata/reassignment-plan.ts'

const ALTER = { request: AlterPartitionReassignmentsRequest, response: AlterPartitionReassignmentsResponse }
const LIST = { request: ListPartitionReassignmentsRequest, response: ListPartitionReassignmentsResponse }

export interface Reassignment extends TopicPartition {
  /** All that there are while it goes on, those to come and those to go too. */
  readonly replicas: readonly NodeId[]
  readonly adding: readonly NodeId[]
  readonly removing: readonly NodeId[]
}

/** The reassignments that go on, by topic and partition (KIP-455). */
export async function listReassignments(client: Client): Promise<Reassignment[]> {
  const answer = await client.ask(
    'first',
    LIST,
    { timeoutMs: client.options.requestTimeoutMs, topics: null },
    { check: ({ errorCode, errorMessage }) => throwIfError(errorCode, 'the reassignments', errorMessage) },
  )
  return answer.topics
    .flatMap(({ name: topic, partitions }) =>
      partitions.map(({ partitionIndex: partition, replicas, addingReplicas: adding, removingReplicas: removing }) => ({
        topic,
        partition,
        replicas,
        adding,
        removing,
      })),
    )
    .sort((a, b) => (a.topic === b.topic ? a.partition - b.partition : a.topic < b.topic ? -1 : 1))
}

type Change = TopicPartition & { readonly replicas: readonly NodeId[] | null }

/**
 * Partitions, and replicas of them, that one request names. A controller decides a request in one go and takes so many
 * elements, Kafka's one 10,000 partitions.
 */
const PARTITIONS_PER_REQUEST = 5000
const REPLICAS_PER_REQUEST = 25_000

/**
 * Begins to bring partitions to these replicas, or with null cancels what goes on for them (KIP-455). What was refused is
 * returned, one by one; the others go on. Very many are asked for in several requests: where one of them fails as a whole,
 * the ones before it were done.
 */
export async function alterReassignments(
  client: Client,
  changes: readonly Change[],
): Promise<(TopicPartition & { readonly error: ClientError })[]> {
  const refused: (TopicPartition & { readonly error: ClientError })[] = []
  for (const part of requestsOf(changes)) refused.push(...(await alterInOne(client, part)))
  return refused
}

function* requestsOf(changes: readonly Change[]): Generator<Change[]> {
  let part: Change[] = []
  let replicas = 0
  for (const change of changes) {
    const more = change.replicas?.length ?? 0
    if (part.length === PARTITIONS_PER_REQUEST || (part.length > 0 && replicas + more > REPLICAS_PER_REQUEST)) {
      yield part
      part = []
      replicas = 0
    }
    part.push(change)
    replicas += more
  }
  if (part.length > 0) yield part
}

async function alterInOne(
  client: Client,
  changes: readonly Change[],
): Promise<(TopicPartition & { readonly error: ClientError })[]> {
  const topics = byTopic(changes).map(([name, list]) => ({
    name,
    partitions: list.map(({ partition, replicas }) => ({ partitionIndex: partition, replicas })),
  }))
  const answer = await client.ask(
    'any',
    ALTER,
    { timeoutMs: client.options.requestTimeoutMs, topics },
    { check: ({ errorCode, errorMessage }) => throwIfError(errorCode, 'the reassignment', errorMessage) },
  )
  return answer.responses.flatMap(({ name: topic, partitions }) =>
    partitions.flatMap(({ partitionIndex: partition, errorCode, errorMessage }) => {
      const error = brokerError(errorCode, `partition ${topic}-${partition}`, errorMessage)
      return error === undefined ? [] : [{ topic, partition, error }]
    }),
  )
}

/** How far one replica is that a reassignment adds. */
export interface CopyProgress extends TopicPartition {
  readonly from: NodeId
  readonly to: NodeId
  /** What the new replica has, and what the leader has: sizes on disk, -1 where it is not known. */
  readonly copiedBytes: number
  readonly totalBytes: number
  /** In the ISR: only the others of its partition are waited for. */
  readonly inSync: boolean
  /** Its broker is not there, so nothing moves. */
  readonly offline: boolean
}

/** How far the replicas are that reassignments add, by the sizes of their logs. */
export async function copyProgress(client: Client, reassignments: readonly Reassignment[]): Promise<CopyProgress[]> {
  const adding = reassignments.filter(each => each.adding.length > 0)
  if (adding.length === 0) return []
  const { topics } = await client.retrying(() =>
    client.metadata.refresh([...new Set(adding.map(({ topic }) => topic))]),
  )
  const sizes = new Map<string, number>()
  for (const { broker, partitions } of await describeLogDirs(client, adding)) {
    for (const each of partitions) sizes.set(`${broker} ${each.topic} ${each.partition}`, each.bytes)
  }
  const live = new Set(client.metadata.brokers.map(({ id }) => id))
  return adding.flatMap(({ topic, partition, adding: ids }) => {
    const state = topics.find(({ name }) => name === topic)?.partitions.find(each => each.partition === partition)
    const from = state?.leader ?? -1
    const totalBytes = sizes.get(`${from} ${topic} ${partition}`) ?? -1
    return ids.map(to => {
      const inSync = state?.isr.includes(to) === true
      const has = sizes.get(`${to} ${topic} ${partition}`) ?? (live.has(to) ? 0 : -1)
      // Sizes on disk differ a little where batches were written in other segments.
      const copiedBytes = inSync ? totalBytes : totalBytes < 0 ? has : Math.min(has, totalBytes)
      return { topic, partition, from, to, copiedBytes, totalBytes, inSync, offline: !live.has(to) }
    })
  })
}
