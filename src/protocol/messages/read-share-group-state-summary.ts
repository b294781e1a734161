import { array, int16, int32, int64, type MessageOf, request, response, string, uuid } from '../schema.ts'

export const ReadShareGroupStateSummaryRequest = request(
  { apiKey: 87, name: 'ReadShareGroupStateSummaryRequest', versions: '0-1', flexible: '0+', listeners: ['broker'] },
  {
    groupId: string('0+'),
    topics: array('0+', {
      topicId: uuid('0+'),
      partitions: array('0+', { partition: int32('0+'), leaderEpoch: int32('0+') }),
    }),
  },
)
export type ReadShareGroupStateSummaryRequest = MessageOf<typeof ReadShareGroupStateSummaryRequest>

export const ReadShareGroupStateSummaryResponse = response(
  { apiKey: 87, name: 'ReadShareGroupStateSummaryResponse', versions: '0-1', flexible: '0+' },
  {
    results: array('0+', {
      topicId: uuid('0+'),
      partitions: array('0+', {
        partition: int32('0+'),
        errorCode: int16('0+'),
        errorMessage: string('0+', { nullable: '0+', default: null }),
        stateEpoch: int32('0+'),
        leaderEpoch: int32('0+'),
        startOffset: int64('0+'),
        deliveryCompleteCount: int32('1+', { default: -1, ignorable: true }),
      }),
    }),
  },
)
export type ReadShareGroupStateSummaryResponse = MessageOf<typeof ReadShareGroupStateSummaryResponse>
