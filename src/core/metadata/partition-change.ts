import type { NodeId } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import type { PartitionChangeRecord } from '#protocol/records/metadata-records.ts'
import type { InputOf } from '#protocol/schema.ts'
import { METADATA_VERSION_DIRECTORIES, METADATA_VERSION_SHRINK_KEEPS_EPOCH } from './metadata-version.ts'
import { LEADER_RECOVERING, MIGRATING_DIRECTORY, type PartitionImage } from './partition-image.ts'
import { type MetadataRecord, metadataRecord } from './record.ts'

type ChangeInput = {
  -readonly [Key in keyof InputOf<typeof PartitionChangeRecord>]: InputOf<typeof PartitionChangeRecord>[Key]
}

export const NO_LEADER: NodeId = -1

export interface PartitionTarget {
  readonly topicId: Uuid
  readonly index: number
  readonly partition: PartitionImage
  readonly metadataVersion: number
  /** Eligible leader replicas are kept (KIP-966). */
  readonly elr: boolean
  /** `min.insync.replicas` */
  readonly minIsr: number
  /** `online` moves the leader only if it must, `preferred` to the first replica if it can, `unclean` also to one that may lack records. */
  readonly election: 'online' | 'preferred' | 'unclean'
  /** Alive, and its directory too. */
  readonly mayLead: (id: NodeId) => boolean
  /** Others can dial it: who cannot be dialled leads only where nobody else may. */
  readonly isReached: (id: NodeId) => boolean
  /** Where a replica that is new on a broker goes. */
  readonly directoryOf: (id: NodeId) => Uuid
  readonly isr?: readonly NodeId[]
  readonly replicas?: readonly NodeId[]
  readonly adding?: readonly NodeId[]
  readonly removing?: readonly NodeId[]
  readonly leaderRecoveryState?: number
  /** Directories to note, by broker. */
  readonly directories?: ReadonlyMap<NodeId, Uuid>
  /** Brokers that came back without what they had acknowledged: they are not eligible to lead. */
  readonly uncleanShutdown?: (id: NodeId) => boolean
}

interface Election {
  readonly leader: NodeId
  readonly unclean: boolean
}

/**
 * The change of one partition that brings it to its target, with the election that follows from it; undefined if
 * nothing changes. A reassignment is finished on the way, once all replicas that are to stay are in sync.
 */
export function partitionChange(target: PartitionTarget): MetadataRecord | undefined {
  const { partition, metadataVersion } = target
  let isr = target.isr ?? partition.isr
  let replicas = target.replicas ?? partition.replicas
  let adding = target.adding ?? partition.addingReplicas
  let removing = target.removing ?? partition.removingReplicas
  const finished = finishedReassignment(replicas, isr, adding, removing)
  if (finished !== undefined) {
    isr = finished.isr
    replicas = finished.replicas
    adding = []
    removing = []
  }
  let elr = eligibleAfter(target, replicas, isr)
  const change: ChangeInput = {}

  const election = elect(target, replicas, isr, elr)
  if (election.leader !== partition.leader) {
    change.leader = election.leader
    // It may be enough to commit alone: then nobody else is eligible from now on.
    if (elr.includes(election.leader)) {
      isr = [election.leader]
      elr = eligibleAfter(target, replicas, isr)
    }
    if (election.unclean) {
      change.isr = [election.leader]
      if (partition.leaderRecoveryState !== LEADER_RECOVERING) change.leaderRecoveryState = LEADER_RECOVERING
    }
  }
  if (change.leader === undefined && !partition.replicas.every(id => replicas.includes(id))) {
    change.leader = partition.leader
  }

  if (change.isr !== undefined || !target.elr) elr = []
  if (!sameMembers(elr, partition.eligibleLeaderReplicas)) change.eligibleLeaderReplicas = elr
  if (change.isr === undefined && (isr.length > 0 || target.elr) && !sameOrder(isr, partition.isr)) change.isr = isr
  if (
    metadataVersion < METADATA_VERSION_SHRINK_KEEPS_EPOCH &&
    change.leader === undefined &&
    change.isr?.length !== undefined &&
    !partition.isr.every(id => change.isr?.includes(id))
  ) {
    change.leader = partition.leader
  }
  if (target.elr) change.lastKnownElr = lastKnownLeader(partition, change)
  noteAssignment(target, replicas, adding, removing, change)
  const recovery = target.leaderRecoveryState ?? partition.leaderRecoveryState
  if (recovery !== partition.leaderRecoveryState) change.leaderRecoveryState = recovery

  if (Object.values(change).every(value => value === undefined)) return undefined
  return metadataRecord('PartitionChange', metadataVersion, {
    topicId: target.topicId,
    partitionId: target.index,
    ...change,
  })
}

