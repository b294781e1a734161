import { array, bool, int16, int32, type MessageOf, request, response, string, struct, uuid } from '../schema.ts'

export const ShareGroupDescribeRequest = request(
  { apiKey: 77, name: 'ShareGroupDescribeRequest', versions: '1', flexible: '0+', listeners: ['broker'] },
  { groupIds: array('0+', 'string'), includeAuthorizedOperations: bool('0+') },
)
export type ShareGroupDescribeRequest = MessageOf<typeof ShareGroupDescribeRequest>

const topicPartitions = { topicId: uuid('0+'), topicName: string('0+'), partitions: array('0+', 'int32') }

const assignment = { topicPartitions: array('0+', topicPartitions) }

export const ShareGroupDescribeResponse = response(
  { apiKey: 77, name: 'ShareGroupDescribeResponse', versions: '1', flexible: '0+' },
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
        rackId: string('0+', { nullable: '0+', default: null }),
        memberEpoch: int32('0+'),
        clientId: string('0+'),
        clientHost: string('0+'),
        subscribedTopicNames: array('0+', 'string'),
        assignment: struct('0+', assignment),
      }),
      authorizedOperations: int32('0+', { default: -2147483648 }),
    }),
  },
)
export type ShareGroupDescribeResponse = MessageOf<typeof ShareGroupDescribeResponse>
