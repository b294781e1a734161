import type { Millis, NodeId, Offset } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { BrokerHeartbeatRequest, BrokerHeartbeatResponse } from '#protocol/messages/broker-heartbeat.ts'
import type { BrokerRegistrationRequest, BrokerRegistrationResponse } from '#protocol/messages/broker-registration.ts'
import type {
  ControllerRegistrationRequest,
  ControllerRegistrationResponse,
} from '#protocol/messages/controller-registration.ts'
import type { UnregisterBrokerRequest, UnregisterBrokerResponse } from '#protocol/messages/unregister-broker.ts'
import type { InputOf } from '#protocol/schema.ts'
import type { ControllerState } from './controller-state.ts'
import { electionsFor, hasLeaderships } from './elections.ts'
import { METADATA_VERSION_MIN } from './features.ts'
import { METADATA_VERSION_CORDONED, METADATA_VERSION_DIRECTORIES } from './metadata-version.ts'
import type { BrokerImage } from './node-image.ts'
import { LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY } from './partition-image.ts'
import { type MetadataRecord, metadataRecord } from './record.ts'

const RESERVED_DIRECTORIES: ReadonlySet<string> = new Set([LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY])

/** More directories than a node can have disks: each is looked for among those of all others. */
const DIRECTORIES_MAX = 1000
/** More listeners or features than a node has: each registration is kept, and read by all. */
const REGISTERED_MAX = 100

/** BrokerRegistration: KIP-631, KIP-858, KIP-966. The epoch is the offset at which its record will be written. */
export function registerBroker(
  state: ControllerState,
  request: BrokerRegistrationRequest,
  nextOffset: Offset,
  now: Millis,
): { records: MetadataRecord[]; response: InputOf<typeof BrokerRegistrationResponse> } {
  const { brokerId, incarnationId } = request
  const existing = state.image.broker(brokerId)
  const errorCode = registrationError(state, request, existing, now)
  if (errorCode !== ErrorCode.NONE) return { records: [], response: { errorCode, brokerEpoch: -1 } }

  const records: MetadataRecord[] = []
  const amends = existing?.incarnationId === incarnationId
  if (!amends && existing !== undefined) {
    // Only who can name its last epoch has stopped properly; from anyone else what was acknowledged may be gone.
    const clean = request.previousBrokerEpoch === existing.epoch || !state.elrEnabled
    const leaving = { leaving: new Set([brokerId]), lacking: lackingReplicas(state, existing, request.logDirs) }
    for (const record of electionsFor(state, clean ? leaving : { unclean: brokerId })) records.push(record)
  }
  if (amends) for (const record of directoriesAmended(state, existing, request)) records.push(record)
  const brokerEpoch = amends ? existing.epoch : nextOffset + records.length
  records.push(
    metadataRecord('RegisterBroker', state.metadataVersion, {
      brokerId,
      incarnationId,
      brokerEpoch,
      endPoints: request.listeners,
      features: withMetadataVersion(request.features),
      rack: request.rack,
      fenced: amends ? existing.fenced : true,
      inControlledShutdown: amends ? existing.inControlledShutdown : false,
      logDirs: state.metadataVersion >= METADATA_VERSION_DIRECTORIES ? request.logDirs : [],
    }),
  )
  if (!amends) state.liveness.forget(brokerId)
  state.liveness.heard(brokerId, -1, now)
  return { records, response: { errorCode: ErrorCode.NONE, brokerEpoch } }
}

/**
 * Which of its replicas a broker has left behind that names other directories than in the life before: those that lay in one
 * that is gone, however clean the stop was. Where some are, one that was lost when it stopped may have lain there, too.
 */
function lackingReplicas(
  { elrEnabled }: ControllerState,
  existing: BrokerImage,
  logDirs: readonly Uuid[],
): (directory: Uuid) => boolean {
  if (!elrEnabled || existing.logDirs.length === 0) return () => false
  const isMissing = existing.logDirs.some(dir => !logDirs.includes(dir))
  return directory => (RESERVED_DIRECTORIES.has(directory) ? isMissing : !logDirs.includes(directory))
}

