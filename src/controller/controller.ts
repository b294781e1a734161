import { unreachable } from '#base/assert.ts'
import type { NodeId } from '#base/units.ts'
import { type Uuid, uuidFromRandom } from '#base/uuid.ts'
import type { BrokerConfigs } from '#core/config/broker-configs.ts'
import { ControllerMachine } from '#core/metadata/controller.ts'
import type { ControllerOptions } from '#core/metadata/controller-state.ts'
import { SUPPORTED_FEATURES } from '#core/metadata/features.ts'
import type { FeatureRange, MetadataImage } from '#core/metadata/image.ts'
import type { QuorumState, ReplicaProgress, VoterEndpoint } from '#core/raft/quorum.ts'
import { type FetchAnswer, Raft, type RaftEffect, type RaftEvent, type RaftFetch } from '#core/raft/raft.ts'
import { DEFAULT_CONNECTION_LIMITS } from '#network/connection.ts'
import { MemoryBudget } from '#network/memory-budget.ts'
import { Server } from '#network/server.ts'
import type { Caller } from '#network/service.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { LogRange } from '#storage/log.ts'
import { StorageError } from '#storage/storage-error.ts'
import { type Address, type Logger, type World, WorldError } from '#world/world.ts'
import { type Bootstrap, readBootstrap } from './bootstrap.ts'
import type { ControllerConfig } from './config.ts'
import { kraftVersionRecord, leaderChangeRecord, sameVoter, soleVoter, votersRecord } from './control-records.ts'
import { type Folded, MetadataLog } from './metadata-log.ts'
import { QuorumError, refuseForeign, votersOf } from './quorum-error.ts'
import { readQuorumState, writeQuorumState } from './quorum-state.ts'
import { controllerService } from './requests/index.ts'
import { SnapshotTaker } from './snapshot-taker.ts'
import type { SnapshotFile } from './snapshots.ts'
import { type AnswerOf, type CommandKind, type CommandOf, NotControllerError, Term } from './term.ts'
import { WakeUp } from './wake-up.ts'

export type { ControllerConfig } from './config.ts'

export interface ControllerStart {
  readonly world: World
  readonly config: ControllerConfig
  /** The log folder (metadata.log.dir), in which `__cluster_metadata-0` lies or is made. */
  readonly folder: string
  readonly log: Logger
  /** Whether the node's log folders hold partitions, which only the metadata log describes. */
  readonly partitionsThere?: boolean
}

const RETRY_MS = 1000
const IDLE_MS = 600_000
const UNBOUNDED = 2_147_483_647

export interface FetchedLog {
  readonly answer: FetchAnswer
  /** From the offset that was asked for; undefined when there is nothing. */
  readonly range: LogRange | undefined
}

interface WaitingFetch {
  readonly fetch: RaftFetch
  readonly maxBytes: number
  resolve(fetched: FetchedLog): void
  /** Ends the watch over the fetcher's connection. */
  forget: (() => void) | undefined
}

/**
 * A controller of the quorum: performs what raft and the controller's machine decide, on its log, its file `quorum-state`
 * and its listener.
 */
export class Controller {
  readonly #world: World
  readonly #config: ControllerConfig
  readonly #logger: Logger
  readonly #log: MetadataLog
  readonly #raft: Raft
  readonly #wakeUp: WakeUp
  readonly #snapshots: SnapshotTaker
  readonly #incarnationId: Uuid
  readonly #bootstrap: Bootstrap
  readonly #fetches = new Map<number, WaitingFetch>()
  #server: Server | undefined
  #term: Term | undefined
  /** What the log said when it was last read; the next term's machine grows out of it. */
  #folded: Folded | undefined
  #lastCall = 0
  #stopped = false
  #settled: { resolve(): void; reject(error: unknown): void } | undefined

  private constructor(
    start: ControllerStart,
    log: MetadataLog,
    folded: Folded,
    state: QuorumState,
    bootstrap: Bootstrap,
  ) {
    const { world, config } = start
    this.#world = world
    this.#config = config
    this.#logger = start.log
    this.#log = log
    this.#folded = folded
    this.#bootstrap = bootstrap
    this.#incarnationId = uuidFromRandom(into => world.random.fill(into))
    const { nodeId, directoryId } = config
    const voters = votersOf(config, folded)
    this.#raft = new Raft({ nodeId, directoryId, voters, state, log, retryMs: RETRY_MS })
    this.#snapshots = new SnapshotTaker(log, world.clock, start.log, config)
    this.#wakeUp = new WakeUp(world.clock, () => this.#tick())
  }

