import { array, int16, int32, type MessageOf, request, response, string, uuid } from '../schema.ts'

export const DeleteShareGroupOffsetsRequest = request(
  { apiKey: 92, name: 'DeleteShareGroupOffsetsRequest', versions: '0', flexible: '0+', listeners: ['broker'] },
  { groupId: string('0+'), topics: array('0+', { topicName: string('0+') }) },
)
export type DeleteShareGroupOffsetsRequest = MessageOf<typeof DeleteShareGroupOffsetsRequest>

export const DeleteShareGroupOffsetsResponse = response(
  { apiKey: 92, name: 'DeleteShareGroupOffsetsResponse', versions: '0', flexible: '0+' },
  {
    throttleTimeMs: int32('0+'),
    errorCode: int16('0+'),
    errorMessage: string('0+', { nullable: '0+', default: null }),
    responses: array('0+', {
      topicName: string('0+'),
      topicId: uuid('0+'),
      errorCode: int16('0+'),
      errorMessage: string('0+', { nullable: '0+', default: null }),
    }),
  },
)
export type DeleteShareGroupOffsetsResponse = MessageOf<typeof DeleteShareGroupOffsetsResponse>
