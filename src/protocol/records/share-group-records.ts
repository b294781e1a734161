import { array, coordinatorKey, coordinatorValue, int8, int32, int64, type MessageOf, string, uuid } from '../schema.ts'

export const ShareGroupMemberMetadataKey = coordinatorKey(
  { apiKey: 10, name: 'ShareGroupMemberMetadataKey', versions: '0' },
  { groupId: string('0'), memberId: string('0') },
)
export type ShareGroupMemberMetadataKey = MessageOf<typeof ShareGroupMemberMetadataKey>

export const ShareGroupMemberMetadataValue = coordinatorValue(
  { apiKey: 10, name: 'ShareGroupMemberMetadataValue', versions: '0', flexible: '0+' },
  {
    rackId: string('0+', { nullable: '0+' }),
    clientId: string('0+'),
    clientHost: string('0+'),
    subscribedTopicNames: array('0+', 'string'),
  },
)
export type ShareGroupMemberMetadataValue = MessageOf<typeof ShareGroupMemberMetadataValue>

export const ShareGroupMetadataKey = coordinatorKey(
  { apiKey: 11, name: 'ShareGroupMetadataKey', versions: '0' },
  { groupId: string('0') },
)
export type ShareGroupMetadataKey = MessageOf<typeof ShareGroupMetadataKey>

export const ShareGroupMetadataValue = coordinatorValue(
  { apiKey: 11, name: 'ShareGroupMetadataValue', versions: '0', flexible: '0+' },
  { epoch: int32('0+'), metadataHash: int64('0+') },
)
export type ShareGroupMetadataValue = MessageOf<typeof ShareGroupMetadataValue>

export const ShareGroupTargetAssignmentMetadataKey = coordinatorKey(
  { apiKey: 12, name: 'ShareGroupTargetAssignmentMetadataKey', versions: '0' },
  { groupId: string('0') },
)
export type ShareGroupTargetAssignmentMetadataKey = MessageOf<typeof ShareGroupTargetAssignmentMetadataKey>

export const ShareGroupTargetAssignmentMetadataValue = coordinatorValue(
  { apiKey: 12, name: 'ShareGroupTargetAssignmentMetadataValue', versions: '0', flexible: '0+' },
  { assignmentEpoch: int32('0+'), assignmentTimestamp: int64('0+', { ignorable: true, tag: 0 }) },
)
export type ShareGroupTargetAssignmentMetadataValue = MessageOf<typeof ShareGroupTargetAssignmentMetadataValue>

export const ShareGroupTargetAssignmentMemberKey = coordinatorKey(
  { apiKey: 13, name: 'ShareGroupTargetAssignmentMemberKey', versions: '0' },
  { groupId: string('0'), memberId: string('0') },
)
export type ShareGroupTargetAssignmentMemberKey = MessageOf<typeof ShareGroupTargetAssignmentMemberKey>

export const ShareGroupTargetAssignmentMemberValue = coordinatorValue(
  { apiKey: 13, name: 'ShareGroupTargetAssignmentMemberValue', versions: '0', flexible: '0+' },
  { topicPartitions: array('0+', { topicId: uuid('0+'), partitions: array('0+', 'int32') }) },
)
export type ShareGroupTargetAssignmentMemberValue = MessageOf<typeof ShareGroupTargetAssignmentMemberValue>

export const ShareGroupCurrentMemberAssignmentKey = coordinatorKey(
  { apiKey: 14, name: 'ShareGroupCurrentMemberAssignmentKey', versions: '0' },
  { groupId: string('0'), memberId: string('0') },
)
export type ShareGroupCurrentMemberAssignmentKey = MessageOf<typeof ShareGroupCurrentMemberAssignmentKey>

const topicPartitions = { topicId: uuid('0+'), partitions: array('0+', 'int32') }

export const ShareGroupCurrentMemberAssignmentValue = coordinatorValue(
  { apiKey: 14, name: 'ShareGroupCurrentMemberAssignmentValue', versions: '0', flexible: '0+' },
  {
    memberEpoch: int32('0+'),
    previousMemberEpoch: int32('0+'),
    state: int8('0+'),
    assignedPartitions: array('0+', topicPartitions),
  },
)
export type ShareGroupCurrentMemberAssignmentValue = MessageOf<typeof ShareGroupCurrentMemberAssignmentValue>

export const ShareGroupStatePartitionMetadataKey = coordinatorKey(
  { apiKey: 15, name: 'ShareGroupStatePartitionMetadataKey', versions: '0' },
  { groupId: string('0') },
)
export type ShareGroupStatePartitionMetadataKey = MessageOf<typeof ShareGroupStatePartitionMetadataKey>

const topicPartitionsInfo = { topicId: uuid('0+'), topicName: string('0+'), partitions: array('0+', 'int32') }

const topicInfo = { topicId: uuid('0+'), topicName: string('0+') }

export const ShareGroupStatePartitionMetadataValue = coordinatorValue(
  { apiKey: 15, name: 'ShareGroupStatePartitionMetadataValue', versions: '0', flexible: '0+' },
  {
    initializingTopics: array('0+', topicPartitionsInfo),
    initializedTopics: array('0+', topicPartitionsInfo),
    deletingTopics: array('0+', topicInfo),
  },
)
export type ShareGroupStatePartitionMetadataValue = MessageOf<typeof ShareGroupStatePartitionMetadataValue>
