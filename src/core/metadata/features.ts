import type { NodeId } from '#base/units.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { UpdateFeaturesRequest, UpdateFeaturesResponse } from '#protocol/messages/update-features.ts'
import type { InputOf } from '#protocol/schema.ts'
import { DONE, failed, isFailure, type Outcome } from './answer.ts'
import { CONFIG_RESOURCE } from './config-resource.ts'
import { withNewEpochs } from './configs.ts'
import type { ControllerState } from './controller-state.ts'
import type { MetadataImage } from './image.ts'
import { METADATA_VERSION_ELR } from './metadata-version.ts'
import type { FeatureRange } from './node-image.ts'
import { LEADER_RECOVERING } from './partition-image.ts'
import { type MetadataRecord, metadataRecord } from './record.ts'

/** 3.3-IV3, the oldest that a KRaft cluster of 4.x may be at. */
export const METADATA_VERSION_MIN = 7
/** 4.3-IV0 */
const METADATA_VERSION_LATEST = 30

export const ELR = 'eligible.leader.replicas.version'
const METADATA_VERSION = 'metadata.version'
const MIN_ISR = 'min.insync.replicas'

interface Feature extends FeatureRange {
  /** What a new cluster starts with. */
  readonly initial: number
}

/**
 * What this release can do, and so may be finalized. Clients change their ways by some of them: transaction.version 2
 * ends AddPartitionsToTxn (KIP-890), group.version 1 lets consumers heartbeat (KIP-848). A feature is raised here only
 * when all the requests that it promises work.
 */
const FEATURES: ReadonlyMap<string, Feature> = new Map([
  ['metadata.version', { min: METADATA_VERSION_MIN, max: METADATA_VERSION_LATEST, initial: METADATA_VERSION_LATEST }],
  [ELR, { min: 0, max: 1, initial: 1 }],
  ['group.version', { min: 0, max: 0, initial: 0 }],
  ['kraft.version', { min: 0, max: 1, initial: 1 }],
  ['share.version', { min: 0, max: 0, initial: 0 }],
  ['streams.version', { min: 0, max: 0, initial: 0 }],
  ['transaction.version', { min: 0, max: 0, initial: 0 }],
])

/** Features and the levels that this release supports: for ApiVersions and for registrations. */
export const SUPPORTED_FEATURES: ReadonlyMap<string, FeatureRange> = FEATURES

/** kraft.version is no record of the metadata: raft keeps it in a control record of its own (KIP-853). */
const OF_RAFT = 'kraft.version'

/** What the log of an empty cluster begins with, in one batch. `minInSync` is the founder's own `min.insync.replicas`. */
export function bootstrapRecords(minInSync: number): MetadataRecord[] {
  const level = METADATA_VERSION_LATEST
  const records = [...FEATURES]
    .filter(([name, feature]) => name !== OF_RAFT && feature.initial > 0)
    .map(([name, feature]) => metadataRecord('FeatureLevel', level, { name, featureLevel: feature.initial }))
  // With eligible leader replicas the cluster itself holds the default that decides about them, so that all nodes agree.
  const minIsr = { resourceType: CONFIG_RESOURCE.BROKER, resourceName: '', name: MIN_ISR, value: String(minInSync) }
  return [...records, metadataRecord('Config', level, minIsr)]
}

const UPGRADE = 1
const SAFE_DOWNGRADE = 2
const UNSAFE_DOWNGRADE = 3

/** UpdateFeatures: KIP-584, KIP-778. All of the request or nothing. */
export function updateFeatures(
  state: ControllerState,
  request: UpdateFeaturesRequest,
  version: number,
): { records: MetadataRecord[]; response: InputOf<typeof UpdateFeaturesResponse> } {
  const records: MetadataRecord[] = []
  const outcomes = new Map<string, Outcome>()
  let failure: Outcome | undefined
  const ofMetadata = request.featureUpdates.find(({ feature }) => feature === METADATA_VERSION)
  const metadataVersion = ofMetadata?.maxVersionLevel ?? state.metadataVersion
  for (const update of request.featureUpdates) {
    const upgradeType = version === 0 && update.allowDowngrade ? SAFE_DOWNGRADE : update.upgradeType
    const outcome = outcomes.has(update.feature)
      ? failed(ErrorCode.INVALID_REQUEST, `The feature ${update.feature} is given twice.`)
      : updateFeature(state, update.feature, update.maxVersionLevel, upgradeType, metadataVersion, records)
    outcomes.set(update.feature, outcome)
    if (isFailure(outcome)) failure ??= outcome
  }
  if (failure !== undefined) {
    return { records: [], response: { ...failure, results: [] } }
  }
  return {
    records: request.validateOnly ? [] : records,
    response: {
      ...DONE,
      results: version < 2 ? request.featureUpdates.map(({ feature }) => ({ feature, ...DONE })) : [],
    },
  }
}

