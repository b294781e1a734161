import { array, bool, int8, int16, int32, type MessageOf, request, response, string, uuid } from '../schema.ts'

export const CreateTopicsRequest = request(
  { apiKey: 19, name: 'CreateTopicsRequest', versions: '2-7', flexible: '5+', listeners: ['broker', 'controller'] },
  {
    topics: array('0+', {
      name: string('0+'),
      numPartitions: int32('0+'),
      replicationFactor: int16('0+'),
      assignments: array('0+', { partitionIndex: int32('0+'), brokerIds: array('0+', 'int32') }),
      configs: array('0+', { name: string('0+'), value: string('0+', { nullable: '0+' }) }),
    }),
    timeoutMs: int32('0+', { default: 60000 }),
    validateOnly: bool('1+'),
  },
)
export type CreateTopicsRequest = MessageOf<typeof CreateTopicsRequest>

export const CreateTopicsResponse = response(
  { apiKey: 19, name: 'CreateTopicsResponse', versions: '2-7', flexible: '5+' },
  {
    throttleTimeMs: int32('2+', { ignorable: true }),
    topics: array('0+', {
      name: string('0+'),
      topicId: uuid('7+', { ignorable: true }),
      errorCode: int16('0+'),
      errorMessage: string('1+', { nullable: '0+', ignorable: true }),
      topicConfigErrorCode: int16('5+', { ignorable: true, tag: 0 }),
      numPartitions: int32('5+', { default: -1, ignorable: true }),
      replicationFactor: int16('5+', { default: -1, ignorable: true }),
      configs: array(
        '5+',
        {
          name: string('5+'),
          value: string('5+', { nullable: '5+' }),
          readOnly: bool('5+'),
          configSource: int8('5+', { default: -1, ignorable: true }),
          isSensitive: bool('5+'),
        },
        { nullable: '5+', ignorable: true },
      ),
    }),
  },
)
export type CreateTopicsResponse = MessageOf<typeof CreateTopicsResponse>
