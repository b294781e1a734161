import { array, int16, int32, type MessageOf, request, response, string } from '../schema.ts'

export const OffsetDeleteRequest = request(
  { apiKey: 47, name: 'OffsetDeleteRequest', versions: '0', listeners: ['broker'] },
  {
    groupId: string('0+'),
    topics: array('0+', { name: string('0+'), partitions: array('0+', { partitionIndex: int32('0+') }) }),
  },
)
export type OffsetDeleteRequest = MessageOf<typeof OffsetDeleteRequest>

export const OffsetDeleteResponse = response(
  { apiKey: 47, name: 'OffsetDeleteResponse', versions: '0' },
  {
    errorCode: int16('0+'),
    throttleTimeMs: int32('0+', { ignorable: true }),
    topics: array('0+', {
      name: string('0+'),
      partitions: array('0+', { partitionIndex: int32('0+'), errorCode: int16('0+') }),
    }),
  },
)
export type OffsetDeleteResponse = MessageOf<typeof OffsetDeleteResponse>
