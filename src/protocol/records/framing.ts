import { ByteReader, ByteWriter, DecodeError } from '#base/bytes.ts'
import { decode, encode } from '../codec.ts'
import { type InputOf, type MessageOf, parseVersions, type Schema } from '../schema.ts'
import * as consumerGroup from './consumer-group-records.ts'
import * as metadata from './metadata-records.ts'
import * as group from './offset-records.ts'
import * as shareGroup from './share-group-records.ts'
import * as share from './share-records.ts'
import * as streamsGroup from './streams-group-records.ts'
import * as tier from './tier-records.ts'
import * as transaction from './transaction-records.ts'

/** How messages become the keys and values of records: what stands before the message says what it is. */

// Metadata records: frame version 1, type and version as varints, then the message; the key is null.

const FRAME_VERSION = 1

type SchemaTable = { readonly [name: string]: Schema }
/** One decoded record of a table: `name` tells which. */
export type RecordOf<T extends SchemaTable> = {
  [Name in keyof T]: { readonly name: Name; readonly version: number; readonly value: MessageOf<T[Name]> }
}[keyof T]

/** The records of `__cluster_metadata`. */
export const METADATA_RECORDS = { ...metadata }
export type MetadataRecord = RecordOf<typeof METADATA_RECORDS>
/** The records of `__remote_log_metadata`. */
export const TIER_RECORDS = { ...tier }
export type TierRecord = RecordOf<typeof TIER_RECORDS>

export function encodeMetadataRecord<S extends Schema>(schema: S, version: number, value: InputOf<S>): Buffer {
  const writer = new ByteWriter()
  writer.uvarint(FRAME_VERSION)
  writer.uvarint(schema.apiKey as number)
  writer.uvarint(version)
  encode(schema, version, value, writer)
  return writer.written()
}

/** @throws DecodeError also for a type or version that is not known: it must not be passed over. */
export function decodeMetadataRecord(bytes: Uint8Array): MetadataRecord {
  return decodeFramed(METADATA_RECORDS, metadataByType, bytes)
}

export function decodeTierRecord(bytes: Uint8Array): TierRecord {
  return decodeFramed(TIER_RECORDS, tierByType, bytes)
}

const metadataByType = namesByType(METADATA_RECORDS)
const tierByType = namesByType(TIER_RECORDS)

function namesByType<T extends SchemaTable>(table: T): ReadonlyMap<number, keyof T> {
  return new Map(Object.entries(table).map(([name, schema]) => [schema.apiKey as number, name]))
}

function decodeFramed<T extends SchemaTable>(
  table: T,
  byType: ReadonlyMap<number, keyof T>,
  bytes: Uint8Array,
): RecordOf<T> {
  const reader = new ByteReader(bytes)
  const frameVersion = reader.uvarint()
  if (frameVersion !== FRAME_VERSION) throw new DecodeError(`a metadata record of frame version ${frameVersion}`)
  const type = reader.uvarint()
  const name = byType.get(type)
  if (name === undefined) throw new DecodeError(`a metadata record of type ${type}`)
  const version = reader.uvarint()
  const value = decode(table[name] as Schema, version, reader)
  checkEnd(reader)
  return { name, version, value } as RecordOf<T>
}

function checkEnd(reader: ByteReader): void {
  if (reader.remaining > 0) throw new DecodeError(`${reader.remaining} bytes behind the message`)
}

// A version of 16 bits, then the message: values of coordinators' records, what members of classic groups tell each
// other, principals.

export function encodeVersioned<S extends Schema>(schema: S, version: number, value: InputOf<S>): Buffer {
  const writer = new ByteWriter()
  writer.int16(version)
  encode(schema, version, value, writer)
  return writer.written()
}

export function decodeVersioned<S extends Schema>(schema: S, bytes: Uint8Array): MessageOf<S> & { version: number } {
  const reader = new ByteReader(bytes)
  const version = reader.int16()
  const value = decode(schema, version, reader)
  checkEnd(reader)
  return { ...value, version }
}

// Coordinators' records: the key is its type in 16 bits and the key message, the value is versioned, null deletes.

interface CoordinatorSchemas {
  readonly key: Schema
  readonly value: Schema
}
export type CoordinatorTable = { readonly [name: string]: CoordinatorSchemas }

/** One decoded record of a coordinator's log: `name` tells which. */
export type CoordinatorRecordOf<T extends CoordinatorTable> = {
  [Name in keyof T]: {
    readonly name: Name
    readonly key: MessageOf<T[Name]['key']>
    readonly value: MessageOf<T[Name]['value']> | null
  }
}[keyof T]

