import { assert, unreachable } from '#base/assert.ts'
import type { Epoch, Millis, NodeId, Offset } from '#base/units.ts'
import type { RaftAnswer, RaftEffect, RaftEvent, RaftPeer, RaftRequest } from '#core/raft/messages.ts'
import { RAFT_TIMING, type RaftTiming } from '#core/raft/options.ts'
import type { QuorumState, ReplicaProgress, Voter, VoterEndpoint } from '#core/raft/quorum.ts'
import { Raft } from '#core/raft/raft.ts'
import { type Channel, ChannelError } from '#network/channel.ts'
import type { Caller } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { batchesOf } from '#records/batch.ts'
import { StorageError } from '#storage/storage-error.ts'
import { type Address, type Logger, type World, WorldError } from '#world/world.ts'
import type { ControllerConfig } from './config.ts'
import { kraftVersionRecord, votersRecord } from './control-records.ts'
import { type Asker, ExchangeError, exchange } from './exchange.ts'
import type { FollowedRecords } from './followed.ts'
import { type Appended, type MetadataLog, noteQuorum } from './metadata-log.ts'
import { Peers } from './peers.ts'
import { staticVoters } from './quorum-error.ts'
import type { QuorumHistory } from './quorum-history.ts'
import { writeQuorumState } from './quorum-state.ts'
import { downloadSnapshot } from './snapshot-download.ts'
import type { Standby } from './standby.ts'

const RETRY_MS = 1000
/** How long a leader that stops may take to hand over. */
const HAND_OVER_MS = 1500

type Effect<Kind extends RaftEffect['kind']> = Extract<RaftEffect, { readonly kind: Kind }>
export type Lead = Effect<'lead'>
/** What others ask of raft. */
type Asked = Extract<RaftEvent, { readonly call: number }>
export type AskedKind = Exclude<Asked['kind'], 'call-gone'>
type WithoutCall<E> = E extends unknown ? Omit<E, 'call'> : never
export type Question<Kind extends AskedKind = AskedKind> = WithoutCall<Extract<Asked, { readonly kind: Kind }>>
export type AnswerTo<Kind extends AskedKind> = Extract<RaftAnswer, { readonly kind: Kind }>['answer']

/** Who is told what raft decided. */
export interface QuorumHost {
  /** Appends the LeaderChange in this turn. */
  lead(lead: Lead): void
  resign(): void
  follow(leaderId: NodeId, epoch: Epoch): void
  committed(highWatermark: Offset): void
  /** An append or a file failed; the log has fallen back to what was stored. */
  failed(error: StorageError | WorldError): void
  /** A record of raft's own was appended by this leader. */
  control(append: Appended): void
}

export interface QuorumOptions {
  readonly world: World
  readonly config: ControllerConfig
  readonly logger: Logger
  readonly log: MetadataLog
  readonly history: QuorumHistory
  readonly standby: Standby
  readonly state: QuorumState
  readonly host: QuorumHost
  /** No snapshot is being written any more. */
  readonly settled: () => Promise<void>
  /** The earliest deadline may have changed. */
  readonly arm: () => void
}

/**
 * A member of the quorum: steps raft and performs its effects on the log, on `quorum-state` and on the connections to the
 * other controllers. One event is done with, all its effects performed, before the next is stepped.
 */
export class Quorum {
  readonly #options: QuorumOptions
  readonly #raft: Raft
  readonly #timing: RaftTiming
  readonly #peers: Peers
  readonly #events: RaftEvent[] = []
  readonly #calls = new Map<number, (answer: RaftAnswer) => void>()
  #stepping = false
  #lastCall = 0
  #endpoint: VoterEndpoint | undefined
  /** The records that came with a fetch's answer, until raft has said what becomes of them. */
  readonly #fetched = new Map<number, FollowedRecords>()
  /** The offset of the voters that raft was told last. */
  #votersOffset: Offset
  #storing: Promise<unknown> = Promise.resolve()
  #joining: Promise<void> | undefined
  #isAiling = false
  readonly #complained = new Set<string>()
  #handedOver: (() => void) | undefined
  #stopped = false

