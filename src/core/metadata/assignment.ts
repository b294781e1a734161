import type { NodeId } from '#base/units.ts'
import type { ControllerState } from './controller-state.ts'
import { NO_LEADER } from './partition-change.ts'
import { LEADER_RECOVERED, type PartitionImage } from './partition-image.ts'

/** What is wrong with replicas that somebody chose by hand; `factor` is how many there must be, if that is fixed. */
export function assignmentProblem(
  state: ControllerState,
  replicas: readonly NodeId[],
  factor: number | undefined,
): string | undefined {
  const given = 'The manual partition assignment includes'
  if (replicas.length === 0) return `${given} an empty replica list.`
  const sorted = [...replicas].sort((a, b) => a - b)
  for (const [index, id] of sorted.entries()) {
    if (!state.image.brokers.has(id)) return `${given} broker ${id}, but no such broker is registered.`
    if (id === sorted[index - 1]) return `${given} the broker ${id} more than once.`
  }
  if (factor !== undefined && replicas.length !== factor) {
    return `${given} a partition with ${replicas.length} replica(s), but this is not consistent with previous partitions, which have ${factor} replica(s).`
  }
  return undefined
}

/** A partition as it begins: led by the first of its replicas that is alive and can be dialled. */
export function newPartition(state: ControllerState, replicas: readonly NodeId[]): PartitionImage {
  const isr = replicas.filter(id => state.isActive(id))
  return {
    replicas,
    directories: replicas.map(id => state.directoryFor(id)),
    isr,
    removingReplicas: [],
    addingReplicas: [],
    eligibleLeaderReplicas: [],
    lastKnownElr: [],
    leader: isr.find(id => state.liveness.isReached(id)) ?? isr[0] ?? NO_LEADER,
    leaderRecoveryState: LEADER_RECOVERED,
    leaderEpoch: 0,
    partitionEpoch: 0,
  }
}
