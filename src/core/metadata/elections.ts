import type { NodeId } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { ElectLeadersRequest, ElectLeadersResponse } from '#protocol/messages/elect-leaders.ts'
import type { InputOf } from '#protocol/schema.ts'
import { DONE, failed, type Outcome, quoted } from './answer.ts'
import type { ControllerState } from './controller-state.ts'
import type { TopicImage } from './image.ts'
import { NO_LEADER, partitionChange } from './partition-change.ts'
import { directoryOf, type PartitionImage } from './partition-image.ts'
import type { MetadataRecord } from './record.ts'

export interface BrokerMove {
  /** Leave every ISR and lead nothing. */
  readonly leaving?: ReadonlySet<NodeId>
  /** In which directories those who leave have left what they had: there they are not eligible either. */
  readonly lacking?: (directory: Uuid) => boolean
  /** Counts as alive although the image still has it fenced. */
  readonly joining?: NodeId
  /** Came back without having stopped properly, so it may lack what it had acknowledged. */
  readonly unclean?: NodeId
  /** Directories that failed; the replicas there leave, and may lack what was not synced when they come back. */
  readonly offlineDirs?: { readonly brokerId: NodeId; readonly dirs: ReadonlySet<Uuid> }
  /** Directories that are online again, which the image does not know yet. */
  readonly onlineDirs?: { readonly brokerId: NodeId; readonly dirs: ReadonlySet<Uuid> }
}

/** The changes of all partitions that follow when brokers or directories come or go. */
export function electionsFor(state: ControllerState, move: BrokerMove): MetadataRecord[] {
  const { leaving, lacking, joining, unclean, offlineDirs, onlineDirs } = move
  const records: MetadataRecord[] = []
  const mayLead = (id: NodeId) =>
    id !== unclean && !(leaving?.has(id) ?? false) && (id === joining || state.isActive(id))
  const isOffline = (partition: PartitionImage, id: NodeId): boolean =>
    offlineDirs?.brokerId === id && offlineDirs.dirs.has(directoryOf(partition, id) ?? '')
  const leavesFrom = (partition: PartitionImage, id: NodeId): boolean =>
    id === unclean || (leaving?.has(id) ?? false) || isOffline(partition, id)
  const isOnlineAgain = (partition: PartitionImage, id: NodeId): boolean =>
    onlineDirs?.brokerId === id && onlineDirs.dirs.has(directoryOf(partition, id) ?? '')
  const isLacking = (partition: PartitionImage, id: NodeId): boolean =>
    id === unclean ||
    isOffline(partition, id) ||
    (lacking !== undefined && (leaving?.has(id) ?? false) && lacking(directoryOf(partition, id) ?? ''))
  const isTouched = (partition: PartitionImage): boolean => {
    if ((joining !== undefined || onlineDirs !== undefined) && partition.leader === NO_LEADER) return true
    for (const id of partition.eligibleLeaderReplicas) if (isLacking(partition, id)) return true
    for (const id of partition.isr) if (leavesFrom(partition, id)) return true
    return false
  }
  for (const topic of state.image.topics.values()) {
    for (const [index, partition] of topic.partitions.entries()) {
      if (!isTouched(partition)) continue
      const leaves = (id: NodeId): boolean => leavesFrom(partition, id)
      const base = state.target(topic, index, partition, id => mayLead(id) && !leaves(id))
      const change = partitionChange({
        ...base,
        mayLead: id => base.mayLead(id) || (isOnlineAgain(partition, id) && mayLead(id)),
        isr: partition.isr.filter(id => !leaves(id)),
        uncleanShutdown: id => isLacking(partition, id),
      })
      if (change !== undefined) records.push(change)
    }
  }
  return records
}

export function hasLeaderships(state: ControllerState, brokerId: NodeId): boolean {
  for (const topic of state.image.topics.values()) {
    if (topic.partitions.some(partition => partition.leader === brokerId)) return true
  }
  return false
}

