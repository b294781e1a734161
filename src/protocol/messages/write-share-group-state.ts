import { array, int8, int16, int32, int64, type MessageOf, request, response, string, uuid } from '../schema.ts'

export const WriteShareGroupStateRequest = request(
  { apiKey: 85, name: 'WriteShareGroupStateRequest', versions: '0-1', flexible: '0+', listeners: ['broker'] },
  {
    groupId: string('0+'),
    topics: array('0+', {
      topicId: uuid('0+'),
      partitions: array('0+', {
        partition: int32('0+'),
        stateEpoch: int32('0+'),
        leaderEpoch: int32('0+'),
        startOffset: int64('0+'),
        deliveryCompleteCount: int32('1+', { default: -1, ignorable: true }),
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
export type WriteShareGroupStateRequest = MessageOf<typeof WriteShareGroupStateRequest>

export const WriteShareGroupStateResponse = response(
  { apiKey: 85, name: 'WriteShareGroupStateResponse', versions: '0-1', flexible: '0+' },
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
export type WriteShareGroupStateResponse = MessageOf<typeof WriteShareGroupStateResponse>
