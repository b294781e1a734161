import { array, int8, int16, int32, int64, type MessageOf, request, response, string } from '../schema.ts'

export const ListOffsetsRequest = request(
  { apiKey: 2, name: 'ListOffsetsRequest', versions: '1-11', flexible: '6+', listeners: ['broker'] },
  {
    replicaId: int32('0+'),
    isolationLevel: int8('2+'),
    topics: array('0+', {
      name: string('0+'),
      partitions: array('0+', {
        partitionIndex: int32('0+'),
        currentLeaderEpoch: int32('4+', { default: -1, ignorable: true }),
        timestamp: int64('0+'),
      }),
    }),
    timeoutMs: int32('10+', { ignorable: true }),
  },
)
export type ListOffsetsRequest = MessageOf<typeof ListOffsetsRequest>

export const ListOffsetsResponse = response(
  { apiKey: 2, name: 'ListOffsetsResponse', versions: '1-11', flexible: '6+' },
  {
    throttleTimeMs: int32('2+', { ignorable: true }),
    topics: array('0+', {
      name: string('0+'),
      partitions: array('0+', {
        partitionIndex: int32('0+'),
        errorCode: int16('0+'),
        timestamp: int64('1+', { default: -1 }),
        offset: int64('1+', { default: -1 }),
        leaderEpoch: int32('4+', { default: -1 }),
      }),
    }),
  },
)
export type ListOffsetsResponse = MessageOf<typeof ListOffsetsResponse>
