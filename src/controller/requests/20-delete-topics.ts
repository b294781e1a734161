import type { ServedApi } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Controller } from '../controller.ts'
import { command } from './command.ts'

/**
 * DeleteTopics (20), versions 1-6. By name, from v6 also by id (KIP-516).
 */
export function deleteTopics(controller: Controller): ServedApi {
  return command(controller, {
    api: API.DeleteTopics,
    command: (request, { apiVersion: version }) => ({ kind: 'delete-topics', request, version }),
    refused: ({ topicNames, topics }, refusal) => ({
      responses: [
        ...topicNames.map(name => ({ name, ...refusal })),
        ...topics.map(({ name, topicId }) => ({ name, topicId, ...refusal })),
      ],
    }),
  })
}
