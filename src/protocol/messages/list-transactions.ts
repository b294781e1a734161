import { array, int16, int32, int64, type MessageOf, request, response, string } from '../schema.ts'

export const ListTransactionsRequest = request(
  { apiKey: 66, name: 'ListTransactionsRequest', versions: '0-2', flexible: '0+', listeners: ['broker'] },
  {
    stateFilters: array('0+', 'string'),
    producerIdFilters: array('0+', 'int64'),
    durationFilter: int64('1+', { default: -1 }),
    transactionalIdPattern: string('2+', { nullable: '2+', default: null }),
  },
)
export type ListTransactionsRequest = MessageOf<typeof ListTransactionsRequest>

export const ListTransactionsResponse = response(
  { apiKey: 66, name: 'ListTransactionsResponse', versions: '0-2', flexible: '0+' },
  {
    throttleTimeMs: int32('0+'),
    errorCode: int16('0+'),
    unknownStateFilters: array('0+', 'string'),
    transactionStates: array('0+', {
      transactionalId: string('0+'),
      producerId: int64('0+'),
      transactionState: string('0+'),
    }),
  },
)
export type ListTransactionsResponse = MessageOf<typeof ListTransactionsResponse>
