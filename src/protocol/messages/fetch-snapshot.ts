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
  uint16,
  uuid,
} from '../schema.ts'

export const FetchSnapshotRequest = request(
  { apiKey: 59, name: 'FetchSnapshotRequest', versions: '0-1', flexible: '0+', listeners: ['controller'] },
  {
    clusterId: string('0+', { nullable: '0+', default: null, tag: 0 }),
    replicaId: int32('0+', { default: -1 }),
    maxBytes: int32('0+', { default: 0x7fff_ffff }),
    topics: array('0+', {
      name: string('0+'),
      partitions: array('0+', {
        partition: int32('0+'),
        currentLeaderEpoch: int32('0+'),
        snapshotId: struct('0+', { endOffset: int64('0+'), epoch: int32('0+') }),
        position: int64('0+'),
        replicaDirectoryId: uuid('1+', { ignorable: true, tag: 0 }),
      }),
    }),
  },
)
export type FetchSnapshotRequest = MessageOf<typeof FetchSnapshotRequest>

export const FetchSnapshotResponse = response(
  { apiKey: 59, name: 'FetchSnapshotResponse', versions: '0-1', flexible: '0+' },
  {
    throttleTimeMs: int32('0+', { ignorable: true }),
    errorCode: int16('0+'),
    topics: array('0+', {
      name: string('0+'),
      partitions: array('0+', {
        index: int32('0+'),
        errorCode: int16('0+'),
        snapshotId: struct('0+', { endOffset: int64('0+'), epoch: int32('0+') }),
        currentLeader: struct('0+', { leaderId: int32('0+'), leaderEpoch: int32('0+') }, { tag: 0 }),
        size: int64('0+'),
        position: int64('0+'),
        unalignedRecords: records('0+'),
      }),
    }),
    nodeEndpoints: array('1+', { nodeId: int32('1+'), host: string('1+'), port: uint16('1+') }, { tag: 0 }),
  },
)
export type FetchSnapshotResponse = MessageOf<typeof FetchSnapshotResponse>
