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
  uuid,
} from '../schema.ts'

export const ShareSnapshotKey = coordinatorKey(
  { apiKey: 0, name: 'ShareSnapshotKey', versions: '0' },
  { groupId: string('0'), topicId: uuid('0'), partition: int32('0') },
)
export type ShareSnapshotKey = MessageOf<typeof ShareSnapshotKey>

export const ShareSnapshotValue = coordinatorValue(
  { apiKey: 0, name: 'ShareSnapshotValue', versions: '0', flexible: '0+' },
  {
    snapshotEpoch: int32('0+'),
    stateEpoch: int32('0+'),
    leaderEpoch: int32('0+'),
    startOffset: int64('0+'),
    deliveryCompleteCount: int32('0+', { default: -1, tag: 0 }),
    createTimestamp: int64('0+'),
    writeTimestamp: int64('0+'),
    stateBatches: array('0+', {
      firstOffset: int64('0+'),
      lastOffset: int64('0+'),
      deliveryState: int8('0+'),
      deliveryCount: int16('0+'),
    }),
  },
)
export type ShareSnapshotValue = MessageOf<typeof ShareSnapshotValue>

export const ShareUpdateKey = coordinatorKey(
  { apiKey: 1, name: 'ShareUpdateKey', versions: '0' },
  { groupId: string('0'), topicId: uuid('0'), partition: int32('0') },
)
export type ShareUpdateKey = MessageOf<typeof ShareUpdateKey>

export const ShareUpdateValue = coordinatorValue(
  { apiKey: 1, name: 'ShareUpdateValue', versions: '0', flexible: '0+' },
  {
    snapshotEpoch: int32('0+'),
    leaderEpoch: int32('0+'),
    startOffset: int64('0+'),
    deliveryCompleteCount: int32('0+', { default: -1, tag: 0 }),
    stateBatches: array('0+', {
      firstOffset: int64('0+'),
      lastOffset: int64('0+'),
      deliveryState: int8('0+'),
      deliveryCount: int16('0+'),
    }),
  },
)
export type ShareUpdateValue = MessageOf<typeof ShareUpdateValue>
