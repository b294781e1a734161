import type { Epoch, Millis, Offset } from '#base/units.ts'
import { ListOffsetsRequest, ListOffsetsResponse } from '#protocol/messages/list-offsets.ts'
import type { Client } from '../client.ts'
import { brokerError } from '../errors.ts'
import { perLeader, type TopicPartition } from '../per-leader.ts'

const LIST_OFFSETS = { request: ListOffsetsRequest, response: ListOffsetsResponse }

/** A place in a partition: its first or next offset, the record with the highest time, or the first at or after a time. */
export type OffsetSpec = 'earliest' | 'latest' | 'max-timestamp' | { readonly timestamp: Millis }

const SPECIAL = { earliest: -2, latest: -1, 'max-timestamp': -3 } as const

export interface ListedOffset extends TopicPartition {
  /** -1 if no record is at or after the time. */
  readonly offset: Offset
  /** The record's time, -1 where it is not asked for by time. */
  readonly timestamp: Millis
  readonly leaderEpoch: Epoch
}

/** Offsets of partitions, asked of their leaders. With `committed`, latest is the last stable offset. */
export async function listOffsets(
  client: Client,
  wanted: readonly (TopicPartition & { readonly spec: OffsetSpec })[],
  options: { readonly committed?: boolean } = {},
): Promise<ListedOffset[]> {
  return await perLeader(client, wanted, async (leader, partitions) => {
    const topics = [...Map.groupBy(partitions, each => each.topic)].map(([name, list]) => ({
      name,
      partitions: list.map(({ partition, leaderEpoch, spec }) => ({
        partitionIndex: partition,
        currentLeaderEpoch: leaderEpoch,
        timestamp: typeof spec === 'string' ? SPECIAL[spec] : spec.timestamp,
      })),
    }))
    const body = { replicaId: -1, isolationLevel: options.committed === true ? 1 : 0, topics, timeoutMs: 30_000 }
    const answer = await leader.ask(LIST_OFFSETS, body)
    return answer.topics.flatMap(({ name: topic, partitions: answers }) =>
      answers.map(({ partitionIndex: partition, errorCode, offset, timestamp, leaderEpoch }) => {
        const error = brokerError(errorCode, `partition ${topic}-${partition}`)
        if (error !== undefined) throw error
        return { topic, partition, offset, timestamp, leaderEpoch }
      }),
    )
  })
}
