import { bool, int16, int32, int64, type MessageOf, request, response, string } from '../schema.ts'

export const EndTxnRequest = request(
  { apiKey: 26, name: 'EndTxnRequest', versions: '0-5', flexible: '3+', listeners: ['broker'] },
  { transactionalId: string('0+'), producerId: int64('0+'), producerEpoch: int16('0+'), committed: bool('0+') },
)
export type EndTxnRequest = MessageOf<typeof EndTxnRequest>

export const EndTxnResponse = response(
  { apiKey: 26, name: 'EndTxnResponse', versions: '0-5', flexible: '3+' },
  {
    throttleTimeMs: int32('0+'),
    errorCode: int16('0+'),
    producerId: int64('5+', { default: -1, ignorable: true }),
    producerEpoch: int16('5+', { default: -1, ignorable: true }),
  },
)
export type EndTxnResponse = MessageOf<typeof EndTxnResponse>
