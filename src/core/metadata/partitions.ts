import type { NodeId } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { AlterPartitionRequest, AlterPartitionResponse } from '#protocol/messages/alter-partition.ts'
import type {
  AssignReplicasToDirsRequest,
  AssignReplicasToDirsResponse,
} from '#protocol/messages/assign-replicas-to-dirs.ts'
import type { CreatePartitionsRequest, CreatePartitionsResponse } from '#protocol/messages/create-partitions.ts'
import type { InputOf } from '#protocol/schema.ts'
import { DONE, failed, type Outcome } from './answer.ts'
import { assignmentProblem, newPartition } from './assignment.ts'
import type { ControllerState } from './controller-state.ts'
import type { TopicImage } from './image.ts'
import { METADATA_VERSION_DIRECTORIES } from './metadata-version.ts'
import { directoryIsOnline } from './node-image.ts'
import { partitionChange } from './partition-change.ts'
import { directoryOf, LEADER_RECOVERED, LEADER_RECOVERING, type PartitionImage } from './partition-image.ts'
import { Placement } from './placement.ts'
import type { MetadataRecord } from './record.ts'
import { partitionRecord } from './snapshot.ts'
import { PARTITIONS_PER_REQUEST_MAX } from './topics.ts'

/** CreatePartitions: KIP-195. */
export function createPartitions(
  state: ControllerState,
  request: CreatePartitionsRequest,
): { records: MetadataRecord[]; response: InputOf<typeof CreatePartitionsResponse> } {
  const placement = new Placement(state.image, state.interBrokerListener)
  const records: MetadataRecord[] = []
  const times = new Map<string, number>()
  for (const { name } of request.topics) times.set(name, (times.get(name) ?? 0) + 1)
  const results: { name: string; errorCode: number; errorMessage: string | null }[] = []
  for (const [name, count] of times) {
    if (count > 1) results.push({ name, ...failed(ErrorCode.INVALID_REQUEST, 'Duplicate topic name.') })
  }
  for (const topic of request.topics) {
    if ((times.get(topic.name) ?? 0) > 1) continue
    results.push({ name: topic.name, ...addPartitions(state, topic, placement, records) })
  }
  return { records: request.validateOnly ? [] : records, response: { results } }
}

