import type { Millis } from '#base/units.ts'
import { HANG_UP, type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Controller } from '../controller.ts'
import { refuseListeners, voterOf } from './quorum.ts'

/** No other change of the voters can begin meanwhile. */
const WAIT_MS_MAX: Millis = 300_000

/**
 * AddRaftVoter (80), versions 0-1. An observer becomes a voter (KIP-853).
 * - INCONSISTENT_CLUSTER_ID; INVALID_REQUEST without an endpoint of the controllers' listener, or with more than a voter can have.
 * - NOT_LEADER_OR_FOLLOWER, UNSUPPORTED_VERSION (a static list), DUPLICATE_VOTER and REQUEST_TIMED_OUT come from raft.
 * - v1 without ackWhenCommitted is answered when the record is appended.
 */
export function addRaftVoter(controller: Controller): ServedApi {
  return serve({
    api: API.AddRaftVoter,
    async handle(request, { caller }) {
      const { clusterId, listeners, timeoutMs, ackWhenCommitted } = request
      if (controller.isForeign(clusterId)) return { errorCode: ErrorCode.INCONSISTENT_CLUSTER_ID, errorMessage: null }
      const errorMessage = refuseListeners(controller, listeners)
      if (errorMessage !== undefined) return { errorCode: ErrorCode.INVALID_REQUEST, errorMessage }
      const voter = voterOf(request)
      const question = {
        kind: 'add-voter',
        voter,
        timeoutMs: Math.max(0, Math.min(timeoutMs, WAIT_MS_MAX)),
        ackWhenCommitted,
      } as const
      const answer = await controller.ask<'add-voter'>(question, caller)
      return answer === undefined ? HANG_UP : { errorCode: answer.errorCode, errorMessage: answer.message }
    },
  })
}
