import {
  array,
  bool,
  int8,
  int16,
  int32,
  int64,
  type MessageOf,
  request,
  response,
  string,
  struct,
  uint16,
} from '../schema.ts'

const keyValue = { key: string('0+'), value: string('0+') }

const topicInfo = {
  name: string('0+'),
  partitions: int32('0+'),
  replicationFactor: int16('0+'),
  topicConfigs: array('0+', keyValue),
}

const endpoint = { host: string('0+'), port: uint16('0+') }

const taskOffset = { subtopologyId: string('0+'), partition: int32('0+'), offset: int64('0+') }

const taskIds = { subtopologyId: string('0+'), partitions: array('0+', 'int32') }

export const StreamsGroupHeartbeatRequest = request(
  { apiKey: 88, name: 'StreamsGroupHeartbeatRequest', versions: '0', flexible: '0+', listeners: ['broker'] },
  {
    groupId: string('0+'),
    memberId: string('0+'),
    memberEpoch: int32('0+'),
    endpointInformationEpoch: int32('0+'),
    instanceId: string('0+', { nullable: '0+', default: null }),
    rackId: string('0+', { nullable: '0+', default: null }),
    rebalanceTimeoutMs: int32('0+', { default: -1 }),
    topology: struct(
      '0+',
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
      { nullable: '0+', default: null },
    ),
    activeTasks: array('0+', taskIds, { nullable: '0+', default: null }),
    standbyTasks: array('0+', taskIds, { nullable: '0+', default: null }),
    warmupTasks: array('0+', taskIds, { nullable: '0+', default: null }),
    processId: string('0+', { nullable: '0+', default: null }),
    userEndpoint: struct('0+', endpoint, { nullable: '0+', default: null }),
    clientTags: array('0+', keyValue, { nullable: '0+', default: null }),
    taskOffsets: array('0+', taskOffset, { nullable: '0+', default: null }),
    taskEndOffsets: array('0+', taskOffset, { nullable: '0+', default: null }),
    shutdownApplication: bool('0+'),
  },
)
export type StreamsGroupHeartbeatRequest = MessageOf<typeof StreamsGroupHeartbeatRequest>

const status = { statusCode: int8('0+'), statusDetail: string('0+') }

const topicPartition = { topic: string('0+'), partitions: array('0+', 'int32') }

export const StreamsGroupHeartbeatResponse = response(
  { apiKey: 88, name: 'StreamsGroupHeartbeatResponse', versions: '0', flexible: '0+' },
  {
    throttleTimeMs: int32('0+'),
    errorCode: int16('0+'),
    errorMessage: string('0+', { nullable: '0+', default: null }),
    memberId: string('0+'),
    memberEpoch: int32('0+'),
    heartbeatIntervalMs: int32('0+'),
    acceptableRecoveryLag: int32('0+'),
    taskOffsetIntervalMs: int32('0+'),
    status: array('0+', status, { nullable: '0+' }),
    activeTasks: array('0+', taskIds, { nullable: '0+', default: null }),
    standbyTasks: array('0+', taskIds, { nullable: '0+', default: null }),
    warmupTasks: array('0+', taskIds, { nullable: '0+', default: null }),
    endpointInformationEpoch: int32('0+'),
    partitionsByUserEndpoint: array(
      '0+',
      {
        userEndpoint: struct('0+', endpoint),
        activePartitions: array('0+', topicPartition),
        standbyPartitions: array('0+', topicPartition),
      },
      { nullable: '0+', default: null },
    ),
  },
)
export type StreamsGroupHeartbeatResponse = MessageOf<typeof StreamsGroupHeartbeatResponse>
