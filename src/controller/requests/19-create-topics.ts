import type { ServedApi } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Controller } from '../controller.ts'
import { command } from './command.ts'

/**
 * CreateTopics (19), versions 2-7. One batch of records for all topics of the request that are valid.
 * - The machine draws nothing by chance: each topic's id is drawn here.
 * - timeout.ms is not waited by: the answer comes with the commit, or NOT_CONTROLLER when there is none.
 * - No quota on mutations (KIP-599) yet.
 */
export function createTopics(controller: Controller): ServedApi {
  return command(controller, {
    api: API.CreateTopics,
    command: (request, { apiVersion: version }) => ({
      kind: 'create-topics',
      request,
      version,
      ids: request.topics.map(() => controller.freshId()),
    }),
    refused: ({ topics }, refusal) => ({ topics: topics.map(({ name }) => ({ name, ...refusal })) }),
  })
}
