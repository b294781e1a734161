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
      // Before v6 the answer says nothing of ids, and by then the name may be another topic's.
      const ids = new Map(request.topicNames.map(name => [name, broker.metadata.image.topicIds.get(name)]))
      const answer = await broker.forwarding.forward(API.DeleteTopics, call, request, code => ({
        responses: [...request.topicNames.map(name => ({ name })), ...request.topics].map(topic => ({
          ...topic,
          ...(call.apiVersion >= 5 ? failed(code) : { errorCode: code }),
        })),
      }))
      const gone = (answer.responses ?? []).filter(isTaken)
      const goneIds = gone.map(({ name, topicId = '' }) => (call.apiVersion >= 6 ? topicId : ids.get(name ?? '')) ?? '')
      await broker.metadata.caughtUp(() => goneIds.every(id => broker.metadata.image.topic(id) === undefined))
      return answer
    },
  })
}
