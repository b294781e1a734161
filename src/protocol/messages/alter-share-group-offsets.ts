import { array, int16, int32, int64, type MessageOf, request, response, string, uuid } from '../schema.ts'

export const AlterShareGroupOffsetsRequest = request(
  { apiKey: 91, name: 'AlterShareGroupOffsetsRequest', versions: '0', flexible: '0+', listeners: ['broker'] },
  {
    groupId: string('0+'),
    topics: array('0+', {
      topicName: string('0+'),
      partitions: array('0+', { partitionIndex: int32('0+'), startOffset: int64('0+') }),
    }),
  },
)
export type AlterShareGroupOffsetsRequest = MessageOf<typeof AlterShareGroupOffsetsRequest>

export const AlterShareGroupOffsetsResponse = response(
  { apiKey: 91, name: 'AlterShareGroupOffsetsResponse', versions: '0', flexible: '0+' },
  {
    throttleTimeMs: int32('0+'),
    errorCode: int16('0+'),
    errorMessage: string('0+', { nullable: '0+', default: null }),
    responses: array('0+', {
      topicName: string('0+'),
      topicId: uuid('0+'),
      partitions: array('0+', {
        partitionIndex: int32('0+'),
        errorCode: int16('0+'),
        errorMessage: string('0+', { nullable: '0+', default: null }),
      }),
    }),
  },
)
export type AlterShareGroupOffsetsResponse = MessageOf<typeof AlterShareGroupOffsetsResponse>
