import type { Millis, NodeId } from '#base/units.ts'
import { uuidFromRandom } from '#base/uuid.ts'
import type { BrokerConfigs } from '#core/config/broker-configs.ts'
import type { ServerConfig } from '#core/config/server.ts'
import { resolveTopic } from '#core/config/topic.ts'
import { groupConfigOf } from '#core/group/config.ts'
import { CONFIG_RESOURCE, configResourceKey } from '#core/metadata/config-resource.ts'
import type { MetadataDelta } from '#core/metadata/delta.ts'
import { SUPPORTED_FEATURES } from '#core/metadata/features.ts'
import { directoryIsOnline, type FeatureRange } from '#core/metadata/node-image.ts'
import { directoryOf, type PartitionImage } from '#core/metadata/partition-image.ts'
import { CLUSTER_METADATA_TOPIC, isInternalTopic, OFFSETS_TOPIC } from '#core/metadata/topic-name.ts'
import { FetchSessions } from '#core/session/fetch-sessions.ts'
import type { Caller, Service } from '#network/service.ts'
import { Turns } from '#network/turns.ts'
import type { LogFolders } from '#storage/log-folders.ts'
import type { Address, Logger, World } from '#world/world.ts'
import { Deadlines } from './deadlines.ts'
import { type Endpoint, endpointsOf } from './endpoints.ts'
import { Listeners } from './listeners.ts'
import { Looks } from './looks.ts'
import { Groups } from './machines/groups.ts'
import { ControllerLinks } from './metadata/controller-links.ts'
import { MetadataFollower } from './metadata/follower.ts'
import { Forwarding } from './metadata/forwarding.ts'
import { BrokerLifecycle } from './metadata/lifecycle.ts'
import { Partitions } from './partitions/partitions.ts'
import { type Terms, termsOf } from './partitions/terms.ts'
import { ProducerIds } from './producer-ids.ts'
import { brokerService } from './requests/index.ts'
import { TopicCreation } from './topic-creation.ts'

export interface BrokerOptions {
  readonly world: World
  readonly config: ServerConfig
  readonly clusterId: string
  readonly folders: LogFolders
  /** Where controllers may be found, beside those that the metadata tells of. */
  readonly controllers: readonly Address[]
  /** The one in this process: what the broker knows of the cluster it reads there. */
  readonly ownController?: Address | undefined
  /** Ends a start that is still waiting for the cluster; `start` then rejects. */
  readonly abort?: AbortSignal | undefined
}

const LEAVE_TIMEOUT_MS = 10_000

/** A broker: what its parts are, and how they hang together. */
export class Broker {
  readonly world: World
  readonly log: Logger
  readonly nodeId: NodeId
  readonly clusterId: string
  readonly config: ServerConfig
  readonly deadlines: Deadlines
  /** In which requests that name very much are worked off. */
  readonly turns: Turns
  /** In which waiting fetches look again. */
  readonly looks: Looks
  readonly metadata: MetadataFollower
  readonly forwarding: Forwarding
  readonly partitions: Partitions
  readonly groups: Groups
  readonly producerIds: ProducerIds
  readonly topicCreation: TopicCreation
  readonly fetchSessions: FetchSessions
  readonly #folders: LogFolders
  readonly #links: ControllerLinks
  readonly #service: Service
  readonly #listeners: Listeners
  #lifecycle: BrokerLifecycle | undefined
  #configs: BrokerConfigs
  /** What holds for topics without a configuration of their own. */
  #inherited: { readonly configs: BrokerConfigs; readonly terms: Terms } | undefined
  readonly #started = Promise.withResolvers<void>()
  #stopped = false

