import type { Clock, Logger } from '#world/world.ts'
import { Deadlines } from '../../deadlines.ts'
import type { Assignment } from '../partition.ts'
import type { PartitionSurroundings } from '../surroundings.ts'

/** A broker around one partition that does nothing but what a test gives it to do. */
export function surroundings(
  clock: Clock,
  log: Logger,
  does: Partial<PartitionSurroundings> = {},
): PartitionSurroundings {
  return {
    nodeId: 1,
    clock,
    deadlines: new Deadlines(clock),
    log,
    lagTimeMaxMs: 30_000,
    fetchBackoffMs: 1000,
    eligibleEpoch: () => 100,
    ledChanged() {},
    alterIsr() {},
    fetchable() {},
    askOffsets() {},
    followersServeConsumers: () => false,
    ...does,
  }
}

/** A partition's place in the cluster: by itself on node 1, unless it is said otherwise. */
export function assigned(leaderEpoch: number, other: Partial<Assignment> = {}): Assignment {
  return { leader: 1, leaderEpoch, partitionEpoch: leaderEpoch, replicas: [1], isr: [1], ...other }
}
