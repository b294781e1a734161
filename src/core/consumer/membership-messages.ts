import { ByteReader, ByteWriter, DecodeError } from '#base/bytes.ts'
import { decode } from '#protocol/codec.ts'
import { ConsumerProtocolAssignment, ConsumerProtocolSubscription } from '#protocol/records/consumer-protocol.ts'
import { encodeVersioned } from '#protocol/records/framing.ts'
import { type GroupMember, groupByTopic, type TopicPartition, ungroup } from './assignment.ts'

/**
 * What members of a group tell each other in fields that the broker only passes on: int16 version, then the message.
 * A version above ours is read as ours, and bytes behind it are ignored, so that newer members can be talked to.
 */
const NEWEST = 3

export function encodeSubscription(subscription: {
  readonly topics: readonly string[]
  readonly ownedPartitions: readonly TopicPartition[]
  readonly generationId: number
  readonly userData: Uint8Array | null
  readonly rackId: string | null
}): Buffer {
  const ownedPartitions = groupByTopic(subscription.ownedPartitions)
  return encodeVersioned(ConsumerProtocolSubscription, NEWEST, { ...subscription, ownedPartitions })
}

/** A member of the leader's list; a DecodeError if its metadata is none of the consumer protocol. */
export function decodeMember(member: {
  readonly memberId: string
  readonly groupInstanceId: string | null
  readonly metadata: Uint8Array
}): GroupMember {
  const reader = new ByteReader(member.metadata)
  const subscription = decode(ConsumerProtocolSubscription, knownVersion(reader), reader)
  return {
    memberId: member.memberId,
    groupInstanceId: member.groupInstanceId,
    topics: subscription.topics,
    ownedPartitions: ungroup(subscription.ownedPartitions),
    generationId:
      subscription.generationId >= 0 ? subscription.generationId : cooperativeGeneration(subscription.userData),
  }
}

export function encodeAssignment(partitions: readonly TopicPartition[]): Buffer {
  return encodeVersioned(ConsumerProtocolAssignment, NEWEST, { assignedPartitions: groupByTopic(partitions) })
}

/** No bytes at all are what a member gets that the leader left out: nothing is assigned to it. */
export function decodeAssignment(bytes: Uint8Array): TopicPartition[] {
  if (bytes.length === 0) return []
  const reader = new ByteReader(bytes)
  return ungroup(decode(ConsumerProtocolAssignment, knownVersion(reader), reader).assignedPartitions)
}

/** cooperative-sticky's own data: the generation alone, for leaders that read subscriptions before version 2. */
export function cooperativeUserData(generationId: number): Buffer {
  const writer = new ByteWriter(4)
  writer.int32(generationId)
  return writer.written()
}

function cooperativeGeneration(userData: Uint8Array | null): number {
  return userData !== null && userData.length === 4 ? new ByteReader(userData).int32() : -1
}

function knownVersion(reader: ByteReader): number {
  const version = reader.int16()
  if (version < 0) throw new DecodeError(`version ${version} of the consumer protocol`)
  return Math.min(version, NEWEST)
}