  /**
   * Resolves when it listens and leads. Rejects with a StorageError or WorldError when disk or network refuse, with a
   * QuorumError when the folder is another quorum's, with a QuorumStateError when its vote is unreadable.
   */
  static async start(start: ControllerStart): Promise<Controller> {
    const { world, config, folder } = start
    const { segmentBytes } = config
    const log = await MetadataLog.open({
      disk: world.disk,
      clock: world.clock,
      log: start.log,
      folder,
      ...(segmentBytes !== undefined && { segmentBytes }),
      partitionsThere: start.partitionsThere ?? false,
    })
    let controller: Controller | undefined
    try {
      const [folded, state, bootstrap] = await Promise.all([
        log.fold(),
        readQuorumState(world.disk, log.folder),
        readBootstrap(world.disk, folder, config.features ?? SUPPORTED_FEATURES),
      ])
      refuseForeign(config, folded)
      controller = new Controller(start, log, folded, state, bootstrap)
      await controller.#listen()
      await controller.#stand()
      return controller
    } catch (error) {
      if (controller === undefined) await log.close()
      else await controller.stop()
      throw error
    }
  }

  /** Where it listens, with the port that was given for port 0. */
  get address(): Address {
    const address = this.#server?.address
    if (address === undefined) throw new QuorumError('the controller does not listen')
    return address
  }

  get nodeId(): NodeId {
    return this.#config.nodeId
  }

  /** Undefined until this node founded or joined a cluster. */
  get clusterId(): string | undefined {
    return this.#config.cluster.id
  }

  get features(): ReadonlyMap<string, FeatureRange> {
    return this.#config.features ?? SUPPORTED_FEATURES
  }

  get configs(): BrokerConfigs {
    return this.#config.configs
  }

  get isActive(): boolean {
    return this.#term !== undefined
  }

  /** The newest metadata that this controller knows, committed or not; undefined between terms. */
  get image(): MetadataImage | undefined {
    return this.#term?.machine.image ?? this.#folded?.image
  }

  get kraftVersion(): number {
    return this.#term?.kraftVersion ?? this.#folded?.kraftVersion ?? 0
  }

  get epoch(): number {
    return this.#raft.epoch
  }

  get leaderId(): NodeId {
    return this.#raft.leaderId
  }

  get highWatermark(): number {
    return this.#raft.highWatermark
  }

  get logStartOffset(): number {
    return this.#log.startOffset
  }

  get nextOffset(): number {
    return this.#log.nextOffset
  }

  /** How others reach this controller. */
  get endpoint(): VoterEndpoint {
    const { listener, advertisedHost } = this.#config
    const { host, port } = this.address
    const isAny = host === '' || host === '0.0.0.0' || host === '::'
    const own = listener.address.host === '' || isAny ? 'localhost' : listener.address.host
    return { name: listener.name, host: advertisedHost ?? own, port }
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
    return {
      voters: this.#raft.voterProgress(now).map(onWall),
      observers: this.#raft.observerProgress(now).map(onWall),
    }
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
    const term = this.#term
    if (term === undefined) return Promise.reject(new NotControllerError('this node is not the active controller'))
    const answer = term.submit<Kind>(command)
    this.#afterAppend(term)
    return answer
  }

