import type { Millis, NodeId } from '#base/units.ts'
import type { IsrProposal } from '#core/partition/in-sync-replicas.ts'
import type { Clock, Logger } from '#world/world.ts'
import type { Deadlines } from '../deadlines.ts'
import type { Partition } from './partition.ts'

/** What a partition needs of its broker. */
export interface PartitionSurroundings {
  readonly nodeId: NodeId
  readonly clock: Clock
  readonly deadlines: Deadlines
  readonly log: Logger
  /** `replica.lag.time.max.ms` and `replica.fetch.backoff.ms`. */
  readonly lagTimeMaxMs: Millis
  readonly fetchBackoffMs: Millis
  /** The epoch of a broker that may be in sync: registered, not fenced, not about to leave. Of others undefined. */
  readonly eligibleEpoch: (id: NodeId) => number | undefined
  /** The partition began or ceased to be led here. */
  readonly ledChanged: (partition: Partition, leads: boolean) => void
  /** To the controller; the answer comes back by `isrAnswered`. */
  readonly alterIsr: (partition: Partition, proposal: IsrProposal) => void
  /** It follows, and has a position to fetch from that it did not have. */
  readonly fetchable: (partition: Partition) => void
  readonly followersServeConsumers: () => boolean
  /** Where the leader's log starts and ends is to be told by `leaderOffsets`. */
  readonly askOffsets: (partition: Partition) => void
}
