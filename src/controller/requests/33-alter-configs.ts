import type { ServedApi } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Controller } from '../controller.ts'
import { command } from './command.ts'

/**
 * AlterConfigs (33), versions 0-2. Replaces all that is set for a resource; clients since 2.3 use IncrementalAlterConfigs.
 */
export function alterConfigs(controller: Controller): ServedApi {
  return command(controller, {
    api: API.AlterConfigs,
    command: (request, { apiVersion: version }) => ({ kind: 'alter-configs', request, version }),
    refused: ({ resources }, refusal) => ({
      responses: resources.map(({ resourceType, resourceName }) => ({ resourceType, resourceName, ...refusal })),
    }),
  })
}