/** The new assignment is whole once all that stay are in sync; until then undefined. */
function finishedReassignment(
  replicas: readonly NodeId[],
  isr: readonly NodeId[],
  adding: readonly NodeId[],
  removing: readonly NodeId[],
): { replicas: NodeId[]; isr: NodeId[] } | undefined {
  if (adding.length === 0 && removing.length === 0) return undefined
  const staying = replicas.filter(id => !removing.includes(id))
  const inSync = isr.filter(id => !removing.includes(id))
  if (staying.length === 0 || inSync.length === 0) return undefined
  return staying.every(id => inSync.includes(id)) ? { replicas: staying, isr: inSync } : undefined
}

/**
 * Who left an ISR that is now too small may still lead: it holds all that was committed. Not who is taken out of the
 * replicas, and so deletes what it has: it may be added again, with nothing. Too small is what the leader takes for it, by
 * the replicas of this partition; Kafka looks at those of the topic's first too, of which there may be fewer.
 */
function eligibleAfter(
  target: PartitionTarget,
  replicas: readonly NodeId[],
  isr: readonly NodeId[],
): readonly NodeId[] {
  const { partition, minIsr, uncleanShutdown } = target
  if (!target.elr || isr.length >= Math.min(minIsr, replicas.length)) return []
  return [...new Set([...partition.eligibleLeaderReplicas, ...partition.isr])].filter(
    id =>
      replicas.includes(id) &&
      partition.replicas.includes(id) &&
      !isr.includes(id) &&
      !(uncleanShutdown?.(id) ?? false),
  )
}

function elect(
  target: PartitionTarget,
  replicas: readonly NodeId[],
  isr: readonly NodeId[],
  elr: readonly NodeId[],
): Election {
  const { partition, mayLead, isReached, election } = target
  const isValid = (id: NodeId) => (isr.includes(id) || (isr.length === 0 && elr.includes(id))) && mayLead(id)
  const isGood = (id: NodeId) => isReached(id) && isValid(id)
  const preferred = replicas[0]
  if (election === 'preferred' && preferred !== undefined && isGood(preferred)) {
    return { leader: preferred, unclean: false }
  }
  for (const suits of [isGood, isValid]) {
    if (suits(partition.leader)) return { leader: partition.leader, unclean: false }
    const online = replicas.find(suits)
    if (online !== undefined) return { leader: online, unclean: false }
  }
  // Everybody who could lead came back without its tail. The last leader alone had all of it once: nobody has more.
  const [last, ...others] = partition.lastKnownElr
  if (
    target.elr &&
    isr.length === 0 &&
    elr.length === 0 &&
    last !== undefined &&
    others.length === 0 &&
    replicas.includes(last) &&
    mayLead(last)
  ) {
    return { leader: last, unclean: true }
  }
  const willing = election === 'unclean' ? replicas.find(mayLead) : undefined
  return willing === undefined ? { leader: NO_LEADER, unclean: false } : { leader: willing, unclean: true }
}

/**
 * The field holds the last leader of a partition that has no ISR, and nothing once it is led again. Where it had no leader
 * while it still had an ISR, as without eligible leaders, that is who was in sync last.
 */
function lastKnownLeader(partition: PartitionImage, change: ChangeInput): readonly NodeId[] | undefined {
  const { lastKnownElr, isr } = partition
  const leader = change.leader ?? partition.leader
  if (change.isr?.length === 0) {
    const last = partition.leader === NO_LEADER ? (lastKnownElr[0] ?? isr[0]) : partition.leader
    if (last !== undefined && last !== lastKnownElr[0]) return [last]
  }
  return leader !== NO_LEADER && lastKnownElr.length > 0 ? [] : undefined
}

function noteAssignment(
  target: PartitionTarget,
  replicas: readonly NodeId[],
  adding: readonly NodeId[],
  removing: readonly NodeId[],
  change: ChangeInput,
): void {
  const { partition } = target
  const isWhereItWas = replicas === partition.replicas && target.directories === undefined
  if (target.metadataVersion >= METADATA_VERSION_DIRECTORIES && !isWhereItWas) {
    const directories = replicas.map(id => {
      const before = partition.directories[partition.replicas.indexOf(id)]
      return target.directories?.get(id) ?? before ?? target.directoryOf(id)
    })
    const changed = !sameOrder(directories, partition.directories)
    if (changed && directories.some(directory => directory !== MIGRATING_DIRECTORY)) change.directories = directories
  }
  if (!sameOrder(replicas, partition.replicas)) change.replicas = replicas
  if (!sameOrder(removing, partition.removingReplicas)) change.removingReplicas = removing
  if (!sameOrder(adding, partition.addingReplicas)) change.addingReplicas = adding
}

function sameOrder<T>(a: readonly T[], b: readonly T[]): boolean {
  return a.length === b.length && a.every((value, index) => value === b[index])
}

function sameMembers(a: readonly NodeId[], b: readonly NodeId[]): boolean {
  return a.length === b.length && a.every(id => b.includes(id))
}
