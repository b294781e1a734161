import { type Uuid, ZERO_UUID } from '#base/uuid.ts'
import type { TopicImage } from '#core/metadata/image.ts'
import { topicNameProblem } from '#core/metadata/topic-name.ts'
import { type ServedApi, serve } from '#network/service.ts'
import type { Pieces } from '#network/turns.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { MetadataRequest, MetadataResponse } from '#protocol/messages/metadata.ts'
import type { InputOf } from '#protocol/schema.ts'
import type { Broker } from '../broker.ts'
import { CLUSTER_OPERATIONS, TOPIC_OPERATIONS } from './authorized-operations.ts'

/**
 * Metadata (3), versions 0-13. The brokers as this client can reach them, and the topics.
 * - No list of topics means all of them (in v0 an empty list does), an empty one none.
 * - v4: topics that are missing are created if the client and auto.create.topics.enable allow it; the first answer is
 *   then LEADER_NOT_AVAILABLE or already the topic.
 * - v10: topic ids. v12: topics may be asked for by id; UNKNOWN_TOPIC_ID. In v10 and v11 that is INVALID_REQUEST.
 * - One that is named many times is answered once.
 * - v8: authorized operations where they are asked for: all, as there is no authorizer.
 */
export function metadata(broker: Broker): ServedApi {
  return serve({
    api: API.Metadata,
    async handle(request, call) {
      const pieces = broker.turns.pieces()
      if (call.apiVersion < 12 && request.topics?.some(({ name, topicId }) => name === null || topicId !== ZERO_UUID)) {
        return {
          topics: await pieces.map(request.topics, ({ name, topicId }) => ({
            errorCode: ErrorCode.INVALID_REQUEST,
            name: name ?? '',
            topicId,
          })),
        }
      }
      const { image } = broker.metadata
      const all = request.topics === null || (call.apiVersion === 0 && request.topics.length === 0)
      const topics = all
        ? await describeAll(broker, [...image.topics.values()], pieces)
        : await describeAsked(broker, request, call.apiVersion, pieces)
      if (request.includeTopicAuthorizedOperations) {
        // Of an id that nobody has, nobody knows.
        for (const topic of topics) if (topic.name !== null) topic.topicAuthorizedOperations = TOPIC_OPERATIONS
      }
      return {
        brokers: broker.endpointsFor(call.caller),
        clusterId: broker.clusterId,
        controllerId: broker.anyLiveBroker(),
        topics,
        ...(request.includeClusterAuthorizedOperations && { clusterAuthorizedOperations: CLUSTER_OPERATIONS }),
      }
    },
  })
}

type TopicResponse = NonNullable<InputOf<typeof MetadataResponse>['topics']>[number] & {
  topicAuthorizedOperations?: number
}

async function describeAll(broker: Broker, topics: readonly TopicImage[], pieces: Pieces): Promise<TopicResponse[]> {
  const described: TopicResponse[] = []
  for (const topic of topics) {
    const wait = pieces.next(1 + topic.partitions.length)
    if (wait) await wait
    described.push(describe(broker, topic))
  }
  return described
}

/**
 * Each topic once, as Kafka answers: ids that nobody has, then what there is, then names that nobody has. Where there
 * are ids, names without one count for nothing.
 */
async function describeAsked(
  broker: Broker,
  request: MetadataRequest,
  apiVersion: number,
  pieces: Pieces,
): Promise<TopicResponse[]> {
  const ids = new Set<Uuid>()
  const names = new Set<string | null>()
  for (const { name, topicId } of request.topics ?? []) {
    const wait = pieces.next()
    if (wait) await wait
    if (topicId === ZERO_UUID) names.add(name)
    else ids.add(topicId)
  }
  const known: TopicImage[] = []
  const unknown: TopicResponse[] = []
  if (ids.size > 0) {
    for (const topicId of ids) {
      const wait = pieces.next()
      if (wait) await wait
      const topic = broker.metadata.image.topic(topicId)
      if (topic === undefined) unknown.push({ errorCode: ErrorCode.UNKNOWN_TOPIC_ID, name: null, topicId })
      else known.push(topic)
    }
    const described = await describeAll(broker, known, pieces)
    return unknown.concat(described)
  }
  const missing: string[] = []
  for (const name of names) {
    const wait = pieces.next()
    if (wait) await wait
    if (name !== null && broker.metadata.image.topicByName(name) === undefined) missing.push(name)
  }
  const created =
    missing.length > 0 && (apiVersion < 4 || request.allowAutoTopicCreation)
      ? await broker.topicCreation.autoCreate(missing)
      : new Map<string, number>()
  for (const name of names) {
    const wait = pieces.next()
    if (wait) await wait
    const topic = broker.metadata.image.topicByName(name ?? '')
    if (topic === undefined) unknown.push(describeMissing(broker, name, created))
    else known.push(topic)
  }
  const described = await describeAll(broker, known, pieces)
  return described.concat(unknown)
}

function describeMissing(broker: Broker, name: string | null, created: ReadonlyMap<string, number>): TopicResponse {
  if (name === null) return { errorCode: ErrorCode.INVALID_REQUEST, name: '', topicId: ZERO_UUID }
  const errorCode =
    topicNameProblem(name) === undefined
      ? (created.get(name) ?? ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
      : ErrorCode.INVALID_TOPIC_EXCEPTION
  return { errorCode, name, topicId: ZERO_UUID, isInternal: broker.isInternal(name) }
}

function describe(broker: Broker, topic: TopicImage): TopicResponse {
  return {
    errorCode: ErrorCode.NONE,
    name: topic.name,
    topicId: topic.id,
    isInternal: broker.isInternal(topic.name),
    partitions: topic.partitions.map((partition, partitionIndex) => ({
      errorCode: partition.leader < 0 ? ErrorCode.LEADER_NOT_AVAILABLE : ErrorCode.NONE,
      partitionIndex,
      leaderId: partition.leader,
      leaderEpoch: partition.leaderEpoch,
      replicaNodes: partition.replicas,
      isrNodes: partition.isr,
      offlineReplicas: broker.offlineReplicas(partition),
    })),
  }
}
