import { type Uuid, ZERO_UUID } from '#base/uuid.ts'
import type { TopicImage } from '#core/metadata/image.ts'
import { topicNameProblem } from '#core/metadata/topic-name.ts'
import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { MetadataResponse } from '#protocol/messages/metadata.ts'
import type { InputOf } from '#protocol/schema.ts'
import type { Broker } from '../broker.ts'
import { CLUSTER_OPERATIONS, TOPIC_OPERATIONS } from './authorized-operations.ts'

/**
 * Metadata (3), versions 0-13. The brokers as this client can reach them, and the topics.
 * - No list of topics means all of them (in v0 an empty list does), an empty one none.
 * - v4: topics that are missing are created if the client and auto.create.topics.enable allow it; the first answer is
 *   then LEADER_NOT_AVAILABLE or already the topic.
 * - v10: topic ids. v12: topics may be asked for by id; UNKNOWN_TOPIC_ID. In v10 and v11 that is INVALID_REQUEST.
 * - v8: authorized operations where they are asked for: all, as there is no authorizer.
 */
export function metadata(broker: Broker): ServedApi {
  return serve({
    api: API.Metadata,
    async handle(request, call) {
      if (call.apiVersion < 12 && request.topics?.some(({ name, topicId }) => name === null || topicId !== ZERO_UUID)) {
        return {
          topics: request.topics.map(({ name, topicId }) => ({
            errorCode: ErrorCode.INVALID_REQUEST,
            name: name ?? '',
            topicId,
          })),
        }
      }
      const { image } = broker.metadata
      const all = request.topics === null || (call.apiVersion === 0 && request.topics.length === 0)
      const topics: TopicResponse[] = []
      if (all) {
        for (const topic of image.topics.values()) topics.push(describe(broker, topic))
      } else {
        const missing: string[] = []
        const asked = request.topics ?? []
        for (const { name, topicId } of asked) {
          if (name !== null && topicId === ZERO_UUID && image.topicByName(name) === undefined) missing.push(name)
        }
        const created =
          missing.length > 0 && (call.apiVersion < 4 || request.allowAutoTopicCreation)
            ? await broker.topicCreation.autoCreate(missing)
            : new Map<string, number>()
        // One that is named a thousand times is described once.
        const described = new Map<string, TopicResponse>()
        for (const { name, topicId } of asked) {
          const key = `${topicId}:${name}`
          const topic = described.get(key) ?? describeAsked(broker, name, topicId, created)
          described.set(key, topic)
          topics.push(topic)
        }
      }
      return {
        brokers: broker.endpointsFor(call.caller),
        clusterId: broker.clusterId,
        controllerId: broker.anyLiveBroker(),
        topics: request.includeTopicAuthorizedOperations
          ? topics.map(topic => ({ ...topic, topicAuthorizedOperations: TOPIC_OPERATIONS }))
          : topics,
        ...(request.includeClusterAuthorizedOperations && { clusterAuthorizedOperations: CLUSTER_OPERATIONS }),
      }
    },
  })
}

type TopicResponse = NonNullable<InputOf<typeof MetadataResponse>['topics']>[number]

function describeAsked(
  broker: Broker,
  name: string | null,
  topicId: Uuid,
  created: ReadonlyMap<string, number>,
): TopicResponse {
  const { image } = broker.metadata
  if (topicId !== ZERO_UUID) {
    const topic = image.topic(topicId)
    return topic === undefined
      ? { errorCode: ErrorCode.UNKNOWN_TOPIC_ID, name: null, topicId }
      : describe(broker, topic)
  }
  if (name === null) return { errorCode: ErrorCode.INVALID_REQUEST, name: '', topicId }
  const topic = image.topicByName(name)
  if (topic !== undefined) return describe(broker, topic)
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
      offlineReplicas: partition.replicas.filter(id => !broker.isOnline(id)),
    })),
  }
}
