import { array, bool, int16, int32, type MessageOf, request, response, string, struct, uuid } from '../schema.ts'

export const DescribeTopicPartitionsRequest = request(
  { apiKey: 75, name: 'DescribeTopicPartitionsRequest', versions: '0', flexible: '0+', listeners: ['broker'] },
  {
    topics: array('0+', { name: string('0+') }),
    responsePartitionLimit: int32('0+', { default: 2000 }),
    cursor: struct('0+', { topicName: string('0+'), partitionIndex: int32('0+') }, { nullable: '0+', default: null }),
  },
)
export type DescribeTopicPartitionsRequest = MessageOf<typeof DescribeTopicPartitionsRequest>

export const DescribeTopicPartitionsResponse = response(
  { apiKey: 75, name: 'DescribeTopicPartitionsResponse', versions: '0', flexible: '0+' },
  {
    throttleTimeMs: int32('0+', { ignorable: true }),
    topics: array('0+', {
      errorCode: int16('0+'),
      name: string('0+', { nullable: '0+' }),
      topicId: uuid('0+', { ignorable: true }),
      isInternal: bool('0+', { ignorable: true }),
      partitions: array('0+', {
        errorCode: int16('0+'),
        partitionIndex: int32('0+'),
        leaderId: int32('0+'),
        leaderEpoch: int32('0+', { default: -1, ignorable: true }),
        replicaNodes: array('0+', 'int32'),
        isrNodes: array('0+', 'int32'),
        eligibleLeaderReplicas: array('0+', 'int32', { nullable: '0+', default: null }),
        lastKnownElr: array('0+', 'int32', { nullable: '0+', default: null }),
        offlineReplicas: array('0+', 'int32', { ignorable: true }),
      }),
      topicAuthorizedOperations: int32('0+', { default: -2147483648 }),
    }),
    nextCursor: struct(
      '0+',
      { topicName: string('0+'), partitionIndex: int32('0+') },
      { nullable: '0+', default: null },
    ),
  },
)
export type DescribeTopicPartitionsResponse = MessageOf<typeof DescribeTopicPartitionsResponse>