/** Gives leadership back to first replicas that are in sync. */
export function preferredElections(state: ControllerState, recordsMax: number): MetadataRecord[] {
  const records: MetadataRecord[] = []
  for (const topic of state.image.topics.values()) {
    for (const [index, partition] of topic.partitions.entries()) {
      if (partition.leader === NO_LEADER || partition.leader === partition.replicas[0]) continue
      if (records.length >= recordsMax) return records
      const change = partitionChange({ ...state.target(topic, index, partition), election: 'preferred' })
      if (change !== undefined) records.push(change)
    }
  }
  return records
}

/** Others lead what those do whom nobody dials any more, where they can. */
export function electionsOfReached(state: ControllerState): MetadataRecord[] {
  const records: MetadataRecord[] = []
  for (const topic of state.image.topics.values()) {
    for (const [index, partition] of topic.partitions.entries()) {
      if (partition.leader === NO_LEADER || state.liveness.isReached(partition.leader)) continue
      const change = partitionChange(state.target(topic, index, partition))
      if (change !== undefined) records.push(change)
    }
  }
  return records
}

/** Tries again for partitions without a leader: their topic may allow an unclean election by now. */
export function leaderlessElections(state: ControllerState): MetadataRecord[] {
  const records: MetadataRecord[] = []
  for (const topic of state.image.topics.values()) {
    for (const [index, partition] of topic.partitions.entries()) {
      if (partition.leader !== NO_LEADER) continue
      const change = partitionChange(state.target(topic, index, partition))
      if (change !== undefined) records.push(change)
    }
  }
  return records
}

const PREFERRED = 0
const UNCLEAN = 1

/** ElectLeaders: KIP-183, KIP-460. */
export function electLeaders(
  state: ControllerState,
  request: ElectLeadersRequest,
): { records: MetadataRecord[]; response: InputOf<typeof ElectLeadersResponse> } {
  const { electionType, topicPartitions } = request
  if (electionType !== PREFERRED && electionType !== UNCLEAN) {
    const { errorCode, errorMessage } = failed(ErrorCode.INVALID_REQUEST)
    const replicaElectionResults = (topicPartitions ?? []).map(({ topic, partitions }) => ({
      topic,
      partitionResult: partitions.map(partitionId => ({ partitionId, errorCode, errorMessage })),
    }))
    return { records: [], response: { errorCode, replicaElectionResults } }
  }
  const records: MetadataRecord[] = []
  const one = (name: string, topic: TopicImage | undefined, partitionId: number) => ({
    partitionId,
    ...electOne(state, name, topic, partitionId, electionType, records),
  })
  const replicaElectionResults =
    topicPartitions === null
      ? [...state.image.topics.values()].map(topic => ({
          topic: topic.name,
          partitionResult: topic.partitions
            .map((_, index) => one(topic.name, topic, index))
            .filter(result => result.errorCode !== ErrorCode.ELECTION_NOT_NEEDED),
        }))
      : topicPartitions.map(({ topic: name, partitions }) => ({
          topic: name,
          partitionResult: partitions.map(index => one(name, state.image.topicByName(name), index)),
        }))
  return { records, response: { errorCode: ErrorCode.NONE, replicaElectionResults } }
}

function electOne(
  state: ControllerState,
  name: string,
  topic: TopicImage | undefined,
  index: number,
  type: number,
  records: MetadataRecord[],
): Outcome {
  if (topic === undefined) return failed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, `No such topic as ${quoted(name)}`)
  const partition = state.partition(topic, index)
  if (partition === undefined) {
    return failed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, `No such partition as ${name}-${index}`)
  }
  const needed = type === PREFERRED ? partition.leader !== partition.replicas[0] : partition.leader === NO_LEADER
  if (!needed) return failed(ErrorCode.ELECTION_NOT_NEEDED)
  const election = type === PREFERRED ? 'preferred' : 'unclean'
  const change = partitionChange({ ...state.target(topic, index, partition), election })
  if (change === undefined) {
    const preferred = type === PREFERRED
    return failed(preferred ? ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE : ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
  }
  state.decided(topic, index, change)
  records.push(change)
  return DONE
}
