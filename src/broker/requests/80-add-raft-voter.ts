import { failed } from '#core/metadata/answer.ts'
import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Broker } from '../broker.ts'

/** AddRaftVoter (80), versions 0-1. Decided by the quorum's leader, and answered when it is committed there (KIP-853). */
export function addRaftVoter(broker: Broker): ServedApi {
  return serve({
    api: API.AddRaftVoter,
    handle: (request, call) =>
      broker.forwarding.forward(API.AddRaftVoter, call, request, errorCode => failed(errorCode)),
  })
}
