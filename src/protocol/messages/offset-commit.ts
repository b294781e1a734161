import { array, int16, int32, int64, type MessageOf, request, response, string, uuid } from '../schema.ts'

export const OffsetCommitRequest = request(
  { apiKey: 8, name: 'OffsetCommitRequest', versions: '2-10', flexible: '8+', listeners: ['broker'] },
  {
    groupId: string('0+'),
    generationIdOrMemberEpoch: int32('1+', { default: -1, ignorable: true }),
    memberId: string('1+', { ignorable: true }),
    groupInstanceId: string('7+', { nullable: '7+', default: null }),
    retentionTimeMs: int64('2-4', { default: -1, ignorable: true }),
    topics: array('0+', {
      name: string('0-9', { ignorable: true }),
      topicId: uuid('10+', { ignorable: true }),
      partitions: array('0+', {
        partitionIndex: int32('0+'),
        committedOffset: int64('0+'),
        committedLeaderEpoch: int32('6+', { default: -1, ignorable: true }),
        committedMetadata: string('0+', { nullable: '0+' }),
      }),
    }),
  },
)
export type OffsetCommitRequest = MessageOf<typeof OffsetCommitRequest>

export const OffsetCommitResponse = response(
  { apiKey: 8, name: 'OffsetCommitResponse', versions: '2-10', flexible: '8+' },
  {
    throttleTimeMs: int32('3+', { ignorable: true }),
    topics: array('0+', {
      name: string('0-9', { ignorable: true }),
      topicId: uuid('10+', { ignorable: true }),
      partitions: array('0+', { partitionIndex: int32('0+'), errorCode: int16('0+') }),
    }),
  },
)
export type OffsetCommitResponse = MessageOf<typeof OffsetCommitResponse>
