import { failed } from '#core/metadata/answer.ts'
import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Broker } from '../broker.ts'
import { isTaken } from './forwarded.ts'

/**
 * DeleteTopics (20), versions 1-6. Decided by the active controller; answered when this broker has forgotten the topics.
 * - v5: error messages. v6: topics by id.
 */
export function deleteTopics(broker: Broker): ServedApi {
  return serve({
    api: API.DeleteTopics,
    barrier: true,
    async handle(request, call) {
      const answer = await broker.forwarding.forward(API.DeleteTopics, call, request, code => ({
        responses: [...request.topicNames.map(name => ({ name })), ...request.topics].map(topic => ({
          ...topic,
          ...(call.apiVersion >= 5 ? failed(code) : { errorCode: code }),
        })),
      }))
      const gone = (answer.responses ?? []).filter(isTaken)
      await broker.metadata.caughtUp(() =>
        gone.every(({ topicId }) => broker.metadata.image.topic(topicId ?? '') === undefined),
      )
      return answer
    },
  })
}
