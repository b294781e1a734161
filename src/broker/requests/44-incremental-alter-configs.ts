import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Broker } from '../broker.ts'
import { isTaken, refusedResources } from './forwarded.ts'

/**
 * IncrementalAlterConfigs (44), versions 0-1. Decided by the active controller, and followed here before it is answered
 * (KIP-339).
 */
export function incrementalAlterConfigs(broker: Broker): ServedApi {
  return serve({
    api: API.IncrementalAlterConfigs,
    barrier: true,
    handle: (request, call) =>
      broker.forwarding.forwardAndFollow(
        API.IncrementalAlterConfigs,
        call,
        request,
        code => refusedResources(request, code),
        ({ responses = [] }) => !request.validateOnly && responses.some(isTaken),
      ),
  })
}
