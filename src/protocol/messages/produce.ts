import {
  array,
  int16,
  int32,
  int64,
  type MessageOf,
  records,
  request,
  response,
  string,
  struct,
  uuid,
} from '../schema.ts'

export const ProduceRequest = request(
  { apiKey: 0, name: 'ProduceRequest', versions: '3-13', flexible: '9+', listeners: ['broker'] },
  {
    transactionalId: string('3+', { nullable: '3+', default: null }),
    acks: int16('0+'),
    timeoutMs: int32('0+'),
    topicData: array('0+', {
      name: string('0-12', { ignorable: true }),
      topicId: uuid('13+', { ignorable: true }),
      partitionData: array('0+', { index: int32('0+'), records: records('0+', { nullable: '0+' }) }),
    }),
  },
)
export type ProduceRequest = MessageOf<typeof ProduceRequest>

export const ProduceResponse = response(
  { apiKey: 0, name: 'ProduceResponse', versions: '3-13', flexible: '9+' },
  {
    responses: array('0+', {
      name: string('0-12', { ignorable: true }),
      topicId: uuid('13+', { ignorable: true }),
      partitionResponses: array('0+', {
        index: int32('0+'),
        errorCode: int16('0+'),
        baseOffset: int64('0+'),
        logAppendTimeMs: int64('2+', { default: -1, ignorable: true }),
        logStartOffset: int64('5+', { default: -1, ignorable: true }),
        recordErrors: array(
          '8+',
          { batchIndex: int32('8+'), batchIndexErrorMessage: string('8+', { nullable: '8+', default: null }) },
          { ignorable: true },
        ),
        errorMessage: string('8+', { nullable: '8+', default: null, ignorable: true }),
        currentLeader: struct(
          '10+',
          { leaderId: int32('10+', { default: -1 }), leaderEpoch: int32('10+', { default: -1 }) },
          { tag: 0 },
        ),
      }),
    }),
    throttleTimeMs: int32('1+', { ignorable: true }),
    nodeEndpoints: array(
      '10+',
      {
        nodeId: int32('10+'),
        host: string('10+'),
        port: int32('10+'),
        rack: string('10+', { nullable: '10+', default: null }),
      },
      { tag: 0 },
    ),
  },
)
export type ProduceResponse = MessageOf<typeof ProduceResponse>
