import { ZERO_UUID } from '#base/uuid.ts'
import {
  decodeVersioned,
  decodeWhole,
  encodeCoordinatorKey,
  encodeVersioned,
  openCoordinatorKey,
} from '#protocol/records/framing.ts'
import {
  GroupMetadataKey,
  GroupMetadataValue,
  LegacyOffsetCommitKey,
  LegacyOffsetCommitValue,
  OffsetCommitKey,
  OffsetCommitValue,
} from '#protocol/records/offset-records.ts'

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

/** An entry as Kafka 4.3 writes it. Values from older versions come back in today's. */
export function encodeEntry(entry: GroupEntry): { key: Buffer; value: Buffer | null } {
  if (entry.kind === 'GroupMetadata') {
    return {
      key: encodeCoordinatorKey(GroupMetadataKey, { group: entry.group }),
      value: entry.value && encodeVersioned(GroupMetadataValue, GROUP_VERSION, entry.value),
    }
  }
  const { group, topic, partition, value } = entry
  const version = value?.expireTimestamp === -1 ? OFFSET_VERSION : OFFSET_VERSION_WITH_EXPIRY
  return {
    key: encodeCoordinatorKey(OffsetCommitKey, { group, topic, partition }),
    value: value && encodeVersioned(OffsetCommitValue, version, value),
  }
}

/**
 * A record of `__consumer_offsets`, of every version that Kafka ever wrote. Nothing in the answer is a view of the record.
 * @throws DecodeError for bytes that are no such record, or a value of a version from after 4.3.
 */
export function decodeEntry(key: Buffer, value: Buffer | null): GroupEntry | UnknownEntry {
  const { type: keyType, message } = openCoordinatorKey(key)
  if (keyType === GroupMetadataKey.apiKey) {
    const { group } = decodeWhole(GroupMetadataKey, 0, message)
    return { kind: 'GroupMetadata', group, value: value && groupValue(value) }
  }
  const isLegacy = keyType === LegacyOffsetCommitKey.apiKey
  if (!isLegacy && keyType !== OffsetCommitKey.apiKey) return { kind: 'Unknown', keyType }
  const { group, topic, partition } = decodeWhole(isLegacy ? LegacyOffsetCommitKey : OffsetCommitKey, 0, message)
  const decodeValue = isLegacy ? legacyOffsetValue : offsetValue
  return { kind: 'OffsetCommit', group, topic, partition, value: value && decodeValue(value) }
}

function groupValue(bytes: Buffer): GroupMetadataValue {
  const value = decodeVersioned(GroupMetadataValue, bytes)
  for (const member of value.members) {
    member.subscription = Buffer.from(member.subscription)
    member.assignment = Buffer.from(member.assignment)
  }
  return value
}

function offsetValue(bytes: Buffer): OffsetCommitValue {
  return decodeVersioned(OffsetCommitValue, bytes)
}

function legacyOffsetValue(bytes: Buffer): OffsetCommitValue {
  const { offset, metadata, commitTimestamp } = decodeVersioned(LegacyOffsetCommitValue, bytes)
  return offsetCommitValue({ offset, metadata, commitTimestamp })
}

/** A whole value from what is known of it. */
export function offsetCommitValue(
  known: Pick<OffsetCommitValue, 'offset' | 'metadata' | 'commitTimestamp'> & Partial<OffsetCommitValue>,
): OffsetCommitValue {
  const { offset, leaderEpoch = -1, metadata, commitTimestamp, expireTimestamp = -1, topicId = ZERO_UUID } = known
  return { offset, leaderEpoch, metadata, commitTimestamp, expireTimestamp, topicId }
}
