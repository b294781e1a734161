import { ByteReader, ByteWriter, DecodeError } from '#base/bytes.ts'
import { decode, encode } from '../codec.ts'
import type { InputOf, MessageOf, Schema } from '../schema.ts'
import * as consumerGroup from './consumer-group-records.ts'
import * as metadata from './metadata-records.ts'
import * as group from './offset-records.ts'
import * as shareGroup from './share-group-records.ts'
import * as share from './share-records.ts'
import * as streamsGroup from './streams-group-records.ts'
import * as tier from './tier-records.ts'
import * as transaction from './transaction-records.ts'

// How messages become the keys and values of records: what stands before a message says what it is. Decoding throws a
// DecodeError for bytes that are no such thing.

/** A message that nothing may follow. */
export function decodeWhole<S extends Schema>(schema: S, version: number, reader: ByteReader): MessageOf<S> {
  const message = decode(schema, version, reader)
  if (reader.remaining > 0) throw new DecodeError(`${reader.remaining} bytes behind ${schema.name}`)
  return message
}

// -- metadata records: frame version 1, type and version as varints, then the message; the key is null

const FRAME_VERSION = 1

/** The records of `__cluster_metadata`. */
export const METADATA_RECORDS = { ...metadata }
/** The records of `__remote_log_metadata`. */
export const TIER_RECORDS = { ...tier }

export function encodeMetadataRecord<S extends Schema>(schema: S, version: number, value: InputOf<S>): Buffer {
  const writer = new ByteWriter()
  writer.uvarint(FRAME_VERSION)
  writer.uvarint(schema.apiKey as number)
  writer.uvarint(version)
  encode(schema, version, value, writer)
  return writer.written()
}

/** What a record is; `message` stands where its message begins. */
export function openMetadataRecord(bytes: Uint8Array): {
  readonly apiKey: number
  readonly version: number
  readonly message: ByteReader
} {
  const message = new ByteReader(bytes)
  const frameVersion = message.uvarint()
  if (frameVersion !== FRAME_VERSION) throw new DecodeError(`a metadata record of frame version ${frameVersion}`)
  return { apiKey: message.uvarint(), version: message.uvarint(), message }
}

// -- a version of 16 bits, then the message: values of coordinators' records, what members of classic groups tell each
// other, principals

export function encodeVersioned<S extends Schema>(schema: S, version: number, value: InputOf<S>): Buffer {
  const writer = new ByteWriter()
  writer.int16(version)
  encode(schema, version, value, writer)
  return writer.written()
}

export function decodeVersioned<S extends Schema>(schema: S, bytes: Uint8Array): MessageOf<S> {
  const reader = new ByteReader(bytes)
  return decodeWhole(schema, reader.int16(), reader)
}

// -- coordinators' records: the key is its type in 16 bits and the key message, the value is versioned, null deletes

export function encodeCoordinatorKey<S extends Schema>(schema: S, key: InputOf<S>): Buffer {
  const writer = new ByteWriter()
  writer.int16(schema.apiKey as number)
  encode(schema, 0, key, writer)
  return writer.written()
}

/** What a record is about; `message` stands where the key's message, of version 0, begins. */
export function openCoordinatorKey(bytes: Uint8Array): { readonly type: number; readonly message: ByteReader } {
  const message = new ByteReader(bytes)
  return { type: message.int16(), message }
}

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

/** The records of `__transaction_state`. */
export const TRANSACTION_RECORDS = {
  TransactionLog: { key: transaction.TransactionLogKey, value: transaction.TransactionLogValue },
}

/** The records of `__share_group_state`. */
export const SHARE_RECORDS = {
  ShareSnapshot: { key: share.ShareSnapshotKey, value: share.ShareSnapshotValue },
  ShareUpdate: { key: share.ShareUpdateKey, value: share.ShareUpdateValue },
}
