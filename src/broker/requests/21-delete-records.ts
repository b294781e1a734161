import type { Offset } from '#base/units.ts'
import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode, type ErrorName } from '#protocol/errors.ts'
import { StorageError } from '#storage/storage-error.ts'
import type { Broker } from '../broker.ts'
import type { Partition } from '../partitions/partition.ts'
import type { Watcher } from '../partitions/watchers.ts'
import { gathered } from './gathered.ts'

/**
 * DeleteRecords (21), versions 0-2. Moves the start of a log; -1 is the high watermark.
 * - Answered when the new start is written down: Kafka does that once a minute, and a crash before brings records back.
 * - And when the replicas of all brokers that live have deleted as much, and those that may lead once they live again
 *   (KIP-966), which Kafka does not wait for; else REQUEST_TIMED_OUT. Others delete it before they are in sync again.
 * - A start that cannot be written down: KAFKA_STORAGE_ERROR, but NONE on a full disk, which deleting must be able to cure.
 * - A partition that is named twice counts as it is named last.
 * - Beyond the high watermark or below -1: OFFSET_OUT_OF_RANGE. A topic that is only compacted: POLICY_VIOLATION.
 */
export function deleteRecords(broker: Broker): ServedApi {
  return serve({
    api: API.DeleteRecords,
    async handle(request) {
      const { timeoutMs } = request
      const pieces = broker.turns.pieces()
      const topics = []
      for (const { name, partitions } of await gathered(request.topics, pieces)) {
        const answered = pieces.mapLater([...partitions.values()], async ({ partitionIndex, offset }) =>
          deleted(partitionIndex, await deleteBefore(broker, name, partitionIndex, offset, timeoutMs)),
        )
        topics.push(answered.then(partitions => ({ name, partitions })))
        const wait = pieces.next()
        if (wait) await wait
      }
      return { topics: await Promise.all(topics) }
    },
  })
}

function deleted(partitionIndex: number, result: number | ErrorName) {
  return typeof result === 'string'
    ? { partitionIndex, lowWatermark: -1, errorCode: ErrorCode[result] }
    : { partitionIndex, lowWatermark: result, errorCode: ErrorCode.NONE }
}

async function deleteBefore(
  broker: Broker,
  name: string,
  index: number,
  offset: number,
  timeoutMs: number,
): Promise<number | ErrorName> {
  if (broker.isInternal(name)) return 'INVALID_TOPIC_EXCEPTION'
  const partition = broker.partitions.find(name, undefined, index)
  if (typeof partition === 'string') return partition
  if (!partition.leads) return 'NOT_LEADER_OR_FOLLOWER'
  const { cleanupCompact, cleanupDelete } = broker.partitions.terms(partition).topic
  if (cleanupCompact && !cleanupDelete) return 'POLICY_VIOLATION'
  const before = offset === -1 ? partition.highWatermark : offset
  if (before < 0 || before > partition.highWatermark) return 'OFFSET_OUT_OF_RANGE'
  partition.log.deleteRecordsBefore(before)
  partition.startMoved()
  const { startOffset } = partition.log
  try {
    await broker.partitions.keepStart(partition)
  } catch (error) {
    if (!(error instanceof StorageError)) throw error
    return 'KAFKA_STORAGE_ERROR'
  }
  // Who leads by now may have deleted nothing yet, and only a leader knows of the others.
  if (!partition.leads) return 'NOT_LEADER_OR_FOLLOWER'
  const lowest = lowWatermark(broker, partition)
  return lowest >= startOffset ? lowest : await gone(broker, partition, startOffset, timeoutMs)
}

function lowWatermark({ metadata }: Broker, partition: Partition): Offset {
  const { eligibleLeaderReplicas = [] } = metadata.image.partition(partition.topicId, partition.index) ?? {}
  return partition.lowWatermark(eligibleLeaderReplicas)
}

/** Waits until all who have to have deleted what lies below. */
function gone(broker: Broker, partition: Partition, below: Offset, timeoutMs: number): Promise<number | ErrorName> {
  return new Promise(resolve => {
    const done = (result: number | ErrorName) => {
      broker.deadlines.cancel(deadline)
      partition.startWatchers.delete(watcher)
      resolve(result)
    }
    const deadline = broker.deadlines.after(timeoutMs, () => done('REQUEST_TIMED_OUT'))
    const watcher: Watcher = {
      moved() {
        const lowest = lowWatermark(broker, partition)
        if (!partition.leads) done('NOT_LEADER_OR_FOLLOWER')
        else if (lowest >= below) done(lowest)
      },
    }
    partition.startWatchers.add(watcher)
  })
}
