import { ZERO_UUID } from '#base/uuid.ts'
import { CLUSTER_METADATA_TOPIC } from '#core/metadata/topic-name.ts'
import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Controller } from '../controller.ts'
import { FETCH_BYTES_MAX } from '../piece-size.ts'

/** There is one partition to ask for; each that is named is looked up, and raft told of its reader. */
const ELEMENTS_MAX = 100

/**
 * FetchSnapshot (59), versions 0-1. A range of a snapshot's bytes, from its file to the socket (KIP-630).
 * - SNAPSHOT_NOT_FOUND for one that is gone or damaged, as for the one that a new cluster begins with (offset 0).
 * - INVALID_REQUEST for the whole where very many partitions are named.
 * - POSITION_OUT_OF_RANGE outside of its size.
 * - The broker of the same node (its number, no directory) is answered also while another controller leads.
 */
export function fetchSnapshot(controller: Controller): ServedApi {
  return serve({
    api: API.FetchSnapshot,
    handle(request, { apiVersion, elements }) {
      if (elements > ELEMENTS_MAX) return { errorCode: ErrorCode.INVALID_REQUEST }
      if (controller.isForeign(request.clusterId)) {
        return { errorCode: ErrorCode.INCONSISTENT_CLUSTER_ID }
      }
      let bytesLeft = Math.min(Math.max(0, request.maxBytes), FETCH_BYTES_MAX)
      const topics = request.topics.map(({ name, partitions }) => ({
        name,
        partitions: partitions.map(
          ({ partition: index, currentLeaderEpoch, snapshotId, position, replicaDirectoryId }) => {
            const { leaderId, epoch: leaderEpoch } = controller
            const isMetadata = name === CLUSTER_METADATA_TOPIC && index === 0
            const refuse = (errorCode: number) => {
              return { index, errorCode, snapshotId, currentLeader: { leaderId, leaderEpoch }, unalignedRecords: EMPTY }
            }
            if (!isMetadata) return refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            const isOwn = request.replicaId === controller.nodeId && replicaDirectoryId === ZERO_UUID
            if (!isOwn && currentLeaderEpoch < leaderEpoch) return refuse(ErrorCode.FENCED_LEADER_EPOCH)
            if (!isOwn && currentLeaderEpoch > leaderEpoch) return refuse(ErrorCode.UNKNOWN_LEADER_EPOCH)
            if (!isOwn && leaderId !== controller.nodeId) return refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            const snapshot = snapshotId.endOffset === 0 ? undefined : controller.findSnapshot(snapshotId, position)
            if (snapshot === undefined) return refuse(ErrorCode.SNAPSHOT_NOT_FOUND)
            if (position < 0 || position >= snapshot.size) return refuse(ErrorCode.POSITION_OUT_OF_RANGE)
            controller.snapshotRead({ id: request.replicaId, directoryId: replicaDirectoryId })
            const size = Math.min(bytesLeft, snapshot.size - position)
            bytesLeft -= size
            return {
              ...refuse(ErrorCode.NONE),
              size: snapshot.size,
              position,
              unalignedRecords: size === 0 ? EMPTY : { file: snapshot.file, position, size },
            }
          },
        ),
      }))
      return { topics, nodeEndpoints: apiVersion >= 1 ? controller.leaderNodes : [] }
    },
  })
}

const EMPTY = Buffer.alloc(0)
