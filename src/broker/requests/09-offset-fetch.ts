import { type Uuid, ZERO_UUID } from '#base/uuid.ts'
import type { OffsetFetchGroup, OffsetFetchGroupResponse } from '#core/group/commands.ts'
import { offsetFetchGroups, offsetFetchResponse } from '#core/group/offsets.ts'
import { type Call, type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Broker } from '../broker.ts'
import { askGroup } from './coordinated.ts'
import { joined, portionsOf } from './portions.ts'

/**
 * OffsetFetch (9), versions 1-10. What a group, from v8 on several groups, has committed.
 * - No list of topics asks for all (v2). Nothing committed is offset -1, epoch -1, no metadata, no error.
 * - v10: topics by id; an unknown id is UNKNOWN_TOPIC_ID.
 * - What was committed for an earlier topic of the same name is nothing: the coordinator may not have led when that was
 *   deleted. Kafka answers it to who asks by name, who then begins in the middle of the later one.
 */
export function offsetFetch(broker: Broker): ServedApi {
  return serve({
    api: API.OffsetFetch,
    async handle(request, call) {
      const groups = offsetFetchGroups(request, call.apiVersion)
      // All that a group has may be much, and is read once if it is asked for a thousand times.
      const whole = new Map<string, Promise<OffsetFetchGroupResponse>>()
      const fetchOnce = (group: OffsetFetchGroup): Promise<OffsetFetchGroupResponse> => {
        if (group.topics !== null) return fetchGroup(broker, group, call)
        const fetched = whole.get(group.groupId) ?? fetchGroup(broker, group, call)
        whole.set(group.groupId, fetched)
        return fetched
      }
      const answered = await broker.turns.pieces().mapLater(groups, group => fetchOnce(group))
      return offsetFetchResponse(answered, call.apiVersion)
    },
  })
}

type Topic = NonNullable<OffsetFetchGroup['topics']>[number]
const partitionsOf = ({ partitionIndexes }: Topic) => partitionIndexes
const withPartitions = (topic: Topic, partitionIndexes: number[]): Topic => ({ ...topic, partitionIndexes })

/** What names very much is asked for in portions. */
async function fetchGroup(broker: Broker, group: OffsetFetchGroup, call: Call): Promise<OffsetFetchGroupResponse> {
  if (group.topics === null) return await fetchPortion(broker, group, call)
  const answers: (OffsetFetchGroupResponse & { readonly goesOn: boolean })[] = []
  for (const { topics, goesOn } of portionsOf(group.topics, partitionsOf, withPartitions)) {
    if (answers.length > 0) await broker.turns.next()
    answers.push({ ...(await fetchPortion(broker, { ...group, topics }, call)), goesOn })
  }
  const { goesOn: _, ...first } = answers[0] as (typeof answers)[number]
  const topics = joined(answers.map(({ topics, goesOn }) => ({ topics: topics ?? [], goesOn })))
  return answers.length === 1 ? first : { ...first, topics }
}

async function fetchPortion(broker: Broker, group: OffsetFetchGroup, call: Call): Promise<OffsetFetchGroupResponse> {
  const { image } = broker.metadata
  const byId = call.apiVersion >= 10
  const isUnknown = ({ topicId }: { readonly topicId: Uuid }) => byId && image.topic(topicId) === undefined
  const unknown = (group.topics ?? []).filter(isUnknown)
  const idOf = (name: string) => image.topicByName(name)?.id ?? ZERO_UUID
  const topics =
    group.topics
      ?.filter(topic => !isUnknown(topic))
      .map(topic =>
        byId ? { ...topic, name: image.topic(topic.topicId)?.name ?? '' } : { ...topic, topicId: idOf(topic.name) },
      ) ?? null
  const asked = { kind: 'OffsetFetch', groupId: group.groupId, request: { ...group, topics } } as const
  const response = await askGroup(broker, call, asked, error => ({
    groupId: group.groupId,
    errorCode: ErrorCode[error],
    // Below version 2 there is no place for a group's error but at each partition.
    topics: (topics ?? []).map(({ name, topicId, partitionIndexes }) => ({
      name,
      topicId,
      partitions: partitionIndexes.map(index => nothing(index, ErrorCode[error])),
    })),
  }))
  const current = (response.topics ?? []).filter(
    ({ name = '', topicId = ZERO_UUID }) => topicId === ZERO_UUID || [ZERO_UUID, topicId].includes(idOf(name)),
  )
  // What is asked for by name is answered as often, and in the order, as it was named.
  const answered = (topics === null ? joinedByName(current) : current).map(topic =>
    byId && (topic.topicId ?? ZERO_UUID) === ZERO_UUID ? { ...topic, topicId: idOf(topic.name ?? '') } : topic,
  )
  const refused = unknown.map(({ topicId, partitionIndexes }) => ({
    topicId,
    partitions: partitionIndexes.map(index => nothing(index, ErrorCode.UNKNOWN_TOPIC_ID)),
  }))
  // A topic that is gone has no id to be named by.
  const named = byId ? answered.filter(({ topicId }) => topicId !== ZERO_UUID) : answered
  return { ...response, topics: [...named, ...refused] }
}

type AnsweredTopic = NonNullable<OffsetFetchGroupResponse['topics']>[number]

/** Where some was committed for a topic by its id and some by its name alone, that is one topic. */
function joinedByName(topics: readonly AnsweredTopic[]): readonly AnsweredTopic[] {
  const byName = Map.groupBy(topics, ({ name }) => name)
  if (byName.size === topics.length) return topics
  return Array.from(byName.values(), same => ({
    ...(same.find(({ topicId = ZERO_UUID }) => topicId !== ZERO_UUID) ?? same[0]),
    partitions: same.flatMap(({ partitions = [] }) => partitions),
  }))
}

function nothing(partitionIndex: number, errorCode: number) {
  return { partitionIndex, committedOffset: -1, committedLeaderEpoch: -1, metadata: '', errorCode }
}
