import { array, bool, int8, int16, int32, type MessageOf, request, response, string, struct, uuid } from '../schema.ts'

export const ConsumerGroupDescribeRequest = request(
  { apiKey: 69, name: 'ConsumerGroupDescribeRequest', versions: '0-1', flexible: '0+', listeners: ['broker'] },
  { groupIds: array('0+', 'string'), includeAuthorizedOperations: bool('0+') },
)
export type ConsumerGroupDescribeRequest = MessageOf<typeof ConsumerGroupDescribeRequest>

const topicPartitions = { topicId: uuid('0+'), topicName: string('0+'), partitions: array('0+', 'int32') }

const assignment = { topicPartitions: array('0+', topicPartitions) }

export const ConsumerGroupDescribeResponse = response(
  { apiKey: 69, name: 'ConsumerGroupDescribeResponse', versions: '0-1', flexible: '0+' },
  {
    throttleTimeMs: int32('0+'),
    groups: array('0+', {
      errorCode: int16('0+'),
      errorMessage: string('0+', { nullable: '0+', default: null }),
      groupId: string('0+'),
      groupState: string('0+'),
      groupEpoch: int32('0+'),
      assignmentEpoch: int32('0+'),
      assignorName: string('0+'),
      members: array('0+', {
        memberId: string('0+'),
        instanceId: string('0+', { nullable: '0+', default: null }),
        rackId: string('0+', { nullable: '0+', default: null }),
        memberEpoch: int32('0+'),
        clientId: string('0+'),
        clientHost: string('0+'),
        subscribedTopicNames: array('0+', 'string'),
        subscribedTopicRegex: string('0+', { nullable: '0+', default: null }),
        assignment: struct('0+', assignment),
        targetAssignment: struct('0+', assignment),
        memberType: int8('1+', { default: -1, ignorable: true }),
      }),
      authorizedOperations: int32('0+', { default: -2147483648 }),
    }),
  },
)
export type ConsumerGroupDescribeResponse = MessageOf<typeof ConsumerGroupDescribeResponse>
