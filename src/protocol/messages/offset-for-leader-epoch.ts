import { array, int16, int32, int64, type MessageOf, request, response, string } from '../schema.ts'

export const OffsetForLeaderEpochRequest = request(
  { apiKey: 23, name: 'OffsetForLeaderEpochRequest', versions: '2-4', flexible: '4+', listeners: ['broker'] },
  {
    replicaId: int32('3+', { default: -2, ignorable: true }),
    topics: array('0+', {
      topic: string('0+'),
      partitions: array('0+', {
        partition: int32('0+'),
        currentLeaderEpoch: int32('2+', { default: -1, ignorable: true }),
        leaderEpoch: int32('0+'),
      }),
    }),
  },
)
export type OffsetForLeaderEpochRequest = MessageOf<typeof OffsetForLeaderEpochRequest>

export const OffsetForLeaderEpochResponse = response(
  { apiKey: 23, name: 'OffsetForLeaderEpochResponse', versions: '2-4', flexible: '4+' },
  {
    throttleTimeMs: int32('2+', { ignorable: true }),
    topics: array('0+', {
      topic: string('0+'),
      partitions: array('0+', {
        errorCode: int16('0+'),
        partition: int32('0+'),
        leaderEpoch: int32('1+', { default: -1, ignorable: true }),
        endOffset: int64('0+', { default: -1 }),
      }),
    }),
  },
)
export type OffsetForLeaderEpochResponse = MessageOf<typeof OffsetForLeaderEpochResponse>
