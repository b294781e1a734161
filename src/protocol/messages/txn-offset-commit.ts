import { array, int16, int32, int64, type MessageOf, request, response, string } from '../schema.ts'

export const TxnOffsetCommitRequest = request(
  { apiKey: 28, name: 'TxnOffsetCommitRequest', versions: '0-5', flexible: '3+', listeners: ['broker'] },
  {
    transactionalId: string('0+'),
    groupId: string('0+'),
    producerId: int64('0+'),
    producerEpoch: int16('0+'),
    generationId: int32('3+', { default: -1 }),
    memberId: string('3+'),
    groupInstanceId: string('3+', { nullable: '3+', default: null }),
    topics: array('0+', {
      name: string('0+'),
      partitions: array('0+', {
        partitionIndex: int32('0+'),
        committedOffset: int64('0+'),
        committedLeaderEpoch: int32('2+', { default: -1, ignorable: true }),
        committedMetadata: string('0+', { nullable: '0+' }),
      }),
    }),
  },
)
export type TxnOffsetCommitRequest = MessageOf<typeof TxnOffsetCommitRequest>

export const TxnOffsetCommitResponse = response(
  { apiKey: 28, name: 'TxnOffsetCommitResponse', versions: '0-5', flexible: '3+' },
  {
    throttleTimeMs: int32('0+'),
    topics: array('0+', {
      name: string('0+'),
      partitions: array('0+', { partitionIndex: int32('0+'), errorCode: int16('0+') }),
    }),
  },
)
export type TxnOffsetCommitResponse = MessageOf<typeof TxnOffsetCommitResponse>
