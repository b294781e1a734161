import type { ServedApi } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Controller } from '../controller.ts'
import { command } from './command.ts'

/**
 * IncrementalAlterConfigs (44), versions 0-1: set, delete, append, subtract (KIP-339).
 */
export function incrementalAlterConfigs(controller: Controller): ServedApi {
  return command(controller, {
    api: API.IncrementalAlterConfigs,
    command: (request, { apiVersion: version }) => ({ kind: 'incremental-alter-configs', request, version }),
    refused: ({ resources }, refusal) => ({
      responses: resources.map(({ resourceType, resourceName }) => ({ resourceType, resourceName, ...refusal })),
    }),
  })
}
