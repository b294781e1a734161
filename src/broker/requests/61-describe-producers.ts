import { topicNameProblem } from '#core/metadata/topic-name.ts'
import type { ProducerSnapshotEntry } from '#core/partition/producers.ts'
import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode, type ErrorName, errorOf } from '#protocol/errors.ts'
import type { DescribeProducersResponse } from '#protocol/messages/describe-producers.ts'
import type { InputOf } from '#protocol/schema.ts'
import type { Broker } from '../broker.ts'

type TopicResponse = NonNullable<InputOf<typeof DescribeProducersResponse>['topics']>[number]
type PartitionResponse = NonNullable<TopicResponse['partitions']>[number]

/** DescribeProducers (61), version 0. The idempotent producers that a partition's leader remembers. */
export function describeProducers(broker: Broker): ServedApi {
  return serve({
    api: API.DescribeProducers,
    async handle(request) {
      const pieces = broker.turns.pieces()
      // One that is named a thousand times is described once.
      const described = new Map<string, PartitionResponse>()
      const topics = []
      for (const { name, partitionIndexes } of request.topics) {
        const partitions = await pieces.map(partitionIndexes, index => {
          const key = `${index}/${name}`
          const partition = described.get(key) ?? describePartition(broker, name, index)
          described.set(key, partition)
          return partition
        })
        topics.push({ name, partitions })
      }
      return { topics }
    },
  })
}

function describePartition(broker: Broker, name: string, partitionIndex: number): PartitionResponse {
  const refused = (error: ErrorName) => ({
    partitionIndex,
    errorCode: ErrorCode[error],
    errorMessage: errorOf(ErrorCode[error]).message,
  })
  if (topicNameProblem(name) !== undefined) return refused('INVALID_TOPIC_EXCEPTION')
  const found = broker.partitions.find(name, undefined, partitionIndex)
  if (typeof found === 'string') return refused(found)
  if (!found.leads) return refused('NOT_LEADER_OR_FOLLOWER')
  return {
    partitionIndex,
    errorCode: ErrorCode.NONE,
    activeProducers: newest(found.producers.snapshot(found.nextOffset)).map(producer => ({
      producerId: producer.producerId,
      producerEpoch: producer.epoch,
      lastSequence: producer.lastSequence,
      lastTimestamp: producer.timestamp,
      coordinatorEpoch: producer.coordinatorEpoch,
      currentTxnStartOffset: producer.currentTxnFirstOffset,
    })),
  }
}

/** Each producer once: of the batches that are remembered of it, the last. */
function newest(entries: readonly ProducerSnapshotEntry[]): ProducerSnapshotEntry[] {
  return [...new Map(entries.map(entry => [entry.producerId, entry])).values()]
}
