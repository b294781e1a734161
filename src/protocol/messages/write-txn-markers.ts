import { array, bool, int8, int16, int32, int64, type MessageOf, request, response, string } from '../schema.ts'

export const WriteTxnMarkersRequest = request(
  { apiKey: 27, name: 'WriteTxnMarkersRequest', versions: '1-2', flexible: '1+', listeners: ['broker'] },
  {
    markers: array('0+', {
      producerId: int64('0+'),
      producerEpoch: int16('0+'),
      transactionResult: bool('0+'),
      topics: array('0+', { name: string('0+'), partitionIndexes: array('0+', 'int32') }),
      coordinatorEpoch: int32('0+'),
      transactionVersion: int8('2+', { ignorable: true }),
    }),
  },
)
export type WriteTxnMarkersRequest = MessageOf<typeof WriteTxnMarkersRequest>

export const WriteTxnMarkersResponse = response(
  { apiKey: 27, name: 'WriteTxnMarkersResponse', versions: '1-2', flexible: '1+' },
  {
    markers: array('0+', {
      producerId: int64('0+'),
      topics: array('0+', {
        name: string('0+'),
        partitions: array('0+', { partitionIndex: int32('0+'), errorCode: int16('0+') }),
      }),
    }),
  },
)
export type WriteTxnMarkersResponse = MessageOf<typeof WriteTxnMarkersResponse>
