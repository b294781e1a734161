import {
  array,
  bool,
  int8,
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

export const ShareFetchRequest = request(
  { apiKey: 78, name: 'ShareFetchRequest', versions: '1-2', flexible: '0+', listeners: ['broker'] },
  {
    groupId: string('0+', { nullable: '0+', default: null }),
    memberId: string('0+', { nullable: '0+' }),
    shareSessionEpoch: int32('0+'),
    maxWaitMs: int32('0+'),
    minBytes: int32('0+'),
    maxBytes: int32('0+', { default: 0x7fff_ffff }),
    maxRecords: int32('1+'),
    batchSize: int32('1+'),
    shareAcquireMode: int8('2+', { ignorable: true }),
    isRenewAck: bool('2+'),
    topics: array('0+', {
      topicId: uuid('0+'),
      partitions: array('0+', {
        partitionIndex: int32('0+'),
        partitionMaxBytes: int32('0'),
        acknowledgementBatches: array('0+', {
          firstOffset: int64('0+'),
          lastOffset: int64('0+'),
          acknowledgeTypes: array('0+', 'int8'),
        }),
      }),
    }),
    forgottenTopicsData: array('0+', { topicId: uuid('0+'), partitions: array('0+', 'int32') }),
  },
)
export type ShareFetchRequest = MessageOf<typeof ShareFetchRequest>

export const ShareFetchResponse = response(
  { apiKey: 78, name: 'ShareFetchResponse', versions: '1-2', flexible: '0+' },
  {
    throttleTimeMs: int32('0+'),
    errorCode: int16('0+'),
    errorMessage: string('0+', { nullable: '0+', default: null }),
    acquisitionLockTimeoutMs: int32('1+'),
    responses: array('0+', {
      topicId: uuid('0+'),
      partitions: array('0+', {
        partitionIndex: int32('0+'),
        errorCode: int16('0+'),
        errorMessage: string('0+', { nullable: '0+', default: null }),
        acknowledgeErrorCode: int16('0+'),
        acknowledgeErrorMessage: string('0+', { nullable: '0+', default: null }),
        currentLeader: struct('0+', { leaderId: int32('0+'), leaderEpoch: int32('0+') }),
        records: records('0+', { nullable: '0' }),
        acquiredRecords: array('0+', { firstOffset: int64('0+'), lastOffset: int64('0+'), deliveryCount: int16('0+') }),
      }),
    }),
    nodeEndpoints: array('0+', {
      nodeId: int32('0+'),
      host: string('0+'),
      port: int32('0+'),
      rack: string('0+', { nullable: '0+', default: null }),
    }),
  },
)
export type ShareFetchResponse = MessageOf<typeof ShareFetchResponse>
