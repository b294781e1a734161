import { HANG_UP, type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Controller } from '../controller.ts'
import { answered, metadataPartition, refusal } from './quorum.ts'

/**
 * Vote (52), versions 0-2. A candidate asks for this node's vote, or whether it would get it (KIP-595, 853, 996).
 * - INCONSISTENT_CLUSTER_ID and INVALID_REQUEST (not exactly the metadata partition) for the whole.
 * - INVALID_REQUEST, FENCED_LEADER_EPOCH and INVALID_VOTER_KEY (v1: another node or folder is meant) come from raft.
 */
export function vote(controller: Controller): ServedApi {
  return serve({
    api: API.Vote,
    async handle(request, { apiVersion, caller }) {
      const partition = metadataPartition(request)
      const errorCode = refusal(controller, request.clusterId, partition?.replicaId)
      if (partition === undefined || errorCode !== undefined) return { errorCode: errorCode ?? 0 }
      const { replicaEpoch: epoch, replicaId, replicaDirectoryId, voterDirectoryId } = partition
      const vote = {
        epoch,
        candidate: { id: replicaId, directoryId: replicaDirectoryId },
        voter: { id: request.voterId, directoryId: voterDirectoryId },
        lastEpoch: partition.lastOffsetEpoch,
        endOffset: partition.lastOffset,
        preVote: partition.preVote,
      }
      const answer = await controller.ask<'vote'>({ kind: 'vote', vote }, caller)
      if (answer === undefined) return HANG_UP
      const { granted: voteGranted, ...same } = answer
      return answered(controller, apiVersion, { ...same, voteGranted })
    },
  })
}
