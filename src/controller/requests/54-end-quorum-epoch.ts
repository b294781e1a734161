import { ZERO_UUID } from '#base/uuid.ts'
import { HANG_UP, type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Controller } from '../controller.ts'
import { answered, metadataPartition, refusal } from './quorum.ts'

/**
 * EndQuorumEpoch (54), versions 0-1. A leader goes, and says who should stand first (KIP-595).
 * - INCONSISTENT_CLUSTER_ID and INVALID_REQUEST (not exactly the metadata partition) for the whole; the rest is raft's.
 */
export function endQuorumEpoch(controller: Controller): ServedApi {
  return serve({
    api: API.EndQuorumEpoch,
    async handle(request, { apiVersion, caller }) {
      const partition = metadataPartition(request)
      const errorCode = refusal(controller, request.clusterId, partition?.leaderId)
      if (partition === undefined || errorCode !== undefined) return { errorCode: errorCode ?? 0 }
      const { leaderId, leaderEpoch: epoch, preferredSuccessors, preferredCandidates } = partition
      const successors =
        apiVersion >= 1
          ? preferredCandidates.map(({ candidateId: id, candidateDirectoryId: directoryId }) => ({ id, directoryId }))
          : preferredSuccessors.map(id => ({ id, directoryId: ZERO_UUID }))
      const end = { leaderId, epoch, successors }
      const answer = await controller.ask<'end-epoch'>({ kind: 'end-epoch', end }, caller)
      return answer === undefined ? HANG_UP : answered(controller, apiVersion, answer)
    },
  })
}
