import { failed } from '#core/metadata/answer.ts'
import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Broker } from '../broker.ts'

/**
 * RemoveRaftVoter (81), version 0. Decided by the quorum's leader (KIP-853).
 * - A leader that removes itself may be gone before it has answered; the next one then says VOTER_NOT_FOUND.
 */
export function removeRaftVoter(broker: Broker): ServedApi {
  return serve({
    api: API.RemoveRaftVoter,
    handle: (request, call) =>
      broker.forwarding.forward(API.RemoveRaftVoter, call, request, errorCode => failed(errorCode)),
  })
}
