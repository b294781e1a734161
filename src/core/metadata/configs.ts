import { assert } from '#base/assert.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { AlterConfigsRequest, AlterConfigsResponse } from '#protocol/messages/alter-configs.ts'
import type {
  IncrementalAlterConfigsRequest,
  IncrementalAlterConfigsResponse,
} from '#protocol/messages/incremental-alter-configs.ts'
import type { InputOf } from '#protocol/schema.ts'
import { type AlterableType, type Altered, applyIncremental, replaceAll } from '../config/alter.ts'
import type { BrokerConfigs, Overrides } from '../config/broker-configs.ts'
import { effectiveTopicText, TOPIC_CONFIGS } from '../config/topic.ts'
import { DONE, failed, type Outcome } from './answer.ts'
import { CONFIG_RESOURCE, configResourceKey } from './config-resource.ts'
import type { ControllerState } from './controller-state.ts'
import type { TopicImage } from './image.ts'
import { NO_LEADER } from './partition-change.ts'
import { type MetadataRecord, metadataRecord } from './record.ts'
import { topicNameProblem } from './topic-name.ts'

const MIN_ISR = 'min.insync.replicas'

interface AlteredResource {
  readonly resourceType: number
  readonly resourceName: string
}

/** IncrementalAlterConfigs: KIP-339. Each resource is altered wholly or not at all, and answers for itself. */
export function incrementalAlterConfigs(
  state: ControllerState,
  request: IncrementalAlterConfigsRequest,
): { records: MetadataRecord[]; response: InputOf<typeof IncrementalAlterConfigsResponse> } {
  return alterEach(state, request, resource =>
    applyIncremental(
      alterable(state, resource),
      resource.configs.map(({ name, configOperation, value }) => ({ name, operation: configOperation, value })),
    ),
  )
}

/** AlterConfigs: what is given replaces all that was set. */
export function alterConfigs(
  state: ControllerState,
  request: AlterConfigsRequest,
): { records: MetadataRecord[]; response: InputOf<typeof AlterConfigsResponse> } {
  return alterEach(state, request, resource => replaceAll(alterable(state, resource), resource.configs))
}

function alterEach<Resource extends AlteredResource>(
  state: ControllerState,
  request: { readonly resources: readonly Resource[]; readonly validateOnly: boolean },
  alter: (resource: Resource) => Altered,
) {
  const records: MetadataRecord[] = []
  const times = new Map<string, number>()
  const keyOf = ({ resourceType, resourceName }: AlteredResource) => configResourceKey(resourceType, resourceName)
  for (const resource of request.resources) times.set(keyOf(resource), (times.get(keyOf(resource)) ?? 0) + 1)
  const responses = request.resources.map(resource => {
    const { resourceType, resourceName } = resource
    const outcome =
      (times.get(keyOf(resource)) ?? 0) > 1
        ? failed(ErrorCode.INVALID_REQUEST, 'Each resource must appear at most once.')
        : alterOne(state, resource, () => alter(resource), records)
    return { resourceType, resourceName, ...outcome }
  })
  return { records: request.validateOnly ? [] : records, response: { responses } }
}

function alterOne(
  state: ControllerState,
  resource: AlteredResource,
  alter: () => Altered,
  records: MetadataRecord[],
): Outcome {
  const nameOutcome = nameProblem(resource)
  if (nameOutcome !== undefined) return nameOutcome
  const altered = alter()
  if ('errorCode' in altered) return failed(altered.errorCode, altered.message)
  const missing = missingResource(state, resource) ?? minIsrProblem(state, resource, altered.changes)
  if (missing !== undefined) return missing
  for (const record of configRecords(state, resource, altered.changes)) records.push(record)
  if (state.elrEnabled && altered.changes.has(MIN_ISR)) {
    for (const record of minIsrChanged(state, resource, altered.overrides)) records.push(record)
  }
  return DONE
}

/** Who was eligible by the old number may not be by a lower one, if that is enough now; by a higher one they are as before. */
function minIsrChanged(
  state: ControllerState,
  { resourceType, resourceName }: AlteredResource,
  overrides: Overrides,
): MetadataRecord[] {
  const { brokerConfigs } = state
  const ofTopic = resourceType === CONFIG_RESOURCE.TOPIC
  const topicName = ofTopic ? resourceName : ''
  // One broker's own, which is only ever taken away.
  if (!ofTopic && resourceName !== '') return withoutEligible(state, '', () => 0)
  const before = minIsrOf(state.image.config(CONFIG_RESOURCE.TOPIC, topicName), brokerConfigs)
  const broker = ofTopic ? brokerConfigs : brokerConfigs.with({ dynamicDefault: overrides })
  const afterOf = (topic: string): number =>
    minIsrOf(ofTopic ? overrides : state.image.config(CONFIG_RESOURCE.TOPIC, topic), broker)
  const after = afterOf(topicName)
  if (after === before) return []
  return after > before
    ? withNewEpochs(state, topicName)
    : withoutEligible(state, topicName, ({ name }) => afterOf(name))
}

function minIsrOf(overrides: Overrides, broker: BrokerConfigs): number {
  const definition = TOPIC_CONFIGS.get(MIN_ISR)
  assert(definition !== undefined, `there is ${MIN_ISR}`)
  return Number(effectiveTopicText(definition, overrides, broker))
}

function topicsOf({ image }: ControllerState, topicName: string): TopicImage[] {
  const topic = image.topicByName(topicName)
  if (topicName === '') return [...image.topics.values()]
  return topic === undefined ? [] : [topic]
}

