import type { ServedApi } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Controller } from '../controller.ts'
import { command } from './command.ts'

/**
 * UnregisterBroker (64), version 0 (KIP-631).
 */
export function unregisterBroker(controller: Controller): ServedApi {
  return command(controller, {
    api: API.UnregisterBroker,
    command: (request, { apiVersion: version }) => ({ kind: 'unregister-broker', request, version }),
    refused: (_, refusal) => refusal,
  })
}
