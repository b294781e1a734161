import type { ServedApi } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Controller } from '../controller.ts'
import { command } from './command.ts'

/**
 * BrokerRegistration (62), versions 0-4. A broker makes itself known (KIP-631); its epoch is the offset of the record.
 */
export function brokerRegistration(controller: Controller): ServedApi {
  return command(controller, {
    api: API.BrokerRegistration,
    command: (request, { apiVersion: version }) => ({
      kind: 'register-broker',
      request,
      version,
      nextOffset: controller.nextOffset,
    }),
    refused: (_, { errorCode }) => ({ errorCode }),
  })
}
