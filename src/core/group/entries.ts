import { ByteReader, ByteWriter, DecodeError } from '#base/bytes.ts'
import { ZERO_UUID } from '#base/uuid.ts'
import { decode, encode } from '#protocol/codec.ts'
import {
  GroupMetadataKey,
  GroupMetadataValue,
  LegacyOffsetCommitKey,
  LegacyOffsetCommitValue,
  OffsetCommitKey,
  OffsetCommitValue,
} from '#protocol/records/offset-records.ts'
import type { InputOf, MessageOf, Schema } from '#protocol/schema.ts'

/** A classic group as it was last written; null when it was deleted. */
export interface GroupMetadataEntry {
  readonly kind: 'GroupMetadata'
  readonly group: string
  readonly value: GroupMetadataValue | null
}

/** A committed offset; null when it was deleted. */
export interface OffsetCommitEntry {
  readonly kind: 'OffsetCommit'
  readonly group: string
  readonly topic: string
  readonly partition: number
  readonly value: OffsetCommitValue | null
}

/** Records of `__consumer_offsets` as this shard reads and writes them. */
export type GroupEntry = GroupMetadataEntry | OffsetCommitEntry

/** A record of another kind of group (consumer, share, streams). It stays in the log untouched. */
export interface UnknownEntry {
  readonly kind: 'Unknown'
  readonly keyType: number
}

/** Offsets with an expire timestamp of their own need version 1; it has no leader epoch and no topic id. */
const OFFSET_VERSION = 4
const OFFSET_VERSION_WITH_EXPIRY = 1
const GROUP_VERSION = 3

function frame<S extends Schema>(schema: S, prefix: number, version: number, message: InputOf<S>): Buffer {
  const writer = new ByteWriter()
  writer.int16(prefix)
  encode(schema, version, message, writer)
  return writer.written()
}

/**
 * An entry as Kafka 4.3 writes it: the key is framed by its type (1 offset, 2 group), the value by its version.
 * Values from older versions come back in today's.
 */
export function encodeEntry(entry: GroupEntry): { key: Buffer; value: Buffer | null } {
  if (entry.kind === 'GroupMetadata') {
    return {
      key: frame(GroupMetadataKey, 2, 0, { group: entry.group }),
      value: entry.value && frame(GroupMetadataValue, GROUP_VERSION, GROUP_VERSION, entry.value),
    }
  }
  const { group, topic, partition, value } = entry
  const version = value?.expireTimestamp === -1 ? OFFSET_VERSION : OFFSET_VERSION_WITH_EXPIRY
  return {
    key: frame(OffsetCommitKey, 1, 0, { group, topic, partition }),
    value: value && frame(OffsetCommitValue, version, version, value),
  }
}

/**
 * A record of `__consumer_offsets`, of every version that Kafka ever wrote. Nothing in the answer is a view of the record.
 * @throws DecodeError for bytes that are no such record, or a value of a version from after 4.3.
 */
export function decodeEntry(key: Buffer, value: Buffer | null): GroupEntry | UnknownEntry {
  const reader = new ByteReader(key)
  const keyType = reader.int16()
  if (keyType === 2) {
    const { group } = whole(GroupMetadataKey, 0, reader)
    return { kind: 'GroupMetadata', group, value: value && groupValue(value) }
  }
  if (keyType !== 0 && keyType !== 1) return { kind: 'Unknown', keyType }
  const { group, topic, partition } = whole(keyType === 0 ? LegacyOffsetCommitKey : OffsetCommitKey, 0, reader)
  return { kind: 'OffsetCommit', group, topic, partition, value: value && offsetValue(keyType, value) }
}

function groupValue(bytes: Buffer): GroupMetadataValue {
  const value = versioned(GroupMetadataValue, bytes)
  for (const member of value.members) {
    member.subscription = Buffer.from(member.subscription)
    member.assignment = Buffer.from(member.assignment)
  }
  return value
}

function offsetValue(keyType: 0 | 1, bytes: Buffer): OffsetCommitValue {
  if (keyType === 1) return versioned(OffsetCommitValue, bytes)
  const { offset, metadata, commitTimestamp } = versioned(LegacyOffsetCommitValue, bytes)
  return offsetCommitValue({ offset, metadata, commitTimestamp })
}

function versioned<S extends Schema>(schema: S, bytes: Buffer): MessageOf<S> {
  const reader = new ByteReader(bytes)
  return whole(schema, reader.int16(), reader)
}

function whole<S extends Schema>(schema: S, version: number, reader: ByteReader): MessageOf<S> {
  const message = decode(schema, version, reader)
  if (reader.remaining > 0) throw new DecodeError(`${reader.remaining} bytes behind ${schema.name}`)
  return message
}

/** A whole value from what is known of it. */
export function offsetCommitValue(
  known: Pick<OffsetCommitValue, 'offset' | 'metadata' | 'commitTimestamp'> & Partial<OffsetCommitValue>,
): OffsetCommitValue {
  const { offset, leaderEpoch = -1, metadata, commitTimestamp, expireTimestamp = -1, topicId = ZERO_UUID } = known
  return { offset, leaderEpoch, metadata, commitTimestamp, expireTimestamp, topicId }
}
