import { MiB, type NodeId } from '#base/units.ts'
import { type Uuid, ZERO_UUID } from '#base/uuid.ts'
import type { BrokerConfigs } from '#core/config/broker-configs.ts'
import { CONFIG_RESOURCE } from '#core/metadata/config-resource.ts'
import type { MetadataDelta } from '#core/metadata/delta.ts'
import type { MetadataImage, TopicImage } from '#core/metadata/image.ts'
import { isActive } from '#core/metadata/node-image.ts'
import type { PartitionImage } from '#core/metadata/partition-image.ts'
import { FramePool } from '#network/frame-pool.ts'
import type { LogFolders } from '#storage/log-folders.ts'
import { isRightIn } from '#storage/partition-folder.ts'
import { HungDiskError, StorageError } from '#storage/storage-error.ts'
import type { Clock, Logger, Timer, World } from '#world/world.ts'
import type { Deadlines } from '../deadlines.ts'
import type { ControllerLink } from '../metadata/controller-link.ts'
import { fetchTermsOf } from './fetch-terms.ts'
import { IsrChanges } from './isr-changes.ts'
import { Openings, type Unopened } from './openings.ts'
import type { Partition } from './partition.ts'
import { ReplicaDirectories } from './replica-directories.ts'
import { ReplicaFetchers } from './replica-fetchers.ts'
import { ReplicationThrottle } from './replication-throttle.ts'
import type { PartitionSurroundings } from './surroundings.ts'
import type { Terms } from './terms.ts'

/** Why a partition cannot be asked here, by the name of Kafka's error. */
export type PartitionError =
  | 'UNKNOWN_TOPIC_OR_PARTITION'
  | 'UNKNOWN_TOPIC_ID'
  | 'INCONSISTENT_TOPIC_ID'
  | 'NOT_LEADER_OR_FOLLOWER'
  | 'KAFKA_STORAGE_ERROR'

export interface PartitionsOptions {
  readonly nodeId: NodeId
  readonly folders: LogFolders
  readonly image: () => MetadataImage
  readonly world: World
  readonly deadlines: Deadlines
  readonly log: Logger
  /** For what leaders and followers here have to tell the controller. */
  readonly link: ControllerLink
  /** Of this broker's registration; -1 before. */
  readonly brokerEpoch: () => number
  /** The listener by which brokers reach each other. */
  readonly listener: string
  readonly configs: () => BrokerConfigs
  readonly followersServeConsumers: () => boolean
  /** The terms of a topic with these overrides. */
  readonly termsOf: (topic: string) => Terms
  /** A partition began or ceased to be led here. */
  readonly ledChanged: (partition: Partition, leads: boolean) => void
}

interface HostedTopic {
  readonly id: Uuid
  readonly name: string
  terms: Terms
  readonly partitions: (Partition | undefined)[]
}

const OPEN_AT_ONCE = 32
/** A broker that serves waits so long for logs that are new here, before it goes on to what the cluster says next. */
const OPEN_WAIT_MS = 1000
/** One that is fenced has time, but not for as long as a disk hangs: it would hear of nothing any more, nor when it serves again. */
const OPEN_WAIT_FENCED_MS = 10_000
/** Memory of what was fetched from leaders that is kept for what is fetched next. */
const FETCHED_BYTES_KEPT = 16 * MiB

/** The partitions of this broker, as the metadata image wants them. */
export class Partitions {
  readonly #options: PartitionsOptions
  readonly #topics = new Map<Uuid, HostedTopic>()
  readonly #clock: Clock
  readonly #isrChanges: IsrChanges
  readonly #directories: ReplicaDirectories
  readonly #fetchers: ReplicaFetchers
  readonly #openings: Openings
  readonly throttle: ReplicationThrottle
  /** Folders that retention goes over. */
  readonly #retaining = new Set<string>()
  #stopped = false
  /** Set once the image knows of this life; resolves when all that it wants here at that time is open. */
  #begun: Promise<void> | undefined

