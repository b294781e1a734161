import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { OffsetDeleteRequest, OffsetDeleteResponse } from '#protocol/messages/offset-delete.ts'
import type { InputOf } from '#protocol/schema.ts'
import type { Broker } from '../broker.ts'
import { askGroup } from './coordinated.ts'
import { joined, portionsOf } from './portions.ts'

/** OffsetDelete (47), version 0. Offsets of topics that the group does not subscribe to. */
export function offsetDelete(broker: Broker): ServedApi {
  return serve({
    api: API.OffsetDelete,
    async handle(request, call): Promise<InputOf<typeof OffsetDeleteResponse>> {
      const { image } = broker.metadata
      const pieces = broker.turns.pieces()
      const known: Topic[] = []
      const missing = new Map<string, PartitionResponse[]>()
      for (const { name, partitions } of request.topics) {
        const wait = pieces.next(1 + (partitions.length >> 2))
        if (wait) await wait
        const found = image.topicByName(name)?.partitions ?? []
        const there = partitions.filter(({ partitionIndex }) => found[partitionIndex] !== undefined)
        if (there.length > 0) known.push({ name, partitions: there })
        if (there.length === partitions.length) continue
        const gone = missing.get(name) ?? []
        missing.set(name, gone)
        for (const { partitionIndex } of partitions) {
          if (found[partitionIndex] === undefined) {
            gone.push({ partitionIndex, errorCode: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION })
          }
        }
      }
      const ask = (topics: Topic[]) =>
        askGroup(
          broker,
          call,
          { kind: 'OffsetDelete', groupId: request.groupId, request: { ...request, topics } },
          error => ({ errorCode: ErrorCode[error] }),
        )
      const answers: { topics: readonly TopicResponse[]; goesOn: boolean }[] = []
      for (const { topics, goesOn } of portionsOf(known, partitionsOf, withPartitions)) {
        const response = await ask(topics)
        if ((response.errorCode ?? 0) !== 0) return response
        answers.push({ topics: response.topics ?? [], goesOn })
        await broker.turns.next()
      }
      const merged = await pieces.map(joined(answers), topic => {
        const gone = missing.get(topic.name ?? '')
        missing.delete(topic.name ?? '')
        return gone === undefined ? topic : { ...topic, partitions: [...(topic.partitions ?? []), ...gone] }
      })
      for (const [name, partitions] of missing) merged.push({ name, partitions })
      return { errorCode: ErrorCode.NONE, topics: merged }
    },
  })
}

type Topic = OffsetDeleteRequest['topics'][number]
type TopicResponse = NonNullable<InputOf<typeof OffsetDeleteResponse>['topics']>[number]
type PartitionResponse = NonNullable<TopicResponse['partitions']>[number]

const partitionsOf = ({ partitions }: Topic) => partitions
const withPartitions = (topic: Topic, partitions: Topic['partitions']): Topic => ({ ...topic, partitions })
