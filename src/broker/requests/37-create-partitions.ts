import { failed } from '#core/metadata/answer.ts'
import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Broker } from '../broker.ts'
import { isTaken } from './forwarded.ts'

/** CreatePartitions (37), versions 0-3. Decided by the active controller; answered when this broker knows them too. */
export function createPartitions(broker: Broker): ServedApi {
  return serve({
    api: API.CreatePartitions,
    barrier: true,
    async handle(request, call) {
      const answer = await broker.forwarding.forward(API.CreatePartitions, call, request, code => ({
        results: request.topics.map(({ name }) => ({ name, ...failed(code) })),
      }))
      if (!request.validateOnly) {
        const made = new Set((answer.results ?? []).filter(isTaken).map(({ name }) => name))
        const wanted = request.topics.filter(({ name }) => made.has(name))
        const isKnown = ({ name, count }: (typeof wanted)[number]) =>
          (broker.metadata.image.topicByName(name)?.partitions.length ?? count) >= count
        await broker.metadata.caughtUp(() => wanted.every(isKnown))
      }
      return answer
    },
  })
}
