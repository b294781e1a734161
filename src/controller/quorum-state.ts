import type { NodeId } from '#base/units.ts'
import { isUuid, ZERO_UUID } from '#base/uuid.ts'
import { NO_QUORUM_STATE, type QuorumState } from '#core/raft/quorum.ts'
import { readText, replaceFile } from '#storage/files.ts'
import type { Disk } from '#world/world.ts'

const FILE = 'quorum-state'

/** A `quorum-state` file that says nothing one could go on from. */
export class QuorumStateError extends Error {
  override readonly name = 'QuorumStateError'
}

/**
 * Reads Kafka's `quorum-state`: JSON of the schema QuorumStateData, version 0 of a fixed list of voters or version 1.
 * Without the file it is the state before all elections. Rejects with a QuorumStateError for a file that is no such
 * JSON: to begin again would forget a vote.
 */
export async function readQuorumState(disk: Disk, folder: string): Promise<QuorumState> {
  const text = await readText(disk, `${folder}/${FILE}`)
  if (text === undefined) return NO_QUORUM_STATE
  const fields = parse(text)
  const { leaderEpoch = -1, leaderId = -1, votedId = -1, votedDirectoryId = ZERO_UUID } = fields ?? {}
  const numbers = [leaderEpoch, leaderId, votedId].every(value => Number.isInteger(value))
  if (fields === undefined || !numbers || typeof votedDirectoryId !== 'string' || !isUuid(votedDirectoryId)) {
    throw new QuorumStateError(`${folder}/${FILE} is damaged; restore it, as it holds this node's vote in the quorum`)
  }
  return {
    leaderEpoch: Math.max(0, Number(leaderEpoch)),
    leaderId: Number(leaderId),
    votedId: Number(votedId),
    votedDirectoryId,
  }
}

function parse(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/** Durable when it returns. `voterIds` are in the file only with kraft.version 0. */
export function writeQuorumState(
  disk: Disk,
  folder: string,
  state: QuorumState,
  kraftVersion: number,
  voterIds: readonly NodeId[],
): Promise<void> {
  const { leaderId, leaderEpoch, votedId, votedDirectoryId } = state
  const data =
    kraftVersion === 0
      ? {
          clusterId: '',
          leaderId,
          leaderEpoch,
          votedId,
          appliedOffset: 0,
          currentVoters: voterIds.map(voterId => ({ voterId })),
          data_version: 0,
        }
      : { leaderId, leaderEpoch, votedId, votedDirectoryId, data_version: 1 }
  return replaceFile(disk, folder, FILE, JSON.stringify(data))
}
