import { ZERO_UUID } from '#base/uuid.ts'
import { type Call, type ServedApi, serve } from '#network/service.ts'
import type { Pieces } from '#network/turns.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode, type ErrorName } from '#protocol/errors.ts'
import type { OffsetCommitRequest, OffsetCommitResponse } from '#protocol/messages/offset-commit.ts'
import type { InputOf } from '#protocol/schema.ts'
import type { Broker } from '../broker.ts'
import { askGroup } from './coordinated.ts'
import { portionsOf } from './portions.ts'

/**
 * OffsetCommit (8), versions 2-10. Written to the group's log before it is answered.
 * - Topics and partitions that do not exist are refused one by one; the others are committed.
 * - An offset beyond 2^53 would be stored rounded: OFFSET_OUT_OF_RANGE. Kafka stores it.
 * - v6: leader epochs. v10: topics by id (UNKNOWN_TOPIC_ID).
 */
export function offsetCommit(broker: Broker): ServedApi {
  return serve({
    api: API.OffsetCommit,
    async handle(request, call) {
      const pieces = broker.turns.pieces()
      const { known, refused } = await split(broker, request, call.apiVersion, pieces)
      const commits: Promise<readonly TopicResponse[]>[] = []
      if (known.length > 0) {
        for (const { topics } of portionsOf(known, partitionsOf, withPartitions)) {
          if (commits.length > 0) await broker.turns.next()
          commits.push(commit(broker, { ...request, topics }, call))
        }
      }
      const answered = (await Promise.all(commits)).flat()
      return { topics: await merge(request, call.apiVersion, answered.concat(refused), pieces) }
    },
  })
}

type Topic = OffsetCommitRequest['topics'][number]
type TopicResponse = NonNullable<InputOf<typeof OffsetCommitResponse>['topics']>[number]

const partitionsOf = ({ partitions }: Topic) => partitions
const withPartitions = (topic: Topic, partitions: Topic['partitions']): Topic => ({ ...topic, partitions })

async function commit(broker: Broker, request: OffsetCommitRequest, call: Call): Promise<readonly TopicResponse[]> {
  const asked = { kind: 'OffsetCommit', groupId: request.groupId, request } as const
  const { topics = [] } = await askGroup(broker, call, asked, error => ({
    topics: request.topics.map(topic => refuse(topic, error)),
  }))
  return topics
}

/** What exists goes on to the coordinator, with its name and its id. */
async function split(
  broker: Broker,
  request: OffsetCommitRequest,
  version: number,
  pieces: Pieces,
): Promise<{ known: Topic[]; refused: TopicResponse[] }> {
  const { image } = broker.metadata
  const known: Topic[] = []
  const refused: TopicResponse[] = []
  for (const topic of request.topics) {
    const wait = pieces.next(1 + (topic.partitions.length >> 2))
    if (wait) await wait
    const found = version >= 10 ? image.topic(topic.topicId) : image.topicByName(topic.name)
    if (found === undefined) {
      refused.push(refuse(topic, version >= 10 ? 'UNKNOWN_TOPIC_ID' : 'UNKNOWN_TOPIC_OR_PARTITION'))
      continue
    }
    const isExact = ({ committedOffset }: Topic['partitions'][number]) => committedOffset < Number.MAX_SAFE_INTEGER
    const there = topic.partitions.filter(({ partitionIndex }) => found.partitions[partitionIndex] !== undefined)
    const exists = there.filter(isExact)
    const beyond = there.filter(partition => !isExact(partition))
    if (beyond.length > 0) refused.push(refuse({ ...topic, partitions: beyond }, 'OFFSET_OUT_OF_RANGE'))
    const missing = topic.partitions.filter(({ partitionIndex }) => found.partitions[partitionIndex] === undefined)
    if (missing.length > 0) refused.push(refuse({ ...topic, partitions: missing }, 'UNKNOWN_TOPIC_OR_PARTITION'))
    if (exists.length > 0) known.push({ name: found.name, topicId: found.id, partitions: exists })
  }
  return { known, refused }
}

function refuse(topic: Topic, error: ErrorName): TopicResponse {
  const partitions = topic.partitions.map(({ partitionIndex }) => ({ partitionIndex, errorCode: ErrorCode[error] }))
  return { name: topic.name, topicId: topic.topicId, partitions }
}

/** In the order of the request. */
async function merge(
  request: OffsetCommitRequest,
  version: number,
  answered: readonly TopicResponse[],
  pieces: Pieces,
): Promise<TopicResponse[]> {
  // A partition that is named twice is answered twice, in order.
  const codes = new Map<string, number[]>()
  const byId = version >= 10
  for (const topic of answered) {
    for (const partition of topic.partitions ?? []) {
      const wait = pieces.next()
      if (wait) await wait
      const key = `${byId ? topic.topicId : topic.name}:${partition.partitionIndex}`
      const known = codes.get(key)
      if (known === undefined) codes.set(key, [partition.errorCode ?? ErrorCode.NONE])
      else known.push(partition.errorCode ?? ErrorCode.NONE)
    }
  }
  // Taken from the end, which costs the same for each.
  for (const each of codes.values()) each.reverse()
  const topics: TopicResponse[] = []
  for (const { name, topicId, partitions } of request.topics) {
    if (partitions.length === 0) continue
    const merged = await pieces.map(partitions, ({ partitionIndex }) => ({
      partitionIndex,
      errorCode: codes.get(`${byId ? topicId : name}:${partitionIndex}`)?.pop() ?? ErrorCode.UNKNOWN_SERVER_ERROR,
    }))
    topics.push({ name, topicId: byId ? topicId : ZERO_UUID, partitions: merged })
  }
  return topics
}
