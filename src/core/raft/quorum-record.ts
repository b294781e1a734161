import { ByteReader, DecodeError } from '#base/bytes.ts'
import type { NodeId, Offset } from '#base/units.ts'
import { decode } from '#protocol/codec.ts'
import * as schemas from '#protocol/records/control-records.ts'
import { isControl } from '#records/batch.ts'
import { controlTypeOf } from '#records/control.ts'
import { type LogRecord, recordsOf } from '#records/records.ts'
import type { Voter } from './quorum.ts'

/** What raft's own records say beside the metadata: who votes. */
export type QuorumRecord =
  | { readonly type: 'leaderChange'; readonly voterIds: readonly NodeId[] }
  | { readonly type: 'kraftVersion'; readonly level: number }
  | { readonly type: 'kraftVoters'; readonly voters: readonly Voter[] }

/** What the records of the batch at `at` say of the quorum; nothing where it is not one of control records. */
export function* quorumRecordsOf(
  bytes: Buffer,
  at: number,
): Generator<{ readonly offset: Offset; readonly record: QuorumRecord }> {
  if (!isControl(bytes, at)) return
  for (const each of recordsOf(bytes, at)) {
    const record = decodeQuorumRecord(each)
    if (record !== undefined) yield { offset: each.offset, record }
  }
}

/** Undefined for control records that say nothing about the quorum. */
function decodeQuorumRecord({ key, value }: LogRecord): QuorumRecord | undefined {
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
