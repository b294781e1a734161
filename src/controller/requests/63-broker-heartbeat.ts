import type { ServedApi } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Controller } from '../controller.ts'
import { command } from './command.ts'

/**
 * BrokerHeartbeat (63), versions 0-2. Keeps a broker's session, fences, unfences, and lets it go (KIP-631). The
 * connection that brings it is watched: when it breaks the broker may be gone.
 */
export function brokerHeartbeat(controller: Controller): ServedApi {
  return command(controller, {
    api: API.BrokerHeartbeat,
    command: (request, { apiVersion: version, caller }) => {
      controller.heard(request.brokerId, request.brokerEpoch, caller)
      return { kind: 'broker-heartbeat', request, version }
    },
    refused: (_, { errorCode }) => ({ errorCode }),
  })
}
