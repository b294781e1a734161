import type { Millis, NodeId } from '#base/units.ts'
import { KRAFT_VERSIONS, type Voter } from '#core/raft/quorum.ts'
import { encodeToBuffer } from '#protocol/codec.ts'
import * as schemas from '#protocol/records/control-records.ts'
import type { ControlRecord } from '#records/control.ts'

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