/** What follows where a life that goes on has other directories than it told of. */
function directoriesAmended(
  state: ControllerState,
  existing: BrokerImage,
  { brokerId, logDirs }: BrokerRegistrationRequest,
): MetadataRecord[] {
  // Who told of none before may have had any.
  if (existing.fenced || existing.logDirs.length === 0) return []
  const gone = existing.logDirs.filter(dir => !logDirs.includes(dir))
  const back = logDirs.filter(dir => !existing.logDirs.includes(dir))
  if (gone.length === 0 && back.length === 0) return []
  return electionsFor(state, {
    offlineDirs: { brokerId, dirs: new Set(gone) },
    ...(back.length > 0 && { onlineDirs: { brokerId, dirs: new Set(back) } }),
  })
}

function registrationError(
  state: ControllerState,
  request: BrokerRegistrationRequest,
  existing: BrokerImage | undefined,
  now: Millis,
): number {
  const { image, liveness, options } = state
  const { brokerId, logDirs } = request
  if (request.clusterId !== options.clusterId) return ErrorCode.INCONSISTENT_CLUSTER_ID
  // A partition led by such a number would be one that nobody leads.
  if (brokerId < 0) return ErrorCode.INVALID_REGISTRATION
  if (logDirs.length > DIRECTORIES_MAX) return ErrorCode.INVALID_REGISTRATION
  if (request.listeners.length > REGISTERED_MAX || request.features.length > REGISTERED_MAX) {
    return ErrorCode.INVALID_REGISTRATION
  }
  const isOther = existing !== undefined && existing.incarnationId !== request.incarnationId
  if (isOther && !existing.fenced && liveness.isLive(brokerId, now)) {
    // Who holds the same directories has their locks, so the process before it is gone: no reason to sit out a session
    // that only the change of controllers gave it.
    const sameDirs = existing.logDirs.some(dir => logDirs.includes(dir))
    if (!liveness.isPresumed(brokerId) || !sameDirs) return ErrorCode.DUPLICATE_BROKER_REGISTRATION
  }
  if (request.isMigratingZkBroker) return ErrorCode.BROKER_ID_NOT_REGISTERED
  if (state.metadataVersion >= METADATA_VERSION_DIRECTORIES) {
    if (logDirs.length === 0 || logDirs.some(dir => RESERVED_DIRECTORIES.has(dir)))
      return ErrorCode.INVALID_REGISTRATION
    const own = new Set(logDirs)
    if (own.size !== logDirs.length) return ErrorCode.INVALID_REGISTRATION
    for (const broker of image.brokers.values()) {
      if (broker.id !== brokerId && broker.logDirs.some(dir => own.has(dir))) {
        return ErrorCode.INVALID_REGISTRATION
      }
    }
  }
  const supported = new Map(withMetadataVersion(request.features).map(feature => [feature.name, feature]))
  for (const [name, level] of image.features) {
    // A cluster that Kafka made may have finalized what this release does not know: nobody here can be held to it.
    if (level > (options.features.get(name)?.max ?? 0)) continue
    const range = supported.get(name)
    if (level < (range?.minSupportedVersion ?? 0) || level > (range?.maxSupportedVersion ?? 0)) {
      return ErrorCode.UNSUPPORTED_VERSION
    }
  }
  return ErrorCode.NONE
}

/** Who does not say which metadata versions it reads, reads the oldest. */
function withMetadataVersion(features: BrokerRegistrationRequest['features']): BrokerRegistrationRequest['features'] {
  if (features.some(feature => feature.name === 'metadata.version')) return features
  const oldest = METADATA_VERSION_MIN
  return [...features, { name: 'metadata.version', minSupportedVersion: oldest, maxSupportedVersion: oldest }]
}

type BrokerState = 'fenced' | 'unfenced' | 'controlled-shutdown' | 'shutdown-now'

