import { array, int16, int32, int64, type MessageOf, request, response, string, uuid } from '../schema.ts'

export const InitializeShareGroupStateRequest = request(
  { apiKey: 83, name: 'InitializeShareGroupStateRequest', versions: '0', flexible: '0+', listeners: ['broker'] },
  {
    groupId: string('0+'),
    topics: array('0+', {
      topicId: uuid('0+'),
      partitions: array('0+', { partition: int32('0+'), stateEpoch: int32('0+'), startOffset: int64('0+') }),
    }),
  },
)
export type InitializeShareGroupStateRequest = MessageOf<typeof InitializeShareGroupStateRequest>

export const InitializeShareGroupStateResponse = response(
  { apiKey: 83, name: 'InitializeShareGroupStateResponse', versions: '0', flexible: '0+' },
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
export type InitializeShareGroupStateResponse = MessageOf<typeof InitializeShareGroupStateResponse>
