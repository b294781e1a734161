import type { Epoch, Millis, NodeId } from '#base/units.ts'
import { METADATA_TOPIC_ID } from '#base/uuid.ts'
import { CLUSTER_METADATA_TOPIC } from '#core/metadata/topic-name.ts'
import type { Position } from '#core/raft/log-view.ts'
import type * as raft from '#core/raft/messages.ts'
import type { VoterEndpoint } from '#core/raft/quorum.ts'
import type { Channel } from '#network/channel.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode, errorOf } from '#protocol/errors.ts'
import type { Address } from '#world/world.ts'
import { type FollowedRecords, followedRecords } from './followed.ts'

const VALID: Position = { kind: 'valid' }

/** An answer that cannot be used: refused as a whole, or not what was asked for. */
export class ExchangeError extends Error {
  override readonly name = 'ExchangeError'
  readonly errorCode: number

  constructor(errorCode: number, message: string) {
    super(message)
    this.errorCode = errorCode
  }
}

export interface Asker {
  readonly nodeId: NodeId
  /** Null while this node belongs to no cluster. */
  readonly clusterId: string | null
  /** Where this node's controller listens. */
  readonly endpoints: readonly VoterEndpoint[]
  readonly requestTimeoutMs: Millis
  /** So much of the log is fetched at once. */
  readonly fetchBytes: number
}

export interface Exchanged {
  readonly response: raft.RaftResponse
  /** What came with a Fetch's answer. */
  readonly records?: FollowedRecords
  /** Where nodes are reached, as the other side says. */
  readonly nodes: readonly (Address & { readonly nodeId: NodeId })[]
}

/**
 * One question of raft over the wire, in the highest version that both sides know. Rejects with a ChannelError or an
 * ExchangeError; error codes that raft itself judges are in the response.
 */
export async function exchange(channel: Channel, message: raft.RaftRequest, asker: Asker): Promise<Exchanged> {
  switch (message.kind) {
    case 'vote':
      return await vote(channel, message.vote, asker)
    case 'begin-epoch':
      return await beginEpoch(channel, message.begin, asker)
    case 'end-epoch':
      return await endEpoch(channel, message.end, asker)
    case 'fetch':
      return await fetch(channel, message.fetch, asker)
    case 'update-voter':
      return await updateVoter(channel, message, asker)
    case 'add-voter':
      return await addVoter(channel, message, asker)
    case 'remove-voter':
      return await removeVoter(channel, message, asker)
    case 'kraft-range': {
      const { supportedFeatures } = await channel.negotiate()
      const range = supportedFeatures.find(({ name }) => name === 'kraft.version')
      const response = { kind: 'kraft-range', min: range?.minVersion ?? 0, max: range?.maxVersion ?? 0 } as const
      return { response, nodes: [] }
    }
  }
}

async function vote(channel: Channel, request: raft.VoteRequest, asker: Asker): Promise<Exchanged> {
  const { clusterId, requestTimeoutMs: timeoutMs } = asker
  const { epoch, candidate, voter, lastEpoch, endOffset, preVote } = request
  if (preVote && (channel.versionFor(API.Vote.request) ?? 0) < 2) {
    // Who does not know of it would take it for a vote (KIP-996).
    const errorCode = ErrorCode.UNSUPPORTED_VERSION
    return {
      response: { kind: 'vote', answer: { errorCode, leaderId: -1, leaderEpoch: -1, granted: false } },
      nodes: [],
    }
  }
  const body = {
    clusterId,
    voterId: voter.id,
    topics: [
      {
        topicName: CLUSTER_METADATA_TOPIC,
        partitions: [
          {
            partitionIndex: 0,
            replicaEpoch: epoch,
            replicaId: candidate.id,
            replicaDirectoryId: candidate.directoryId,
            voterDirectoryId: voter.directoryId,
            lastOffsetEpoch: lastEpoch,
            lastOffset: endOffset,
            ...(preVote && { preVote }),
          },
        ],
      },
    ],
  }
  const answer = await channel.ask(API.Vote, body, { timeoutMs })
  const partition = partitionOf('Vote', answer.errorCode, answer.topics)
  const { errorCode, leaderId, leaderEpoch, voteGranted: granted } = partition
  return {
    response: { kind: 'vote', answer: { errorCode, leaderId, leaderEpoch, granted } },
    nodes: answer.nodeEndpoints,
  }
}

