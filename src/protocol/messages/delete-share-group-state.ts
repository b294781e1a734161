import { array, int16, int32, type MessageOf, request, response, string, uuid } from '../schema.ts'

export const DeleteShareGroupStateRequest = request(
  { apiKey: 86, name: 'DeleteShareGroupStateRequest', versions: '0', flexible: '0+', listeners: ['broker'] },
  {
    groupId: string('0+'),
    topics: array('0+', { topicId: uuid('0+'), partitions: array('0+', { partition: int32('0+') }) }),
  },
)
export type DeleteShareGroupStateRequest = MessageOf<typeof DeleteShareGroupStateRequest>

export const DeleteShareGroupStateResponse = response(
  { apiKey: 86, name: 'DeleteShareGroupStateResponse', versions: '0', flexible: '0+' },
  {
    results: array('0+', {
      topicId: uuid('0+'),
      partitions: array('0+', {
        partition: int32('0+'),
        errorCode: int16('0+'),
        errorMessage: string('0+', { nullable: '0+', default: null }),
      }),
    }),
  },
)
export type DeleteShareGroupStateResponse = MessageOf<typeof DeleteShareGroupStateResponse>
