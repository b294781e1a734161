import { assert } from '#base/assert.ts'
import type { Millis, NodeId, Offset } from '#base/units.ts'
import { uuidFromRandom } from '#base/uuid.ts'
import { ControllerMachine } from '#core/metadata/controller.ts'
import type { ControllerOptions } from '#core/metadata/controller-state.ts'
import type { MetadataImage } from '#core/metadata/image.ts'
import type { FeatureRange } from '#core/metadata/node-image.ts'
import { ChannelError } from '#network/channel.ts'
import type { ControllerRegistrationRequest } from '#protocol/messages/controller-registration.ts'
import { StorageError } from '#storage/storage-error.ts'
import { type Logger, type World, WorldError } from '#world/world.ts'
import type { Bootstrap } from './bootstrap.ts'
import { clusterIdIn, clusterRecord } from './cluster-record.ts'
import type { ControllerConfig } from './config.ts'
import { kraftVersionRecord, leaderChangeRecord, soleVoter, votersRecord } from './control-records.ts'
import type { Appended, MetadataLog, SnapshotState } from './metadata-log.ts'
import type { Lead, Quorum } from './quorum.ts'
import { QuorumError, refuseLater } from './quorum-error.ts'
import type { QuorumHistory } from './quorum-history.ts'
import type { SnapshotSource } from './snapshot-taker.ts'
import type { Standby } from './standby.ts'
import { type AnswerOf, type CommandKind, type CommandOf, NotControllerError, Term } from './term.ts'

const RETRY_MS: Millis = 200

export interface ActiveControllerOptions {
  readonly world: World
  readonly config: ControllerConfig
  readonly logger: Logger
  readonly log: MetadataLog
  readonly history: QuorumHistory
  readonly standby: Standby
  readonly quorum: () => Quorum
  readonly features: ReadonlyMap<string, FeatureRange>
  readonly bootstrap: Bootstrap
  /** What this controller registers itself with. */
  readonly registration: () => ControllerRegistrationRequest
  /** That is committed. */
  readonly registered: () => void
  /** Something was appended, or a deadline may have changed. */
  readonly appended: () => void
  /** Commands are taken from now on. */
  readonly begun: () => void
}

/** This node while raft has it lead: its terms, from LeaderChange to resignation, and what each begins with. */
export class ActiveController implements SnapshotSource {
  readonly #options: ActiveControllerOptions
  #term: Term | undefined

  constructor(options: ActiveControllerOptions) {
    this.#options = options
  }

  /** Whether commands are taken. */
  get isActive(): boolean {
    return this.#term?.machine !== undefined
  }

  /** Ahead of what is committed. */
  get image(): MetadataImage | undefined {
    return this.#term?.machine?.image
  }

  /** Commands whose records lie below are answered; -1 while it does not lead. */
  get answeredOffset(): Offset {
    return this.#term?.highWatermark ?? -1
  }

  wakeAt(): Millis | undefined {
    return this.#term?.machine?.wakeAt()
  }

  tick(now: Millis): void {
    const at = this.wakeAt()
    if (at !== undefined && at <= now) this.submit<'tick'>({ kind: 'tick' }).catch(() => {})
  }

  /** Resolves when it is certain; rejects with a NotControllerError. */
  submit<Kind extends CommandKind>(command: CommandOf<Kind>): Promise<AnswerOf<Kind>> {
    const term = this.#term
    if (term === undefined) return Promise.reject(new NotControllerError())
    const answer = term.submit<Kind>(command)
    this.#options.appended()
    return answer
  }

