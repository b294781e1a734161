import { assert } from '#base/assert.ts'
import type { Millis, NodeId } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { BrokerConfigs } from '../config/broker-configs.ts'
import { effectiveTopicText, TOPIC_CONFIGS } from '../config/topic.ts'
import { CONFIG_RESOURCE } from './config-resource.ts'
import type { MetadataImage, TopicImage } from './image.ts'
import type { Liveness } from './liveness.ts'
import { METADATA_VERSION_ELR } from './metadata-version.ts'
import { directoryIsOnline, type FeatureRange, isActive } from './node-image.ts'
import type { PartitionTarget } from './partition-change.ts'
import {
  changedPartition,
  directoryOf,
  MIGRATING_DIRECTORY,
  type PartitionImage,
  UNASSIGNED_DIRECTORY,
} from './partition-image.ts'
import type { MetadataRecord } from './record.ts'

export interface ControllerOptions {
  readonly nodeId: NodeId
  readonly clusterId: string
  /** What the features may be on this node, by name; see `SUPPORTED_FEATURES`. */
  readonly features: ReadonlyMap<string, FeatureRange>
  /** The node's own configuration; what was altered dynamically comes from the image. */
  readonly configs: BrokerConfigs
  /** `broker.session.timeout.ms` */
  readonly sessionTimeoutMs: Millis
  /** `leader.imbalance.check.interval.seconds`, undefined where `auto.leader.rebalance.enable` is false. */
  readonly leaderBalanceIntervalMs: Millis | undefined
  /** Ids of the voters, to know whom a feature needs; empty where unknown. */
  readonly voterIds?: () => readonly NodeId[]
}

interface TopicRules {
  readonly minIsr: number
  readonly unclean: boolean
}

/** What one command decides by: the image, the options, and who is alive. Made anew for each, so that it may remember. */
export class ControllerState {
  readonly image: MetadataImage
  readonly options: ControllerOptions
  readonly liveness: Liveness
  readonly #topicRules = new Map<string, TopicRules>()
  /** Of all topics that set nothing, which are most. */
  #inheritedRules: TopicRules | undefined
  #brokerConfigs: BrokerConfigs | undefined
  /** What this command made of partitions so far, by what they were before. */
  readonly #changed = new Map<PartitionImage, PartitionImage>()

  constructor(image: MetadataImage, options: ControllerOptions, liveness: Liveness) {
    this.image = image
    this.options = options
    this.liveness = liveness
  }

  /** `inter.broker.listener.name`, if it is set. */
  get interBrokerListener(): string | undefined {
    return this.options.configs.string('inter.broker.listener.name')?.trim().toUpperCase()
  }

  /** The configuration of this node as it stands, from which topics inherit. */
  get brokerConfigs(): BrokerConfigs {
    this.#brokerConfigs ??= this.options.configs.with({
      dynamic: this.image.config(CONFIG_RESOURCE.BROKER, String(this.options.nodeId)),
      dynamicDefault: this.image.config(CONFIG_RESOURCE.BROKER, ''),
    })
    return this.#brokerConfigs
  }

  get metadataVersion(): number {
    return this.image.metadataVersion
  }

  get elrEnabled(): boolean {
    return this.metadataVersion >= METADATA_VERSION_ELR && this.image.feature('eligible.leader.replicas.version') > 0
  }

  isActive(id: NodeId): boolean {
    return isActive(this.image.broker(id))
  }

  /** The error of a request from a broker whose registration is another one by now, 0 if it is the same. */
  brokerEpochError(brokerId: NodeId, brokerEpoch: number): number {
    return this.image.broker(brokerId)?.epoch === brokerEpoch ? ErrorCode.NONE : ErrorCode.STALE_BROKER_EPOCH
  }

  topicConfig(topic: string, name: string): string | null {
    const definition = TOPIC_CONFIGS.get(name)
    assert(definition !== undefined, `no such topic configuration: ${name}`)
    return effectiveTopicText(definition, this.image.config(CONFIG_RESOURCE.TOPIC, topic), this.brokerConfigs)
  }

  #rulesOf(topic: TopicImage): TopicRules {
    let rules = this.#topicRules.get(topic.name)
    if (rules === undefined) {
      rules = this.#configuredRulesOf(topic.name)
      this.#topicRules.set(topic.name, rules)
    }
    return rules
  }

  #configuredRulesOf(topic: string): TopicRules {
    const inherits = this.image.config(CONFIG_RESOURCE.TOPIC, topic).size === 0
    if (inherits && this.#inheritedRules !== undefined) return this.#inheritedRules
    const minIsr = Number(this.topicConfig(topic, 'min.insync.replicas') ?? 1)
    const unclean = this.topicConfig(topic, 'unclean.leader.election.enable')?.toLowerCase() === 'true'
    if (inherits) this.#inheritedRules = { minIsr, unclean }
    return { minIsr, unclean }
  }

  uncleanElectionAllowed(topic: TopicImage): boolean {
    return this.#rulesOf(topic).unclean
  }

  /** A broker's directory for a replica that is new there: the only one it has, else to be chosen by the broker. */
  directoryFor(id: NodeId): Uuid {
    const [first, ...others] = this.image.broker(id)?.logDirs ?? []
    if (first === undefined) return MIGRATING_DIRECTORY
    return others.length === 0 ? first : UNASSIGNED_DIRECTORY
  }

  /**
   * The partition as what this command has decided so far leaves it. A request may name one twice, and a change holds only
   * what differs: two that were decided on the same state would together make one that nobody decided.
   */
  partition(topic: TopicImage | undefined, index: number): PartitionImage | undefined {
    const before = topic?.partitions[index]
    return before === undefined ? undefined : (this.#changed.get(before) ?? before)
  }

  /** This is decided of it. Returns what it is then. */
  decided(topic: TopicImage, index: number, change: MetadataRecord | undefined): PartitionImage | undefined {
    const before = topic.partitions[index]
    const now = this.partition(topic, index)
    if (before === undefined || now === undefined || change?.type !== 'PartitionChange') return now
    const after = changedPartition(now, change.value)
    this.#changed.set(before, after)
    return after
  }

  /** What every change of a partition begins with. `mayLead` narrows or widens who is alive. */
  target(
    topic: TopicImage,
    index: number,
    partition: PartitionImage,
    mayLead: (id: NodeId) => boolean = id => this.isActive(id),
  ): PartitionTarget {
    return {
      topicId: topic.id,
      index,
      partition,
      metadataVersion: this.metadataVersion,
      elr: this.elrEnabled,
      minIsr: this.#rulesOf(topic).minIsr,
      election: this.uncleanElectionAllowed(topic) ? 'unclean' : 'online',
      mayLead: id => mayLead(id) && directoryIsOnline(this.image.broker(id), directoryOf(partition, id)),
      isReached: id => this.liveness.isReached(id),
      directoryOf: id => this.directoryFor(id),
    }
  }
}
