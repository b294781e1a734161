import {
  array,
  bytes,
  coordinatorKey,
  coordinatorValue,
  int32,
  int64,
  type MessageOf,
  string,
  uuid,
} from '../schema.ts'

export const LegacyOffsetCommitKey = coordinatorKey(
  { apiKey: 0, name: 'LegacyOffsetCommitKey', versions: '0' },
  { group: string('0'), topic: string('0'), partition: int32('0') },
)
export type LegacyOffsetCommitKey = MessageOf<typeof LegacyOffsetCommitKey>

export const LegacyOffsetCommitValue = coordinatorValue(
  { apiKey: 0, name: 'LegacyOffsetCommitValue', versions: '0' },
  { offset: int64('0'), metadata: string('0'), commitTimestamp: int64('0') },
)
export type LegacyOffsetCommitValue = MessageOf<typeof LegacyOffsetCommitValue>

export const OffsetCommitKey = coordinatorKey(
  { apiKey: 1, name: 'OffsetCommitKey', versions: '0' },
  { group: string('0'), topic: string('0'), partition: int32('0') },
)
export type OffsetCommitKey = MessageOf<typeof OffsetCommitKey>

export const OffsetCommitValue = coordinatorValue(
  { apiKey: 1, name: 'OffsetCommitValue', versions: '0-4', flexible: '4+' },
  {
    offset: int64('0+'),
    leaderEpoch: int32('3+', { default: -1, ignorable: true }),
    metadata: string('0+'),
    commitTimestamp: int64('0+'),
    expireTimestamp: int64('1', { default: -1, ignorable: true }),
    topicId: uuid('4+', { ignorable: true, tag: 0 }),
  },
)
export type OffsetCommitValue = MessageOf<typeof OffsetCommitValue>

export const GroupMetadataKey = coordinatorKey(
  { apiKey: 2, name: 'GroupMetadataKey', versions: '0' },
  { group: string('0') },
)
export type GroupMetadataKey = MessageOf<typeof GroupMetadataKey>

const memberMetadata = {
  memberId: string('0+'),
  groupInstanceId: string('3+', { nullable: '3+', default: null, ignorable: true }),
  clientId: string('0+'),
  clientHost: string('0+'),
  rebalanceTimeout: int32('1+', { default: -1, ignorable: true }),
  sessionTimeout: int32('0+'),
  subscription: bytes('0+'),
  assignment: bytes('0+'),
}

export const GroupMetadataValue = coordinatorValue(
  { apiKey: 2, name: 'GroupMetadataValue', versions: '0-4', flexible: '4+' },
  {
    protocolType: string('0+'),
    generation: int32('0+'),
    protocol: string('0+', { nullable: '0+' }),
    leader: string('0+', { nullable: '0+' }),
    currentStateTimestamp: int64('2+', { default: -1, ignorable: true }),
    members: array('0+', memberMetadata),
  },
)
export type GroupMetadataValue = MessageOf<typeof GroupMetadataValue>