function updateFeature(
  state: ControllerState,
  name: string,
  level: number,
  upgradeType: number,
  /** As it is after the request. */
  metadataVersion: number,
  records: MetadataRecord[],
): Outcome {
  const refuse = (why: string) =>
    failed(ErrorCode.INVALID_UPDATE_VERSION, `Invalid update version ${level} for feature ${name}. ${why}`)
  const { image } = state
  const current = image.feature(name)
  if (upgradeType < UPGRADE || upgradeType > UNSAFE_DOWNGRADE) {
    return refuse('The controller does not support the given upgrade type.')
  }
  if (level < 0) return refuse('A feature version cannot be less than 0.')
  const unsupported = whoDoesNotSupport(state, name, level)
  if (unsupported !== undefined) return refuse(unsupported)
  if (level < current && upgradeType === UPGRADE) {
    return refuse(
      "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade.",
    )
  }
  if (level > current && upgradeType !== UPGRADE) return refuse("Can't downgrade to a newer version.")
  if (name === OF_RAFT) return refuse('kraft.version is changed by the quorum itself.')
  if (name === METADATA_VERSION && level < current) {
    return failed(
      ErrorCode.INVALID_UPDATE_VERSION,
      `Invalid metadata.version ${level}. Refusing to perform the requested downgrade because it might delete metadata information.`,
    )
  }
  if (name === ELR && current === 0 && level > 0 && metadataVersion < METADATA_VERSION_ELR) {
    return refuse(`It needs metadata.version ${METADATA_VERSION_ELR}, and that is ${metadataVersion}.`)
  }
  // A log that came from elsewhere may have had the feature before its level of metadata, where it means nothing.
  const wakesElr = name === METADATA_VERSION && image.feature(ELR) > 0 && !state.elrEnabled
  const begins = name === ELR ? current === 0 && level > 0 : wakesElr && level >= METADATA_VERSION_ELR
  if (begins) for (const record of sharedMinIsr(state)) records.push(record)
  if (name === ELR && current !== level) {
    for (const record of withoutEligible(state)) records.push(record)
  }
  // A broker whose own number was lower took fewer for enough.
  if (begins) for (const record of withNewEpochs(state, '')) records.push(record)
  records.push(metadataRecord('FeatureLevel', state.metadataVersion, { name, featureLevel: level }))
  return DONE
}

/**
 * Without the feature nobody keeps the list of who is eligible, and what it said before would be believed when the feature
 * comes back; those who were in sync last stay in the ISR, so that one of them leads when it is there.
 */
function withoutEligible({ image, metadataVersion }: ControllerState): MetadataRecord[] {
  const records: MetadataRecord[] = []
  for (const { id: topicId, partitions } of image.topics.values()) {
    for (const [partitionId, { isr: inSync, replicas, eligibleLeaderReplicas, lastKnownElr }] of partitions.entries()) {
      const isEligible = eligibleLeaderReplicas.length > 0
      const last = (isEligible ? eligibleLeaderReplicas : lastKnownElr).filter(id => replicas.includes(id))
      if (last.length === 0) continue
      const none = { eligibleLeaderReplicas: [], lastKnownElr: [] }
      // Who led last and is not eligible came back without its tail.
      const isr = { isr: last, ...(!isEligible && { leaderRecoveryState: LEADER_RECOVERING }) }
      const change = { ...none, ...(inSync.length === 0 && isr) }
      records.push(metadataRecord('PartitionChange', metadataVersion, { topicId, partitionId, ...change }))
    }
  }
  return records
}

/** From now on `min.insync.replicas` is the cluster's or a topic's, never one broker's: all must agree on who is eligible. */
function sharedMinIsr(state: ControllerState): MetadataRecord[] {
  const records: MetadataRecord[] = []
  const set = (resourceName: string, value: string | null) => {
    const resource = { resourceType: CONFIG_RESOURCE.BROKER, resourceName }
    records.push(metadataRecord('Config', state.metadataVersion, { ...resource, name: MIN_ISR, value }))
  }
  for (const { type, name, values } of state.image.configs()) {
    if (type === CONFIG_RESOURCE.BROKER && name !== '' && values.has(MIN_ISR)) set(name, null)
  }
  if (!state.image.config(CONFIG_RESOURCE.BROKER, '').has(MIN_ISR)) {
    set('', String(state.options.configs.number(MIN_ISR)))
  }
  return records
}

/** Every broker and every controller must be able to do what is finalized. */
function whoDoesNotSupport(state: ControllerState, name: string, level: number): string | undefined {
  const { image, options } = state
  const reason = (who: string, range: FeatureRange | undefined) => {
    if (range === undefined || range.max === 0) {
      return level === 0 ? undefined : `${who} does not support this feature.`
    }
    const within = level === 0 ? range.min === 0 : level >= range.min && level <= range.max
    return within ? undefined : `${who} only supports versions ${range.min}-${range.max}`
  }
  const local = reason(`Local controller ${options.nodeId}`, options.features.get(name))
  if (local !== undefined) return local
  for (const broker of image.brokers.values()) {
    const theirs = reason(`Broker ${broker.id}`, broker.features.get(name))
    if (theirs !== undefined) return theirs
  }
  return controllerWithout(image, options.nodeId, options.voterIds?.() ?? [], id =>
    reason(`Controller ${id}`, image.controllers.get(id)?.features.get(name)),
  )
}

function controllerWithout(
  image: MetadataImage,
  self: NodeId,
  voters: readonly NodeId[],
  reason: (id: NodeId) => string | undefined,
): string | undefined {
  for (const id of image.controllers.keys()) {
    const theirs = id === self ? undefined : reason(id)
    if (theirs !== undefined) return theirs
  }
  const silent = voters.find(id => id !== self && !image.controllers.has(id))
  return silent === undefined ? undefined : `controller ${silent} has not registered, and may not support this feature`
}
