import {
  array,
  bool,
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

export const StreamsGroupDescribeRequest = request(
  { apiKey: 89, name: 'StreamsGroupDescribeRequest', versions: '0', flexible: '0+', listeners: ['broker'] },
  { groupIds: array('0+', 'string'), includeAuthorizedOperations: bool('0+') },
)
export type StreamsGroupDescribeRequest = MessageOf<typeof StreamsGroupDescribeRequest>

const endpoint = { host: string('0+'), port: uint16('0+') }

const taskOffset = { subtopologyId: string('0+'), partition: int32('0+'), offset: int64('0+') }

const taskIds = { subtopologyId: string('0+'), partitions: array('0+', 'int32') }

const assignment = {
  activeTasks: array('0+', taskIds),
  standbyTasks: array('0+', taskIds),
  warmupTasks: array('0+', taskIds),
}

const keyValue = { key: string('0+'), value: string('0+') }

const topicInfo = {
  name: string('0+'),
  partitions: int32('0+'),
  replicationFactor: int16('0+'),
  topicConfigs: array('0+', keyValue),
}

export const StreamsGroupDescribeResponse = response(
  { apiKey: 89, name: 'StreamsGroupDescribeResponse', versions: '0', flexible: '0+' },
  {
    throttleTimeMs: int32('0+'),
    groups: array('0+', {
      errorCode: int16('0+'),
      errorMessage: string('0+', { nullable: '0+', default: null }),
      groupId: string('0+'),
      groupState: string('0+'),
      groupEpoch: int32('0+'),
      assignmentEpoch: int32('0+'),
      topology: struct(
        '0+',
        {
          epoch: int32('0+'),
          subtopologies: array(
            '0+',
            {
              subtopologyId: string('0+'),
              sourceTopics: array('0+', 'string'),
              repartitionSinkTopics: array('0+', 'string'),
              stateChangelogTopics: array('0+', topicInfo),
              repartitionSourceTopics: array('0+', topicInfo),
            },
            { nullable: '0+', default: null },
          ),
        },
        { nullable: '0+', default: null },
      ),
      members: array('0+', {
        memberId: string('0+'),
        memberEpoch: int32('0+'),
        instanceId: string('0+', { nullable: '0+', default: null }),
        rackId: string('0+', { nullable: '0+', default: null }),
        clientId: string('0+'),
        clientHost: string('0+'),
        topologyEpoch: int32('0+'),
        processId: string('0+'),
        userEndpoint: struct('0+', endpoint, { nullable: '0+', default: null }),
        clientTags: array('0+', keyValue),
        taskOffsets: array('0+', taskOffset),
        taskEndOffsets: array('0+', taskOffset),
        assignment: struct('0+', assignment),
        targetAssignment: struct('0+', assignment),
        isClassic: bool('0+'),
      }),
      authorizedOperations: int32('0+', { default: -2147483648 }),
    }),
  },
)
export type StreamsGroupDescribeResponse = MessageOf<typeof StreamsGroupDescribeResponse>