  /** A Fetch of the metadata log: waits as long as there is nothing new and the fetch allows. */
  fetch(fetch: RaftFetch, maxBytes: number, caller: Caller): Promise<FetchedLog> {
    const call = ++this.#lastCall
    return new Promise(resolve => {
      const waiting: WaitingFetch = { fetch, maxBytes, resolve, forget: undefined }
      this.#fetches.set(call, waiting)
      this.#step({ kind: 'fetch', call, fetch })
      if (!this.#fetches.has(call)) return
      waiting.forget = caller.whenGone(() => {
        if (this.#fetches.delete(call)) this.#step({ kind: 'call-gone', call })
      })
    })
  }

  findSnapshot(endOffset: number, epoch: number): SnapshotFile | undefined {
    return this.#log.findSnapshot({ endOffset, epoch })
  }

  /** Stops serving, writes down what a quick start needs. */
  async stop(): Promise<void> {
    if (this.#stopped) return
    this.#stopped = true
    this.#wakeUp.stop()
    this.#term?.end()
    this.#term = undefined
    await this.#server?.close()
    await this.#snapshots.settled()
    try {
      await this.#log.close()
    } catch (error) {
      // Everything that was answered is durable already; the next start checks the rest.
      if (!(error instanceof StorageError) && !(error instanceof WorldError)) throw error
      this.#logger.warn({ folder: this.#log.folder, reason: error.message }, 'the metadata log was not closed cleanly')
    }
  }

  async #listen(): Promise<void> {
    const { listener, limits, idleMs, connectionsMax, connectionsPerHostMax, configs } = this.#config
    const { network, clock } = this.#world
    this.#server = await Server.listen(
      {
        name: listener.name,
        address: listener.address,
        service: controllerService(this),
        limits: limits ?? DEFAULT_CONNECTION_LIMITS,
        budget: new MemoryBudget(configs.number('queued.max.request.bytes'), clock),
        idleMs: idleMs ?? IDLE_MS,
        connectionsMax: connectionsMax ?? UNBOUNDED,
        connectionsPerHostMax: connectionsPerHostMax ?? UNBOUNDED,
      },
      network,
      clock,
      this.#logger,
    )
  }

  #stand(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#settled = { resolve, reject }
      this.#step({ kind: 'start' })
    })
  }

  #step(event: RaftEvent): void {
    if (this.#stopped) return
    for (const effect of this.#raft.step(event, this.#world.clock.monotonic())) this.#perform(effect)
    this.#arm()
  }

  #perform(effect: RaftEffect): void {
    switch (effect.kind) {
      case 'store-state':
        void this.#storeState(effect.state)
        return
      case 'lead':
        this.#lead(effect)
        return
      case 'commit':
        this.#term?.committed(effect.highWatermark)
        this.#settled?.resolve()
        this.#settled = undefined
        return
      case 'resign':
        this.#term?.end()
        this.#term = undefined
        return
      case 'answer': {
        const waiting = this.#fetches.get(effect.call)
        this.#fetches.delete(effect.call)
        waiting?.forget?.()
        if (waiting !== undefined) this.#answerFetch(waiting, effect.answer)
        return
      }
      default:
        unreachable(effect)
    }
  }

  /** The vote and, after a term that failed, the metadata as the log has it: both are needed before a term begins. */
  async #storeState(state: QuorumState): Promise<void> {
    const { disk } = this.#world
    try {
      this.#folded ??= await this.#log.fold()
      const voterIds = this.#raft.voters.map(({ id }) => id)
      await writeQuorumState(disk, this.#log.folder, state, this.#nextKraftVersion(this.#folded), voterIds)
    } catch (error) {
      this.#storageFailed(error)
      return
    }
    this.#step({ kind: 'state-stored', state })
  }

  /** A new cluster has voters as records; one with a fixed list keeps it. */
  #nextKraftVersion(folded: Folded): number {
    return this.#log.endOffset === 0 ? 1 : folded.kraftVersion
  }

  #lead({ epoch, voters, grantingVoters }: Extract<RaftEffect, { kind: 'lead' }>): void {
    const folded = this.#folded
    if (folded === undefined) throw new QuorumError('a term begins with the metadata of the log')
    const { nodeId, cluster, configs, sessionTimeoutMs, leaderBalanceIntervalMs, directoryId } = this.#config
    const kraftVersion = this.#nextKraftVersion(folded)
    const records = [leaderChangeRecord(nodeId, voters, grantingVoters)]
    let current = voters
    if (kraftVersion > 0) {
      const self = soleVoter(nodeId, directoryId, [this.endpoint])
      const known = folded.voters?.[0]
      const isInLog = this.#log.endOffset > 0
      if (!isInLog) records.push(kraftVersionRecord(kraftVersion))
      if (!isInLog || known === undefined || !sameVoter(known, self)) records.push(votersRecord([self]))
      current = [self]
    }
    const options: ControllerOptions = {
      nodeId,
      clusterId: cluster.id ?? '',
      features: this.features,
      configs,
      sessionTimeoutMs,
      leaderBalanceIntervalMs,
      voterIds: () => this.#raft.voters.map(({ id }) => id),
    }
    const term = new Term({
      epoch,
      machine: new ControllerMachine(options, folded.image),
      log: this.#log,
      clock: this.#world.clock,
      voters: current,
      kraftVersion,
      stored: () => this.#step({ kind: 'log-stored', endOffset: this.#log.durableOffset }),
      failed: error => this.#storageFailed(error),
    })
    this.#term = term
    // From now on the image is ahead of the log, so that after a failure it is read again.
    this.#folded = undefined
    this.#snapshots.begin(folded.bytes)
    this.#log.beginEpoch(epoch)
    term.control(log => log.appendControl(epoch, records))
    this.#raft.step({ kind: 'voters-changed', voters: current }, this.#world.clock.monotonic())
    this.#begin(term)
    this.#logger.info({ epoch, nodeId, offset: this.#log.nextOffset }, 'this node is the active controller')
  }

  /** What every term begins with; nobody waits for its answers, and a term that ends before is begun again. */
  #begin(term: Term): void {
    const ignore = () => {}
    const { nodeId } = this.#config
    if (this.#log.endOffset === 0 && this.#bootstrap !== undefined) term.write(this.#bootstrap)
    term.submit<'activate'>({ kind: 'activate' }).catch(ignore)
    const request = {
      controllerId: nodeId,
      incarnationId: this.#incarnationId,
      zkMigrationReady: false,
      listeners: [{ ...this.endpoint, securityProtocol: 0 }],
      features: [...this.features].map(([name, { min, max }]) => ({
        name,
        minSupportedVersion: min,
        maxSupportedVersion: max,
      })),
    }
    term.submit<'register-controller'>({ kind: 'register-controller', request, version: 0 }).catch(ignore)
    this.#afterAppend(term)
  }

  #storageFailed(error: unknown): void {
    if (!(error instanceof StorageError) && !(error instanceof WorldError)) throw error
    if (this.#stopped) return
    this.#logger.error(
      { folder: this.#log.folder, reason: error.message },
      'the metadata log cannot be written, so this controller steps down; it tries again every second. Check the disk',
    )
    this.#step({ kind: 'storage-failed' })
    this.#settled?.reject(error)
    this.#settled = undefined
  }

  #answerFetch({ fetch, maxBytes, resolve }: WaitingFetch, answer: FetchAnswer): void {
    if (answer.errorCode !== 0 || answer.position.kind !== 'valid' || answer.upTo <= fetch.offset) {
      resolve({ answer, range: undefined })
      return
    }
    // Asked for in this turn: what was judged to be there still is.
    const range = this.#log.read(fetch.offset, maxBytes, answer.upTo)
    if (!(range instanceof Promise)) {
      resolve({ answer, range })
      return
    }
    range.then(
      found => resolve({ answer, range: found }),
      (error: unknown) => {
        if (!(error instanceof StorageError)) throw error
        resolve({ answer: { ...answer, errorCode: ErrorCode.KAFKA_STORAGE_ERROR }, range: undefined })
      },
    )
  }

  #tick(): void {
    if (this.#stopped) return
    const now = this.#world.clock.monotonic()
    const raftAt = this.#raft.wakeAt()
    if (raftAt !== undefined && raftAt <= now) this.#step({ kind: 'tick' })
    const term = this.#term
    if (term !== undefined) {
      const termAt = term.machine.wakeAt()
      if (termAt !== undefined && termAt <= now) term.submit<'tick'>({ kind: 'tick' }).catch(() => {})
      this.#afterAppend(term)
    }
    this.#arm()
  }

  #arm(): void {
    if (this.#stopped) return
    this.#wakeUp.arm(this.#raft.wakeAt(), this.#term?.machine.wakeAt(), this.#term && this.#snapshots.wakeAt())
  }

  #afterAppend(term: Term): void {
    this.#snapshots.consider(term)
    this.#arm()
  }
}