async function beginEpoch(channel: Channel, request: raft.BeginEpochRequest, asker: Asker): Promise<Exchanged> {
  const { clusterId, endpoints, requestTimeoutMs: timeoutMs } = asker
  const { leaderId, epoch: leaderEpoch, voter } = request
  const partitions = [{ partitionIndex: 0, voterDirectoryId: voter.directoryId, leaderId, leaderEpoch }]
  const topics = [{ topicName: CLUSTER_METADATA_TOPIC, partitions }]
  const body = { clusterId, voterId: voter.id, topics, leaderEndpoints: endpoints }
  const answer = await channel.ask(API.BeginQuorumEpoch, body, { timeoutMs })
  const partition = partitionOf('BeginQuorumEpoch', answer.errorCode, answer.topics)
  return { response: { kind: 'begin-epoch', answer: epochAnswer(partition) }, nodes: answer.nodeEndpoints }
}

async function endEpoch(channel: Channel, request: raft.EndEpochRequest, asker: Asker): Promise<Exchanged> {
  const { clusterId, endpoints, requestTimeoutMs: timeoutMs } = asker
  const { leaderId, epoch: leaderEpoch, successors } = request
  const partition = {
    partitionIndex: 0,
    leaderId,
    leaderEpoch,
    preferredSuccessors: successors.map(({ id }) => id),
    preferredCandidates: successors.map(({ id, directoryId }) => ({
      candidateId: id,
      candidateDirectoryId: directoryId,
    })),
  }
  const topics = [{ topicName: CLUSTER_METADATA_TOPIC, partitions: [partition] }]
  const answer = await channel.ask(API.EndQuorumEpoch, { clusterId, topics, leaderEndpoints: endpoints }, { timeoutMs })
  const answered = partitionOf('EndQuorumEpoch', answer.errorCode, answer.topics)
  return { response: { kind: 'end-epoch', answer: epochAnswer(answered) }, nodes: answer.nodeEndpoints }
}

async function fetch(channel: Channel, request: raft.RaftFetch, asker: Asker): Promise<Exchanged> {
  const { replicaId, directoryId, currentLeaderEpoch, offset, lastFetchedEpoch, highWatermark, maxWaitMs } = request
  const partition = {
    partition: 0,
    currentLeaderEpoch,
    fetchOffset: offset,
    lastFetchedEpoch,
    partitionMaxBytes: asker.fetchBytes,
    replicaDirectoryId: directoryId,
    ...(Number.isFinite(highWatermark) && { highWatermark }),
  }
  const version = channel.versionFor(API.Fetch.request) ?? 0
  const byId = version >= 13
  const body = {
    clusterId: asker.clusterId,
    ...(version >= 15 ? { replicaState: { replicaId } } : { replicaId }),
    maxWaitMs,
    minBytes: 0,
    maxBytes: asker.fetchBytes,
    topics: [
      { ...(byId ? { topicId: METADATA_TOPIC_ID } : { topic: CLUSTER_METADATA_TOPIC }), partitions: [partition] },
    ],
  }
  const answer = await channel.ask(API.Fetch, body, { timeoutMs: maxWaitMs + asker.requestTimeoutMs })
  const answered = partitionOf('Fetch', answer.errorCode, answer.responses)
  const { errorCode, highWatermark: known, currentLeader, records } = answered
  const nodes = answer.nodeEndpoints.map(({ nodeId, host, port }) => ({ nodeId, host, port }))
  const position = positionOf(answered)
  let followed: FollowedRecords | undefined
  if (errorCode === ErrorCode.NONE && position.kind === 'valid' && records !== null && records.length > 0) {
    const taken = followedRecords(records, offset, Math.max(currentLeaderEpoch, currentLeader.leaderEpoch))
    if (typeof taken === 'string') throw new ExchangeError(ErrorCode.CORRUPT_MESSAGE, taken)
    if (taken.endOffset > offset) followed = taken
  }
  const endOffset = followed?.endOffset ?? offset
  const { leaderId, leaderEpoch } = currentLeader
  return {
    response: {
      kind: 'fetch',
      answer: { errorCode, position, upTo: endOffset, highWatermark: known, leaderId, leaderEpoch },
      endOffset,
    },
    ...(followed !== undefined && { records: followed }),
    nodes,
  }
}

