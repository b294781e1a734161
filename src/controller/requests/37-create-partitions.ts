import type { ServedApi } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Controller } from '../controller.ts'
import { command } from './command.ts'

/**
 * CreatePartitions (37), versions 0-3. No quota on mutations (KIP-599) yet.
 */
export function createPartitions(controller: Controller): ServedApi {
  return command(controller, {
    api: API.CreatePartitions,
    command: (request, { apiVersion: version }) => ({ kind: 'create-partitions', request, version }),
    refused: ({ topics }, refusal) => ({ results: topics.map(({ name }) => ({ name, ...refusal })) }),
  })
}
