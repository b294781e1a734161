import type { Epoch, NodeId } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import type { PartitionChangeRecord, PartitionRecord } from '#protocol/records/metadata-records.ts'

/** Stand in the place of a replica's directory (KIP-858): not known as its record is older than directories, ... */
export const MIGRATING_DIRECTORY: Uuid = 'AAAAAAAAAAAAAAAAAAAAAA'
/** ... to be chosen by its broker, ... */
export const UNASSIGNED_DIRECTORY: Uuid = 'AAAAAAAAAAAAAAAAAAAAAQ'
/** ... or offline, whichever it was. */
export const LOST_DIRECTORY: Uuid = 'AAAAAAAAAAAAAAAAAAAAAg'

/** Whether a new leader may still lack records that were committed (KIP-704). */
export const LEADER_RECOVERED = 0
export const LEADER_RECOVERING = 1

/** A partition at one moment. Never changed: a change makes a new one, so an old one can be kept and compared. */
export interface PartitionImage {
  /** In the order of the assignment: the first is the preferred leader. */
  readonly replicas: readonly NodeId[]
  /** Directory of each replica, in the order of `replicas`. */
  readonly directories: readonly Uuid[]
  readonly isr: readonly NodeId[]
  readonly removingReplicas: readonly NodeId[]
  readonly addingReplicas: readonly NodeId[]
  readonly eligibleLeaderReplicas: readonly NodeId[]
  readonly lastKnownElr: readonly NodeId[]
  readonly leader: NodeId
  readonly leaderRecoveryState: number
  readonly leaderEpoch: Epoch
  /** Counts every change. */
  readonly partitionEpoch: Epoch
}

const NO_NODES: readonly NodeId[] = []

/** Where the replica of this broker lies; undefined where it has none. */
export function directoryOf({ directories, replicas }: PartitionImage, id: NodeId): Uuid | undefined {
  return directories[replicas.indexOf(id)]
}

function orNone(nodes: readonly NodeId[] | null): readonly NodeId[] {
  return nodes === null || nodes.length === 0 ? NO_NODES : nodes
}

export function recordedPartition(record: PartitionRecord): PartitionImage {
  const { replicas, directories } = record
  return {
    replicas,
    directories: directories.length === replicas.length ? directories : replicas.map(() => MIGRATING_DIRECTORY),
    isr: record.isr,
    removingReplicas: orNone(record.removingReplicas),
    addingReplicas: orNone(record.addingReplicas),
    eligibleLeaderReplicas: orNone(record.eligibleLeaderReplicas),
    lastKnownElr: orNone(record.lastKnownElr),
    leader: record.leader,
    leaderRecoveryState: record.leaderRecoveryState,
    leaderEpoch: record.leaderEpoch,
    partitionEpoch: record.partitionEpoch,
  }
}

/** The partition with its eligible leaders forgotten; itself if it has none. */
export function withoutElr(partition: PartitionImage): PartitionImage {
  if (partition.eligibleLeaderReplicas.length === 0 && partition.lastKnownElr.length === 0) return partition
  const partitionEpoch = partition.partitionEpoch + 1
  return { ...partition, eligibleLeaderReplicas: NO_NODES, lastKnownElr: NO_NODES, partitionEpoch }
}

/**
 * What a change record makes of a partition. The leader epoch rises when the leader changes (also to none) or when a
 * replica of the old list is not in the new one; the partition epoch always rises.
 */
export function changedPartition(before: PartitionImage, record: PartitionChangeRecord): PartitionImage {
  const replicas = record.replicas ?? before.replicas
  const leader = record.leader === -2 ? before.leader : record.leader
  const newEpoch = record.leader !== -2
  return {
    replicas,
    directories: directoriesAfter(before, replicas, record.directories),
    isr: record.isr ?? before.isr,
    removingReplicas: record.removingReplicas === null ? before.removingReplicas : orNone(record.removingReplicas),
    addingReplicas: record.addingReplicas === null ? before.addingReplicas : orNone(record.addingReplicas),
    eligibleLeaderReplicas:
      record.eligibleLeaderReplicas === null ? before.eligibleLeaderReplicas : orNone(record.eligibleLeaderReplicas),
    lastKnownElr: record.lastKnownElr === null ? before.lastKnownElr : orNone(record.lastKnownElr),
    leader,
    leaderRecoveryState: record.leaderRecoveryState === -1 ? before.leaderRecoveryState : record.leaderRecoveryState,
    leaderEpoch: newEpoch ? before.leaderEpoch + 1 : before.leaderEpoch,
    partitionEpoch: before.partitionEpoch + 1,
  }
}

/** Directories by the new order of replicas: as said, else as before, else not known. */
function directoriesAfter(
  before: PartitionImage,
  replicas: readonly NodeId[],
  said: readonly Uuid[] | null,
): readonly Uuid[] {
  if (said !== null && said.length === replicas.length) return said
  if (replicas === before.replicas) return before.directories
  return replicas.map(replica => before.directories[before.replicas.indexOf(replica)] ?? MIGRATING_DIRECTORY)
}
