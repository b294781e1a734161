import { HANG_UP, type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Controller } from '../controller.ts'
import { answered, metadataPartition, refusal } from './quorum.ts'

/**
 * BeginQuorumEpoch (53), versions 0-1. A new leader makes itself, and where it listens, known (KIP-595, 853).
 * - INCONSISTENT_CLUSTER_ID and INVALID_REQUEST (not exactly the metadata partition) for the whole.
 * - FENCED_LEADER_EPOCH and INVALID_VOTER_KEY (v1: another node or folder is meant) come from raft.
 */
export function beginQuorumEpoch(controller: Controller): ServedApi {
  return serve({
    api: API.BeginQuorumEpoch,
    async handle(request, { apiVersion, caller }) {
      const partition = metadataPartition(request)
      const errorCode = refusal(controller, request.clusterId, partition?.leaderId)
      if (partition === undefined || errorCode !== undefined) return { errorCode: errorCode ?? 0 }
      const { leaderId, leaderEpoch: epoch, voterDirectoryId: directoryId } = partition
      // Before raft follows it: the first fetch should find the way.
      if (epoch >= controller.epoch) controller.learn(leaderId, request.leaderEndpoints)
      const begin = { leaderId, epoch, voter: { id: request.voterId, directoryId } }
      const answer = await controller.ask<'begin-epoch'>({ kind: 'begin-epoch', begin }, caller)
      if (answer === undefined) return HANG_UP
      if (answer.errorCode === ErrorCode.NONE) controller.learn(leaderId, request.leaderEndpoints)
      return answered(controller, apiVersion, answer)
    },
  })
}
