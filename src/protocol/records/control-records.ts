import { array, data, int16, int32, int64, type MessageOf, string, struct, uint16, uuid } from '../schema.ts'

export const ControlRecordTypeSchema = data({ name: 'ControlRecordTypeSchema', versions: '0' }, { type: int16('0+') })
export type ControlRecordTypeSchema = MessageOf<typeof ControlRecordTypeSchema>

export const EndTxnMarker = data({ name: 'EndTxnMarker', versions: '0' }, { coordinatorEpoch: int32('0+') })
export type EndTxnMarker = MessageOf<typeof EndTxnMarker>

const voter = { voterId: int32('0+'), voterDirectoryId: uuid('1+') }

export const LeaderChangeMessage = data(
  { name: 'LeaderChangeMessage', versions: '0-1', flexible: '0+' },
  { version: int16('0+'), leaderId: int32('0+'), voters: array('0+', voter), grantingVoters: array('0+', voter) },
)
export type LeaderChangeMessage = MessageOf<typeof LeaderChangeMessage>

export const SnapshotHeaderRecord = data(
  { name: 'SnapshotHeaderRecord', versions: '0', flexible: '0+' },
  { version: int16('0+'), lastContainedLogTimestamp: int64('0+') },
)
export type SnapshotHeaderRecord = MessageOf<typeof SnapshotHeaderRecord>

export const SnapshotFooterRecord = data(
  { name: 'SnapshotFooterRecord', versions: '0', flexible: '0+' },
  { version: int16('0+') },
)
export type SnapshotFooterRecord = MessageOf<typeof SnapshotFooterRecord>

export const KRaftVersionRecord = data(
  { name: 'KRaftVersionRecord', versions: '0', flexible: '0+' },
  { version: int16('0+'), kRaftVersion: int16('0+') },
)
export type KRaftVersionRecord = MessageOf<typeof KRaftVersionRecord>

export const VotersRecord = data(
  { name: 'VotersRecord', versions: '0', flexible: '0+' },
  {
    version: int16('0+'),
    voters: array('0+', {
      voterId: int32('0+'),
      voterDirectoryId: uuid('0+'),
      endpoints: array('0+', { name: string('0+'), host: string('0+'), port: uint16('0+') }),
      kRaftVersionFeature: struct('0+', { minSupportedVersion: int16('0+'), maxSupportedVersion: int16('0+') }),
    }),
  },
)
export type VotersRecord = MessageOf<typeof VotersRecord>
