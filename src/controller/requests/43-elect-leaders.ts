import type { ServedApi } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Controller } from '../controller.ts'
import { command } from './command.ts'

/**
 * ElectLeaders (43), versions 0-2. Preferred, from v1 also unclean (KIP-460). Below v1 there is no error of the whole.
 */
export function electLeaders(controller: Controller): ServedApi {
  return command(controller, {
    api: API.ElectLeaders,
    command: (request, { apiVersion: version }) => ({ kind: 'elect-leaders', request, version }),
    refused: ({ topicPartitions }, { errorCode, errorMessage }, version) => ({
      ...(version >= 1 && { errorCode }),
      replicaElectionResults: (topicPartitions ?? []).map(({ topic, partitions }) => ({
        topic,
        partitionResult: partitions.map(partitionId => ({ partitionId, errorCode, errorMessage })),
      })),
    }),
  })
}
