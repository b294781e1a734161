import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Broker } from '../broker.ts'
import { isTaken, refusedResources } from './forwarded.ts'

/** AlterConfigs (33), versions 0-2. Decided by the active controller, and followed here before it is answered. */
export function alterConfigs(broker: Broker): ServedApi {
  return serve({
    api: API.AlterConfigs,
    barrier: true,
    handle: (request, call) =>
      broker.forwarding.forwardAndFollow(
        API.AlterConfigs,
        call,
        request,
        code => refusedResources(request, code),
        ({ responses = [] }) => !request.validateOnly && responses.some(isTaken),
      ),
  })
}
