import {
  array,
  bool,
  bytes,
  int8,
  int32,
  int64,
  type MessageOf,
  metadataRecord,
  string,
  struct,
  uuid,
} from '../schema.ts'

export const RemoteLogSegmentMetadataRecord = metadataRecord(
  { apiKey: 0, name: 'RemoteLogSegmentMetadataRecord', versions: '0', flexible: '0+' },
  {
    remoteLogSegmentId: struct('0+', {
      topicIdPartition: struct('0+', { name: string('0+'), id: uuid('0+'), partition: int32('0+') }),
      id: uuid('0+'),
    }),
    startOffset: int64('0+'),
    endOffset: int64('0+'),
    brokerId: int32('0+'),
    maxTimestampMs: int64('0+'),
    eventTimestampMs: int64('0+'),
    segmentLeaderEpochs: array('0+', { leaderEpoch: int32('0+'), offset: int64('0+') }),
    segmentSizeInBytes: int32('0+'),
    customMetadata: bytes('0+', { nullable: '0+', default: null }),
    remoteLogSegmentState: int8('0+'),
    txnIndexEmpty: bool('0+', { tag: 0 }),
  },
)
export type RemoteLogSegmentMetadataRecord = MessageOf<typeof RemoteLogSegmentMetadataRecord>

export const RemoteLogSegmentMetadataUpdateRecord = metadataRecord(
  { apiKey: 1, name: 'RemoteLogSegmentMetadataUpdateRecord', versions: '0', flexible: '0+' },
  {
    remoteLogSegmentId: struct('0+', {
      topicIdPartition: struct('0+', { name: string('0+'), id: uuid('0+'), partition: int32('0+') }),
      id: uuid('0+'),
    }),
    brokerId: int32('0+'),
    eventTimestampMs: int64('0+'),
    customMetadata: bytes('0+', { nullable: '0+', default: null }),
    remoteLogSegmentState: int8('0+'),
  },
)
export type RemoteLogSegmentMetadataUpdateRecord = MessageOf<typeof RemoteLogSegmentMetadataUpdateRecord>

export const RemotePartitionDeleteMetadataRecord = metadataRecord(
  { apiKey: 2, name: 'RemotePartitionDeleteMetadataRecord', versions: '0', flexible: '0+' },
  {
    topicIdPartition: struct('0+', { name: string('0+'), id: uuid('0+'), partition: int32('0+') }),
    brokerId: int32('0+'),
    eventTimestampMs: int64('0+'),
    remotePartitionDeleteState: int8('0+'),
  },
)
export type RemotePartitionDeleteMetadataRecord = MessageOf<typeof RemotePartitionDeleteMetadataRecord>

export const RemoteLogSegmentMetadataSnapshotRecord = metadataRecord(
  { apiKey: 3, name: 'RemoteLogSegmentMetadataSnapshotRecord', versions: '0', flexible: '0+' },
  {
    segmentId: uuid('0+'),
    startOffset: int64('0+'),
    endOffset: int64('0+'),
    brokerId: int32('0+'),
    maxTimestampMs: int64('0+'),
    eventTimestampMs: int64('0+'),
    segmentLeaderEpochs: array('0+', { leaderEpoch: int32('0+'), offset: int64('0+') }),
    segmentSizeInBytes: int32('0+'),
    customMetadata: bytes('0+', { nullable: '0+', default: null }),
    remoteLogSegmentState: int8('0+'),
    txnIndexEmpty: bool('0+', { tag: 0 }),
  },
)
export type RemoteLogSegmentMetadataSnapshotRecord = MessageOf<typeof RemoteLogSegmentMetadataSnapshotRecord>
