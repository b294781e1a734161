import { array, int8, int16, int32, int64, type MessageOf, request, response, string, uuid } from '../schema.ts'

export const ReadShareGroupStateRequest = request(
  { apiKey: 84, name: 'ReadShareGroupStateRequest', versions: '0', flexible: '0+', listeners: ['broker'] },
  {
    groupId: string('0+'),
    topics: array('0+', {
      topicId: uuid('0+'),
      partitions: array('0+', { partition: int32('0+'), leaderEpoch: int32('0+') }),
    }),
  },
)
export type ReadShareGroupStateRequest = MessageOf<typeof ReadShareGroupStateRequest>

export const ReadShareGroupStateResponse = response(
  { apiKey: 84, name: 'ReadShareGroupStateResponse', versions: '0', flexible: '0+' },
  {
    results: array('0+', {
      topicId: uuid('0+'),
      partitions: array('0+', {
        partition: int32('0+'),
        errorCode: int16('0+'),
        errorMessage: string('0+', { nullable: '0+', default: null }),
        stateEpoch: int32('0+'),
        startOffset: int64('0+'),
        stateBatches: array('0+', {
          firstOffset: int64('0+'),
          lastOffset: int64('0+'),
          deliveryState: int8('0+'),
          deliveryCount: int16('0+'),
        }),
      }),
    }),
  },
)
export type ReadShareGroupStateResponse = MessageOf<typeof ReadShareGroupStateResponse>
