import { failed } from '#core/metadata/answer.ts'
import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Broker } from '../broker.ts'
import { isTaken } from './forwarded.ts'

/** UpdateFeatures (57), versions 0-2. Decided by the active controller, and followed here before it is answered (KIP-584). */
export function updateFeatures(broker: Broker): ServedApi {
  return serve({
    api: API.UpdateFeatures,
    barrier: true,
    handle: (request, call) =>
      broker.forwarding.forwardAndFollow(
        API.UpdateFeatures,
        call,
        request,
        code => failed(code),
        answer => !request.validateOnly && isTaken(answer),
      ),
  })
}
