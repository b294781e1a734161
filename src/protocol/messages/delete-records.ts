import { array, int16, int32, int64, type MessageOf, request, response, string } from '../schema.ts'

export const DeleteRecordsRequest = request(
  { apiKey: 21, name: 'DeleteRecordsRequest', versions: '0-2', flexible: '2+', listeners: ['broker'] },
  {
    topics: array('0+', {
      name: string('0+'),
      partitions: array('0+', { partitionIndex: int32('0+'), offset: int64('0+') }),
    }),
    timeoutMs: int32('0+'),
  },
)
export type DeleteRecordsRequest = MessageOf<typeof DeleteRecordsRequest>

export const DeleteRecordsResponse = response(
  { apiKey: 21, name: 'DeleteRecordsResponse', versions: '0-2', flexible: '2+' },
  {
    throttleTimeMs: int32('0+'),
    topics: array('0+', {
      name: string('0+'),
      partitions: array('0+', { partitionIndex: int32('0+'), lowWatermark: int64('0+'), errorCode: int16('0+') }),
    }),
  },
)
export type DeleteRecordsResponse = MessageOf<typeof DeleteRecordsResponse>