  constructor(options: PartitionsOptions) {
    this.#options = options
    const { nodeId, world, deadlines, log, link, brokerEpoch, listener, configs, image } = options
    this.#clock = world.clock
    const reporting = { nodeId, link, clock: world.clock, log, brokerEpoch }
    this.#isrChanges = new IsrChanges(reporting)
    this.#directories = new ReplicaDirectories({ ...reporting, folders: options.folders, image })
    this.throttle = new ReplicationThrottle({
      nodeId,
      topic: partition => this.terms(partition).topic,
      leaderRate: () => rateOf(configs(), 'leader.replication.throttled.rate'),
      followerRate: () => rateOf(configs(), 'follower.replication.throttled.rate'),
    })
    this.#fetchers = new ReplicaFetchers({
      world,
      deadlines,
      log,
      nodeId,
      brokerEpoch,
      broker: id => image().broker(id),
      listener,
      memory: new FramePool(FETCHED_BYTES_KEPT),
      terms: () => fetchTermsOf(configs()),
      hosted: (topicId, index) => this.#topics.get(topicId)?.partitions[index],
      throttle: this.throttle,
    })
    const around: PartitionSurroundings = {
      nodeId,
      clock: world.clock,
      deadlines,
      log,
      lagTimeMaxMs: configs().number('replica.lag.time.max.ms'),
      fetchBackoffMs: configs().number('replica.fetch.backoff.ms'),
      eligibleEpoch: id => {
        const broker = image().broker(id)
        return isActive(broker) ? broker?.epoch : undefined
      },
      ledChanged: (partition, leads) => {
        if (leads) this.#fetchers.leave(partition)
        options.ledChanged(partition, leads)
      },
      alterIsr: (partition, proposal) => this.#isrChanges.propose(partition, proposal),
      fetchable: partition => this.#fetchers.fetchable(partition),
      askOffsets: partition => this.#fetchers.askOffsets(partition),
      followersServeConsumers: options.followersServeConsumers,
    }
    this.#openings = new Openings({
      nodeId,
      folders: options.folders,
      image,
      clock: world.clock,
      log,
      around,
      again: (topicId, index) => void this.#settleAgain(topicId, index),
    })
    options.folders.onHang(() => this.#hangChanged())
  }

  *all(): Generator<Partition> {
    for (const topic of this.#topics.values()) {
      for (const partition of topic.partitions) if (partition !== undefined) yield partition
    }
  }

  *inFolder(path: string): Generator<Partition> {
    for (const partition of this.all()) if (isRightIn(path, partition.log.folder)) yield partition
  }

  /**
   * The partition, or why it cannot be asked here. By name, by id, or by both where a session remembers the name that
   * an id had: a topic that was made anew under its name has another id.
   */
  find(name: string | undefined, id: Uuid | undefined, index: number): Partition | PartitionError {
    const image = this.#options.image()
    // Without a name, the zero id is an id like any other: one that no topic has.
    const byId = id !== undefined && (id !== ZERO_UUID || name === undefined)
    if (byId && name !== undefined) {
      const now = image.topicByName(name)
      if (now === undefined) return 'UNKNOWN_TOPIC_OR_PARTITION'
      if (now.id !== id) return 'INCONSISTENT_TOPIC_ID'
    }
    const topic = byId ? image.topic(id) : image.topicByName(name ?? '')
    if (topic === undefined) return byId ? 'UNKNOWN_TOPIC_ID' : 'UNKNOWN_TOPIC_OR_PARTITION'
    if (topic.partitions[index] === undefined) return 'UNKNOWN_TOPIC_OR_PARTITION'
    const hosted = this.#topics.get(topic.id)?.partitions[index]
    if (hosted !== undefined) return hosted
    return this.#openings.isOffline(topic.id, index) ? 'KAFKA_STORAGE_ERROR' : 'NOT_LEADER_OR_FOLLOWER'
  }

  /** What the cluster knows of a partition, wherever it is. */
  imageOf(name: string | undefined, id: Uuid, index: number): PartitionImage | undefined {
    const image = this.#options.image()
    const topic = id === ZERO_UUID ? image.topicByName(name ?? '') : image.topic(id)
    return topic?.partitions[index]
  }

  terms(partition: Partition): Terms {
    return this.#topics.get(partition.topicId)?.terms ?? this.#options.termsOf(partition.topic)
  }

  /**
   * Brings the partitions to what the image says now. Logs that are new here are open when it is done. Until the image knows
   * of this life of the broker nothing is touched: what it says is of the past, also which topic had a name then and
   * whether a replica was here, and a folder would be moved aside or taken away that is wanted by now.
   */
  async change(delta: MetadataDelta, brokerConfigChanged: boolean): Promise<void> {
    if (this.#begun === undefined) return await this.begin()
    for (const topic of delta.deletedTopics.values()) this.#delete(topic)
    const image = this.#options.image()
    if (brokerConfigChanged) for (const topic of this.#topics.values()) this.#configure(topic)
    else {
      for (const { type, name } of delta.configs.values()) {
        const topic = type === CONFIG_RESOURCE.TOPIC ? image.topicByName(name) : undefined
        const hosted = topic === undefined ? undefined : this.#topics.get(topic.id)
        if (hosted !== undefined) this.#configure(hosted)
      }
    }
    const work: (() => Promise<void>)[] = []
    for (const [id, changed] of delta.topics) {
      const topic = image.topic(id)
      if (topic === undefined) continue
      for (const index of changed.partitions) {
        // What is open takes its part at once: a leader must not wait for the disk of another partition.
        if (!this.#settleOpen(topic, index)) work.push(() => this.#settle(id, index))
      }
    }
    this.#brokersChanged(delta.brokers)
    if (work.length === 0) return
    const opened = inTurns(work, OPEN_AT_ONCE)
    const serves = image.broker(this.#options.nodeId)?.fenced === false
    let timer: Timer | undefined
    const patience = new Promise<void>(resolve => {
      timer = this.#clock.after(serves ? OPEN_WAIT_MS : OPEN_WAIT_FENCED_MS, resolve)
    })
    await Promise.race([opened, patience])
    timer?.cancel()
  }

  /** Opens all that is to be here, as soon as the image knows of this life of the broker; done when it is open. */
  begin(): Promise<void> {
    if (this.#begun !== undefined) return this.#begun
    if (this.#stopped || !this.#isKnown()) return Promise.resolve()
    const { image, nodeId } = this.#options
    const work: (() => Promise<void>)[] = []
    for (const { id, partitions } of image().topics.values()) {
      for (const [index, { replicas }] of partitions.entries()) {
        if (replicas.includes(nodeId)) work.push(() => this.#settle(id, index))
      }
    }
    this.#begun = inTurns(work, OPEN_AT_ONCE)
    return this.#begun
  }

  #settleAll(): void {
    const image = this.#options.image()
    for (const { id, terms, partitions } of this.#topics.values()) {
      for (const [index, partition] of partitions.entries()) {
        const wanted = image.partition(id, index)
        if (partition !== undefined && wanted !== undefined) this.#become(partition, wanted, terms)
      }
    }
  }

  #brokersChanged(brokers: ReadonlySet<NodeId>): void {
    if (brokers.size === 0) return
    for (const id of brokers) this.#fetchers.brokerChanged(id)
    for (const partition of this.all()) {
      if (partition.followers.some(({ id }) => brokers.has(id))) partition.brokersChanged()
    }
  }

  #hangChanged(): void {
    if (this.#stopped) return
    for (const partition of this.all()) {
      const { failure } = partition.log
      // What is under way there is not given back before the disk answers, and counts for nothing then.
      if (failure instanceof HungDiskError) partition.logSettled(failure)
    }
    this.#handOver()
    const { image, folders, nodeId } = this.#options
    if (folders.hungDirectoryIds.length === 0) return
    for (const topic of image().topics.values()) {
      for (const [index, { replicas }] of topic.partitions.entries()) {
        if (replicas.includes(nodeId)) this.#unopened(topic, index)
      }
    }
  }

  #unopened({ id }: TopicImage, index: number): void {
    if (this.#options.folders.hungDirectoryIds.length > 0) this.#openings.waitFor(id, index)
    const unopened = this.#openings.unopened(id, index)
    if (unopened !== undefined) this.#handOverUnopened(unopened)
  }

  /** A log that cannot be made or opened is no reason to wait for it: others lead, or go on without. */
  #handOverUnopened({ topicId, index, since }: Unopened): void {
    const wanted = this.#options.image().partition(topicId, index)
    if (!this.#isKnown() || wanted === undefined || this.#topics.get(topicId)?.partitions[index] !== undefined) return
    this.#directories.reportUnopened(topicId, index, wanted, since)
  }

  /** Looks at all folders, and hands over what lies in those that fail. Returns those that the cluster is to take for offline. */
  handOverFailing(): readonly Uuid[] {
    const { offline, isNews } = this.#directories.lookForFailing(this.all())
    if (isNews) this.#settleAll()
    this.#handOver()
    return offline
  }

  #handOver(): void {
    for (const partition of this.#directories.lookForLost(this.all())) {
      const { topicId, index } = partition
      const wanted = this.#options.image().partition(topicId, index)
      const terms = this.#topics.get(topicId)?.terms
      if (wanted !== undefined && terms !== undefined) this.#become(partition, wanted, terms)
    }
    for (const unopened of this.#openings.allUnopened) this.#handOverUnopened(unopened)
  }

  /** Deletes what is too old or too much, in every log. A disk that hangs holds up no other. */
  async retain(): Promise<void> {
    const paths = this.#options.folders.folders.map(({ path }) => path)
    await Promise.all(paths.filter(path => !this.#retaining.has(path)).map(path => this.#retainIn(path)))
  }

  async #retainIn(path: string): Promise<void> {
    this.#retaining.add(path)
    for (const partition of [...this.inFolder(path)]) {
      if (partition.gone || partition.log.failure instanceof HungDiskError) continue
      const before = partition.log.startOffset
      try {
        await partition.log.retain(this.#clock.now(), partition.highWatermark)
      } catch (error) {
        if (!(error instanceof StorageError)) throw error
      }
      if (partition.log.startOffset !== before) partition.startMoved()
    }
    this.#retaining.delete(path)
  }

  /** What DeleteRecords took stays away, whatever happens to the process. Rejects with a StorageError when it may not. */
  keepStart({ log }: Partition): Promise<void> {
    return this.#options.folders.keepStartOffset(log)
  }

  expireProducers(before: number): void {
    for (const partition of this.all()) partition.producers.expire(before)
  }

  /** Nobody is led and nobody waits here any more. The logs stay open for their owner to close. */
  stop(): void {
    this.#stopped = true
    this.#fetchers.stop()
    this.#isrChanges.stop()
    this.#directories.stop()
    for (const partition of this.all()) partition.leave()
    this.#topics.clear()
  }

  /** Gives a partition that is open, or not to be here, its part. False when its log has to be opened first. */
  #settleOpen(topic: TopicImage, index: number): boolean {
    const { nodeId } = this.#options
    const wanted = topic.partitions[index]
    if (wanted === undefined || !wanted.replicas.includes(nodeId)) {
      this.#leave(topic, index)
      this.#openings.forget(topic.id, index)
      return true
    }
    const hosted = this.#topics.get(topic.id)
    const partition = hosted?.partitions[index]
    if (hosted === undefined || partition === undefined) return false
    this.#become(partition, wanted, hosted.terms)
    return true
  }

  /**
   * What the log of the cluster says before this broker's registration, it says to a life before. To act on it would be
   * to lead with what has long been another's to lead, and to take for committed what is not.
   */
  #isKnown(): boolean {
    const { image, nodeId, brokerEpoch } = this.#options
    const epoch = brokerEpoch()
    return epoch >= 0 && (image().broker(nodeId)?.epoch ?? -1) >= epoch
  }

  #become(partition: Partition, wanted: PartitionImage, { minInSync }: Terms): void {
    const mayTakePart = this.#directories.mayTakePart(partition)
    partition.become(mayTakePart ? wanted : { ...wanted, leader: -1 }, { minInSync })
    if (wanted.leader < 0 || !mayTakePart) this.#fetchers.leave(partition)
    this.#directories.report(partition, wanted)
  }

  async #settle(id: Uuid, index: number): Promise<void> {
    // It may have waited for its turn: a topic of the same name may lie where this one lay.
    const topic = this.#options.image().topic(id)
    if (this.#stopped || topic === undefined || this.#settleOpen(topic, index)) return
    const hosted = this.#hosted(topic)
    const partition = await this.#openings.open(hosted, index)
    if (partition === undefined) this.#unopened(topic, index)
    if (partition === undefined || this.#stopped || partition.gone || hosted.partitions[index] === partition) return
    // The cluster may have gone on while the log was opened.
    const wanted = this.#options.image().partition(id, index)
    if (wanted === undefined || !wanted.replicas.includes(this.#options.nodeId)) {
      this.#remove(partition)
      return
    }
    hosted.partitions[index] = partition
    // So may its settings, of which the log was told when its opening began.
    partition.log.configure(hosted.terms.log)
    this.#become(partition, wanted, hosted.terms)
  }

  async #settleAgain(id: Uuid, index: number): Promise<void> {
    const topic = this.#options.image().topic(id)
    if (this.#stopped || !this.#openings.isOffline(id, index)) return
    if (topic === undefined) this.#openings.forget(id, index)
    else if (this.#topics.get(id)?.partitions[index] === undefined) await this.#settle(id, index)
  }

  #hosted(topic: TopicImage): HostedTopic {
    let hosted = this.#topics.get(topic.id)
    if (hosted === undefined) {
      hosted = { id: topic.id, name: topic.name, terms: this.#options.termsOf(topic.name), partitions: [] }
      this.#topics.set(topic.id, hosted)
    }
    return hosted
  }

  #configure(topic: HostedTopic): void {
    topic.terms = this.#options.termsOf(topic.name)
    for (const partition of topic.partitions) {
      partition?.log.configure(topic.terms.log)
      partition?.configure({ minInSync: topic.terms.minInSync })
    }
  }

  #leave(topic: TopicImage, index: number): void {
    const hosted = this.#topics.get(topic.id)
    const partition = hosted?.partitions[index]
    if (hosted === undefined || partition === undefined) return
    hosted.partitions[index] = undefined
    this.#remove(partition)
  }

  #delete(topic: TopicImage): void {
    const hosted = this.#topics.get(topic.id)
    this.#topics.delete(topic.id)
    for (const partition of hosted?.partitions ?? []) if (partition !== undefined) this.#remove(partition)
  }

  #remove(partition: Partition): void {
    partition.leave()
    this.#fetchers.leave(partition)
    void this.#options.folders.remove(partition.log)
  }
}

function rateOf(configs: BrokerConfigs, name: string): number | undefined {
  const text = configs.string(name)
  return text === null ? undefined : Number(text)
}

/** Runs the work with at most so many at a time. */
async function inTurns(work: readonly (() => Promise<void>)[], atOnce: number): Promise<void> {
  let next = 0
  const run = async (): Promise<void> => {
    while (next < work.length) await (work[next++] as () => Promise<void>)()
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, work.length) }, run))
}
