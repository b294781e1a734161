import { topicNameProblem } from '#core/metadata/topic-name.ts'
import type { ProducerSnapshotEntry } from '#core/partition/producers.ts'
import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode, type ErrorName, errorOf } from '#protocol/errors.ts'
import type { Broker } from '../broker.ts'

/** DescribeProducers (61), version 0. The idempotent producers that a partition's leader remembers. */
export function describeProducers(broker: Broker): ServedApi {
  return serve({
    api: API.DescribeProducers,
    handle: request => ({
      topics: request.topics.map(({ name, partitionIndexes }) => ({
        name,
        partitions: partitionIndexes.map(partitionIndex => {
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
        }),
      })),
    }),
  })
}

/** Each producer once: of the batches that are remembered of it, the last. */
function newest(entries: readonly ProducerSnapshotEntry[]): ProducerSnapshotEntry[] {
  return [...new Map(entries.map(entry => [entry.producerId, entry])).values()]
}