function positionOf({
  divergingEpoch,
  snapshotId,
}: {
  readonly divergingEpoch: { readonly epoch: number; readonly endOffset: number }
  readonly snapshotId: { readonly epoch: number; readonly endOffset: number }
}): Position {
  if (divergingEpoch.epoch >= 0 && divergingEpoch.endOffset >= 0) return { kind: 'diverging', ...divergingEpoch }
  if (snapshotId.epoch >= 0 && snapshotId.endOffset >= 0) return { kind: 'snapshot', id: snapshotId }
  return VALID
}

async function updateVoter(
  channel: Channel,
  { epoch, voter }: Extract<raft.RaftRequest, { kind: 'update-voter' }>,
  { clusterId, requestTimeoutMs: timeoutMs }: Asker,
): Promise<Exchanged> {
  const { id, directoryId, endpoints, kraftVersion } = voter
  const body = {
    clusterId,
    currentLeaderEpoch: epoch,
    voterId: id,
    voterDirectoryId: directoryId,
    listeners: endpoints,
    kRaftVersionFeature: { minSupportedVersion: kraftVersion.min, maxSupportedVersion: kraftVersion.max },
  }
  const { errorCode, currentLeader } = await channel.ask(API.UpdateRaftVoter, body, { timeoutMs })
  const { leaderId, leaderEpoch, host, port } = currentLeader
  return {
    response: { kind: 'update-voter', answer: { errorCode, leaderId, leaderEpoch } },
    nodes: leaderId >= 0 && host !== '' ? [{ nodeId: leaderId, host, port }] : [],
  }
}

async function addVoter(
  channel: Channel,
  { voter }: Extract<raft.RaftRequest, { kind: 'add-voter' }>,
  { clusterId, requestTimeoutMs: timeoutMs }: Asker,
): Promise<Exchanged> {
  const { id: voterId, directoryId: voterDirectoryId, endpoints: listeners } = voter
  const canGoOn = (channel.versionFor(API.AddRaftVoter.request) ?? 0) >= 1
  const body = {
    clusterId,
    timeoutMs,
    voterId,
    voterDirectoryId,
    listeners,
    ...(canGoOn && { ackWhenCommitted: false }),
  }
  const { errorCode, errorMessage: message } = await channel.ask(API.AddRaftVoter, body, { timeoutMs })
  return { response: { kind: 'add-voter', answer: { errorCode, message } }, nodes: [] }
}

async function removeVoter(
  channel: Channel,
  { voter }: Extract<raft.RaftRequest, { kind: 'remove-voter' }>,
  { clusterId, requestTimeoutMs: timeoutMs }: Asker,
): Promise<Exchanged> {
  const body = { clusterId, voterId: voter.id, voterDirectoryId: voter.directoryId }
  const { errorCode, errorMessage: message } = await channel.ask(API.RemoveRaftVoter, body, { timeoutMs })
  return { response: { kind: 'remove-voter', answer: { errorCode, message } }, nodes: [] }
}

function epochAnswer(partition: { errorCode: number; leaderId: NodeId; leaderEpoch: Epoch }): raft.EpochAnswer {
  const { errorCode, leaderId, leaderEpoch } = partition
  return { errorCode, leaderId, leaderEpoch }
}

function partitionOf<P>(what: string, errorCode: number, topics: readonly { readonly partitions: readonly P[] }[]): P {
  if (errorCode !== ErrorCode.NONE) {
    throw new ExchangeError(errorCode, `${what} was refused with ${errorOf(errorCode).name}`)
  }
  const partition = topics[0]?.partitions[0]
  if (partition === undefined)
    throw new ExchangeError(ErrorCode.UNKNOWN_SERVER_ERROR, `${what} was answered without a partition`)
  return partition
}
