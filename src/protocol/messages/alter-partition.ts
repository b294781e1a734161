import { array, int8, int16, int32, int64, type MessageOf, request, response, uuid } from '../schema.ts'

export const AlterPartitionRequest = request(
  { apiKey: 56, name: 'AlterPartitionRequest', versions: '2-3', flexible: '0+', listeners: ['controller'] },
  {
    brokerId: int32('0+'),
    brokerEpoch: int64('0+', { default: -1 }),
    topics: array('0+', {
      topicId: uuid('2+', { ignorable: true }),
      partitions: array('0+', {
        partitionIndex: int32('0+'),
        leaderEpoch: int32('0+'),
        newIsr: array('0-2', 'int32'),
        newIsrWithEpochs: array('3+', { brokerId: int32('3+'), brokerEpoch: int64('3+', { default: -1 }) }),
        leaderRecoveryState: int8('1+'),
        partitionEpoch: int32('0+'),
      }),
    }),
  },
)
export type AlterPartitionRequest = MessageOf<typeof AlterPartitionRequest>

export const AlterPartitionResponse = response(
  { apiKey: 56, name: 'AlterPartitionResponse', versions: '2-3', flexible: '0+' },
  {
    throttleTimeMs: int32('0+'),
    errorCode: int16('0+'),
    topics: array('0+', {
      topicId: uuid('2+', { ignorable: true }),
      partitions: array('0+', {
        partitionIndex: int32('0+'),
        errorCode: int16('0+'),
        leaderId: int32('0+'),
        leaderEpoch: int32('0+'),
        isr: array('0+', 'int32'),
        leaderRecoveryState: int8('1+', { ignorable: true }),
        partitionEpoch: int32('0+'),
      }),
    }),
  },
)
export type AlterPartitionResponse = MessageOf<typeof AlterPartitionResponse>
