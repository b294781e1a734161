import type { ServedApi } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Controller } from '../controller.ts'
import { command } from './command.ts'

/**
 * AlterPartition (56), versions 2-3. A leader proposes its partitions' ISR (KIP-497); v3 with the epochs of the brokers in it
 * (KIP-903).
 */
export function alterPartition(controller: Controller): ServedApi {
  return command(controller, {
    api: API.AlterPartition,
    command: (request, { apiVersion: version }) => {
      return { kind: 'alter-partition', request, version, isDoubted: controller.doubts(request.brokerId) }
    },
    refused: (_, { errorCode }) => ({ errorCode, topics: [] }),
  })
}
