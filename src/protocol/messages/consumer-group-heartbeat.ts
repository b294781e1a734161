import { array, int16, int32, type MessageOf, request, response, string, struct, uuid } from '../schema.ts'

export const ConsumerGroupHeartbeatRequest = request(
  { apiKey: 68, name: 'ConsumerGroupHeartbeatRequest', versions: '0-1', flexible: '0+', listeners: ['broker'] },
  {
    groupId: string('0+'),
    memberId: string('0+'),
    memberEpoch: int32('0+'),
    instanceId: string('0+', { nullable: '0+', default: null }),
    rackId: string('0+', { nullable: '0+', default: null }),
    rebalanceTimeoutMs: int32('0+', { default: -1 }),
    subscribedTopicNames: array('0+', 'string', { nullable: '0+', default: null }),
    subscribedTopicRegex: string('1+', { nullable: '1+', default: null }),
    serverAssignor: string('0+', { nullable: '0+', default: null }),
    topicPartitions: array(
      '0+',
      { topicId: uuid('0+'), partitions: array('0+', 'int32') },
      { nullable: '0+', default: null },
    ),
  },
)
export type ConsumerGroupHeartbeatRequest = MessageOf<typeof ConsumerGroupHeartbeatRequest>

const topicPartitions = { topicId: uuid('0+'), partitions: array('0+', 'int32') }

export const ConsumerGroupHeartbeatResponse = response(
  { apiKey: 68, name: 'ConsumerGroupHeartbeatResponse', versions: '0-1', flexible: '0+' },
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
export type ConsumerGroupHeartbeatResponse = MessageOf<typeof ConsumerGroupHeartbeatResponse>
