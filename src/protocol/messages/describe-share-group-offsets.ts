import { array, int16, int32, int64, type MessageOf, request, response, string, uuid } from '../schema.ts'

export const DescribeShareGroupOffsetsRequest = request(
  { apiKey: 90, name: 'DescribeShareGroupOffsetsRequest', versions: '0-1', flexible: '0+', listeners: ['broker'] },
  {
    groups: array('0+', {
      groupId: string('0+'),
      topics: array('0+', { topicName: string('0+'), partitions: array('0+', 'int32') }, { nullable: '0+' }),
    }),
  },
)
export type DescribeShareGroupOffsetsRequest = MessageOf<typeof DescribeShareGroupOffsetsRequest>

export const DescribeShareGroupOffsetsResponse = response(
  { apiKey: 90, name: 'DescribeShareGroupOffsetsResponse', versions: '0-1', flexible: '0+' },
  {
    throttleTimeMs: int32('0+'),
    groups: array('0+', {
      groupId: string('0+'),
      topics: array('0+', {
        topicName: string('0+'),
        topicId: uuid('0+'),
        partitions: array('0+', {
          partitionIndex: int32('0+'),
          startOffset: int64('0+'),
          leaderEpoch: int32('0+'),
          lag: int64('1+', { default: -1, ignorable: true }),
          errorCode: int16('0+'),
          errorMessage: string('0+', { nullable: '0+', default: null }),
        }),
      }),
      errorCode: int16('0+'),
      errorMessage: string('0+', { nullable: '0+', default: null }),
    }),
  },
)
export type DescribeShareGroupOffsetsResponse = MessageOf<typeof DescribeShareGroupOffsetsResponse>
