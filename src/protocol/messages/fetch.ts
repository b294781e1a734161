import {
  array,
  INT64_MAX,
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

export const FetchRequest = request(
  { apiKey: 1, name: 'FetchRequest', versions: '4-18', flexible: '12+', listeners: ['broker', 'controller'] },
  {
    clusterId: string('12+', { nullable: '12+', default: null, ignorable: true, tag: 0 }),
    replicaId: int32('0-14', { default: -1 }),
    replicaState: struct(
      '15+',
      { replicaId: int32('15+', { default: -1 }), replicaEpoch: int64('15+', { default: -1 }) },
      { tag: 1 },
    ),
    maxWaitMs: int32('0+'),
    minBytes: int32('0+'),
    maxBytes: int32('3+', { default: 0x7fff_ffff, ignorable: true }),
    isolationLevel: int8('4+', { ignorable: true }),
    sessionId: int32('7+', { ignorable: true }),
    sessionEpoch: int32('7+', { default: -1, ignorable: true }),
    topics: array('0+', {
      topic: string('0-12', { ignorable: true }),
      topicId: uuid('13+', { ignorable: true }),
      partitions: array('0+', {
        partition: int32('0+'),
        currentLeaderEpoch: int32('9+', { default: -1, ignorable: true }),
        fetchOffset: int64('0+'),
        lastFetchedEpoch: int32('12+', { default: -1 }),
        logStartOffset: int64('5+', { default: -1, ignorable: true }),
        partitionMaxBytes: int32('0+'),
        replicaDirectoryId: uuid('17+', { ignorable: true, tag: 0 }),
        highWatermark: int64('18+', { default: INT64_MAX, ignorable: true, tag: 1 }),
      }),
    }),
    forgottenTopicsData: array('7+', {
      topic: string('7-12', { ignorable: true }),
      topicId: uuid('13+', { ignorable: true }),
      partitions: array('7+', 'int32'),
    }),
    rackId: string('11+', { ignorable: true }),
  },
)
export type FetchRequest = MessageOf<typeof FetchRequest>

export const FetchResponse = response(
  { apiKey: 1, name: 'FetchResponse', versions: '4-18', flexible: '12+' },
  {
    throttleTimeMs: int32('1+', { ignorable: true }),
    errorCode: int16('7+', { ignorable: true }),
    sessionId: int32('7+'),
    responses: array('0+', {
      topic: string('0-12', { ignorable: true }),
      topicId: uuid('13+', { ignorable: true }),
      partitions: array('0+', {
        partitionIndex: int32('0+'),
        errorCode: int16('0+'),
        highWatermark: int64('0+'),
        lastStableOffset: int64('4+', { default: -1, ignorable: true }),
        logStartOffset: int64('5+', { default: -1, ignorable: true }),
        divergingEpoch: struct(
          '12+',
          { epoch: int32('12+', { default: -1 }), endOffset: int64('12+', { default: -1 }) },
          { tag: 0 },
        ),
        currentLeader: struct(
          '12+',
          { leaderId: int32('12+', { default: -1 }), leaderEpoch: int32('12+', { default: -1 }) },
          { tag: 1 },
        ),
        snapshotId: struct(
          '12+',
          { endOffset: int64('0+', { default: -1 }), epoch: int32('0+', { default: -1 }) },
          { tag: 2 },
        ),
        abortedTransactions: array(
          '4+',
          { producerId: int64('4+'), firstOffset: int64('4+') },
          { nullable: '4+', ignorable: true },
        ),
        preferredReadReplica: int32('11+', { default: -1 }),
        records: records('0+', { nullable: '0+' }),
      }),
    }),
    nodeEndpoints: array(
      '16+',
      {
        nodeId: int32('16+'),
        host: string('16+'),
        port: int32('16+'),
        rack: string('16+', { nullable: '16+', default: null }),
      },
      { tag: 0 },
    ),
  },
)
export type FetchResponse = MessageOf<typeof FetchResponse>
