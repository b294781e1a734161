import {
  array,
  coordinatorKey,
  coordinatorValue,
  int8,
  int16,
  int32,
  int64,
  type MessageOf,
  string,
} from '../schema.ts'

export const TransactionLogKey = coordinatorKey(
  { apiKey: 0, name: 'TransactionLogKey', versions: '0' },
  { transactionalId: string('0') },
)
export type TransactionLogKey = MessageOf<typeof TransactionLogKey>

export const TransactionLogValue = coordinatorValue(
  { apiKey: 0, name: 'TransactionLogValue', versions: '0-1', flexible: '1+' },
  {
    producerId: int64('0+'),
    previousProducerId: int64('1+', { default: -1, tag: 0 }),
    nextProducerId: int64('1+', { default: -1, tag: 1 }),
    producerEpoch: int16('0+'),
    nextProducerEpoch: int16('1+', { default: -1, tag: 3 }),
    transactionTimeoutMs: int32('0+'),
    transactionStatus: int8('0+'),
    transactionPartitions: array('0+', { topic: string('0+'), partitionIds: array('0+', 'int32') }, { nullable: '0+' }),
    transactionLastUpdateTimestampMs: int64('0+'),
    transactionStartTimestampMs: int64('0+'),
    clientTransactionVersion: int16('1+', { tag: 2 }),
  },
)
export type TransactionLogValue = MessageOf<typeof TransactionLogValue>
