import type { ServedApi } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Controller } from '../controller.ts'
import { command } from './command.ts'

/**
 * AllocateProducerIds (67), version 0. A block of ids that no other broker has or will get (KIP-730).
 */
export function allocateProducerIds(controller: Controller): ServedApi {
  return command(controller, {
    api: API.AllocateProducerIds,
    command: (request, { apiVersion: version }) => ({ kind: 'allocate-producer-ids', request, version }),
    refused: (_, { errorCode }) => ({ errorCode }),
  })
}
