import { topicNameProblem } from '#core/metadata/topic-name.ts'
import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { DescribeTopicPartitionsResponse } from '#protocol/messages/describe-topic-partitions.ts'
import type { InputOf } from '#protocol/schema.ts'
import type { Broker } from '../broker.ts'
import { TOPIC_OPERATIONS } from './authorized-operations.ts'

/** Sorted at once. A page names 2,000 partitions at most, so nobody needs as many topics in one request. */
const TOPICS_MAX = 50_000
/** max.request.partition.size.limit */
const PARTITIONS_MAX = 2000

/**
 * DescribeTopicPartitions (75), version 0. Topics in the order of their names, page by page (KIP-966).
 * - No topics ask for all. The cursor says where the last page ended; one that is not among the topics that are asked
 *   for is INVALID_REQUEST.
 */
export function describeTopicPartitions(broker: Broker): ServedApi {
  return serve({
    api: API.DescribeTopicPartitions,
    async handle(request) {
      const { image } = broker.metadata
      const all = request.topics.length === 0
      const { cursor } = request
      if (request.topics.length > TOPICS_MAX) {
        const refused = ({ name }: { readonly name: string }) => ({ errorCode: ErrorCode.INVALID_REQUEST, name })
        return { topics: await broker.turns.pieces().map(request.topics, refused) }
      }
      const names = [...new Set(all ? image.topicIds.keys() : request.topics.map(({ name }) => name))].sort()
      if (cursor !== null && (cursor.partitionIndex < 0 || (!all && !names.includes(cursor.topicName)))) {
        return { topics: names.map(name => ({ errorCode: ErrorCode.INVALID_REQUEST, name })) }
      }
      let left = Math.min(Math.max(request.responsePartitionLimit, 1), PARTITIONS_MAX)
      const topics: TopicResponse[] = []
      const pieces = broker.turns.pieces()
      for (const name of names) {
        if (cursor !== null && name < cursor.topicName) continue
        const wait = pieces.next()
        if (wait) await wait
        const topic = image.topicByName(name)
        if (topic === undefined) {
          const invalid = topicNameProblem(name) !== undefined
          const errorCode = invalid ? ErrorCode.INVALID_TOPIC_EXCEPTION : ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
          topics.push({
            errorCode,
            name,
            isInternal: broker.isInternal(name),
            topicAuthorizedOperations: TOPIC_OPERATIONS,
          })
          continue
        }
        const from = cursor !== null && name === cursor.topicName ? Math.max(0, cursor.partitionIndex) : 0
        if (left === 0) return { topics, nextCursor: { topicName: name, partitionIndex: from } }
        const page = topic.partitions.slice(from, from + left)
        left -= page.length
        topics.push({
          errorCode: ErrorCode.NONE,
          name,
          topicId: topic.id,
          isInternal: broker.isInternal(name),
          topicAuthorizedOperations: TOPIC_OPERATIONS,
          partitions: page.map((partition, index) => ({
            errorCode: partition.leader < 0 ? ErrorCode.LEADER_NOT_AVAILABLE : ErrorCode.NONE,
            partitionIndex: from + index,
            leaderId: partition.leader,
            leaderEpoch: partition.leaderEpoch,
            replicaNodes: partition.replicas,
            isrNodes: partition.isr,
            eligibleLeaderReplicas: partition.eligibleLeaderReplicas,
            lastKnownElr: partition.lastKnownElr,
            offlineReplicas: broker.offlineReplicas(partition),
          })),
        })
        const next = from + page.length
        if (next < topic.partitions.length) return { topics, nextCursor: { topicName: name, partitionIndex: next } }
      }
      return { topics }
    },
  })
}

type TopicResponse = NonNullable<InputOf<typeof DescribeTopicPartitionsResponse>['topics']>[number]
