import type { ServedApi } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Controller } from '../controller.ts'
import { command } from './command.ts'

/**
 * UpdateFeatures (57), versions 0-2 (KIP-584, KIP-778). kraft.version is raft's, and cannot be raised or lowered yet.
 */
export function updateFeatures(controller: Controller): ServedApi {
  return command(controller, {
    api: API.UpdateFeatures,
    command: (request, { apiVersion: version }) => ({ kind: 'update-features', request, version }),
    refused: ({ featureUpdates }, refusal) => ({
      ...refusal,
      results: featureUpdates.map(({ feature }) => ({ feature, ...refusal })),
    }),
  })
}
