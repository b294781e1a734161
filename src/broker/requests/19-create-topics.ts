import { failed } from '#core/metadata/answer.ts'
import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Broker } from '../broker.ts'
import { isTaken } from './forwarded.ts'

/** CreateTopics (19), versions 2-7. Decided by the active controller; answered when this broker knows the topics too. */
export function createTopics(broker: Broker): ServedApi {
  return serve({
    api: API.CreateTopics,
    barrier: true,
    async handle(request, call) {
      const answer = await broker.forwarding.forward(API.CreateTopics, call, request, code => ({
        topics: request.topics.map(({ name }) => ({ name, ...failed(code) })),
      }))
      if (!request.validateOnly) {
        const made = (answer.topics ?? []).filter(isTaken)
        await broker.metadata.caughtUp(() =>
          made.every(({ name }) => broker.metadata.image.topicByName(name ?? '') !== undefined),
        )
      }
      return answer
    },
  })
}
