import type { NodeId } from '#base/units.ts'
import { type Uuid, uuidFromRandom } from '#base/uuid.ts'
import type { BrokerConfigs } from '#core/config/broker-configs.ts'
import { SUPPORTED_FEATURES } from '#core/metadata/features.ts'
import type { MetadataImage } from '#core/metadata/image.ts'
import type { FeatureRange } from '#core/metadata/node-image.ts'
import type { SnapshotId } from '#core/raft/log-view.ts'
import type { RaftFetch } from '#core/raft/messages.ts'
import type { ReplicaKey, ReplicaProgress, Voter, VoterEndpoint } from '#core/raft/quorum.ts'
import type { Caller } from '#network/service.ts'
import type { ControllerRegistrationRequest } from '#protocol/messages/controller-registration.ts'
import { batchesOf, lastOffset } from '#records/batch.ts'
import { StorageError } from '#storage/storage-error.ts'
import { type Address, type Logger, type World, WorldError } from '#world/world.ts'
import { ActiveController } from './active-controller.ts'
import { type Beginning, type ControllerStart, readBeginning } from './beginning.ts'
import type { Watching } from './broker-address.ts'
import { BrokerWatch } from './broker-watch.ts'
import type { ControllerConfig } from './config.ts'
import { Leaderless } from './leaderless.ts'
import { ControllerListener } from './listener.ts'
import type { MetadataLog, SnapshotState } from './metadata-log.ts'
import { type AnswerTo, type AskedKind, type Question, Quorum } from './quorum.ts'
import { refuseLater } from './quorum-error.ts'
import type { QuorumHistory } from './quorum-history.ts'
import { ReachWatch } from './reach-watch.ts'
import { type FetchedLog, Readers } from './readers.ts'
import { Registration, registrationOf } from './registration.ts'
import { controllerService } from './requests/index.ts'
import { SnapshotCheck } from './snapshot-check.ts'
import { type SnapshotSource, SnapshotTaker } from './snapshot-taker.ts'
import type { SnapshotFile } from './snapshots.ts'
import { Standby } from './standby.ts'
import type { AnswerOf, CommandKind, CommandOf } from './term.ts'
import { WakeUp } from './wake-up.ts'

/**
 * A controller: a member of the quorum or its observer, with its metadata log and its listener. One of them is active and
 * decides; the others stand by with what it has committed.
 */
