import type { NodeId, Offset } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import type {
  BrokerRegistrationChangeRecord,
  RegisterBrokerRecord,
  RegisterControllerRecord,
} from '#protocol/records/metadata-records.ts'
import { LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY } from './partition-image.ts'

export interface EndpointImage {
  readonly name: string
  readonly host: string
  readonly port: number
  /** 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL. */
  readonly securityProtocol: number
}

export interface FeatureRange {
  readonly min: number
  readonly max: number
}

export interface BrokerImage {
  readonly id: NodeId
  /** The offset of the registration's record. */
  readonly epoch: Offset
  /** A fresh id of each start of the process. */
  readonly incarnationId: Uuid
  readonly endPoints: readonly EndpointImage[]
  readonly features: ReadonlyMap<string, FeatureRange>
  readonly rack: string | null
  readonly fenced: boolean
  readonly inControlledShutdown: boolean
  readonly logDirs: readonly Uuid[]
  /** Directories that take no new replicas (KIP-1066); null where the broker does not say. */
  readonly cordonedLogDirs: readonly Uuid[] | null
}

export interface ControllerImage {
  readonly id: NodeId
  readonly incarnationId: Uuid
  readonly endPoints: readonly EndpointImage[]
  readonly features: ReadonlyMap<string, FeatureRange>
}

/** Unfenced and not about to leave: may lead, and may be in an ISR. */
export function isActive(broker: BrokerImage | undefined): boolean {
  return broker !== undefined && !broker.fenced && !broker.inControlledShutdown
}

/** Whether a replica's directory is online, as far as its broker has told. */
export function directoryIsOnline(broker: BrokerImage | undefined, directory: Uuid | undefined): boolean {
  if (directory === undefined || directory === UNASSIGNED_DIRECTORY || directory === MIGRATING_DIRECTORY) return true
  if (directory === LOST_DIRECTORY || broker === undefined) return false
  return broker.logDirs.length === 0 || broker.logDirs.includes(directory)
}

export function registeredBroker(record: RegisterBrokerRecord): BrokerImage {
  return {
    id: record.brokerId,
    epoch: record.brokerEpoch,
    incarnationId: record.incarnationId,
    endPoints: endPointsOf(record),
    features: featuresOf(record),
    rack: record.rack,
    fenced: record.fenced,
    inControlledShutdown: record.inControlledShutdown,
    logDirs: record.logDirs,
    cordonedLogDirs: record.cordonedLogDirs,
  }
}

export function registeredController(record: RegisterControllerRecord): ControllerImage {
  return {
    id: record.controllerId,
    incarnationId: record.incarnationId,
    endPoints: endPointsOf(record),
    features: featuresOf(record),
  }
}

/** What a record says anew; 0, an empty list and null leave things as they are. */
export function changedRegistration(record: BrokerRegistrationChangeRecord): Partial<BrokerImage> {
  const { fenced, inControlledShutdown, logDirs, cordonedLogDirs } = record
  return {
    ...(fenced !== 0 && { fenced: fenced > 0 }),
    ...(inControlledShutdown !== 0 && { inControlledShutdown: inControlledShutdown > 0 }),
    ...(logDirs.length > 0 && { logDirs }),
    ...(cordonedLogDirs !== null && { cordonedLogDirs }),
  }
}

function endPointsOf(record: RegisterBrokerRecord | RegisterControllerRecord): EndpointImage[] {
  return record.endPoints.map(({ name, host, port, securityProtocol }) => ({ name, host, port, securityProtocol }))
}

function featuresOf(record: RegisterBrokerRecord | RegisterControllerRecord): Map<string, FeatureRange> {
  return new Map(record.features.map(f => [f.name, { min: f.minSupportedVersion, max: f.maxSupportedVersion }]))
}
