import { assert } from '#base/assert.ts'
import type { NodeId } from '#base/units.ts'
import { type Uuid, ZERO_UUID } from '#base/uuid.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { CreateTopicsRequest, CreateTopicsResponse } from '#protocol/messages/create-topics.ts'
import type { DeleteTopicsRequest, DeleteTopicsResponse } from '#protocol/messages/delete-topics.ts'
import type { InputOf } from '#protocol/schema.ts'
import { initialTopicConfigs } from '../config/alter.ts'
import { describe } from '../config/resolve.ts'
import { failed, isFailure, type Outcome } from './answer.ts'
import { assignmentProblem, newPartition } from './assignment.ts'
import { CONFIG_RESOURCE } from './config-resource.ts'
import { configRecords } from './configs.ts'
import type { ControllerState } from './controller-state.ts'
import type { PartitionImage } from './partition-image.ts'
import { Placement } from './placement.ts'
import { type MetadataRecord, metadataRecord } from './record.ts'
import { partitionRecord } from './snapshot.ts'
import { CLUSTER_METADATA_TOPIC, collisionKey, topicNameProblem } from './topic-name.ts'

/** More in one request would make a batch of the log too large to take in at once. */
export const PARTITIONS_PER_REQUEST_MAX = 10_000

/** Elements of arrays in a request that the controller decides in one go: 10,000 topics to create, each with its replicas. */
export const REQUEST_ELEMENTS_MAX = 65_536

type CreatableTopic = CreateTopicsRequest['topics'][number]
type Result = NonNullable<InputOf<typeof CreateTopicsResponse>['topics']>[number]

/** CreateTopics. `ids` are fresh, one for each topic of the request. */
export function createTopics(
  state: ControllerState,
  request: CreateTopicsRequest,
  ids: readonly Uuid[],
): { records: MetadataRecord[]; response: InputOf<typeof CreateTopicsResponse> } {
  assert(ids.length >= request.topics.length, 'every topic to create needs an id')
  const asked = countPartitions(state, request)
  if (asked > PARTITIONS_PER_REQUEST_MAX) {
    const outcome = failed(ErrorCode.POLICY_VIOLATION, 'Excessively large number of partitions per request.')
    return { records: [], response: { topics: request.topics.map(({ name }) => refusal(name, outcome)) } }
  }
  const times = new Map<string, number>()
  for (const { name } of request.topics) times.set(name, (times.get(name) ?? 0) + 1)
  const mayCollide = request.topics.some(({ name }) => collisionKey(name) !== undefined)
  const collisions = mayCollide ? collidingNames(state) : new Map<string, string>()
  const placement = new Placement(state.image, state.interBrokerListener)
  const records: MetadataRecord[] = []
  const topics: Result[] = []
  const last: Result[] = []
  const named = new Set<string>()
  for (const [index, topic] of request.topics.entries()) {
    const { name } = topic
    if ((times.get(name) ?? 0) > 1) {
      if (!named.has(name)) last.push(refusal(name, failed(ErrorCode.INVALID_REQUEST, 'Duplicate topic name.')))
      named.add(name)
    } else if (name === CLUSTER_METADATA_TOPIC) {
      const message = `Creation of internal topic ${CLUSTER_METADATA_TOPIC} is prohibited.`
      last.push(refusal(name, failed(ErrorCode.INVALID_REQUEST, message)))
    } else {
      topics.push(createTopic(state, topic, ids[index] as Uuid, collisions, placement, records))
    }
  }
  return { records: request.validateOnly ? [] : records, response: { topics: [...topics, ...last] } }
}

/** A topic counts as one at least, whatever number it names: looking at it costs something too. */
function countPartitions(state: ControllerState, request: CreateTopicsRequest): number {
  let count = 0
  for (const topic of request.topics) {
    if (topic.assignments.length > 0) count += topic.assignments.length
    else count += topic.numPartitions === -1 ? defaultPartitions(state) : Math.max(topic.numPartitions, 1)
  }
  return count
}

function defaultPartitions(state: ControllerState): number {
  return state.options.configs.number('num.partitions')
}

function collidingNames(state: ControllerState): Map<string, string> {
  const names = new Map<string, string>()
  for (const name of state.image.topicIds.keys()) {
    const key = collisionKey(name)
    if (key !== undefined) names.set(key, name)
  }
  return names
}

