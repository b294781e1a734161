import type { Millis, NodeId } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import type { BrokerConfigs } from '#core/config/broker-configs.ts'
import type { FeatureRange } from '#core/metadata/node-image.ts'
import type { ConnectionLimits } from '#network/connection.ts'
import type { Address } from '#world/world.ts'
import type { SnapshotLimits } from './snapshot-taker.ts'

/** Which cluster the node's folders belong to; one that is new learns it by founding one or joining one. */
export interface ClusterIdentity {
  readonly id: string | undefined
  /**
   * Stores the id in `meta.properties` of every folder; durable when it resolves, and `id` says it from then on. Called
   * once, while `id` is undefined. Rejects with a StorageError or a WorldError; then it may be called again.
   */
  found(id: string): Promise<void>
}

/** An entry of controller.quorum.voters. */
export interface StaticVoter extends Address {
  readonly id: NodeId
}

/** The times of raft; Kafka's defaults where they are not given. */
export interface QuorumTimes {
  /** controller.quorum.election.timeout.ms */
  readonly electionTimeoutMs?: Millis
  /** controller.quorum.fetch.timeout.ms */
  readonly fetchTimeoutMs?: Millis
  /** controller.quorum.election.backoff.max.ms */
  readonly electionBackoffMaxMs?: Millis
  /** controller.quorum.request.timeout.ms */
  readonly requestTimeoutMs?: Millis
  /** controller.quorum.retry.backoff.ms */
  readonly retryBackoffMs?: Millis
}

export interface ControllerConfig extends SnapshotLimits, QuorumTimes {
  readonly nodeId: NodeId
  readonly cluster: ClusterIdentity
  /**
   * controller.quorum.voters: a fixed list, this node among them. An empty folder with neither this nor
   * `bootstrapServers` founds a quorum of itself alone.
   */
  readonly voters?: readonly StaticVoter[]
  /** controller.quorum.bootstrap.servers: whom an empty folder asks who the leader is. */
  readonly bootstrapServers?: readonly Address[]
  /** controller.quorum.auto.join.enable: an observer asks to become a voter. */
  readonly autoJoin?: boolean
  /** `directory.id` of the folder's meta.properties. */
  readonly directoryId: Uuid
  /** Where to listen; port 0 takes any free one. */
  readonly listener: { readonly name: string; readonly address: Address }
  /** The host that others reach the listener by; the listener's own, or localhost where it listens on all interfaces. */
  readonly advertisedHost?: string
  /** The port that others reach it by, where it is not the listener's. */
  readonly advertisedPort?: number
  /** The node's configuration: defaults of topics, and what CreateTopics and the like obey. */
  readonly configs: BrokerConfigs
  /** What the features may be on this node. */
  readonly features?: ReadonlyMap<string, FeatureRange>
  /** inter.broker.listener.name: where a broker is dialled to see whether its process lives; its first one otherwise. */
  readonly interBrokerListener?: string | undefined
  /** broker.session.timeout.ms */
  readonly sessionTimeoutMs: Millis
  /** leader.imbalance.check.interval.seconds; undefined where auto.leader.rebalance.enable is false. */
  readonly leaderBalanceIntervalMs?: Millis | undefined
  /** metadata.log.segment.bytes */
  readonly segmentBytes?: number
  readonly limits?: ConnectionLimits
  /** connections.max.idle.ms */
  readonly idleMs?: Millis
}
