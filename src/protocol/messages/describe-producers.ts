import { array, int16, int32, int64, type MessageOf, request, response, string } from '../schema.ts'

export const DescribeProducersRequest = request(
  { apiKey: 61, name: 'DescribeProducersRequest', versions: '0', flexible: '0+', listeners: ['broker'] },
  { topics: array('0+', { name: string('0+'), partitionIndexes: array('0+', 'int32') }) },
)
export type DescribeProducersRequest = MessageOf<typeof DescribeProducersRequest>

export const DescribeProducersResponse = response(
  { apiKey: 61, name: 'DescribeProducersResponse', versions: '0', flexible: '0+' },
  {
    throttleTimeMs: int32('0+'),
    topics: array('0+', {
      name: string('0+'),
      partitions: array('0+', {
        partitionIndex: int32('0+'),
        errorCode: int16('0+'),
        errorMessage: string('0+', { nullable: '0+', default: null }),
        activeProducers: array('0+', {
          producerId: int64('0+'),
          producerEpoch: int32('0+'),
          lastSequence: int32('0+', { default: -1 }),
          lastTimestamp: int64('0+', { default: -1 }),
          coordinatorEpoch: int32('0+'),
          currentTxnStartOffset: int64('0+', { default: -1 }),
        }),
      }),
    }),
  },
)
export type DescribeProducersResponse = MessageOf<typeof DescribeProducersResponse>