function addPartitions(
  state: ControllerState,
  { name, count, assignments }: CreatePartitionsRequest['topics'][number],
  placement: Placement,
  records: MetadataRecord[],
): Outcome {
  const topic = state.image.topicByName(name)
  const [first] = topic?.partitions ?? []
  if (topic === undefined || first === undefined) return failed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
  const before = topic.partitions.length
  const more = count - before
  if (more === 0) return failed(ErrorCode.INVALID_PARTITIONS, `Topic already has ${before} partition(s).`)
  if (more < 0) {
    const message = `The topic ${name} currently has ${before} partition(s); ${count} would not be an increase.`
    return failed(ErrorCode.INVALID_PARTITIONS, message)
  }
  if (assignments !== null && assignments.length !== more) {
    const message = `Attempted to add ${more} additional partition(s), but only ${assignments.length} assignment(s) were specified.`
    return failed(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
  }
  if (records.length + more > PARTITIONS_PER_REQUEST_MAX) {
    return failed(ErrorCode.POLICY_VIOLATION, 'Unable to perform excessively large batch operation.')
  }
  // While the first one moves it has those to come and those to go (Kafka counts both, and new ones would keep as many).
  const factor = first.replicas.filter(id => !first.removingReplicas.includes(id)).length
  let placed: readonly (readonly NodeId[])[]
  if (assignments !== null) {
    placed = assignments.map(({ brokerIds }) => brokerIds)
    for (const [index, replicas] of placed.entries()) {
      const problem = assignmentProblem(state, replicas, factor)
      if (problem !== undefined) return failed(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
      if (replicas.some(id => state.isActive(id))) continue
      const message = `All brokers specified in the manual partition assignment for partition ${before + index} are fenced or in controlled shutdown.`
      return failed(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    }
  } else {
    const problem = placement.problem(factor)
    if (problem !== undefined) return failed(ErrorCode.INVALID_REPLICATION_FACTOR, problem)
    placed = placement.place(
      more,
      factor,
      topic.partitions.map(({ replicas }) => replicas),
    )
  }
  for (const [index, replicas] of placed.entries()) {
    records.push(partitionRecord(topic.id, before + index, newPartition(state, replicas), state.metadataVersion))
  }
  return DONE
}

type AlteredPartition = AlterPartitionRequest['topics'][number]['partitions'][number]
interface IsrMember {
  readonly brokerId: NodeId
  readonly brokerEpoch: number
}

interface AlterPartitionTerms {
  readonly version: number
  /** The leader may be cut off: nobody who lives is put out of the in-sync set on its word. */
  readonly isDoubted?: boolean
}

/** AlterPartition: a leader changes who is in sync. KIP-497, KIP-704, KIP-841, KIP-903. */
export function alterPartition(
  state: ControllerState,
  request: AlterPartitionRequest,
  terms: AlterPartitionTerms,
): { records: MetadataRecord[]; response: InputOf<typeof AlterPartitionResponse> } {
  const errorCode = state.brokerEpochError(request.brokerId, request.brokerEpoch)
  if (errorCode !== ErrorCode.NONE) return { records: [], response: { errorCode } }
  const records: MetadataRecord[] = []
  const topics = request.topics.map(({ topicId, partitions }) => {
    const topic = state.image.topic(topicId)
    return {
      topicId,
      partitions: partitions.map(asked => alterOne(state, request.brokerId, topic, asked, terms, records)),
    }
  })
  return { records, response: { errorCode, topics } }
}

function alterOne(
  state: ControllerState,
  brokerId: NodeId,
  topic: TopicImage | undefined,
  asked: AlteredPartition,
  { version, isDoubted = false }: AlterPartitionTerms,
  records: MetadataRecord[],
) {
  const { partitionIndex, leaderRecoveryState } = asked
  if (topic === undefined) return { partitionIndex, errorCode: ErrorCode.UNKNOWN_TOPIC_ID }
  const partition = state.partition(topic, partitionIndex)
  if (partition === undefined) return { partitionIndex, errorCode: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION }
  const isr: readonly IsrMember[] =
    version >= 3 ? asked.newIsrWithEpochs : asked.newIsr.map(id => ({ brokerId: id, brokerEpoch: -1 }))
  const errorCode = alterPartitionError(state, brokerId, partition, asked, isr)
  if (errorCode !== ErrorCode.NONE) return { partitionIndex, errorCode }
  const isPutOut = (id: NodeId) => state.isActive(id) && !isr.some(({ brokerId: member }) => member === id)
  if (isDoubted && partition.isr.some(isPutOut)) {
    return { partitionIndex, errorCode: ErrorCode.OPERATION_NOT_ATTEMPTED }
  }
  const change = partitionChange({
    ...state.target(topic, partitionIndex, partition),
    isr: isr.map(member => member.brokerId),
    leaderRecoveryState,
  })
  const after = state.decided(topic, partitionIndex, change) ?? partition
  if (change !== undefined) {
    records.push(change)
    // It finished a reassignment that takes the asking leader away: the leader must read the metadata, not this answer.
    if (after.leader !== brokerId) return { partitionIndex, errorCode: ErrorCode.NEW_LEADER_ELECTED }
  }
  return {
    partitionIndex,
    errorCode,
    leaderId: after.leader,
    leaderEpoch: after.leaderEpoch,
    isr: after.isr,
    leaderRecoveryState: after.leaderRecoveryState,
    partitionEpoch: after.partitionEpoch,
  }
}

function alterPartitionError(
  state: ControllerState,
  brokerId: NodeId,
  partition: PartitionImage,
  asked: AlteredPartition,
  isr: readonly IsrMember[],
): number {
  const { leaderEpoch, partitionEpoch, leaderRecoveryState } = asked
  // A leader that knows more than we do has heard from a newer controller.
  if (leaderEpoch > partition.leaderEpoch || partitionEpoch > partition.partitionEpoch) return ErrorCode.NOT_CONTROLLER
  if (leaderEpoch < partition.leaderEpoch) return ErrorCode.FENCED_LEADER_EPOCH
  if (brokerId !== partition.leader) return ErrorCode.INVALID_REQUEST
  if (partitionEpoch < partition.partitionEpoch) return ErrorCode.INVALID_UPDATE_VERSION
  const ids = isr.map(member => member.brokerId)
  const isSubset =
    ids.length > 0 && new Set(ids).size === ids.length && ids.every(id => partition.replicas.includes(id))
  if (!isSubset || !ids.includes(partition.leader)) return ErrorCode.INVALID_REQUEST
  const recovering = leaderRecoveryState === LEADER_RECOVERING
  if (leaderRecoveryState !== LEADER_RECOVERED && !recovering) return ErrorCode.INVALID_REQUEST
  if (recovering && (ids.length > 1 || partition.leaderRecoveryState === LEADER_RECOVERED)) {
    return ErrorCode.INVALID_REQUEST
  }
  const eligible = isr.every(({ brokerId: id, brokerEpoch }) => {
    const broker = state.image.broker(id)
    if (!state.isActive(id) || (brokerEpoch !== -1 && brokerEpoch !== broker?.epoch)) return false
    // A leader may yet see it as in sync whose folder has failed: it would be waited for until it has been silent for long.
    return partition.isr.includes(id) || directoryIsOnline(broker, directoryOf(partition, id))
  })
  return eligible ? ErrorCode.NONE : ErrorCode.INELIGIBLE_REPLICA
}

/** AssignReplicasToDirs: a broker says in which directory its replicas are. KIP-858. */
export function assignReplicasToDirs(
  state: ControllerState,
  request: AssignReplicasToDirsRequest,
): { records: MetadataRecord[]; response: InputOf<typeof AssignReplicasToDirsResponse> } {
  const { brokerId, brokerEpoch } = request
  if (state.metadataVersion < METADATA_VERSION_DIRECTORIES) {
    return { records: [], response: { errorCode: ErrorCode.UNSUPPORTED_VERSION } }
  }
  const errorCode = state.brokerEpochError(brokerId, brokerEpoch)
  if (errorCode !== ErrorCode.NONE) return { records: [], response: { errorCode } }
  const records: MetadataRecord[] = []
  const directories = request.directories.map(({ id, topics }) => ({
    id,
    topics: topics.map(({ topicId, partitions }) => ({
      topicId,
      partitions: partitions.map(({ partitionIndex }) => ({
        partitionIndex,
        errorCode: assignOne(state, brokerId, id, state.image.topic(topicId), partitionIndex, records),
      })),
    })),
  }))
  return { records, response: { errorCode, directories } }
}

function assignOne(
  state: ControllerState,
  brokerId: NodeId,
  directory: Uuid,
  topic: TopicImage | undefined,
  index: number,
  records: MetadataRecord[],
): number {
  if (topic === undefined) return ErrorCode.UNKNOWN_TOPIC_ID
  const partition = state.partition(topic, index)
  if (partition === undefined) return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
  if (!partition.replicas.includes(brokerId)) return ErrorCode.NOT_LEADER_OR_FOLLOWER
  const online = directoryIsOnline(state.image.broker(brokerId), directory)
  const base = state.target(topic, index, partition)
  const change = partitionChange({
    ...base,
    directories: new Map([[brokerId, directory]]),
    ...(!online && { isr: partition.isr.filter(id => id !== brokerId) }),
    // Where the replica is now decides, not where it was.
    mayLead: id => (id === brokerId ? online && state.isActive(id) : base.mayLead(id)),
  })
  state.decided(topic, index, change)
  if (change !== undefined) records.push(change)
  return ErrorCode.NONE
}
