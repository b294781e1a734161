import { ByteReader, DecodeError } from '#base/bytes.ts'
import type { Millis, NodeId } from '#base/units.ts'
import { KRAFT_VERSIONS, type Voter } from '#core/raft/quorum.ts'
import { decode, encodeToBuffer } from '#protocol/codec.ts'
import * as schemas from '#protocol/records/control-records.ts'
import { type ControlRecord, controlTypeOf } from '#records/control.ts'
import type { LogRecord } from '#records/records.ts'

/** What raft's own records say beside the metadata: who votes. */
export type QuorumRecord =
  | { readonly type: 'leaderChange'; readonly voterIds: readonly NodeId[] }
  | { readonly type: 'kraftVersion'; readonly level: number }
  | { readonly type: 'kraftVoters'; readonly voters: readonly Voter[] }

/** Undefined for control records that say nothing about the quorum. */
export function decodeQuorumRecord({ key, value }: LogRecord): QuorumRecord | undefined {
  const type = controlTypeOf(key)
  if (value === null) return undefined
  const reader = new ByteReader(value)
  switch (type) {
    case 'leaderChange': {
      const version = value.length >= 2 ? value.readInt16BE(0) : 0
      const { voters } = decode(schemas.LeaderChangeMessage, Math.min(version, 1), reader)
      return { type, voterIds: voters.map(voter => voter.voterId) }
    }
    case 'kraftVersion':
      return { type, level: decode(schemas.KRaftVersionRecord, 0, reader).kRaftVersion }
    case 'kraftVoters': {
      const { voters } = decode(schemas.VotersRecord, 0, reader)
      if (voters.length === 0) throw new DecodeError('a quorum without voters')
      return {
        type,
        voters: voters.map(voter => ({
          id: voter.voterId,
          directoryId: voter.voterDirectoryId,
          endpoints: voter.endpoints.map(({ name, host, port }) => ({ name, host, port })),
          kraftVersion: {
            min: voter.kRaftVersionFeature.minSupportedVersion,
            max: voter.kRaftVersionFeature.maxSupportedVersion,
          },
        })),
      }
    }
    default:
      return undefined
  }
}

/** The first record of each epoch. Version 0, as Kafka 4.3 writes it with either kraft.version. */
export function leaderChangeRecord(
  leaderId: NodeId,
  voters: readonly Voter[],
  granting: readonly Voter[],
): ControlRecord {
  const value = encodeToBuffer(schemas.LeaderChangeMessage, 0, {
    version: 0,
    leaderId,
    voters: voters.map(({ id }) => ({ voterId: id })),
    grantingVoters: granting.map(({ id }) => ({ voterId: id })),
  })
  return { type: 'leaderChange', value }
}

export function kraftVersionRecord(level: number): ControlRecord {
  const value = encodeToBuffer(schemas.KRaftVersionRecord, 0, { version: 0, kRaftVersion: level })
  return { type: 'kraftVersion', value }
}

export function votersRecord(voters: readonly Voter[]): ControlRecord {
  const value = encodeToBuffer(schemas.VotersRecord, 0, {
    version: 0,
    voters: voters.map(({ id, directoryId, endpoints, kraftVersion: { min, max } }) => ({
      voterId: id,
      voterDirectoryId: directoryId,
      endpoints: endpoints.map(({ name, host, port }) => ({ name, host, port })),
      kRaftVersionFeature: { minSupportedVersion: min, maxSupportedVersion: max },
    })),
  })
  return { type: 'kraftVoters', value }
}

export function snapshotHeaderRecord(lastContainedLogTimestamp: Millis): ControlRecord {
  const value = encodeToBuffer(schemas.SnapshotHeaderRecord, 0, { version: 0, lastContainedLogTimestamp })
  return { type: 'snapshotHeader', value }
}

export function snapshotFooterRecord(): ControlRecord {
  return { type: 'snapshotFooter', value: encodeToBuffer(schemas.SnapshotFooterRecord, 0, { version: 0 }) }
}

export function soleVoter(id: NodeId, directoryId: Voter['directoryId'], endpoints: Voter['endpoints']): Voter {
  return { id, directoryId, endpoints, kraftVersion: KRAFT_VERSIONS }
}