/** BrokerHeartbeat: KIP-631. */
export function brokerHeartbeat(
  state: ControllerState,
  request: BrokerHeartbeatRequest,
  now: Millis,
): { records: MetadataRecord[]; response: InputOf<typeof BrokerHeartbeatResponse> } {
  const { brokerId, brokerEpoch, currentMetadataOffset } = request
  const broker = state.image.broker(brokerId)
  const errorCode =
    broker === undefined ? ErrorCode.BROKER_ID_NOT_REGISTERED : state.brokerEpochError(brokerId, brokerEpoch)
  if (broker === undefined || errorCode !== ErrorCode.NONE) return { records: [], response: { errorCode } }
  const { offlineLogDirs, cordonedLogDirs } = request
  if (offlineLogDirs.length > DIRECTORIES_MAX || (cordonedLogDirs?.length ?? 0) > DIRECTORIES_MAX) {
    return { records: [], response: { errorCode: ErrorCode.INVALID_REQUEST } }
  }

  state.liveness.heard(brokerId, currentMetadataOffset, now)
  const before = stateOf(broker)
  const offline = broker.logDirs.filter(dir => offlineLogDirs.includes(dir))
  let after = nextState(state, broker, before, request)
  // Without any directory it can hold nothing, and a registration without directories would say that it told of none.
  const hasNone = offline.length > 0 && offline.length === broker.logDirs.length
  if (hasNone && after === 'unfenced') after = 'fenced'
  // What the loss of a directory changes comes first; the broker joins with its next heartbeat.
  if (offline.length > 0 && after === 'unfenced') after = before

  const failed = new Set(offline)
  const records = transition(state, broker, before, after, directory => failed.has(directory))
  if (offline.length > 0 && after === before) {
    const offlineDirs = { brokerId, dirs: failed }
    for (const record of electionsFor(state, { offlineDirs })) records.push(record)
  }
  if (offline.length > 0 && !hasNone) {
    const logDirs = broker.logDirs.filter(dir => !offline.includes(dir))
    records.push(registrationChange(state, broker, { logDirs }))
  }
  const cordoned = request.cordonedLogDirs
  if (cordoned !== null && state.metadataVersion >= METADATA_VERSION_CORDONED) {
    if (broker.cordonedLogDirs === null || broker.cordonedLogDirs.join() !== cordoned.join()) {
      records.push(registrationChange(state, broker, { cordonedLogDirs: cordoned }))
    }
  }
  return {
    records,
    response: {
      errorCode: ErrorCode.NONE,
      isCaughtUp: currentMetadataOffset >= broker.epoch,
      isFenced: after === 'fenced' || after === 'shutdown-now',
      shouldShutDown: after === 'shutdown-now',
    },
  }
}

function stateOf(broker: BrokerImage): BrokerState {
  if (broker.fenced) return 'fenced'
  return broker.inControlledShutdown ? 'controlled-shutdown' : 'unfenced'
}

function nextState(
  state: ControllerState,
  broker: BrokerImage,
  current: BrokerState,
  request: BrokerHeartbeatRequest,
): BrokerState {
  const { wantFence, wantShutDown, currentMetadataOffset } = request
  switch (current) {
    case 'fenced':
      if (wantShutDown) return 'shutdown-now'
      // What it sent before it began to go came late: nobody goes back to work in a life that is ending.
      if (broker.inControlledShutdown) return 'fenced'
      return !wantFence && currentMetadataOffset >= broker.epoch ? 'unfenced' : 'fenced'
    case 'unfenced':
      if (wantFence) return wantShutDown ? 'shutdown-now' : 'fenced'
      if (!wantShutDown) return 'unfenced'
      return hasLeaderships(state, broker.id) ? 'controlled-shutdown' : 'shutdown-now'
    default:
      if (hasLeaderships(state, broker.id)) return 'controlled-shutdown'
      return state.liveness.shutdownIsKnown(broker.id, activeBrokers(state)) ? 'shutdown-now' : 'controlled-shutdown'
  }
}

