import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { OffsetDeleteResponse } from '#protocol/messages/offset-delete.ts'
import type { InputOf } from '#protocol/schema.ts'
import type { Broker } from '../broker.ts'
import { coordinated } from './coordinated.ts'

/** OffsetDelete (47), version 0. Offsets of topics that the group does not subscribe to. */
export function offsetDelete(broker: Broker): ServedApi {
  return serve({
    api: API.OffsetDelete,
    handle(request, call): Promise<InputOf<typeof OffsetDeleteResponse>> {
      const { image } = broker.metadata
      const exists = (topic: string, index: number) => image.topicByName(topic)?.partitions[index] !== undefined
      const known = request.topics
        .map(({ name, partitions }) => ({
          name,
          partitions: partitions.filter(({ partitionIndex }) => exists(name, partitionIndex)),
        }))
        .filter(({ partitions }) => partitions.length > 0)
      const missing = request.topics
        .map(({ name, partitions }) => ({
          name,
          partitions: partitions
            .filter(({ partitionIndex }) => !exists(name, partitionIndex))
            .map(({ partitionIndex }) => ({ partitionIndex, errorCode: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION })),
        }))
        .filter(({ partitions }) => partitions.length > 0)
      const command = (id: number) =>
        ({ kind: 'OffsetDelete', call: id, version: call.apiVersion, request: { ...request, topics: known } }) as const
      return coordinated<InputOf<typeof OffsetDeleteResponse>>(
        async () => {
          const { response } = await broker.groups.ask(request.groupId, call.caller, command)
          if ((response.errorCode ?? 0) !== 0) return response
          const others = new Map<string, (typeof missing)[number]>()
          for (const topic of missing) {
            const known = others.get(topic.name)
            if (known === undefined) others.set(topic.name, topic)
            else for (const partition of topic.partitions) known.partitions.push(partition)
          }
          const topics = (response.topics ?? []).map(topic => {
            const gone = others.get(topic.name ?? '')
            others.delete(topic.name ?? '')
            return gone === undefined
              ? topic
              : { ...topic, partitions: [...(topic.partitions ?? []), ...gone.partitions] }
          })
          return { ...response, topics: [...topics, ...others.values()] }
        },
        error => ({ errorCode: ErrorCode[error] }),
      )
    },
  })
}