export class Controller {
  readonly #world: World
  readonly #config: ControllerConfig
  readonly #logger: Logger
  readonly #log: MetadataLog
  readonly #history: QuorumHistory
  readonly #standby: Standby
  readonly #quorum: Quorum
  readonly #active: ActiveController
  readonly #watch: BrokerWatch
  readonly #reach: ReachWatch
  readonly #registration: Registration
  readonly #leaderless: Leaderless
  readonly #readers: Readers
  readonly #snapshots: SnapshotTaker
  readonly #check: SnapshotCheck
  /** Of a controller that stands by. */
  readonly #ofStandby: SnapshotSource = {
    state: () => this.#standbyState(),
    whenCommitted: () => Promise.resolve(this.highWatermark),
  }
  readonly #wakeUp: WakeUp
  readonly #incarnationId: Uuid
  readonly #listener: ControllerListener
  #stopping: Promise<void> | undefined
  #isStopping = false
  #settled: { resolve(): void; reject(error: unknown): void } | undefined

  private constructor({ world, config, log: logger }: ControllerStart, beginning: Beginning) {
    const { log, folded, state, bootstrap } = beginning
    const { clock } = world
    this.#world = world
    this.#config = config
    this.#logger = logger
    this.#listener = new ControllerListener(config)
    this.#log = log
    this.#history = folded.history
    this.#incarnationId = uuidFromRandom(into => world.random.fill(into))
    this.#snapshots = new SnapshotTaker(log, clock, logger, config)
    this.#check = new SnapshotCheck(log, clock, logger, () => {
      this.#snapshots.renew(this.#active.isActive ? this.#active : this.#ofStandby)
    })
    const unreadable = () => this.#quorum.step({ kind: 'unfit' })
    this.#standby = new Standby({ log, clock, logger, changed: () => this.#folded(), unreadable }, folded)
    const parts = { world, config, logger, log, history: this.#history, standby: this.#standby }
    this.#active = new ActiveController({
      ...parts,
      quorum: () => this.#quorum,
      features: this.features,
      bootstrap,
      registration: () => this.#registrationRequest(),
      registered: () => this.#registration.done(),
      appended: () => {
        this.#snapshots.consider(this.#active)
        this.#arm()
      },
      begun: () => this.#begun(),
    })
    this.#quorum = new Quorum({
      ...parts,
      state,
      hold: () => this.#snapshots.hold(),
      arm: () => this.#arm(),
      host: {
        lead: lead => {
          this.#active.lead(lead)
          this.#leaderless.found(config.nodeId)
          this.#readers.changed()
        },
        resign: () => {
          this.#endWatches()
          this.#active.resign()
          this.#leaderless.lost()
        },
        follow: (leaderId, epoch) => {
          const news = leaderId < 0 ? 'no active controller is known' : 'this node follows the active controller'
          // One that hands over and goes has nobody whom it follows, and that is no news.
          if (leaderId >= 0 || !this.#isStopping) logger.info({ epoch, leaderId }, news)
          if (leaderId < 0) this.#leaderless.lost()
          else this.#leaderless.found(leaderId)
          this.#readers.changed()
          this.#registration.consider()
        },
        committed: highWatermark => {
          this.#active.committed(highWatermark)
          this.#readers.changed()
          this.#settle()
        },
        failed: error => this.#storageFailed(error),
        control: appended => this.#active.control(appended),
      },
    })
    this.#readers = new Readers(config.nodeId, log, this.#quorum, clock)
    const watching: Watching = {
      world,
      nodeId: config.nodeId,
      logger,
      image: () => this.#active.image,
      interBrokerListener: config.interBrokerListener,
    }
    this.#watch = new BrokerWatch({
      ...watching,
      died: (brokerId, brokerEpoch) => {
        this.submit<'broker-died'>({ kind: 'broker-died', brokerId, brokerEpoch }).catch(() => {})
      },
    })
    this.#reach = new ReachWatch({
      ...watching,
      changed: (brokerId, brokerEpoch, isReached) => {
        const command = { kind: 'broker-reached', brokerId, brokerEpoch, isReached } as const
        this.submit<'broker-reached'>(command).catch(() => {})
      },
    })
    this.#registration = new Registration({
      clock,
      logger,
      peers: this.#quorum.exchanges.peers,
      request: () => this.#registrationRequest(),
      leader: () => (this.leaderId === config.nodeId ? -1 : this.leaderId),
      timeoutMs: this.#quorum.requestTimeoutMs,
    })
    this.#leaderless = new Leaderless({
      clock,
      logger,
      voters: () => this.voters.map(({ id }) => ({ id, address: this.addressOf(id) })),
    })
    this.#wakeUp = new WakeUp(clock, () => this.#tick())
  }

  /**
   * Resolves when it listens and, where it is the only voter, leads. Rejects with a StorageError or WorldError when disk or
   * network refuse, with a QuorumError when the folder is another quorum's, with a QuorumStateError when its vote is
   * unreadable.
   */
  static async start(start: ControllerStart): Promise<Controller> {
    const beginning = await readBeginning(start)
    const controller = new Controller(start, beginning)
    try {
      await controller.#stand(beginning.tail)
      return controller
    } catch (error) {
      await controller.stop()
      throw error
    }
  }

  /** Where it listens, with the port that was given for port 0. */
  get address(): Address {
    return this.#listener.address
  }

  get nodeId(): NodeId {
    return this.#config.nodeId
  }

  /** Undefined until this node founded or joined a cluster. */
  get clusterId(): string | undefined {
    return this.#config.cluster.id
  }

  /** Whether what somebody else belongs to is another cluster, as far as both know. */
  isForeign(clusterId: string | null, from?: NodeId): boolean {
    const { id } = this.#config.cluster
    if (clusterId === null || clusterId === '') return false
    if (id !== undefined) return clusterId !== id
    if (this.voters.some(voter => voter.id === from)) this.#quorum.exchanges.membership.heard(clusterId)
    return false
  }

  get features(): ReadonlyMap<string, FeatureRange> {
    return this.#config.features ?? SUPPORTED_FEATURES
  }

  get configs(): BrokerConfigs {
    return this.#config.configs
  }

  get isActive(): boolean {
    return this.#active.isActive
  }

  /** Whether a broker may be one that nobody can dial. */
  doubts(brokerId: NodeId): boolean {
    return this.#reach.doubts(brokerId)
  }

  /** The newest metadata that this controller knows: of the active one also what is not committed yet. */
  get image(): MetadataImage | undefined {
    return this.#active.image ?? this.#standby.image
  }

  get kraftVersion(): number {
    return this.#history.kraftVersion
  }

  get epoch(): number {
    return this.#quorum.epoch
  }

  get leaderId(): NodeId {
    return this.#quorum.leaderId
  }

  get highWatermark(): number {
    return this.#quorum.highWatermark
  }

  /** Of the active controller: commands whose records lie below are answered. */
  get answeredOffset(): number {
    return this.#active.answeredOffset
  }

  get logStartOffset(): number {
    return this.#log.startOffset
  }

  get nextOffset(): number {
    return this.#log.nextOffset
  }

  get voters(): readonly Voter[] {
    return this.#quorum.voters
  }

  get directoryId(): Uuid {
    return this.#config.directoryId
  }

  get listenerName(): string {
    return this.#listener.name
  }

  /** How others reach this controller. */
  get endpoint(): VoterEndpoint {
    return this.#listener.endpoint
  }

  /** Where a controller of the quorum is reached. */
  addressOf(id: NodeId): Address | undefined {
    return id === this.nodeId ? this.endpoint : this.#quorum.exchanges.peers.addressOf(id)
  }

  /** For the field that names the leader's address in answers; empty while none is known. */
  get leaderNodes(): { readonly nodeId: NodeId; readonly host: string; readonly port: number }[] {
    const { leaderId } = this
    const address = leaderId < 0 ? undefined : this.addressOf(leaderId)
    return address === undefined ? [] : [{ nodeId: leaderId, host: address.host, port: address.port }]
  }

  /** A controller told where it is reached. */
  learn(id: NodeId, endpoints: readonly VoterEndpoint[]): void {
    const found = endpoints.find(({ name }) => name === this.listenerName) ?? endpoints[0]
    if (found !== undefined) this.#quorum.exchanges.peers.learn(id, found)
  }

  /** Voters and observers with times on the wall clock, -1 for never. */
  replicas(): { readonly voters: readonly ReplicaProgress[]; readonly observers: readonly ReplicaProgress[] } {
    const { clock } = this.#world
    const now = clock.monotonic()
    const shift = clock.now() - now
    const onWall = (replica: ReplicaProgress): ReplicaProgress => ({
      ...replica,
      lastFetchAt: replica.lastFetchAt === undefined ? -1 : Math.round(replica.lastFetchAt + shift),
      lastCaughtUpAt: replica.lastCaughtUpAt === undefined ? -1 : Math.round(replica.lastCaughtUpAt + shift),
    })
    const { voters, observers } = this.#quorum.progress(now)
    return { voters: voters.map(onWall), observers: observers.map(onWall) }
  }

  /** For ApiVersions. kraft.version is raft's own and no record of the metadata. */
  featureState() {
    const { image, kraftVersion } = this
    const finalized = new Map(image?.features)
    if (kraftVersion > 0) finalized.set('kraft.version', kraftVersion)
    return { supported: this.features, finalized, epoch: image?.offset ?? -1 }
  }

  freshId(): Uuid {
    return uuidFromRandom(into => this.#world.random.fill(into))
  }

  /** Decides a command. The answer comes when it is certain; rejects with a NotControllerError. */
  submit<Kind extends CommandKind>(command: CommandOf<Kind>): Promise<AnswerOf<Kind>> {
    return this.#active.submit<Kind>(command)
  }

  /** Asks raft; undefined when this node stops, or the caller has gone, before it answers. */
  ask<Kind extends AskedKind>(question: Question<Kind>, caller: Caller): Promise<AnswerTo<Kind> | undefined> {
    return this.#quorum.ask<Kind, AnswerTo<Kind>>(question, caller, answer => answer)
  }

  /** A broker registered or sent a heartbeat over this connection. */
  heard(brokerId: NodeId, brokerEpoch: number, caller: Caller): void {
    this.#watch.heard(brokerId, brokerEpoch, caller)
  }

  /** A Fetch of the metadata log: waits as long as there is nothing new and the fetch allows. */
  fetch(fetch: RaftFetch, maxBytes: number, caller: Caller): Promise<FetchedLog | undefined> {
    return this.#readers.fetch(fetch, maxBytes, caller)
  }

  /** One that somebody reads from this position; undefined where it is gone, or damaged and another one is on its way. */
  findSnapshot(id: SnapshotId, position: number): SnapshotFile | undefined {
    const found = this.#log.findSnapshot(id)
    if (found === undefined) return undefined
    if (position === 0) this.#check.consider(found)
    return this.#log.isDamaged(found) ? undefined : found
  }

  /** Somebody reads a snapshot here. */
  snapshotRead(replica: ReplicaKey): void {
    this.#quorum.step({ kind: 'snapshot-read', replica })
  }

  /** Hands over, stops serving, writes down what a quick start needs. */
  stop(): Promise<void> {
    this.#isStopping = true
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  async #stop(): Promise<void> {
    this.#registration.stop()
    await this.#quorum.stop()
    // Only now: handing over leaves nobody who leads.
    this.#leaderless.stop()
    this.#wakeUp.stop()
    this.#endWatches()
    this.#active.resign()
    this.#standby.stop()
    await this.#listener.close()
    await this.#snapshots.settled()
    await this.#check.settled()
    try {
      await this.#log.close()
    } catch (error) {
      // Everything that was answered is durable already; the next start checks the rest.
      if (!(error instanceof StorageError) && !(error instanceof WorldError)) throw error
      this.#logger.warn({ folder: this.#log.folder, reason: error.message }, 'the metadata log was not closed cleanly')
    }
  }

  /** `tail` is what the log holds behind its snapshot. */
  async #stand(tail: readonly Buffer[]): Promise<void> {
    const { nodeId } = this.#config
    let from = this.#standby.offset
    for (const bytes of tail) {
      const endOffset = endOf(bytes)
      this.#standby.appended(bytes, from, endOffset)
      from = endOffset
    }
    const isAlone = this.voters.length === 1 && this.voters[0]?.id === nodeId
    // Nobody else can say otherwise: what its log holds is committed.
    if (isAlone) {
      this.#standby.committed(this.#log.endOffset)
      if (this.#standby.image !== undefined) refuseLater(this.#config, this.#standby.image)
    }
    await this.#listener.open(controllerService(this), this.#world, this.#logger)
    if (!isAlone) {
      this.#leaderless.lost()
      this.#quorum.start(this.endpoint)
      return
    }
    await new Promise<void>((resolve, reject) => {
      this.#settled = { resolve, reject }
      this.#quorum.start(this.endpoint)
    })
  }

  #settle(): void {
    if (!this.#active.isActive || this.highWatermark < 0) return
    this.#settled?.resolve()
    this.#settled = undefined
  }

  /** Commands are taken from now on. */
  #begun(): void {
    this.#watch.begin()
    this.#reach.begin()
    this.#settle()
    this.#arm()
  }

  #endWatches(): void {
    this.#watch.end()
    this.#reach.end()
  }

  #registrationRequest(): ControllerRegistrationRequest {
    const { nodeId, endpoint, features } = this
    return registrationOf({ nodeId, incarnationId: this.#incarnationId, endpoint, features })
  }

  #storageFailed(error: StorageError | WorldError): void {
    this.#logger.error(
      { folder: this.#log.folder, reason: error.message },
      'the metadata log cannot be written, so this controller steps down; it tries again every second. Check the disk',
    )
    this.#settled?.reject(error)
    this.#settled = undefined
  }

  /** The controller that stands by has folded more. */
  #folded(): void {
    this.#snapshots.consider(this.#ofStandby)
    this.#arm()
  }

  #standbyState(): SnapshotState | undefined {
    const { image, offset: endOffset, lastTimestamp, isLent } = this.#standby
    // A term that is about to begin folds what is not committed yet.
    if (image === undefined || isLent || endOffset <= 0 || endOffset > this.highWatermark) return undefined
    const id = { endOffset, epoch: this.#log.epochBelow(endOffset) }
    return { id, image, lastTimestamp, ...this.#history.below(endOffset) }
  }

  #tick(): void {
    if (this.#stopping !== undefined) return
    const now = this.#world.clock.monotonic()
    this.#quorum.tick(now)
    this.#active.tick(now)
    if (this.#active.isActive) this.#snapshots.consider(this.#active)
    else this.#folded()
    this.#arm()
  }

  #arm(): void {
    this.#wakeUp.arm(this.#quorum.wakeAt(), this.#active.wakeAt(), this.#snapshots.wakeAt())
  }
}

/** Where the last whole batch ends. */
function endOf(bytes: Buffer): number {
  let end = -1
  for (const at of batchesOf(bytes)) end = lastOffset(bytes, at) + 1
  return end
}