  /** Raft elected this node. */
  lead(lead: Lead): void {
    const { config, log, standby, world } = this.#options
    const { epoch } = lead
    const quorum = this.#options.quorum()
    assert(this.#term === undefined, 'a term ends before the next begins')
    const start = log.nextOffset
    const isNew = start === 0
    const term = new Term({
      epoch,
      log,
      clock: world.clock,
      stored: () => quorum.step({ kind: 'log-stored', endOffset: log.durableOffset }),
      failed: error => quorum.failed(error),
    })
    this.#term = term
    const records = [leaderChangeRecord(config.nodeId, lead.voters, lead.grantingVoters)]
    if (isNew && quorum.kraftVersion > 0) {
      const self = soleVoter(config.nodeId, config.directoryId, quorum.exchanges.endpoints)
      records.push(kraftVersionRecord(quorum.kraftVersion), votersRecord([self]))
    }
    // An epoch of which a log that fails takes no record would be said of a log that does not have it.
    if (!log.isFailing) log.beginEpoch(epoch)
    quorum.appendControl(records)
    standby.lend(start, image => {
      this.#activate(term, image, start).catch((error: unknown) => {
        if (!(error instanceof NotControllerError)) throw error
      })
    })
  }

  /** What raft appends by itself while this node leads. */
  control(appended: Appended): void {
    this.#term?.control(appended)
    this.#options.appended()
  }

  committed(highWatermark: Offset): void {
    this.#term?.committed(highWatermark)
  }

  /** Raft says that the term is over. */
  resign(): void {
    const term = this.#term
    if (term === undefined) return
    this.#term = undefined
    const { nextOffset, lastTimestamp } = term
    term.end()
    this.#options.standby.giveBack(nextOffset, this.#options.quorum().highWatermark, lastTimestamp)
  }

  state(): SnapshotState | undefined {
    const term = this.#term
    const image = term?.machine?.image
    if (term === undefined || image === undefined) return undefined
    const { history } = this.#options
    const { nextOffset: endOffset, epoch, lastTimestamp } = term
    const { kraftVersion } = history
    return { id: { endOffset, epoch }, image, kraftVersion, voters: history.voters?.voters ?? [], lastTimestamp }
  }

  async whenCommitted(): Promise<Offset> {
    const term = this.#term
    if (term === undefined) throw new NotControllerError()
    await term.whenCommitted()
    return term.highWatermark
  }

  /** The image holds all that came before this term. */
  async #activate(term: Term, image: MetadataImage, start: Offset): Promise<void> {
    const { config, features, logger } = this.#options
    if (config.cluster.id === undefined) await this.#foundCluster(term, start)
    if (term.isOver) return
    try {
      refuseLater(config, image)
    } catch (error) {
      if (!(error instanceof QuorumError)) throw error
      logger.error({}, `this node cannot be the active controller: ${error.message}`)
      this.#options.quorum().step({ kind: 'unfit' })
      return
    }
    const { nodeId, cluster, configs, sessionTimeoutMs, leaderBalanceIntervalMs } = config
    const options: ControllerOptions = {
      nodeId,
      clusterId: cluster.id ?? '',
      features,
      configs,
      sessionTimeoutMs,
      leaderBalanceIntervalMs,
      voterIds: () => this.#voterIds,
    }
    term.activate(new ControllerMachine(options, image))
    this.#begin(term, start === 0)
    logger.info({ epoch: term.epoch, nodeId, offset: term.nextOffset }, 'this node is the active controller')
    this.#options.begun()
  }

  /** What every term begins with; nobody waits for its answers, and a term that ends before is begun again. */
  #begin(term: Term, isNew: boolean): void {
    const ignore = () => {}
    const { bootstrap, appended } = this.#options
    if (isNew && bootstrap !== undefined) term.write(bootstrap)
    term.submit<'activate'>({ kind: 'activate' }).catch(ignore)
    const request = this.#options.registration()
    const known = term.machine?.image.controllers.get(request.controllerId)
    if (known?.incarnationId !== request.incarnationId) {
      const command = { kind: 'register-controller', request, version: 0 } as const
      term.submit<'register-controller'>(command).then(this.#options.registered, ignore)
    }
    appended()
  }

  /**
   * The first leader of a quorum that nobody gave an id draws it. The id is stored once its record is committed, and so
   * known to every leader that may come; a leader that finds no record can draw another, as nobody has stored the first.
   * Where a voter belongs to a cluster already, which it tells when it asks something, that is the one.
   */
  async #foundCluster(term: Term, start: Offset): Promise<void> {
    const { log, world, config } = this.#options
    const { exchanges } = this.#options.quorum()
    let id: string | undefined
    while (config.cluster.id === undefined && !term.isOver) {
      try {
        id ??= exchanges.membership.heardOf ?? (await this.#recordedClusterId(start))
        if (id === undefined && log.startOffset === 0 && log.latestSnapshot === undefined) {
          id = await this.#drawClusterId(term, start === 0)
        } else if (id === undefined) await exchanges.askForCluster(this.#voterIds)
        if (id !== undefined) {
          await term.whenCommitted()
          await exchanges.membership.found(id)
        }
      } catch (error) {
        if (!isWorlds(error)) throw error
      }
      if (config.cluster.id === undefined) await new Promise<void>(resolve => world.clock.after(RETRY_MS, resolve))
    }
  }

  /** Undefined where a voter, who may be silent now unless all had to vote, belongs to a cluster of which it is to tell. */
  async #drawClusterId(term: Term, allAreThere: boolean): Promise<string | undefined> {
    const { log, world } = this.#options
    const { exchanges } = this.#options.quorum()
    const id = uuidFromRandom(into => world.random.fill(into))
    for (const voterId of this.#voterIds) {
      try {
        if (await exchanges.isRefused(id, voterId)) return undefined
      } catch (error) {
        if (!(error instanceof ChannelError) || allAreThere) throw error
      }
    }
    if (term.isOver) return undefined
    term.control(log.appendValue(term.epoch, clusterRecord(id)))
    return id
  }

  get #voterIds(): readonly NodeId[] {
    return this.#options.quorum().voters.map(({ id }) => id)
  }

  async #recordedClusterId(upTo: Offset): Promise<string | undefined> {
    const { log } = this.#options
    let id: string | undefined
    await log.readThrough(log.startOffset, upTo, bytes => {
      id ??= clusterIdIn(bytes)
    })
    return id
  }
}

function isWorlds(error: unknown): boolean {
  return error instanceof StorageError || error instanceof WorldError || error instanceof ChannelError
}
