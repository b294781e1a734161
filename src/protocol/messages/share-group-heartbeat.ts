import { array, int16, int32, type MessageOf, request, response, string, struct, uuid } from '../schema.ts'

export const ShareGroupHeartbeatRequest = request(
  { apiKey: 76, name: 'ShareGroupHeartbeatRequest', versions: '1', flexible: '0+', listeners: ['broker'] },
  {
    groupId: string('0+'),
    memberId: string('0+'),
    memberEpoch: int32('0+'),
    rackId: string('0+', { nullable: '0+', default: null }),
    subscribedTopicNames: array('0+', 'string', { nullable: '0+', default: null }),
  },
)
export type ShareGroupHeartbeatRequest = MessageOf<typeof ShareGroupHeartbeatRequest>

const topicPartitions = { topicId: uuid('0+'), partitions: array('0+', 'int32') }

export const ShareGroupHeartbeatResponse = response(
  { apiKey: 76, name: 'ShareGroupHeartbeatResponse', versions: '1', flexible: '0+' },
  {
    throttleTimeMs: int32('0+'),
    errorCode: int16('0+'),
    errorMessage: string('0+', { nullable: '0+', default: null }),
    memberId: string('0+', { nullable: '0+', default: null }),
    memberEpoch: int32('0+'),
    heartbeatIntervalMs: int32('0+'),
    assignment: struct('0+', { topicPartitions: array('0+', topicPartitions) }, { nullable: '0+', default: null }),
  },
)
export type ShareGroupHeartbeatResponse = MessageOf<typeof ShareGroupHeartbeatResponse>