function refusal(name: string, outcome: Outcome): Result {
  return { name, ...outcome, configs: [] }
}

function createTopic(
  state: ControllerState,
  topic: CreatableTopic,
  topicId: Uuid,
  collisions: ReadonlyMap<string, string>,
  placement: Placement,
  records: MetadataRecord[],
): Result {
  const { name } = topic
  const nameOutcome = checkName(state, name, collisions)
  if (isFailure(nameOutcome)) return refusal(name, nameOutcome)
  const configs = initialTopicConfigs(topic.configs, state.brokerConfigs)
  if ('errorCode' in configs) return refusal(name, failed(configs.errorCode, configs.message))
  const placed = placeTopic(state, topic, placement)
  if ('outcome' in placed) return refusal(name, placed.outcome)

  records.push(metadataRecord('Topic', state.metadataVersion, { name, topicId }))
  const resource = { resourceType: CONFIG_RESOURCE.TOPIC, resourceName: name }
  for (const record of configRecords(state, resource, configs.changes)) records.push(record)
  for (const [index, partition] of placed.partitions.entries()) {
    records.push(partitionRecord(topicId, index, partition, state.metadataVersion))
  }
  return {
    name,
    topicId,
    errorCode: ErrorCode.NONE,
    errorMessage: null,
    numPartitions: placed.partitions.length,
    replicationFactor: placed.partitions[0]?.replicas.length ?? -1,
    configs: describe({ type: 'topic', overrides: configs.overrides, broker: state.brokerConfigs }),
  }
}

function checkName(state: ControllerState, name: string, collisions: ReadonlyMap<string, string>): Outcome {
  if (state.image.topicIds.has(name)) {
    return failed(ErrorCode.TOPIC_ALREADY_EXISTS, `Topic '${name}' already exists.`)
  }
  const problem = topicNameProblem(name)
  if (problem !== undefined) return failed(ErrorCode.INVALID_TOPIC_EXCEPTION, `Topic name is invalid: ${problem}`)
  const other = collisions.get(collisionKey(name) ?? '')
  if (other !== undefined) {
    return failed(ErrorCode.INVALID_TOPIC_EXCEPTION, `Topic '${name}' collides with existing topic: ${other}`)
  }
  return { errorCode: ErrorCode.NONE, errorMessage: null }
}

function placeTopic(
  state: ControllerState,
  topic: CreatableTopic,
  placement: Placement,
): { partitions: PartitionImage[] } | { outcome: Outcome } {
  if (topic.assignments.length > 0) return placeByHand(state, topic)
  if (topic.replicationFactor < -1 || topic.replicationFactor === 0) {
    const message = 'Replication factor must be larger than 0, or -1 to use the default value.'
    return { outcome: failed(ErrorCode.INVALID_REPLICATION_FACTOR, message) }
  }
  if (topic.numPartitions < -1 || topic.numPartitions === 0) {
    const message = 'Number of partitions was set to an invalid non-positive value.'
    return { outcome: failed(ErrorCode.INVALID_PARTITIONS, message) }
  }
  const count = topic.numPartitions === -1 ? defaultPartitions(state) : topic.numPartitions
  const { configs } = state.options
  const factor = topic.replicationFactor === -1 ? configs.number('default.replication.factor') : topic.replicationFactor
  const problem = placement.problem(factor)
  if (problem !== undefined) {
    const message = `Unable to replicate the partition ${factor} time(s): ${problem}`
    return { outcome: failed(ErrorCode.INVALID_REPLICATION_FACTOR, message) }
  }
  return { partitions: placement.place(count, factor).map(replicas => newPartition(state, replicas)) }
}

