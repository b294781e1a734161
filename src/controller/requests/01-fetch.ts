import { METADATA_TOPIC_ID, ZERO_UUID } from '#base/uuid.ts'
import { CLUSTER_METADATA_TOPIC } from '#core/metadata/topic-name.ts'
import { type FileRange, HANG_UP, type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { FetchRequest, FetchResponse } from '#protocol/messages/fetch.ts'
import type { InputOf } from '#protocol/schema.ts'
import type { Controller } from '../controller.ts'
import { FETCH_BYTES_MAX } from '../piece-size.ts'
import type { FetchedLog } from '../readers.ts'

/**
 * Fetch (1), versions 4-18, of the metadata log alone: how voters, brokers and observers follow it (KIP-595).
 * - Below v12 there is no last fetched epoch, and so only a fetch from offset 0 can be judged.
 * - An epoch that is not the leader's: FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH, with the leader, and from v16 its
 *   endpoint. A fetcher that does not know the epoch asks with 0.
 * - A log that parts from ours gets the diverging epoch, an offset before the log's start the id of a snapshot (KIP-630).
 * - The broker of the same node (its number, no directory) is answered also while another controller leads.
 * - There are no sessions. Observers are sent what is committed, and nothing else; voters all that is durable; v18 is answered at once when the
 *   fetcher's high watermark is behind (KIP-1166).
 */
export function fetch(controller: Controller): ServedApi {
  return serve({
    api: API.Fetch,
    async handle(request, call) {
      if (controller.isForeign(request.clusterId, replicaOf(request, call.apiVersion))) {
        return { errorCode: ErrorCode.INCONSISTENT_CLUSTER_ID }
      }
      const byName = call.apiVersion < 13
      const [topic, ...others] = request.topics
      const isMetadata = byName ? topic?.topic === CLUSTER_METADATA_TOPIC : topic?.topicId === METADATA_TOPIC_ID
      const partition = topic?.partitions[0]
      if (!isMetadata || others.length > 0 || topic?.partitions.length !== 1 || partition?.partition !== 0) {
        return { errorCode: ErrorCode.INVALID_REQUEST }
      }
      const offset = partition.fetchOffset
      // Who has nothing yet may say so with -1 as well as with Kafka's 0.
      const lastFetchedEpoch = offset === 0 ? Math.max(0, partition.lastFetchedEpoch) : partition.lastFetchedEpoch
      const currentLeaderEpoch = offset === 0 ? Math.max(0, partition.currentLeaderEpoch) : partition.currentLeaderEpoch
      const isValid = request.maxWaitMs >= 0 && offset >= 0 && lastFetchedEpoch >= 0 && currentLeaderEpoch >= 0
      if (!isValid) return answerOf(controller, call.apiVersion, ErrorCode.INVALID_REQUEST)

      const fetched = await controller.fetch(
        {
          replicaId: replicaOf(request, call.apiVersion),
          directoryId: partition.replicaDirectoryId,
          currentLeaderEpoch,
          offset,
          lastFetchedEpoch,
          highWatermark: partition.highWatermark,
          maxWaitMs: request.maxWaitMs,
        },
        bytesMax(request.maxBytes, partition.partitionMaxBytes),
        call.caller,
      )
      if (fetched === undefined) return HANG_UP
      return answerOf(controller, call.apiVersion, fetched.answer.errorCode, fetched)
    },
  })
}

/** Kafka's own fetches of this log leave the partition's limit at 0, which is none. */
function bytesMax(ofRequest: number, ofPartition: number): number {
  const asked = ofPartition > 0 ? Math.min(ofRequest, ofPartition) : ofRequest
  return Math.max(0, Math.min(asked, FETCH_BYTES_MAX))
}

function replicaOf(request: FetchRequest, version: number): number {
  return version >= 15 ? request.replicaState.replicaId : request.replicaId
}

function answerOf(
  controller: Controller,
  version: number,
  errorCode: number,
  fetched?: FetchedLog,
): InputOf<typeof FetchResponse> {
  const { answer, range } = fetched ?? {}
  const position = answer?.position
  const records: FileRange | Buffer = range ?? Buffer.alloc(0)
  const leaderId = answer?.leaderId ?? controller.leaderId
  return {
    errorCode: ErrorCode.NONE,
    responses: [
      {
        topic: CLUSTER_METADATA_TOPIC,
        topicId: version >= 13 ? METADATA_TOPIC_ID : ZERO_UUID,
        partitions: [
          {
            partitionIndex: 0,
            errorCode,
            highWatermark: answer?.highWatermark ?? controller.highWatermark,
            logStartOffset: controller.logStartOffset,
            ...(version >= 12 && {
              currentLeader: { leaderId, leaderEpoch: answer?.leaderEpoch ?? controller.epoch },
              ...(position?.kind === 'diverging' && {
                divergingEpoch: { epoch: position.epoch, endOffset: position.endOffset },
              }),
              ...(position?.kind === 'snapshot' && { snapshotId: position.id }),
            }),
            records,
          },
        ],
      },
    ],
    nodeEndpoints: version >= 16 ? controller.leaderNodes : [],
  }
}