/** The records of `__consumer_offsets`. */
export const GROUP_RECORDS = {
  LegacyOffsetCommit: { key: group.LegacyOffsetCommitKey, value: group.LegacyOffsetCommitValue },
  OffsetCommit: { key: group.OffsetCommitKey, value: group.OffsetCommitValue },
  GroupMetadata: { key: group.GroupMetadataKey, value: group.GroupMetadataValue },
  ConsumerGroupMetadata: {
    key: consumerGroup.ConsumerGroupMetadataKey,
    value: consumerGroup.ConsumerGroupMetadataValue,
  },
  ConsumerGroupPartitionMetadata: {
    key: consumerGroup.ConsumerGroupPartitionMetadataKey,
    value: consumerGroup.ConsumerGroupPartitionMetadataValue,
  },
  ConsumerGroupMemberMetadata: {
    key: consumerGroup.ConsumerGroupMemberMetadataKey,
    value: consumerGroup.ConsumerGroupMemberMetadataValue,
  },
  ConsumerGroupTargetAssignmentMetadata: {
    key: consumerGroup.ConsumerGroupTargetAssignmentMetadataKey,
    value: consumerGroup.ConsumerGroupTargetAssignmentMetadataValue,
  },
  ConsumerGroupTargetAssignmentMember: {
    key: consumerGroup.ConsumerGroupTargetAssignmentMemberKey,
    value: consumerGroup.ConsumerGroupTargetAssignmentMemberValue,
  },
  ConsumerGroupCurrentMemberAssignment: {
    key: consumerGroup.ConsumerGroupCurrentMemberAssignmentKey,
    value: consumerGroup.ConsumerGroupCurrentMemberAssignmentValue,
  },
  ConsumerGroupRegularExpression: {
    key: consumerGroup.ConsumerGroupRegularExpressionKey,
    value: consumerGroup.ConsumerGroupRegularExpressionValue,
  },
  ShareGroupMemberMetadata: {
    key: shareGroup.ShareGroupMemberMetadataKey,
    value: shareGroup.ShareGroupMemberMetadataValue,
  },
  ShareGroupMetadata: { key: shareGroup.ShareGroupMetadataKey, value: shareGroup.ShareGroupMetadataValue },
  ShareGroupTargetAssignmentMetadata: {
    key: shareGroup.ShareGroupTargetAssignmentMetadataKey,
    value: shareGroup.ShareGroupTargetAssignmentMetadataValue,
  },
  ShareGroupTargetAssignmentMember: {
    key: shareGroup.ShareGroupTargetAssignmentMemberKey,
    value: shareGroup.ShareGroupTargetAssignmentMemberValue,
  },
  ShareGroupCurrentMemberAssignment: {
    key: shareGroup.ShareGroupCurrentMemberAssignmentKey,
    value: shareGroup.ShareGroupCurrentMemberAssignmentValue,
  },
  ShareGroupStatePartitionMetadata: {
    key: shareGroup.ShareGroupStatePartitionMetadataKey,
    value: shareGroup.ShareGroupStatePartitionMetadataValue,
  },
  StreamsGroupMetadata: { key: streamsGroup.StreamsGroupMetadataKey, value: streamsGroup.StreamsGroupMetadataValue },
  StreamsGroupMemberMetadata: {
    key: streamsGroup.StreamsGroupMemberMetadataKey,
    value: streamsGroup.StreamsGroupMemberMetadataValue,
  },
  StreamsGroupTargetAssignmentMetadata: {
    key: streamsGroup.StreamsGroupTargetAssignmentMetadataKey,
    value: streamsGroup.StreamsGroupTargetAssignmentMetadataValue,
  },
  StreamsGroupTargetAssignmentMember: {
    key: streamsGroup.StreamsGroupTargetAssignmentMemberKey,
    value: streamsGroup.StreamsGroupTargetAssignmentMemberValue,
  },
  StreamsGroupCurrentMemberAssignment: {
    key: streamsGroup.StreamsGroupCurrentMemberAssignmentKey,
    value: streamsGroup.StreamsGroupCurrentMemberAssignmentValue,
  },
  StreamsGroupTopology: { key: streamsGroup.StreamsGroupTopologyKey, value: streamsGroup.StreamsGroupTopologyValue },
}
export type GroupRecord = CoordinatorRecordOf<typeof GROUP_RECORDS>

/** The records of `__transaction_state`. */
export const TRANSACTION_RECORDS = {
  TransactionLog: { key: transaction.TransactionLogKey, value: transaction.TransactionLogValue },
}
export type TransactionRecord = CoordinatorRecordOf<typeof TRANSACTION_RECORDS>

/** The records of `__share_group_state`. */
export const SHARE_RECORDS = {
  ShareSnapshot: { key: share.ShareSnapshotKey, value: share.ShareSnapshotValue },
  ShareUpdate: { key: share.ShareUpdateKey, value: share.ShareUpdateValue },
}
export type ShareRecord = CoordinatorRecordOf<typeof SHARE_RECORDS>

export function encodeCoordinatorKey<S extends Schema>(schema: S, key: InputOf<S>): Buffer {
  const writer = new ByteWriter()
  writer.int16(schema.apiKey as number)
  encode(schema, 0, key, writer)
  return writer.written()
}

/** Key and value of one record; without a value the record deletes its key. `version` is the value's, by default its highest. */
export function encodeCoordinatorRecord<T extends CoordinatorSchemas>(
  schemas: T,
  key: InputOf<T['key']>,
  value: InputOf<T['value']> | null,
  version: number = parseVersions(schemas.value.versions).last,
): { key: Buffer; value: Buffer | null } {
  return {
    key: encodeCoordinatorKey(schemas.key, key),
    value: value === null ? null : encodeVersioned(schemas.value, version, value),
  }
}

/** Undefined for a type that the table does not have: a newer coordinator wrote it, and it is passed over. */
export function decodeCoordinatorRecord<T extends CoordinatorTable>(
  table: T,
  key: Uint8Array,
  value: Uint8Array | null,
): CoordinatorRecordOf<T> | undefined {
  const reader = new ByteReader(key)
  const type = reader.int16()
  const entry = Object.entries(table).find(([, schemas]) => schemas.key.apiKey === type)
  if (entry === undefined) return undefined
  const [name, schemas] = entry
  const keyMessage = decode(schemas.key, 0, reader)
  checkEnd(reader)
  const valueMessage = value === null ? null : decodeVersioned(schemas.value, value)
  return { name, key: keyMessage, value: valueMessage } as CoordinatorRecordOf<T>
}
