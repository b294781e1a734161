import { array, int16, int32, int64, type MessageOf, request, response, string } from '../schema.ts'

export const DescribeTransactionsRequest = request(
  { apiKey: 65, name: 'DescribeTransactionsRequest', versions: '0', flexible: '0+', listeners: ['broker'] },
  { transactionalIds: array('0+', 'string') },
)
export type DescribeTransactionsRequest = MessageOf<typeof DescribeTransactionsRequest>

export const DescribeTransactionsResponse = response(
  { apiKey: 65, name: 'DescribeTransactionsResponse', versions: '0', flexible: '0+' },
  {
    throttleTimeMs: int32('0+'),
    transactionStates: array('0+', {
      errorCode: int16('0+'),
      transactionalId: string('0+'),
      transactionState: string('0+'),
      transactionTimeoutMs: int32('0+'),
      transactionStartTimeMs: int64('0+'),
      producerId: int64('0+'),
      producerEpoch: int16('0+'),
      topics: array('0+', { topic: string('0+'), partitions: array('0+', 'int32') }),
    }),
  },
)
export type DescribeTransactionsResponse = MessageOf<typeof DescribeTransactionsResponse>