/**
 * A leader that has not heard yet of a higher number would take fewer for enough: what it then acknowledged alone, those who
 * left are thought to hold. With a new partition epoch its word of who is in sync counts only once it has read so far; one
 * that others change it reads behind the number anyway. Kafka does not, and forgets who is eligible.
 */
export function withNewEpochs(state: ControllerState, topicName: string): MetadataRecord[] {
  const records: MetadataRecord[] = []
  for (const { id: topicId, partitions } of topicsOf(state, topicName)) {
    for (const [partitionId, { leader, isr }] of partitions.entries()) {
      if (leader === NO_LEADER) continue
      // It says what is so: every change, also of nothing, is a new epoch.
      records.push(metadataRecord('PartitionChange', state.metadataVersion, { partitionId, topicId, isr }))
    }
  }
  return records
}

/**
 * Forgets who is eligible in one topic, or in all if the name is empty: where as many are in sync as are enough now, they
 * may commit what those who left do not have. Kafka forgets in every partition; where those in sync are still too few all
 * that was committed is in those who are eligible, and perhaps in nobody else who lives.
 */
function withoutEligible(
  state: ControllerState,
  topicName: string,
  minIsr: (topic: TopicImage) => number,
): MetadataRecord[] {
  const { metadataVersion } = state
  const records: MetadataRecord[] = []
  let anyStays = false
  for (const topic of topicsOf(state, topicName)) {
    const enough = minIsr(topic)
    for (const [partitionId, partition] of topic.partitions.entries()) {
      const { isr, replicas, eligibleLeaderReplicas, lastKnownElr } = partition
      if (eligibleLeaderReplicas.length + lastKnownElr.length === 0) continue
      if (isr.length === 0 || isr.length < Math.min(enough, replicas.length)) {
        anyStays = true
        continue
      }
      const none = { topicId: topic.id, eligibleLeaderReplicas: [], lastKnownElr: [] }
      records.push(metadataRecord('PartitionChange', metadataVersion, { partitionId, ...none }))
    }
  }
  return anyStays ? records : [metadataRecord('ClearElr', metadataVersion, { topicName })]
}

export function configRecords(
  state: ControllerState,
  { resourceType, resourceName }: AlteredResource,
  changes: ReadonlyMap<string, string | null>,
): MetadataRecord[] {
  return [...changes].map(([name, value]) =>
    metadataRecord('Config', state.metadataVersion, { resourceType, resourceName, name, value }),
  )
}

function alterable(state: ControllerState, { resourceType, resourceName }: AlteredResource) {
  const overrides = state.image.config(resourceType, resourceName)
  return { type: alterableType(resourceType, resourceName), overrides, broker: state.brokerConfigs }
}

function alterableType(resourceType: number, resourceName: string): AlterableType {
  switch (resourceType) {
    case CONFIG_RESOURCE.TOPIC:
      return 'topic'
    case CONFIG_RESOURCE.GROUP:
      return 'group'
    case CONFIG_RESOURCE.CLIENT_METRICS:
      return 'client-metrics'
    default:
      return resourceName === '' ? 'broker-default' : 'broker'
  }
}

function nameProblem({ resourceType, resourceName }: AlteredResource): Outcome | undefined {
  const refuse = (message: string) => failed(ErrorCode.INVALID_REQUEST, message)
  switch (resourceType) {
    case CONFIG_RESOURCE.TOPIC: {
      if (resourceName === '') return refuse('Default topic resources are not allowed.')
      const problem = topicNameProblem(resourceName)
      if (problem === undefined) return undefined
      return failed(ErrorCode.INVALID_TOPIC_EXCEPTION, `Topic name is invalid: ${problem}`)
    }
    case CONFIG_RESOURCE.BROKER:
      if (resourceName === '' || /^\d{1,10}$/.test(resourceName)) return undefined
      return refuse('Unable to parse broker name as a base 10 number.')
    case CONFIG_RESOURCE.GROUP:
      return resourceName === '' ? refuse('Default group resources are not allowed.') : undefined
    case CONFIG_RESOURCE.CLIENT_METRICS:
      return resourceName === '' ? refuse("Subscription name can't be empty") : undefined
    default:
      return refuse(`Unknown resource type ${resourceType}`)
  }
}

function missingResource(
  { image, options }: ControllerState,
  { resourceType, resourceName }: AlteredResource,
): Outcome | undefined {
  if (resourceType === CONFIG_RESOURCE.TOPIC && !image.topicIds.has(resourceName)) {
    return failed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, `The topic '${resourceName}' does not exist.`)
  }
  if (resourceType === CONFIG_RESOURCE.BROKER && resourceName !== '') {
    const id = Number(resourceName)
    if (id !== options.nodeId && !image.brokers.has(id)) {
      return failed(ErrorCode.BROKER_ID_NOT_REGISTERED, `No broker with id ${id} found.`)
    }
  }
  return undefined
}

/** All nodes must agree on who is eligible, so with ELR the number is the cluster's or the topic's, never one broker's. */
function minIsrProblem(
  state: ControllerState,
  { resourceType, resourceName }: AlteredResource,
  changes: ReadonlyMap<string, string | null>,
): Outcome | undefined {
  const value = changes.get(MIN_ISR)
  if (value === undefined || !state.elrEnabled || resourceType !== CONFIG_RESOURCE.BROKER) return undefined
  if (resourceName !== '' && value !== null) {
    return failed(ErrorCode.INVALID_CONFIG, `Broker-level ${MIN_ISR} cannot be altered while ELR is enabled.`)
  }
  if (resourceName === '' && value === null) {
    return failed(ErrorCode.INVALID_CONFIG, `Cluster-level ${MIN_ISR} cannot be removed while ELR is enabled.`)
  }
  return undefined
}