function placeByHand(
  state: ControllerState,
  topic: CreatableTopic,
): { partitions: PartitionImage[] } | { outcome: Outcome } {
  const given = 'A manual partition assignment was specified, but'
  if (topic.replicationFactor !== -1) {
    return { outcome: failed(ErrorCode.INVALID_REQUEST, `${given} replication factor was not set to -1.`) }
  }
  if (topic.numPartitions !== -1) {
    return { outcome: failed(ErrorCode.INVALID_REQUEST, `${given} numPartitions was not set to -1.`) }
  }
  const refuse = (message: string) => ({ outcome: failed(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message) })
  const byIndex = new Map<number, readonly NodeId[]>()
  let factor: number | undefined
  for (const { partitionIndex, brokerIds } of topic.assignments) {
    if (byIndex.has(partitionIndex)) {
      return refuse(`Found multiple manual partition assignments for partition ${partitionIndex}`)
    }
    const problem = assignmentProblem(state, brokerIds, factor)
    if (problem !== undefined) return refuse(problem)
    factor = brokerIds.length
    if (!brokerIds.some(id => state.isActive(id))) {
      return refuse(
        `All brokers specified in the manual partition assignment for partition ${partitionIndex} are fenced or in controlled shutdown.`,
      )
    }
    byIndex.set(partitionIndex, brokerIds)
  }
  const partitions: PartitionImage[] = []
  for (let index = 0; index < byIndex.size; index++) {
    const replicas = byIndex.get(index)
    if (replicas === undefined) return refuse('partitions should be a consecutive 0-based integer sequence')
    partitions.push(newPartition(state, replicas))
  }
  return { partitions }
}

type Deleted = NonNullable<InputOf<typeof DeleteTopicsResponse>['responses']>[number]

/** DeleteTopics, by name or (v6) by id: KIP-516. */
export function deleteTopics(
  state: ControllerState,
  request: DeleteTopicsRequest,
  version: number,
): { records: MetadataRecord[]; response: InputOf<typeof DeleteTopicsResponse> } {
  const asked = [
    ...request.topicNames.map(name => ({ name, topicId: ZERO_UUID })),
    ...request.topics.map(({ name, topicId }) => ({ name, topicId })),
  ]
  if (!state.options.configs.boolean('delete.topic.enable')) {
    const code = version < 3 ? ErrorCode.INVALID_REQUEST : ErrorCode.TOPIC_DELETION_DISABLED
    return { records: [], response: { responses: asked.map(topic => ({ ...topic, ...failed(code) })) } }
  }
  const records: MetadataRecord[] = []
  const responses: Deleted[] = []
  const seen = new Map<string, number>()
  for (const { name, topicId } of asked) seen.set(name ?? `id ${topicId}`, (seen.get(name ?? `id ${topicId}`) ?? 0) + 1)
  // A topic that is asked for by name and by id is refused once, under its name, and stays.
  const named = new Set(asked.map(({ name }) => (name === null ? undefined : state.image.topicIds.get(name))))
  const byId = new Set(asked.filter(({ name }) => name === null).map(({ topicId }) => topicId))
  const reported = new Set<string>()
  for (const { name, topicId } of asked) {
    const key = name ?? `id ${topicId}`
    const duplicate = (seen.get(key) ?? 0) > 1
    if (duplicate && reported.has(key)) continue
    reported.add(key)
    if (name === null && named.has(topicId)) continue
    const found = name === null ? topicId : (state.image.topicIds.get(name) ?? ZERO_UUID)
    const outcome = deletionOutcome(state, name, topicId, found, duplicate, byId)
    if (isFailure(outcome)) {
      responses.push({ name, topicId: byId.has(found) ? found : topicId, ...outcome })
      continue
    }
    records.push(metadataRecord('RemoveTopic', state.metadataVersion, { topicId: found }))
    responses.push({ name: state.image.topic(found)?.name ?? name, topicId: found, ...outcome })
  }
  return { records, response: { responses } }
}

function deletionOutcome(
  state: ControllerState,
  name: string | null,
  topicId: Uuid,
  found: Uuid,
  duplicate: boolean,
  byId: ReadonlySet<Uuid>,
): Outcome {
  const refuse = (message: string) => failed(ErrorCode.INVALID_REQUEST, message)
  if (name === null && topicId === ZERO_UUID) return refuse('Neither topic name nor id were specified.')
  if (name !== null && topicId !== ZERO_UUID) return refuse('You may not specify both topic name and topic id.')
  if (duplicate) return refuse(name === null ? 'Duplicate topic id.' : 'Duplicate topic name.')
  if (!state.image.topics.has(found)) {
    return failed(name === null ? ErrorCode.UNKNOWN_TOPIC_ID : ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
  }
  if (name !== null && byId.has(found))
    return refuse('The provided topic name maps to an ID that was already supplied.')
  return { errorCode: ErrorCode.NONE, errorMessage: null }
}
