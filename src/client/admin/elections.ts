import { ElectLeadersRequest, ElectLeadersResponse } from '#protocol/messages/elect-leaders.ts'
import type { Client } from '../client.ts'
import { brokerError, type ClientError, throwIfError } from '../errors.ts'
import { byTopic, type TopicPartition } from '../per-leader.ts'

const ELECT_LEADERS = { request: ElectLeadersRequest, response: ElectLeadersResponse }

const TYPES = { preferred: 0, unclean: 1 } as const

export interface Election extends TopicPartition {
  /** Undefined where a leader was elected; ELECTION_NOT_NEEDED where it leads already. */
  readonly error: ClientError | undefined
}

/**
 * Elects leaders: `preferred` gives leadership back to first replicas that are in sync, `unclean` gives partitions
 * without a leader any replica that lives, and with it the loss of what only others had (KIP-183, KIP-460).
 *
 * @param partitions all that need it where that is left out.
 */
export async function electLeaders(
  client: Client,
  type: keyof typeof TYPES,
  partitions?: readonly TopicPartition[],
): Promise<Election[]> {
  const topicPartitions =
    partitions === undefined
      ? null
      : byTopic(partitions).map(([topic, list]) => ({ topic, partitions: list.map(({ partition }) => partition) }))
  const answer = await client.ask(
    'any',
    ELECT_LEADERS,
    { electionType: TYPES[type], topicPartitions, timeoutMs: client.options.requestTimeoutMs },
    { check: ({ errorCode }) => throwIfError(errorCode, 'the election') },
  )
  return answer.replicaElectionResults.flatMap(({ topic, partitionResult }) =>
    partitionResult.map(({ partitionId: partition, errorCode, errorMessage }) => {
      const error = brokerError(errorCode, `partition ${topic}-${partition}`, errorMessage)
      return { topic, partition, error }
    }),
  )
}
