import { array, bool, int16, int32, int64, type MessageOf, request, response, string } from '../schema.ts'

const addPartitionsToTxnTopic = { name: string('0+'), partitions: array('0+', 'int32') }

export const AddPartitionsToTxnRequest = request(
  { apiKey: 24, name: 'AddPartitionsToTxnRequest', versions: '0-5', flexible: '3+', listeners: ['broker'] },
  {
    transactions: array('4+', {
      transactionalId: string('4+'),
      producerId: int64('4+'),
      producerEpoch: int16('4+'),
      verifyOnly: bool('4+'),
      topics: array('4+', addPartitionsToTxnTopic),
    }),
    v3AndBelowTransactionalId: string('0-3'),
    v3AndBelowProducerId: int64('0-3'),
    v3AndBelowProducerEpoch: int16('0-3'),
    v3AndBelowTopics: array('0-3', addPartitionsToTxnTopic),
  },
)
export type AddPartitionsToTxnRequest = MessageOf<typeof AddPartitionsToTxnRequest>

const addPartitionsToTxnPartitionResult = { partitionIndex: int32('0+'), partitionErrorCode: int16('0+') }

const addPartitionsToTxnTopicResult = {
  name: string('0+'),
  resultsByPartition: array('0+', addPartitionsToTxnPartitionResult),
}

export const AddPartitionsToTxnResponse = response(
  { apiKey: 24, name: 'AddPartitionsToTxnResponse', versions: '0-5', flexible: '3+' },
  {
    throttleTimeMs: int32('0+'),
    errorCode: int16('4+', { ignorable: true }),
    resultsByTransaction: array('4+', {
      transactionalId: string('4+'),
      topicResults: array('4+', addPartitionsToTxnTopicResult),
    }),
    resultsByTopicV3AndBelow: array('0-3', addPartitionsToTxnTopicResult),
  },
)
export type AddPartitionsToTxnResponse = MessageOf<typeof AddPartitionsToTxnResponse>
