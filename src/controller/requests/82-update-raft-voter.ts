import { HANG_UP, type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Controller } from '../controller.ts'
import { refuseListeners, voterOf } from './quorum.ts'

/**
 * UpdateRaftVoter (82), version 0. A voter says that it is reached elsewhere, or knows other levels of kraft.version
 * (KIP-853); under a static list, which directory it has.
 * - INCONSISTENT_CLUSTER_ID; INVALID_REQUEST without an endpoint of the controllers' listener; the rest is raft's.
 */
export function updateRaftVoter(controller: Controller): ServedApi {
  return serve({
    api: API.UpdateRaftVoter,
    async handle(request, { caller }) {
      if (controller.isForeign(request.clusterId)) return { errorCode: ErrorCode.INCONSISTENT_CLUSTER_ID }
      if (refuseListeners(controller, request.listeners) !== undefined) return { errorCode: ErrorCode.INVALID_REQUEST }
      const voter = voterOf(request)
      const question = { kind: 'update-voter', epoch: request.currentLeaderEpoch, voter } as const
      const answer = await controller.ask<'update-voter'>(question, caller)
      if (answer === undefined) return HANG_UP
      const { errorCode, leaderId, leaderEpoch } = answer
      const address = leaderId < 0 ? undefined : controller.addressOf(leaderId)
      const where = { host: address?.host ?? '', port: address?.port ?? 0 }
      return { errorCode, currentLeader: { leaderId, leaderEpoch, ...where } }
    },
  })
}
