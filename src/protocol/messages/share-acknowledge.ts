import { array, bool, int16, int32, int64, type MessageOf, request, response, string, struct, uuid } from '../schema.ts'

export const ShareAcknowledgeRequest = request(
  { apiKey: 79, name: 'ShareAcknowledgeRequest', versions: '1-2', flexible: '0+', listeners: ['broker'] },
  {
    groupId: string('0+', { nullable: '0+', default: null }),
    memberId: string('0+', { nullable: '0+' }),
    shareSessionEpoch: int32('0+'),
    isRenewAck: bool('2+'),
    topics: array('0+', {
      topicId: uuid('0+'),
      partitions: array('0+', {
        partitionIndex: int32('0+'),
        acknowledgementBatches: array('0+', {
          firstOffset: int64('0+'),
          lastOffset: int64('0+'),
          acknowledgeTypes: array('0+', 'int8'),
        }),
      }),
    }),
  },
)
export type ShareAcknowledgeRequest = MessageOf<typeof ShareAcknowledgeRequest>

export const ShareAcknowledgeResponse = response(
  { apiKey: 79, name: 'ShareAcknowledgeResponse', versions: '1-2', flexible: '0+' },
  {
    throttleTimeMs: int32('0+'),
    errorCode: int16('0+'),
    errorMessage: string('0+', { nullable: '0+', default: null }),
    acquisitionLockTimeoutMs: int32('2+', { ignorable: true }),
    responses: array('0+', {
      topicId: uuid('0+'),
      partitions: array('0+', {
        partitionIndex: int32('0+'),
        errorCode: int16('0+'),
        errorMessage: string('0+', { nullable: '0+', default: null }),
        currentLeader: struct('0+', { leaderId: int32('0+'), leaderEpoch: int32('0+') }),
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
export type ShareAcknowledgeResponse = MessageOf<typeof ShareAcknowledgeResponse>
