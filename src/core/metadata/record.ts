import { ZERO_UUID } from '#base/uuid.ts'
import * as framing from '#protocol/records/framing.ts'
import * as schemas from '#protocol/records/metadata-records.ts'
import { type InputOf, includesVersion, type MessageOf, type Schema } from '#protocol/schema.ts'

/** Every record of the metadata log, by the name of its schema less `Record`. */
const SCHEMAS = {
  RegisterBroker: schemas.RegisterBrokerRecord,
  UnregisterBroker: schemas.UnregisterBrokerRecord,
  Topic: schemas.TopicRecord,
  Partition: schemas.PartitionRecord,
  Config: schemas.ConfigRecord,
  PartitionChange: schemas.PartitionChangeRecord,
  FenceBroker: schemas.FenceBrokerRecord,
  UnfenceBroker: schemas.UnfenceBrokerRecord,
  RemoveTopic: schemas.RemoveTopicRecord,
  DelegationToken: schemas.DelegationTokenRecord,
  UserScramCredential: schemas.UserScramCredentialRecord,
  FeatureLevel: schemas.FeatureLevelRecord,
  ClientQuota: schemas.ClientQuotaRecord,
  ProducerIds: schemas.ProducerIdsRecord,
  BrokerRegistrationChange: schemas.BrokerRegistrationChangeRecord,
  AccessControlEntry: schemas.AccessControlEntryRecord,
  RemoveAccessControlEntry: schemas.RemoveAccessControlEntryRecord,
  NoOp: schemas.NoOpRecord,
  ZkMigrationState: schemas.ZkMigrationStateRecord,
  RemoveUserScramCredential: schemas.RemoveUserScramCredentialRecord,
  BeginTransaction: schemas.BeginTransactionRecord,
  EndTransaction: schemas.EndTransactionRecord,
  AbortTransaction: schemas.AbortTransactionRecord,
  RemoveDelegationToken: schemas.RemoveDelegationTokenRecord,
  RegisterController: schemas.RegisterControllerRecord,
  ClearElr: schemas.ClearElrRecord,
} satisfies Record<string, Schema>

type Schemas = typeof SCHEMAS
export type MetadataRecordType = keyof Schemas

/** A record of the metadata log and the version in which it is, or will be, written. */
export type MetadataRecord = {
  [Type in MetadataRecordType]: {
    readonly type: Type
    readonly version: number
    readonly value: MessageOf<Schemas[Type]>
  }
}[MetadataRecordType]

/** A record that this release does not know: of a later one, or in a later version. */
export interface UnknownMetadataRecord {
  readonly type: 'Unknown'
  readonly apiKey: number
  readonly version: number
}

export type FoldedRecord = MetadataRecord | UnknownMetadataRecord

const BY_API_KEY = new Map<number, { type: MetadataRecordType; schema: Schema }>(
  Object.entries(SCHEMAS).map(([type, schema]) => [
    schema.apiKey as number,
    { type: type as MetadataRecordType, schema },
  ]),
)

/** From which metadata.version on a record is written in a version above 0: pairs of level and record version. */
const VERSIONS_BY_LEVEL: { readonly [Type in MetadataRecordType]?: readonly (readonly [number, number])[] } = {
  RegisterBroker: [
    [30, 4],
    [17, 3],
    [8, 2],
    [7, 1],
  ],
  BrokerRegistrationChange: [
    [30, 3],
    [17, 2],
    [7, 1],
  ],
  Partition: [
    [23, 2],
    [17, 1],
  ],
  PartitionChange: [
    [23, 2],
    [17, 1],
  ],
}

function recordVersion(type: MetadataRecordType, metadataVersion: number): number {
  return VERSIONS_BY_LEVEL[type]?.find(([level]) => metadataVersion >= level)?.[1] ?? 0
}

/** What a record has and what it says by default; the same for all, as nobody changes a record. */
const FIELDS: ReadonlyMap<MetadataRecordType, readonly { readonly name: string; readonly byDefault: unknown }[]> =
  new Map(
    Object.entries(SCHEMAS).map(([type, { fields }]) => [
      type as MetadataRecordType,
      Object.entries(fields as Schema['fields']).map(([name, field]) => ({ name, byDefault: defaultOf(field) })),
    ]),
  )

/** Makes a record of what is given; fields left out take their default. */
export function metadataRecord<Type extends MetadataRecordType>(
  type: Type,
  metadataVersion: number,
  value: InputOf<Schemas[Type]>,
): MetadataRecord {
  const filled: Record<string, unknown> = {}
  for (const { name, byDefault } of FIELDS.get(type) ?? []) {
    const given = (value as Record<string, unknown>)[name]
    filled[name] = given === undefined ? byDefault : given
  }
  return { type, version: recordVersion(type, metadataVersion), value: filled } as MetadataRecord
}

function defaultOf(field: Schema['fields'][string]): unknown {
  if (field.default !== undefined) return field.default
  switch (field.type) {
    case 'array':
      return []
    case 'bool':
      return false
    case 'string':
      return ''
    case 'uuid':
      return ZERO_UUID
    case 'bytes':
    case 'records':
      return Buffer.alloc(0)
    default:
      return 0
  }
}

/** A record's value in the metadata log. Its key is null. */
export function encodeMetadataRecord(record: MetadataRecord): Buffer {
  const schema: Schema = SCHEMAS[record.type]
  return framing.encodeMetadataRecord(schema, record.version, record.value as InputOf<Schema>)
}

/** Reads a record's value. A type or version that is not known gives `Unknown`; broken bytes are a `DecodeError`. */
export function decodeMetadataRecord(value: Uint8Array): FoldedRecord {
  const { apiKey, version, message } = framing.openMetadataRecord(value)
  const known = BY_API_KEY.get(apiKey)
  if (known === undefined || !includesVersion(known.schema.versions, version))
    return { type: 'Unknown', apiKey, version }
  return { type: known.type, version, value: framing.decodeWhole(known.schema, version, message) } as MetadataRecord
}
