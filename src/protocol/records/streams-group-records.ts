import {
  array,
  coordinatorKey,
  coordinatorValue,
  int8,
  int16,
  int32,
  int64,
  type MessageOf,
  string,
  struct,
  uint16,
} from '../schema.ts'

export const StreamsGroupMetadataKey = coordinatorKey(
  { apiKey: 17, name: 'StreamsGroupMetadataKey', versions: '0' },
  { groupId: string('0') },
)
export type StreamsGroupMetadataKey = MessageOf<typeof StreamsGroupMetadataKey>

const lastAssignmentConfig = { key: string('0+'), value: string('0+') }

export const StreamsGroupMetadataValue = coordinatorValue(
  { apiKey: 17, name: 'StreamsGroupMetadataValue', versions: '0', flexible: '0+' },
  {
    epoch: int32('0+'),
    metadataHash: int64('0+'),
    validatedTopologyEpoch: int32('0+', { default: -1, tag: 0 }),
    lastAssignmentConfigs: array('0+', lastAssignmentConfig, { nullable: '0+', tag: 1 }),
  },
)
export type StreamsGroupMetadataValue = MessageOf<typeof StreamsGroupMetadataValue>

export const StreamsGroupMemberMetadataKey = coordinatorKey(
  { apiKey: 19, name: 'StreamsGroupMemberMetadataKey', versions: '0' },
  { groupId: string('0'), memberId: string('0') },
)
export type StreamsGroupMemberMetadataKey = MessageOf<typeof StreamsGroupMemberMetadataKey>

const endpoint = { host: string('0+'), port: uint16('0+') }

const keyValue = { key: string('0+'), value: string('0+') }

export const StreamsGroupMemberMetadataValue = coordinatorValue(
  { apiKey: 19, name: 'StreamsGroupMemberMetadataValue', versions: '0', flexible: '0+' },
  {
    instanceId: string('0+', { nullable: '0+' }),
    rackId: string('0+', { nullable: '0+' }),
    clientId: string('0+'),
    clientHost: string('0+'),
    rebalanceTimeoutMs: int32('0+', { default: -1 }),
    topologyEpoch: int32('0+'),
    processId: string('0+'),
    userEndpoint: struct('0+', endpoint, { nullable: '0+', default: null }),
    clientTags: array('0+', keyValue),
  },
)
export type StreamsGroupMemberMetadataValue = MessageOf<typeof StreamsGroupMemberMetadataValue>

export const StreamsGroupTargetAssignmentMetadataKey = coordinatorKey(
  { apiKey: 20, name: 'StreamsGroupTargetAssignmentMetadataKey', versions: '0' },
  { groupId: string('0') },
)
export type StreamsGroupTargetAssignmentMetadataKey = MessageOf<typeof StreamsGroupTargetAssignmentMetadataKey>

export const StreamsGroupTargetAssignmentMetadataValue = coordinatorValue(
  { apiKey: 20, name: 'StreamsGroupTargetAssignmentMetadataValue', versions: '0', flexible: '0+' },
  { assignmentEpoch: int32('0+'), assignmentTimestamp: int64('0+', { ignorable: true, tag: 0 }) },
)
export type StreamsGroupTargetAssignmentMetadataValue = MessageOf<typeof StreamsGroupTargetAssignmentMetadataValue>

export const StreamsGroupTargetAssignmentMemberKey = coordinatorKey(
  { apiKey: 21, name: 'StreamsGroupTargetAssignmentMemberKey', versions: '0' },
  { groupId: string('0'), memberId: string('0') },
)
export type StreamsGroupTargetAssignmentMemberKey = MessageOf<typeof StreamsGroupTargetAssignmentMemberKey>

const taskIds = { subtopologyId: string('0+'), partitions: array('0+', 'int32') }

export const StreamsGroupTargetAssignmentMemberValue = coordinatorValue(
  { apiKey: 21, name: 'StreamsGroupTargetAssignmentMemberValue', versions: '0', flexible: '0+' },
  { activeTasks: array('0+', taskIds), standbyTasks: array('0+', taskIds), warmupTasks: array('0+', taskIds) },
)
export type StreamsGroupTargetAssignmentMemberValue = MessageOf<typeof StreamsGroupTargetAssignmentMemberValue>

export const StreamsGroupCurrentMemberAssignmentKey = coordinatorKey(
  { apiKey: 22, name: 'StreamsGroupCurrentMemberAssignmentKey', versions: '0' },
  { groupId: string('0'), memberId: string('0') },
)
export type StreamsGroupCurrentMemberAssignmentKey = MessageOf<typeof StreamsGroupCurrentMemberAssignmentKey>

const streamsGroupCurrentMemberAssignmentValueTaskIds = {
  subtopologyId: string('0+'),
  partitions: array('0+', 'int32'),
  assignmentEpochs: array('0+', 'int32', { nullable: '0+', tag: 0 }),
}

export const StreamsGroupCurrentMemberAssignmentValue = coordinatorValue(
  { apiKey: 22, name: 'StreamsGroupCurrentMemberAssignmentValue', versions: '0', flexible: '0+' },
  {
    memberEpoch: int32('0+'),
    previousMemberEpoch: int32('0+'),
    state: int8('0+'),
    activeTasks: array('0+', streamsGroupCurrentMemberAssignmentValueTaskIds),
    standbyTasks: array('0+', streamsGroupCurrentMemberAssignmentValueTaskIds),
    warmupTasks: array('0+', streamsGroupCurrentMemberAssignmentValueTaskIds),
    activeTasksPendingRevocation: array('0+', streamsGroupCurrentMemberAssignmentValueTaskIds),
    standbyTasksPendingRevocation: array('0+', streamsGroupCurrentMemberAssignmentValueTaskIds),
    warmupTasksPendingRevocation: array('0+', streamsGroupCurrentMemberAssignmentValueTaskIds),
  },
)
export type StreamsGroupCurrentMemberAssignmentValue = MessageOf<typeof StreamsGroupCurrentMemberAssignmentValue>

export const StreamsGroupTopologyKey = coordinatorKey(
  { apiKey: 23, name: 'StreamsGroupTopologyKey', versions: '0' },
  { groupId: string('0') },
)
export type StreamsGroupTopologyKey = MessageOf<typeof StreamsGroupTopologyKey>

const topicConfig = { key: string('0+'), value: string('0+') }

const topicInfo = {
  name: string('0+'),
  partitions: int32('0+'),
  replicationFactor: int16('0+'),
  topicConfigs: array('0+', topicConfig),
}

export const StreamsGroupTopologyValue = coordinatorValue(
  { apiKey: 23, name: 'StreamsGroupTopologyValue', versions: '0', flexible: '0+' },
  {
    epoch: int32('0+'),
    subtopologies: array('0+', {
      subtopologyId: string('0+'),
      sourceTopics: array('0+', 'string'),
      sourceTopicRegex: array('0+', 'string'),
      stateChangelogTopics: array('0+', topicInfo),
      repartitionSinkTopics: array('0+', 'string'),
      repartitionSourceTopics: array('0+', topicInfo),
      copartitionGroups: array('0+', {
        sourceTopics: array('0+', 'int16'),
        sourceTopicRegex: array('0+', 'int16'),
        repartitionSourceTopics: array('0+', 'int16'),
      }),
    }),
  },
)
export type StreamsGroupTopologyValue = MessageOf<typeof StreamsGroupTopologyValue>
