import type { Epoch, Millis, NodeId, Offset } from '#base/units.ts'
import { type Uuid, ZERO_UUID } from '#base/uuid.ts'
import { AddRaftVoterRequest, AddRaftVoterResponse } from '#protocol/messages/add-raft-voter.ts'
import { DescribeQuorumRequest, DescribeQuorumResponse } from '#protocol/messages/describe-quorum.ts'
import { RemoveRaftVoterRequest, RemoveRaftVoterResponse } from '#protocol/messages/remove-raft-voter.ts'
import type { Client } from '../client.ts'
import { ClientError, throwIfError } from '../errors.ts'

const DESCRIBE_QUORUM = { request: DescribeQuorumRequest, response: DescribeQuorumResponse }
const ADD_VOTER = { request: AddRaftVoterRequest, response: AddRaftVoterResponse }
const REMOVE_VOTER = { request: RemoveRaftVoterRequest, response: RemoveRaftVoterResponse }

export interface QuorumReplica {
  readonly id: NodeId
  /** All zero where the cluster is too old to tell, or knows its voters by a list. */
  readonly directoryId: Uuid
  readonly logEndOffset: Offset
  /** -1 where it is not known; the leader's is. */
  readonly lastFetchTimestamp: Millis
  readonly lastCaughtUpTimestamp: Millis
}

export interface Listener {
  readonly name: string
  readonly host: string
  readonly port: number
}

export interface QuorumDescription {
  readonly leaderId: NodeId
  readonly leaderEpoch: Epoch
  readonly highWatermark: Offset
  readonly voters: readonly QuorumReplica[]
  readonly observers: readonly QuorumReplica[]
  /** Where the controllers listen, as far as the cluster tells. */
  readonly nodes: readonly { readonly id: NodeId; readonly listeners: readonly Listener[] }[]
}

/** The metadata log's leader and how far everybody else is (KIP-595, KIP-836). Rejects with NOT_CONTROLLER while none leads. */
export async function describeQuorum(
  client: Client,
  options: { readonly timeoutMs?: Millis } = {},
): Promise<QuorumDescription> {
  const answer = await client.ask(
    'first',
    DESCRIBE_QUORUM,
    { topics: [{ topicName: '__cluster_metadata', partitions: [{ partitionIndex: 0 }] }] },
    {
      ...options,
      check: ({ errorCode, errorMessage, topics }) => {
        throwIfError(errorCode, 'the quorum', errorMessage)
        const partition = topics[0]?.partitions[0]
        throwIfError(partition?.errorCode ?? 0, 'the quorum', partition?.errorMessage)
      },
    },
  )
  const quorum = answer.topics[0]?.partitions[0]
  return {
    leaderId: quorum?.leaderId ?? -1,
    leaderEpoch: quorum?.leaderEpoch ?? -1,
    highWatermark: quorum?.highWatermark ?? -1,
    voters: (quorum?.currentVoters ?? []).map(toReplica),
    observers: (quorum?.observers ?? []).map(toReplica),
    nodes: answer.nodes.map(({ nodeId: id, listeners }) => ({ id, listeners })),
  }
}

function toReplica(answer: {
  readonly replicaId: number
  readonly replicaDirectoryId: Uuid
  readonly logEndOffset: number
  readonly lastFetchTimestamp: number
  readonly lastCaughtUpTimestamp: number
}): QuorumReplica {
  return {
    id: answer.replicaId,
    directoryId: answer.replicaDirectoryId,
    logEndOffset: answer.logEndOffset,
    lastFetchTimestamp: answer.lastFetchTimestamp,
    lastCaughtUpTimestamp: answer.lastCaughtUpTimestamp,
  }
}

export interface NewVoter {
  readonly id: NodeId
  readonly directoryId: Uuid
  /** Where the other voters reach it; the names are those of controller.listener.names. */
  readonly listeners: readonly Listener[]
}

/** Makes a controller that follows the metadata log a voter (KIP-853). Resolves when that is committed. */
export async function addVoter(client: Client, voter: NewVoter): Promise<void> {
  const clusterId = await clusterIdOf(client)
  await client.ask(
    'any',
    ADD_VOTER,
    {
      clusterId,
      timeoutMs: client.options.requestTimeoutMs,
      voterId: voter.id,
      voterDirectoryId: voter.directoryId,
      listeners: voter.listeners,
    },
    { check: ({ errorCode, errorMessage }) => throwIfError(errorCode, `voter ${voter.id}`, errorMessage) },
  )
}

/** Takes a controller's vote (KIP-853); it may go on following the log. The leader's too, which then steps down. */
export async function removeVoter(
  client: Client,
  voter: { readonly id: NodeId; readonly directoryId: Uuid },
): Promise<void> {
  const clusterId = await clusterIdOf(client)
  await client.ask(
    'any',
    REMOVE_VOTER,
    { clusterId, voterId: voter.id, voterDirectoryId: voter.directoryId },
    { check: ({ errorCode, errorMessage }) => throwIfError(errorCode, `voter ${voter.id}`, errorMessage) },
  )
}

/** The replica with this id among those who do `what`. Throws where there is none, with `cure`, or its folder must be named. */
export function quorumReplica(
  replicas: readonly QuorumReplica[],
  id: NodeId,
  directoryId: Uuid | undefined,
  what: string,
  cure?: string,
): QuorumReplica {
  const found = replicas.filter(each => each.id === id && (directoryId ?? each.directoryId) === each.directoryId)
  const [replica, another] = found
  if (replica === undefined) {
    const ids = replicas
      .map(each => each.id)
      .sort((a, b) => a - b)
      .join(', ')
    throw new ClientError('VOTER_NOT_FOUND', `no node ${id} ${what}`, {
      hint: cure ?? (ids === '' ? `none ${what}` : `${ids} ${replicas.length === 1 ? 'does' : 'do'}`),
    })
  }
  if (another !== undefined) {
    throw new ClientError('INVALID_ARGUMENT', `node ${id} has more than one folder`, {
      hint: `say which with --directory: ${found.map(each => each.directoryId).join(', ')}`,
    })
  }
  return replica
}

export function hasDirectory({ directoryId }: QuorumReplica): boolean {
  return directoryId !== ZERO_UUID
}

async function clusterIdOf(client: Client): Promise<string | null> {
  await client.retrying(() => client.metadata.refresh([]))
  return client.metadata.clusterId
}
