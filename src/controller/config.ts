import type { Millis, NodeId } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import type { BrokerConfigs } from '#core/config/broker-configs.ts'
import type { FeatureRange } from '#core/metadata/image.ts'
import type { ConnectionLimits } from '#network/connection.ts'
import type { Address } from '#world/world.ts'
import type { SnapshotLimits } from './snapshot-taker.ts'

export interface ControllerConfig extends SnapshotLimits {
  readonly nodeId: NodeId
  readonly clusterId: string
  /** `directory.id` of the folder's meta.properties. */
  readonly directoryId: Uuid
  /** Where to listen; port 0 takes any free one. */
  readonly listener: { readonly name: string; readonly address: Address }
  /** The host that others reach the listener by; the listener's own, or localhost where it listens on all interfaces. */
  readonly advertisedHost?: string
  /** The node's configuration: defaults of topics, and what CreateTopics and the like obey. */
  readonly configs: BrokerConfigs
  /** What the features may be on this node. */
  readonly features?: ReadonlyMap<string, FeatureRange>
  /** broker.session.timeout.ms */
  readonly sessionTimeoutMs: Millis
  /** leader.imbalance.check.interval.seconds; undefined where auto.leader.rebalance.enable is false. */
  readonly leaderBalanceIntervalMs?: Millis | undefined
  /** metadata.log.segment.bytes */
  readonly segmentBytes?: number
  readonly limits?: ConnectionLimits
  /** connections.max.idle.ms */
  readonly idleMs?: Millis
  readonly connectionsMax?: number
  readonly connectionsPerHostMax?: number
}
