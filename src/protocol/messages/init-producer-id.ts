import { bool, int16, int32, int64, type MessageOf, request, response, string } from '../schema.ts'

export const InitProducerIdRequest = request(
  {
    apiKey: 22,
    name: 'InitProducerIdRequest',
    versions: '0-6',
    flexible: '2+',
    listeners: ['broker'],
    latestVersionUnstable: true,
  },
  {
    transactionalId: string('0+', { nullable: '0+' }),
    transactionTimeoutMs: int32('0+'),
    producerId: int64('3+', { default: -1 }),
    producerEpoch: int16('3+', { default: -1 }),
    enable2Pc: bool('6+'),
    keepPreparedTxn: bool('6+'),
  },
)
export type InitProducerIdRequest = MessageOf<typeof InitProducerIdRequest>

export const InitProducerIdResponse = response(
  { apiKey: 22, name: 'InitProducerIdResponse', versions: '0-6', flexible: '2+' },
  {
    throttleTimeMs: int32('0+', { ignorable: true }),
    errorCode: int16('0+'),
    producerId: int64('0+', { default: -1 }),
    producerEpoch: int16('0+'),
    ongoingTxnProducerId: int64('6+', { default: -1 }),
    ongoingTxnProducerEpoch: int16('6+', { default: -1 }),
  },
)
export type InitProducerIdResponse = MessageOf<typeof InitProducerIdResponse>
