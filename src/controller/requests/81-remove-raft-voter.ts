import { HANG_UP, type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Controller } from '../controller.ts'

/**
 * RemoveRaftVoter (81), version 0. A voter, which may be the leader itself, is one no more (KIP-853).
 * - INCONSISTENT_CLUSTER_ID; NOT_LEADER_OR_FOLLOWER, UNSUPPORTED_VERSION (a static list), VOTER_NOT_FOUND and
 *   REQUEST_TIMED_OUT come from raft.
 */
export function removeRaftVoter(controller: Controller): ServedApi {
  return serve({
    api: API.RemoveRaftVoter,
    async handle({ clusterId, voterId: id, voterDirectoryId: directoryId }, { caller }) {
      if (controller.isForeign(clusterId)) return { errorCode: ErrorCode.INCONSISTENT_CLUSTER_ID, errorMessage: null }
      const answer = await controller.ask<'remove-voter'>({ kind: 'remove-voter', voter: { id, directoryId } }, caller)
      return answer === undefined ? HANG_UP : { errorCode: answer.errorCode, errorMessage: answer.message }
    },
  })
}