  constructor(options: QuorumOptions) {
    this.#options = options
    const { world, config, log, history, state } = options
    this.#timing = {
      ...RAFT_TIMING,
      ...(config.fetchTimeoutMs !== undefined && { fetchTimeoutMs: config.fetchTimeoutMs }),
      ...(config.electionTimeoutMs !== undefined && { electionTimeoutMs: config.electionTimeoutMs }),
      ...(config.electionBackoffMaxMs !== undefined && { electionBackoffMaxMs: config.electionBackoffMaxMs }),
      ...(config.requestTimeoutMs !== undefined && { requestTimeoutMs: config.requestTimeoutMs }),
      ...(config.retryBackoffMs !== undefined && { retryBackoffMs: config.retryBackoffMs }),
    }
    const { voters, offset } = history.voters ?? { voters: staticVoters(config, history), offset: -1 }
    this.#votersOffset = offset
    this.#raft = new Raft({
      nodeId: config.nodeId,
      directoryId: config.directoryId,
      voters,
      votersOffset: offset,
      state,
      log,
      retryMs: RETRY_MS,
      founding: config.cluster.id === undefined && (config.voters ?? []).length > 0,
      autoJoin: config.autoJoin ?? false,
      timing: this.#timing,
      draw: () => world.random.fraction(),
    })
    this.#peers = new Peers({
      world,
      nodeId: config.nodeId,
      known: id => this.#recordedAddress(id),
      anyone: () => this.#anyone(),
      connectTimeoutMs: this.#timing.requestTimeoutMs,
      gone: id => this.step({ kind: 'peer-gone', id }),
    })
  }

  get epoch(): Epoch {
    return this.#raft.epoch
  }

  get leaderId(): NodeId {
    return this.#raft.leaderId
  }

  get highWatermark(): Offset {
    return this.#raft.highWatermark
  }

  get voters(): readonly Voter[] {
    return this.#raft.voters
  }

  /** Where the others reach this node. */
  get endpoints(): readonly VoterEndpoint[] {
    return this.#endpoint === undefined ? [] : [this.#endpoint]
  }

  get peers(): Peers {
    return this.#peers
  }

  get requestTimeoutMs(): Millis {
    return this.#timing.requestTimeoutMs
  }

  /** As raft measures it, on the monotonic clock. */
  progress(now: Millis): {
    readonly voters: readonly ReplicaProgress[]
    readonly observers: readonly ReplicaProgress[]
  } {
    return { voters: this.#raft.voterProgress(now), observers: this.#raft.observerProgress(now) }
  }

  /** `endpoint` is where the others reach this node. */
  start(endpoint: VoterEndpoint): void {
    this.#endpoint = endpoint
    this.step({ kind: 'start', endpoints: [endpoint] })
  }

  wakeAt(): Millis | undefined {
    return this.#raft.wakeAt()
  }

  tick(now: Millis): void {
    const at = this.#raft.wakeAt()
    if (at !== undefined && at <= now) this.step({ kind: 'tick' })
  }

  step(event: RaftEvent): void {
    if (this.#stopped) return
    this.#events.push(event)
    if (this.#stepping) return
    this.#stepping = true
    try {
      for (let next = this.#events.shift(); next !== undefined && !this.#stopped; next = this.#events.shift()) {
        const effects = this.#raft.step(next, this.#options.world.clock.monotonic())
        for (const effect of effects) this.#perform(effect)
        if (next.kind === 'answered') this.#fetched.delete(next.request)
      }
    } finally {
      this.#stepping = false
    }
    this.#options.arm()
  }

  /**
   * Asks raft for somebody, who may go before the answer comes; undefined when this node stops before. `use` takes the
   * answer in the turn in which it is given, in which the log still is as it was judged.
   */
  ask<Kind extends AskedKind, Used>(
    question: Question<Kind>,
    caller: Caller,
    use: (answer: AnswerTo<Kind>) => Used,
  ): Promise<Used | undefined> {
    if (this.#stopped) return Promise.resolve(undefined)
    const call = ++this.#lastCall
    return new Promise(resolve => {
      let forget: (() => void) | undefined
      this.#calls.set(call, given => {
        forget?.()
        resolve(use((given as unknown as { readonly answer: AnswerTo<Kind> }).answer))
      })
      this.step({ ...question, call } as unknown as RaftEvent)
      if (!this.#calls.has(call)) return
      forget = caller.whenGone(() => {
        if (!this.#calls.delete(call)) return
        resolve(undefined)
        this.step({ kind: 'call-gone', call })
      })
    })
  }

  /** Hands over, as long as that takes no longer than a moment. Nothing is stepped any more when it resolves. */
  async stop(): Promise<void> {
    if (this.#stopped) return
    await new Promise<void>(resolve => {
      const timer = this.#options.world.clock.after(HAND_OVER_MS, resolve)
      this.#handedOver = () => {
        timer.cancel()
        resolve()
      }
      this.step({ kind: 'stop' })
    })
    this.#stopped = true
    this.#peers.close()
    await this.#storing.catch(() => {})
  }

  #perform(effect: RaftEffect): void {
    switch (effect.kind) {
      case 'store-state':
        this.#storeState(effect.state)
        return
      case 'send':
        void this.#send(effect.request, effect.to, effect.message)
        return
      case 'answer': {
        const answer = this.#calls.get(effect.call)
        this.#calls.delete(effect.call)
        answer?.(effect.answer)
        return
      }
      case 'lead':
        this.#options.host.lead(effect)
        return
      case 'resign':
        this.#options.host.resign()
        return
      case 'follow':
        this.#options.host.follow(effect.leaderId, effect.epoch)
        return
      case 'append':
        this.#append(effect.request)
        return
      case 'truncate':
        void this.#truncate(effect.endOffset)
        return
      case 'load-snapshot':
        void this.#loadSnapshot(effect)
        return
      case 'commit':
        this.#options.standby.committed(effect.highWatermark)
        this.#options.history.forgetBelow(this.#options.standby.offset)
        this.#options.host.committed(effect.highWatermark)
        return
      case 'append-voters':
        this.#appendVoters(effect)
        return
      case 'stopped':
        this.#handedOver?.()
        return
      default:
        unreachable(effect)
    }
  }

  // -- the node's own files

  /** One after the other: what was stored last is what counts. */
  #storeState(state: QuorumState): void {
    const { world, log } = this.#options
    const voterIds = this.#raft.voters.map(({ id }) => id)
    this.#storing = this.#storing.then(async () => {
      try {
        await writeQuorumState(world.disk, log.folder, state, this.kraftVersion, voterIds)
      } catch (error) {
        this.failed(error, 'state')
        return
      }
      this.step({ kind: 'state-stored', state })
    })
  }

  /** A new quorum has its voters as records; one with a fixed list keeps it. */
  get kraftVersion(): number {
    const { log, history, config } = this.#options
    if (log.nextOffset === 0) return (config.voters ?? []).length > 0 ? 0 : 1
    return history.kraftVersion
  }

  #append(request: number): void {
    const { log, history, standby } = this.#options
    const records = this.#fetched.get(request)
    assert(records !== undefined, 'raft takes the records of the answer that it was told of')
    const { bytes, endOffset } = records
    const from = log.nextOffset
    const done = log.appendFollowed(bytes)
    for (const at of batchesOf(bytes)) noteQuorum(history, bytes, at)
    standby.appended(bytes, from, endOffset)
    this.votersChanged()
    this.followed(done)
  }

  /** Tells raft when this append is durable, or failed. */
  followed(done: Promise<void>): void {
    done.then(
      () => this.step({ kind: 'log-stored', endOffset: this.#options.log.durableOffset }),
      (error: unknown) => this.failed(error),
    )
  }

  #appendVoters({ voters, raisesVersion }: Effect<'append-voters'>): void {
    const records = [...(raisesVersion ? [kraftVersionRecord(1)] : []), votersRecord(voters)]
    this.appendControl(records)
  }

  /** This leader appends records of its own; what they say of the voters holds at once. */
  appendControl(records: Parameters<MetadataLog['appendControl']>[1]): void {
    const { log, host } = this.#options
    const appended = log.appendControl(this.#raft.epoch, records)
    for (const at of batchesOf(appended.batch)) noteQuorum(this.#options.history, appended.batch, at)
    this.votersChanged()
    host.control(appended)
  }

  /** Tells raft of the voters that the log names now, if they are others than before. */
  votersChanged(): void {
    const { history, config } = this.#options
    const { voters, offset } = history.voters ?? { voters: staticVoters(config, history), offset: -1 }
    if (offset === this.#votersOffset) return
    this.#votersOffset = offset
    this.#peers.forget(voters.map(({ id }) => id))
    this.step({ kind: 'voters-changed', voters, offset })
  }

  async #truncate(endOffset: Offset): Promise<void> {
    const { log } = this.#options
    try {
      await log.truncateTo(endOffset)
    } catch (error) {
      this.failed(error)
      return
    }
    this.#logFellBack()
    this.step({ kind: 'truncated' })
  }

  /** What was appended and is not in the log any more is forgotten. */
  #logFellBack(): void {
    const { log, history, standby } = this.#options
    history.truncate(log.nextOffset)
    standby.truncated(log.nextOffset)
    this.votersChanged()
  }

  /** What the disk did wrong. */
  failed(error: unknown, of: 'state' | 'log' = 'log'): void {
    if (!(error instanceof StorageError) && !(error instanceof WorldError)) throw error
    if (this.#stopped) return
    this.#logFellBack()
    this.step({ kind: 'storage-failed', of })
    if (this.#isAiling) return
    this.#isAiling = true
    this.#options.host.failed(error)
    this.#lookAfter()
  }

  /** Says when all that the log shows is durable again. */
  #lookAfter(): void {
    const { world, log } = this.#options
    world.clock.after(RETRY_MS, () => {
      if (this.#stopped) return
      if (log.isFailing || log.durableOffset < log.endOffset) {
        this.#lookAfter()
        return
      }
      this.#isAiling = false
      this.step({ kind: 'log-stored', endOffset: log.durableOffset })
    })
  }

  async #loadSnapshot({ id, leaderId, epoch }: Effect<'load-snapshot'>): Promise<void> {
    const { log, history, standby, config, world, logger } = this.#options
    const { nodeId, directoryId } = config
    const stillFollows = (): boolean => this.#raft.epoch === epoch && this.#raft.leaderId === leaderId
    try {
      const channel = await this.#peers.channel(leaderId, 'fetch')
      const incoming = await log.beginSnapshot(id)
      try {
        const { clusterId, requestTimeoutMs } = this.#asker()
        const source = { clusterId, nodeId, directoryId, leaderEpoch: epoch, requestTimeoutMs }
        await downloadSnapshot(channel, incoming, source, world.clock)
        await this.#options.settled()
        if (this.#stopped || !stillFollows())
          throw new ExchangeError(ErrorCode.NOT_LEADER_OR_FOLLOWER, 'the leader is another one')
        if (!(await log.restartAt(incoming))) throw new ExchangeError(ErrorCode.CORRUPT_MESSAGE, 'it is damaged')
      } catch (error) {
        if (log.latestSnapshot?.endOffset !== id.endOffset) await incoming.file.close()
        throw error
      }
      const folded = await log.fold(0)
      history.restart(folded.history)
      standby.restart(folded)
      this.#votersOffset = Number.NaN
      this.votersChanged()
      logger.info({ ...id, leaderId, bytes: incoming.size }, 'this controller was far behind and begins at a snapshot')
      this.step({ kind: 'snapshot-loaded', id })
    } catch (error) {
      if (isStorage(error)) this.failed(error)
      else if (!(error instanceof ChannelError) && !(error instanceof ExchangeError)) throw error
      logger.warn(
        { ...id, leaderId, reason: error.message },
        'a snapshot of the metadata could not be had from the leader',
      )
      this.step({ kind: 'snapshot-failed', id })
    }
  }

  // -- the other controllers

  #asker(): Asker {
    const { config } = this.#options
    return {
      nodeId: config.nodeId,
      clusterId: config.cluster.id ?? null,
      endpoints: this.endpoints,
      requestTimeoutMs: this.#timing.requestTimeoutMs,
    }
  }

  async #send(request: number, to: RaftPeer, message: RaftRequest): Promise<void> {
    try {
      const channel = await this.#channelFor(to, message)
      if (message.kind === 'fetch') await this.#joinCluster(channel)
      const { response, records, nodes } = await exchange(channel, message, this.#asker())
      for (const { nodeId, host, port } of nodes) this.#peers.learn(nodeId, { host, port })
      if (records !== undefined) this.#fetched.set(request, records)
      this.step({ kind: 'answered', request, response })
    } catch (error) {
      const refused = error instanceof ChannelError && error.code === 'refused'
      if (error instanceof ExchangeError) this.#complain(to, error)
      else if (isStorage(error)) this.failed(error)
      else if (!(error instanceof ChannelError)) throw error
      this.step({ kind: 'unanswered', request, refused })
    }
  }

  #channelFor(to: RaftPeer, message: RaftRequest): Promise<Channel> {
    if (message.kind === 'kraft-range') {
      const address = this.#ofOurListener(message.voter.endpoints)
      if (address !== undefined) return this.#peers.channelTo(address)
    }
    return this.#peers.channel(to, message.kind === 'fetch' ? 'fetch' : 'control')
  }

  /** Said once for each reason: it is tried again and again. */
  #complain(to: RaftPeer, { message, errorCode }: ExchangeError): void {
    const { logger, config } = this.#options
    const key = `${to} ${errorCode}`
    if (this.#complained.has(key)) return
    this.#complained.add(key)
    const why =
      errorCode === ErrorCode.INCONSISTENT_CLUSTER_ID
        ? `another controller belongs to another cluster than this node (${config.cluster.id}), so they do not work together. Check controller.quorum.voters or controller.quorum.bootstrap.servers, or whether this node's folders are of another cluster`
        : 'another controller gave an answer that cannot be used'
    logger.warn({ peer: to, reason: message }, why)
  }

  /** A node that belongs to no cluster yet belongs to the one whose log it begins to follow. */
  async #joinCluster(channel: Channel): Promise<void> {
    const { cluster } = this.#options.config
    if (cluster.id !== undefined || channel.versionFor(API.DescribeCluster.request) === undefined) return
    const timeoutMs = this.#timing.requestTimeoutMs
    const { clusterId } = await channel.ask(API.DescribeCluster, { endpointType: CONTROLLERS }, { timeoutMs })
    if (clusterId !== '') await this.found(clusterId)
  }

  /** A leader that belongs to no cluster, though its log is one's, asks the others. */
  async askForCluster(): Promise<void> {
    for (const { id } of this.#raft.voters) {
      if (id === this.#options.config.nodeId) continue
      await this.#joinCluster(await this.#peers.channel(id, 'control'))
    }
  }

  /** Stores which cluster this node belongs to, once. */
  async found(clusterId: string): Promise<void> {
    const { config, logger } = this.#options
    if (config.cluster.id !== undefined) return
    this.#joining ??= config.cluster.found(clusterId).finally(() => {
      this.#joining = undefined
    })
    await this.#joining
    logger.info({ clusterId: config.cluster.id }, 'this node belongs to a cluster now')
  }

  /** Where the log or the configuration says that a node is reached. */
  #recordedAddress(id: NodeId): Address | undefined {
    const { config, standby } = this.#options
    const voter = this.#raft.voters.find(each => each.id === id)
    const recorded = voter === undefined ? undefined : this.#ofOurListener(voter.endpoints)
    const configured = config.voters?.find(each => each.id === id)
    if (recorded !== undefined || configured !== undefined) return recorded ?? configured
    return this.#ofOurListener(standby.image?.controllers.get(id)?.endPoints ?? [])
  }

  #ofOurListener(endpoints: readonly VoterEndpoint[]): VoterEndpoint | undefined {
    const { name } = this.#options.config.listener
    return endpoints.find(endpoint => endpoint.name === name) ?? endpoints[0]
  }

  #anyone(): readonly Address[] {
    const { config } = this.#options
    const configured = [
      ...(config.bootstrapServers ?? []),
      ...(config.voters ?? []).filter(({ id }) => id !== config.nodeId),
    ]
    if (configured.length > 0) return configured
    const others = this.#raft.voters.filter(({ id }) => id !== config.nodeId)
    return others.flatMap(({ id }) => this.#peers.addressOf(id) ?? [])
  }
}

const CONTROLLERS = 2

function isStorage(error: unknown): error is StorageError | WorldError {
  return error instanceof StorageError || error instanceof WorldError
}