function* activeBrokers(state: ControllerState): Iterable<NodeId> {
  for (const id of state.image.brokers.keys()) if (state.isActive(id)) yield id
}

function transition(
  state: ControllerState,
  broker: BrokerImage,
  before: BrokerState,
  after: BrokerState,
  lacking: (directory: Uuid) => boolean,
): MetadataRecord[] {
  if (before === after || (before === 'fenced' && after === 'shutdown-now')) return []
  switch (after) {
    case 'unfenced':
      return [registrationChange(state, broker, { fenced: -1 }), ...electionsFor(state, { joining: broker.id })]
    case 'controlled-shutdown':
      return [
        ...electionsFor(state, { leaving: new Set([broker.id]), lacking }),
        registrationChange(state, broker, { inControlledShutdown: 1 }),
      ]
    default:
      return fenceBrokers(state, [broker], lacking)
  }
}

/** One batch for all of them, so that no leadership moves to one that goes as well. */
export function fenceBrokers(
  state: ControllerState,
  brokers: readonly BrokerImage[],
  lacking?: (directory: Uuid) => boolean,
): MetadataRecord[] {
  if (brokers.length === 0) return []
  const leaving = new Set(brokers.map(broker => broker.id))
  return [
    ...electionsFor(state, { leaving, ...(lacking !== undefined && { lacking }) }),
    ...brokers.map(broker => registrationChange(state, broker, { fenced: 1 })),
  ]
}

function registrationChange(
  state: ControllerState,
  broker: BrokerImage,
  change: {
    readonly fenced?: number
    readonly inControlledShutdown?: number
    readonly logDirs?: readonly string[]
    readonly cordonedLogDirs?: readonly string[]
  },
): MetadataRecord {
  const identity = { brokerId: broker.id, brokerEpoch: broker.epoch }
  return metadataRecord('BrokerRegistrationChange', state.metadataVersion, { ...identity, ...change })
}

/** Whose session has run out. */
export function staleBrokers(state: ControllerState, now: Millis): BrokerImage[] {
  return [...state.image.brokers.values()].filter(broker => !broker.fenced && !state.liveness.isLive(broker.id, now))
}

/** UnregisterBroker: KIP-631. */
export function unregisterBroker(
  state: ControllerState,
  request: UnregisterBrokerRequest,
): { records: MetadataRecord[]; response: InputOf<typeof UnregisterBrokerResponse> } {
  const { brokerId } = request
  const broker = state.image.broker(brokerId)
  if (broker === undefined) {
    const errorMessage = `Broker ID ${brokerId} is not currently registered`
    return { records: [], response: { errorCode: ErrorCode.BROKER_ID_NOT_REGISTERED, errorMessage } }
  }
  const brokerEpoch = broker.epoch
  state.liveness.forget(brokerId)
  return {
    records: [
      ...electionsFor(state, { unclean: brokerId }),
      metadataRecord('UnregisterBroker', state.metadataVersion, { brokerId, brokerEpoch }),
    ],
    response: { errorCode: ErrorCode.NONE, errorMessage: null },
  }
}

/** ControllerRegistration: KIP-919. */
export function registerController(
  state: ControllerState,
  request: ControllerRegistrationRequest,
): { records: MetadataRecord[]; response: InputOf<typeof ControllerRegistrationResponse> } {
  const { listeners, ...same } = request
  const refuse = (errorMessage: string) => ({
    records: [],
    response: { errorCode: ErrorCode.INVALID_REQUEST, errorMessage },
  })
  if (request.controllerId < 0) return refuse(`${request.controllerId} is no number of a node`)
  if (listeners.length > REGISTERED_MAX || request.features.length > REGISTERED_MAX) {
    return refuse(`more than ${REGISTERED_MAX} listeners or features`)
  }
  const record = metadataRecord('RegisterController', state.metadataVersion, { ...same, endPoints: listeners })
  return { records: [record], response: { errorCode: ErrorCode.NONE, errorMessage: null } }
}