  private constructor(options: BrokerOptions) {
    const { world, config } = options
    this.world = world
    this.log = world.log.child({ broker: config.nodeId })
    this.config = config
    this.nodeId = config.nodeId
    this.clusterId = options.clusterId
    this.#folders = options.folders
    this.#configs = config.broker
    this.deadlines = new Deadlines(world.clock)
    this.turns = new Turns(world.clock)
    this.looks = new Looks(world.clock)
    this.#listeners = new Listeners(config)
    this.#links = new ControllerLinks({
      world,
      nodeId: config.nodeId,
      log: this.log,
      controllers: options.controllers,
      ownController: options.ownController,
      listener: config.controllerListener,
    })
    this.metadata = new MetadataFollower({
      nodeId: config.nodeId,
      clusterId: options.clusterId,
      link: this.#links.metadata,
      controllers: this.#links.controllers,
      clock: world.clock,
      deadlines: this.deadlines,
      log: this.log,
      changed: delta => this.#changed(delta),
    })
    this.forwarding = new Forwarding(this.#links.clients, this.metadata, world.clock)
    this.partitions = new Partitions({
      nodeId: config.nodeId,
      folders: options.folders,
      image: () => this.metadata.image,
      world,
      deadlines: this.deadlines,
      log: this.log,
      link: this.#links.replicas,
      brokerEpoch: () => this.epoch,
      listener: config.interBrokerListener ?? 'PLAINTEXT',
      configs: () => this.#configs,
      followersServeConsumers: () => this.followersServeConsumers,
      termsOf: topic => this.#termsOf(topic),
      ledChanged: (partition, leads) => {
        if (partition.topic !== OFFSETS_TOPIC) return
        if (leads) this.groups.lead(partition)
        else this.groups.resign(partition.index)
      },
    })
    this.groups = new Groups(
      {
        clock: world.clock,
        deadlines: this.deadlines,
        log: this.log,
        config: groupConfigOf(config.broker),
        commitTimeoutMs: config.broker.number('offsets.commit.timeout.ms'),
      },
      () => this.metadata.image.topicByName(OFFSETS_TOPIC)?.partitions.length,
    )
    this.producerIds = new ProducerIds(this.#links.own, this.nodeId, () => this.#lifecycle?.epoch ?? -1)
    this.topicCreation = new TopicCreation(this, this.#links.own)
    this.fetchSessions = new FetchSessions(config.broker.number('max.incremental.fetch.session.cache.slots'))
    this.#service = this.#onceStarted(brokerService(this))
  }

  /** Resolves when clients are served. Rejects with an Error that says what to do when an address cannot be had. */
  static async start(options: BrokerOptions): Promise<Broker> {
    const broker = new Broker(options)
    const stop = () => void broker.stop()
    options.abort?.addEventListener('abort', stop)
    try {
      if (options.abort?.aborted !== true) await broker.#start()
      if (options.abort?.aborted === true) throw new Error('stopped before it was up')
    } catch (error) {
      // A listener that was opened before another could not be.
      await broker.stop()
      throw error
    } finally {
      options.abort?.removeEventListener('abort', stop)
    }
    return broker
  }

  /** This broker's configuration as it holds now. */
  get configs(): BrokerConfigs {
    return this.#configs
  }

  /** Where the listeners are, with the ports that were given for port 0. */
  get listeners(): readonly { readonly name: string; readonly address: Address }[] {
    return this.#listeners.addresses
  }

  /** Takes leave of the cluster, answers nobody any more and closes the logs. */
  async stop(): Promise<void> {
    if (this.#stopped) return
    this.#stopped = true
    if (this.#configs.boolean('controlled.shutdown.enable')) await this.#lifecycle?.leave(LEAVE_TIMEOUT_MS)
    else this.#lifecycle?.stop()
    await this.#listeners.close()
    this.groups.stop()
    this.partitions.stop()
    this.metadata.stop()
    this.#links.close()
    this.deadlines.stop()
  }

  /** The epoch under which the cluster knows this broker, for the record of a clean shutdown. */
  get epoch(): number {
    return this.#lifecycle?.epoch ?? -1
  }

  /** Consumers are sent to replicas in their rack (KIP-392). */
  get followersServeConsumers(): boolean {
    return this.#configs.string('replica.selector.class')?.endsWith('RackAwareReplicaSelector') ?? false
  }

  isInternal(topic: string): boolean {
    return isInternalTopic(topic)
  }

  isOnline(id: NodeId): boolean {
    return this.metadata.image.broker(id)?.fenced === false
  }

  /** Replicas whose broker does not live, or whose folder has failed. */
  offlineReplicas(partition: PartitionImage): NodeId[] {
    const { image } = this.metadata
    return partition.replicas.filter(
      id => !this.isOnline(id) || !directoryIsOnline(image.broker(id), directoryOf(partition, id)),
    )
  }

  /** Some broker that lives; clients of the old protocol take it for the controller and send it what is forwarded anyway. */
  anyLiveBroker(): NodeId {
    return this.isOnline(this.nodeId)
      ? this.nodeId
      : ([...this.metadata.image.brokers.keys()].find(id => this.isOnline(id)) ?? -1)
  }

  /** The brokers that live, as this caller reaches them. */
  endpointsFor(caller: Caller): Endpoint[] {
    return this.registeredEndpoints(caller).filter(({ isFenced }) => !isFenced)
  }

  /** All brokers of the cluster, as this caller reaches them. */
  registeredEndpoints(caller: Caller): Endpoint[] {
    return endpointsOf(this.metadata.image.brokers.values(), {
      nodeId: this.nodeId,
      listener: caller.listener,
      address: caller.local,
      isAdvertised: this.#listeners.isAdvertised(caller.listener),
    })
  }

  /** KIP-951: where the leaders are that a client was told of, so that it need not ask. */
  leaderEndpoints(leaders: Iterable<NodeId>, caller: Caller): Omit<Endpoint, 'isFenced'>[] {
    const wanted = new Set(leaders)
    wanted.delete(-1)
    if (wanted.size === 0) return []
    return this.endpointsFor(caller)
      .filter(({ nodeId }) => wanted.has(nodeId))
      .map(({ nodeId, host, port, rack }) => ({ nodeId, host, port, rack }))
  }

  features(): {
    readonly supported: ReadonlyMap<string, FeatureRange>
    readonly finalized: ReadonlyMap<string, number>
    readonly epoch: number
  } {
    const { image, kraftVersion } = this.metadata
    // A folder from Kafka may have features finalized that this release lacks; clients must not rely on them.
    const finalized = new Map<string, number>()
    for (const [name, level] of image.features) {
      const known = Math.min(level, SUPPORTED_FEATURES.get(name)?.max ?? 0)
      if (known > 0) finalized.set(name, known)
    }
    if (kraftVersion > 0) finalized.set('kraft.version', kraftVersion)
    return { supported: SUPPORTED_FEATURES, finalized, epoch: image.offset }
  }

  /** The log folders, and whether each works. */
  logFolders(): readonly { readonly path: string; readonly online: boolean }[] {
    return this.#folders.folders
  }

  spaceOf(folder: string): Promise<{ readonly free: number; readonly total: number } | undefined> {
    return this.world.disk.space(folder).catch(() => undefined)
  }

  async #start(): Promise<void> {
    const { world, config, log } = this
    await this.#listeners.open(this.#service, this.turns, world, log)
    const incarnationId = await this.#folders.register(uuidFromRandom(into => world.random.fill(into)))
    this.metadata.start()
    this.#lifecycle = new BrokerLifecycle({
      registration: {
        nodeId: this.nodeId,
        clusterId: this.clusterId,
        incarnationId,
        listeners: this.#listeners.advertised,
        features: SUPPORTED_FEATURES,
        rack: config.rack ?? null,
        logDirs: this.#folders.directoryIds,
        previousBrokerEpoch: this.#folders.previousBrokerEpoch,
      },
      link: this.#links.life,
      controllers: this.#links.controllers,
      follower: this.metadata,
      clock: world.clock,
      log,
      heartbeatMs: config.broker.number('broker.heartbeat.interval.ms'),
      sessionTimeoutMs: config.broker.number('broker.session.timeout.ms'),
      offlineLogDirs: () => this.partitions.handOverFailing(),
      registered: epoch => this.#folders.registered(epoch),
      caughtUp: () => this.partitions.begin(),
    })
    await this.#lifecycle.start()
    await this.#moveStrays()
    this.#started.resolve()
    // Not waited for, as a disk may hang.
    this.#schedule(config.broker.number('log.retention.check.interval.ms'), () => void this.partitions.retain())
    this.#schedule(config.broker.number('producer.id.expiration.check.interval.ms'), () => {
      this.partitions.expireProducers(world.clock.now() - this.#configs.number('producer.id.expiration.ms'))
    })
  }

  /** What lies in the folders and belongs to no partition of the cluster is put aside, never deleted. */
  async #moveStrays(): Promise<void> {
    const { image } = this.metadata
    await this.#folders.moveStrays(name => {
      const dash = name.lastIndexOf('-')
      const partition = image.topicByName(name.slice(0, dash))?.partitions[Number(name.slice(dash + 1))]
      return partition?.replicas.includes(this.nodeId) === true || name.startsWith(`${CLUSTER_METADATA_TOPIC}-`)
    })
  }

  /**
   * The address is known before the broker is, since it registers with it. Who asks by then waits: an image that has not
   * caught up would say that topics do not exist, and clients take that for final.
   */
  #onceStarted(service: Service): Service {
    let started = false
    const { promise } = this.#started
    void promise.then(() => {
      started = true
    })
    return new Map(
      [...service].map(([key, served]) => [
        key,
        {
          ...served,
          handle: (request, call) =>
            started ? served.handle(request, call) : promise.then(() => served.handle(request, call)),
        },
      ]),
    )
  }

  #schedule(everyMs: Millis, run: () => void): void {
    this.deadlines.after(everyMs, () => {
      run()
      if (!this.#stopped) this.#schedule(everyMs, run)
    })
  }

  #termsOf(topic: string): Terms {
    const overrides = this.metadata.image.config(CONFIG_RESOURCE.TOPIC, topic)
    const configs = this.#configs
    if (overrides.size > 0) return termsOf(resolveTopic(overrides, configs))
    // Most topics set nothing, and share what they inherit.
    if (this.#inherited?.configs !== configs)
      this.#inherited = { configs, terms: termsOf(resolveTopic(overrides, configs)) }
    return this.#inherited.terms
  }

  async #changed(delta: MetadataDelta): Promise<void> {
    const own = [String(this.nodeId), ''].some(name =>
      delta.configs.has(configResourceKey(CONFIG_RESOURCE.BROKER, name)),
    )
    if (own) {
      const { image } = this.metadata
      this.#configs = this.config.broker.with({
        dynamic: image.config(CONFIG_RESOURCE.BROKER, String(this.nodeId)),
        dynamicDefault: image.config(CONFIG_RESOURCE.BROKER, ''),
      })
      this.#listeners.configure(this.#configs)
    }
    await this.partitions.change(delta, own)
    if (delta.deletedTopics.size > 0)
      this.groups.topicsDeleted([...delta.deletedTopics.values()].map(({ name, id }) => ({ name, topicId: id })))
    // Who takes its leave may go when all others know, and by themselves they would tell in a heartbeat's time.
    if ([...delta.brokers].some(id => this.metadata.image.broker(id)?.inControlledShutdown === true))
      this.#lifecycle?.beat()
  }
}
