import type { Millis, Offset } from '#base/units.ts'
import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode, type ErrorName } from '#protocol/errors.ts'
import type { ListOffsetsRequest, ListOffsetsResponse } from '#protocol/messages/list-offsets.ts'
import type { InputOf } from '#protocol/schema.ts'
import { RecordsError } from '#records/records-error.ts'
import type { TimestampOffset } from '#storage/lookup.ts'
import { StorageError } from '#storage/storage-error.ts'
import type { Broker } from '../broker.ts'
import type { Partition } from '../partitions/partition.ts'
import { gathered } from './gathered.ts'

/** Not times but questions; a real time is 0 or more. */
const LATEST = -1
const EARLIEST = -2
const MAX_TIMESTAMP = -3
const EARLIEST_LOCAL = -4
const LATEST_TIERED = -5
const EARLIEST_PENDING_UPLOAD = -6

/** The version in which each question came; before the tiers that last are asked there is nothing to tell of them. */
const SINCE_VERSION = new Map([
  [MAX_TIMESTAMP, 7],
  [EARLIEST_LOCAL, 8],
  [LATEST_TIERED, 9],
  [EARLIEST_PENDING_UPLOAD, 11],
])

/**
 * ListOffsets (2), versions 1-11. The first record, in offset order, at or after a time; or one of the special offsets.
 * - A partition that is named twice is INVALID_REQUEST, and answered once.
 * - A question that came in a later version is UNSUPPORTED_VERSION, before the topic is looked up.
 * - Nothing at or after the time: offset -1, timestamp -1, no error. A record beyond the visible end counts as nothing.
 * - A new leader that cannot know yet how far the one before had come: OFFSET_NOT_AVAILABLE, before version 5
 *   LEADER_NOT_AVAILABLE (KIP-207). Followers are told of all that the log holds.
 * - Without tiers, -5 and -6 are answered with offset -1 and epoch -1; -4 is the start of the log.
 */
export function listOffsets(broker: Broker): ServedApi {
  return serve({
    api: API.ListOffsets,
    async handle(request, call) {
      const pieces = broker.turns.pieces()
      const topics: TopicResponse[] = []
      for (const { name, partitions, twice } of await gathered(request.topics, pieces)) {
        const answers = await pieces.mapLater([...partitions.values()], asked => {
          if (twice.has(asked.partitionIndex)) return refused(asked.partitionIndex, 'INVALID_REQUEST')
          if (
            call.apiVersion < (SINCE_VERSION.get(asked.timestamp) ?? 0) ||
            asked.timestamp < EARLIEST_PENDING_UPLOAD
          ) {
            return refused(asked.partitionIndex, 'UNSUPPORTED_VERSION')
          }
          return answer(broker, request, call.apiVersion, name, asked)
        })
        topics.push({ name, partitions: answers })
      }
      return { topics }
    },
  })
}

type TopicResponse = NonNullable<InputOf<typeof ListOffsetsResponse>['topics']>[number]
type PartitionResponse = NonNullable<TopicResponse['partitions']>[number]
type AskedPartition = ListOffsetsRequest['topics'][number]['partitions'][number]

function refused(partitionIndex: number, error: ErrorName): PartitionResponse {
  return { partitionIndex, errorCode: ErrorCode[error], timestamp: -1, offset: -1 }
}

async function answer(
  broker: Broker,
  request: ListOffsetsRequest,
  version: number,
  name: string,
  asked: AskedPartition,
): Promise<PartitionResponse> {
  const { partitionIndex } = asked
  const found = broker.partitions.find(name, undefined, partitionIndex)
  if (typeof found === 'string') return refused(partitionIndex, found)
  if (!found.leads) return refused(partitionIndex, 'NOT_LEADER_OR_FOLLOWER')
  const epochError = found.checkEpoch(asked.currentLeaderEpoch)
  if (epochError !== undefined) return refused(partitionIndex, epochError)
  const isFollower = request.replicaId >= 0
  const committed = request.isolationLevel === 1 ? found.lastStableOffset : found.highWatermark
  const visibleEnd = isFollower ? found.log.endOffset : committed
  const notKnown = version >= 5 ? 'OFFSET_NOT_AVAILABLE' : 'LEADER_NOT_AVAILABLE'
  const isKnown = isFollower || found.knowsHighWatermark
  if (asked.timestamp === LATEST && !isKnown) return refused(partitionIndex, notKnown)
  try {
    const { timestamp, offset, leaderEpoch } = await lookUp(found, asked.timestamp, visibleEnd)
    // It may be there, and hidden only because the watermark has not come to it yet.
    if (offset < 0 && isOfRecord(asked.timestamp) && !isKnown) return refused(partitionIndex, notKnown)
    const epoch = version >= 4 ? { leaderEpoch } : {}
    return { partitionIndex, errorCode: ErrorCode.NONE, timestamp, offset, ...epoch }
  } catch (error) {
    // Compressed batches are taken unread, so the first who opens one may find it broken.
    if (!(error instanceof StorageError) && !(error instanceof RecordsError)) throw error
    return refused(partitionIndex, error.code)
  }
}

/** Asks for a record, which is told only when it is committed. */
function isOfRecord(question: Millis): boolean {
  return question >= 0 || question === MAX_TIMESTAMP
}

const NOTHING: TimestampOffset = { timestamp: -1, offset: -1, leaderEpoch: -1 }

async function lookUp(partition: Partition, question: Millis, visibleEnd: Offset): Promise<TimestampOffset> {
  const { log } = partition
  switch (question) {
    case LATEST:
      return { timestamp: -1, offset: visibleEnd, leaderEpoch: partition.leaderEpoch }
    case EARLIEST:
    case EARLIEST_LOCAL:
      return { timestamp: -1, offset: log.startOffset, leaderEpoch: log.epochAt(log.startOffset) ?? -1 }
    case LATEST_TIERED:
    case EARLIEST_PENDING_UPLOAD:
      return NOTHING
    default: {
      const found = await (question === MAX_TIMESTAMP ? log.offsetOfMaxTimestamp() : log.offsetForTimestamp(question))
      return found !== undefined && found.offset < visibleEnd ? found : NOTHING
    }
  }
}
