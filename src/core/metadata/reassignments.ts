import type { NodeId } from '#base/units.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type {
  AlterPartitionReassignmentsRequest,
  AlterPartitionReassignmentsResponse,
} from '#protocol/messages/alter-partition-reassignments.ts'
import type {
  ListPartitionReassignmentsRequest,
  ListPartitionReassignmentsResponse,
} from '#protocol/messages/list-partition-reassignments.ts'
import type { InputOf } from '#protocol/schema.ts'
import { DONE, failed, type Outcome, quoted } from './answer.ts'
import { assignmentProblem } from './assignment.ts'
import type { ControllerState } from './controller-state.ts'
import type { MetadataImage, TopicImage } from './image.ts'
import { partitionChange } from './partition-change.ts'
import type { PartitionImage } from './partition-image.ts'
import type { MetadataRecord } from './record.ts'

/**
 * AlterPartitionReassignments: KIP-455. New replicas are added, the ISR takes them in, and when all that stay are in sync
 * the others go; the first step is here, the last in `partitionChange`, at the AlterPartition that brings it about.
 */
export function alterPartitionReassignments(
  state: ControllerState,
  request: AlterPartitionReassignmentsRequest,
): { records: MetadataRecord[]; response: InputOf<typeof AlterPartitionReassignmentsResponse> } {
  const { allowReplicationFactorChange } = request
  const records: MetadataRecord[] = []
  const responses = request.topics.map(({ name, partitions }) => ({
    name,
    partitions: partitions.map(({ partitionIndex, replicas }) => ({
      partitionIndex,
      ...reassign(state, name, partitionIndex, replicas, allowReplicationFactorChange, records),
    })),
  }))
  return {
    records,
    response: { allowReplicationFactorChange, errorCode: ErrorCode.NONE, errorMessage: null, responses },
  }
}

function reassign(
  state: ControllerState,
  name: string,
  index: number,
  replicas: readonly NodeId[] | null,
  factorMayChange: boolean,
  records: MetadataRecord[],
): Outcome {
  const topic = state.image.topicByName(name)
  if (topic === undefined) {
    return failed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, `Unable to find a topic named ${quoted(name)}.`)
  }
  const partition = state.partition(topic, index)
  if (partition === undefined) {
    return failed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, `Unable to find partition ${name}:${index}.`)
  }
  if (replicas === null) return cancel(state, topic, index, partition, records)
  const problem = assignmentProblem(state, replicas, undefined)
  if (problem !== undefined) return failed(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
  const settled = partition.replicas.filter(id => !partition.addingReplicas.includes(id))
  if (!factorMayChange && replicas.length !== settled.length) {
    const message = `The replication factor is changed from ${settled.length} to ${replicas.length}`
    return failed(ErrorCode.INVALID_REPLICATION_FACTOR, message)
  }
  const base = state.target(topic, index, partition)
  // What an unfinished reassignment was adding and this one does not want goes at once, where enough stay in sync: nobody
  // would take it away if this one were cancelled.
  const unwanted = without(partition.addingReplicas, replicas)
  const inSync = without(partition.isr, unwanted)
  const stay = new Set([...without(partition.replicas, unwanted), ...replicas]).size
  const goes = inSync.length > 0 && inSync.length >= Math.min(base.minIsr, stay, partition.isr.length) ? unwanted : []
  const removing = without(without(partition.replicas, replicas), goes).sort((a, b) => a - b)
  const adding = without(replicas, partition.replicas).sort((a, b) => a - b)
  // A replica that an unfinished reassignment was adding, and that stays, is still one to wait for.
  const stillAdding = partition.addingReplicas.filter(id => replicas.includes(id))
  const change = partitionChange({
    ...base,
    election: 'online',
    isr: without(partition.isr, goes),
    replicas: [...replicas, ...removing],
    adding: [...new Set([...stillAdding, ...adding])].sort((a, b) => a - b),
    removing,
  })
  state.decided(topic, index, change)
  if (change !== undefined) records.push(change)
  return DONE
}

function cancel(
  state: ControllerState,
  topic: TopicImage,
  index: number,
  partition: PartitionImage,
  records: MetadataRecord[],
): Outcome {
  if (!isReassigning(partition)) return failed(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
  const replicas = without(partition.replicas, partition.addingReplicas)
  let isr = without(partition.isr, partition.addingReplicas)
  const [first] = replicas
  if (first === undefined) {
    return failed(
      ErrorCode.INVALID_REPLICA_ASSIGNMENT,
      'Invalid replica assignment: addingReplicas contains all replicas.',
    )
  }
  if (isr.length === 0) {
    if (!state.uncleanElectionAllowed(topic)) {
      const message = `Unable to revert partition assignment for ${topic.name}:${index} because it would require an unclean leader election.`
      return failed(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    }
    isr = [first]
  }
  const change = partitionChange({
    ...state.target(topic, index, partition),
    replicas,
    isr,
    adding: [],
    removing: [],
  })
  state.decided(topic, index, change)
  if (change !== undefined) records.push(change)
  return DONE
}

function without(ids: readonly NodeId[], others: readonly NodeId[]): NodeId[] {
  return ids.filter(id => !others.includes(id))
}

function isReassigning(partition: PartitionImage): boolean {
  return partition.addingReplicas.length > 0 || partition.removingReplicas.length > 0
}

/** ListPartitionReassignments: KIP-455. */
export function listPartitionReassignments(
  image: MetadataImage,
  request: ListPartitionReassignmentsRequest,
): InputOf<typeof ListPartitionReassignmentsResponse> {
  const asked =
    request.topics === null
      ? [...image.topics.values()].map(topic => ({ topic, indexes: [...topic.partitions.keys()] }))
      : request.topics.map(({ name, partitionIndexes }) => ({
          topic: image.topicByName(name),
          indexes: partitionIndexes,
        }))
  const topics = []
  for (const { topic, indexes } of asked) {
    if (topic === undefined) continue
    const partitions = []
    for (const partitionIndex of indexes) {
      const partition = topic.partitions[partitionIndex]
      if (partition === undefined || !isReassigning(partition)) continue
      const { replicas, addingReplicas, removingReplicas } = partition
      partitions.push({ partitionIndex, replicas, addingReplicas, removingReplicas })
    }
    if (partitions.length > 0) topics.push({ name: topic.name, partitions })
  }
  return { errorCode: ErrorCode.NONE, errorMessage: null, topics }
}
