import {
  array,
  bytes,
  coordinatorKey,
  coordinatorValue,
  int8,
  int32,
  int64,
  type MessageOf,
  string,
  struct,
  uuid,
} from '../schema.ts'

export const ConsumerGroupMetadataKey = coordinatorKey(
  { apiKey: 3, name: 'ConsumerGroupMetadataKey', versions: '0' },
  { groupId: string('0') },
)
export type ConsumerGroupMetadataKey = MessageOf<typeof ConsumerGroupMetadataKey>

export const ConsumerGroupMetadataValue = coordinatorValue(
  { apiKey: 3, name: 'ConsumerGroupMetadataValue', versions: '0', flexible: '0+' },
  { epoch: int32('0+'), metadataHash: int64('0+', { tag: 0 }) },
)
export type ConsumerGroupMetadataValue = MessageOf<typeof ConsumerGroupMetadataValue>

export const ConsumerGroupPartitionMetadataKey = coordinatorKey(
  { apiKey: 4, name: 'ConsumerGroupPartitionMetadataKey', versions: '0' },
  { groupId: string('0') },
)
export type ConsumerGroupPartitionMetadataKey = MessageOf<typeof ConsumerGroupPartitionMetadataKey>

export const ConsumerGroupPartitionMetadataValue = coordinatorValue(
  { apiKey: 4, name: 'ConsumerGroupPartitionMetadataValue', versions: '0', flexible: '0+' },
  {
    topics: array('0+', {
      topicId: uuid('0+'),
      topicName: string('0+'),
      numPartitions: int32('0+'),
      partitionMetadata: array('0+', { partition: int32('0+'), racks: array('0+', 'string') }),
    }),
  },
)
export type ConsumerGroupPartitionMetadataValue = MessageOf<typeof ConsumerGroupPartitionMetadataValue>

export const ConsumerGroupMemberMetadataKey = coordinatorKey(
  { apiKey: 5, name: 'ConsumerGroupMemberMetadataKey', versions: '0' },
  { groupId: string('0'), memberId: string('0') },
)
export type ConsumerGroupMemberMetadataKey = MessageOf<typeof ConsumerGroupMemberMetadataKey>

export const ConsumerGroupMemberMetadataValue = coordinatorValue(
  { apiKey: 5, name: 'ConsumerGroupMemberMetadataValue', versions: '0', flexible: '0+' },
  {
    instanceId: string('0+', { nullable: '0+' }),
    rackId: string('0+', { nullable: '0+' }),
    clientId: string('0+'),
    clientHost: string('0+'),
    subscribedTopicNames: array('0+', 'string'),
    subscribedTopicRegex: string('0+', { nullable: '0+' }),
    rebalanceTimeoutMs: int32('0+', { default: -1 }),
    serverAssignor: string('0+', { nullable: '0+' }),
    classicMemberMetadata: struct(
      '0+',
      { sessionTimeoutMs: int32('0+'), supportedProtocols: array('0+', { name: string('0+'), metadata: bytes('0+') }) },
      { nullable: '0+', tag: 0 },
    ),
  },
)
export type ConsumerGroupMemberMetadataValue = MessageOf<typeof ConsumerGroupMemberMetadataValue>

export const ConsumerGroupTargetAssignmentMetadataKey = coordinatorKey(
  { apiKey: 6, name: 'ConsumerGroupTargetAssignmentMetadataKey', versions: '0' },
  { groupId: string('0') },
)
export type ConsumerGroupTargetAssignmentMetadataKey = MessageOf<typeof ConsumerGroupTargetAssignmentMetadataKey>

export const ConsumerGroupTargetAssignmentMetadataValue = coordinatorValue(
  { apiKey: 6, name: 'ConsumerGroupTargetAssignmentMetadataValue', versions: '0', flexible: '0+' },
  { assignmentEpoch: int32('0+'), assignmentTimestamp: int64('0+', { ignorable: true, tag: 0 }) },
)
export type ConsumerGroupTargetAssignmentMetadataValue = MessageOf<typeof ConsumerGroupTargetAssignmentMetadataValue>

export const ConsumerGroupTargetAssignmentMemberKey = coordinatorKey(
  { apiKey: 7, name: 'ConsumerGroupTargetAssignmentMemberKey', versions: '0' },
  { groupId: string('0'), memberId: string('0') },
)
export type ConsumerGroupTargetAssignmentMemberKey = MessageOf<typeof ConsumerGroupTargetAssignmentMemberKey>

export const ConsumerGroupTargetAssignmentMemberValue = coordinatorValue(
  { apiKey: 7, name: 'ConsumerGroupTargetAssignmentMemberValue', versions: '0', flexible: '0+' },
  { topicPartitions: array('0+', { topicId: uuid('0+'), partitions: array('0+', 'int32') }) },
)
export type ConsumerGroupTargetAssignmentMemberValue = MessageOf<typeof ConsumerGroupTargetAssignmentMemberValue>

export const ConsumerGroupCurrentMemberAssignmentKey = coordinatorKey(
  { apiKey: 8, name: 'ConsumerGroupCurrentMemberAssignmentKey', versions: '0' },
  { groupId: string('0'), memberId: string('0') },
)
export type ConsumerGroupCurrentMemberAssignmentKey = MessageOf<typeof ConsumerGroupCurrentMemberAssignmentKey>

const topicPartitions = {
  topicId: uuid('0+'),
  partitions: array('0+', 'int32'),
  assignmentEpochs: array('0+', 'int32', { nullable: '0+', tag: 0 }),
}

export const ConsumerGroupCurrentMemberAssignmentValue = coordinatorValue(
  { apiKey: 8, name: 'ConsumerGroupCurrentMemberAssignmentValue', versions: '0', flexible: '0+' },
  {
    memberEpoch: int32('0+'),
    previousMemberEpoch: int32('0+'),
    state: int8('0+'),
    assignedPartitions: array('0+', topicPartitions),
    partitionsPendingRevocation: array('0+', topicPartitions),
  },
)
export type ConsumerGroupCurrentMemberAssignmentValue = MessageOf<typeof ConsumerGroupCurrentMemberAssignmentValue>

export const ConsumerGroupRegularExpressionKey = coordinatorKey(
  { apiKey: 16, name: 'ConsumerGroupRegularExpressionKey', versions: '0' },
  { groupId: string('0'), regularExpression: string('0') },
)
export type ConsumerGroupRegularExpressionKey = MessageOf<typeof ConsumerGroupRegularExpressionKey>

export const ConsumerGroupRegularExpressionValue = coordinatorValue(
  { apiKey: 16, name: 'ConsumerGroupRegularExpressionValue', versions: '0', flexible: '0+' },
  { topics: array('0+', 'string'), version: int64('0+'), timestamp: int64('0+') },
)
export type ConsumerGroupRegularExpressionValue = MessageOf<typeof ConsumerGroupRegularExpressionValue>
