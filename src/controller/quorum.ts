import { assert, unreachable } from '#base/assert.ts'
import type { Epoch, Millis, NodeId, Offset } from '#base/units.ts'
import type { RaftAnswer, RaftEffect, RaftEvent } from '#core/raft/messages.ts'
import { RAFT_TIMING, type RaftTiming } from '#core/raft/options.ts'
import type { QuorumState, ReplicaProgress, Voter, VoterEndpoint } from '#core/raft/quorum.ts'
import { Raft } from '#core/raft/raft.ts'
import type { Caller } from '#network/service.ts'
import { batchesOf } from '#records/batch.ts'
import { StorageError } from '#storage/storage-error.ts'
import { type Logger, type World, WorldError } from '#world/world.ts'
import { CatchUp } from './catch-up.ts'
import type { ControllerConfig } from './config.ts'
import { kraftVersionRecord, votersRecord } from './control-records.ts'
import { Exchanges } from './exchanges.ts'
import { type Appended, type MetadataLog, noteQuorum } from './metadata-log.ts'
import { staticVoters } from './quorum-error.ts'
import type { QuorumHistory } from './quorum-history.ts'
import { writeQuorumState } from './quorum-state.ts'
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
  /** No snapshot is being stored when it resolves, nor before what it gives is called. */
  readonly hold: () => Promise<() => void>
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
  readonly #exchanges: Exchanges
  readonly #catchUp: CatchUp
  readonly #events: RaftEvent[] = []
  readonly #calls = new Map<number, (answer: RaftAnswer) => void>()
  #stepping = false
  #lastCall = 0
  /** The offset of the voters that raft was told last. */
  #votersOffset: Offset
  #storing: Promise<unknown> = Promise.resolve()
  #isAiling = false
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
      formerVoters: offset < 0 ? [] : history.below(offset).voters,
      state,
      log,
      retryMs: RETRY_MS,
      founding: config.cluster.id === undefined && (config.voters ?? []).length > 0,
      autoJoin: config.autoJoin ?? false,
      timing: this.#timing,
      draw: () => world.random.fraction(),
    })
    const { requestTimeoutMs } = this.#timing
    this.#exchanges = new Exchanges({
      world,
      config,
      logger: options.logger,
      requestTimeoutMs,
      voters: () => this.voters,
      image: () => options.standby.image,
      step: event => this.step(event),
      failed: error => this.failed(error, 'state'),
    })
    this.#catchUp = new CatchUp({
      world,
      config,
      logger: options.logger,
      log,
      exchanges: this.#exchanges,
      follows: (leaderId, epoch) => this.leaderId === leaderId && this.epoch === epoch,
      progressed: () => this.step({ kind: 'snapshot-progress' }),
      hold: options.hold,
      failed: error => this.failed(error),
      isStopped: () => this.#stopped,
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

  /** With the other controllers. */
  get exchanges(): Exchanges {
    return this.#exchanges
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
    this.#exchanges.endpoints = [endpoint]
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
        if (next.kind === 'answered') this.#exchanges.forget(next.request)
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
    this.#exchanges.peers.close()
    await this.#storing.catch(() => {})
  }

  #perform(effect: RaftEffect): void {
    switch (effect.kind) {
      case 'store-state':
        this.#storeState(effect.state)
        return
      case 'send':
        void this.#exchanges.send(effect.request, effect.to, effect.message)
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
    const records = this.#exchanges.recordsOf(request)
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
    this.#exchanges.peers.forget(voters.map(({ id }) => id))
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
    const { history, standby } = this.#options
    const folded = await this.#catchUp.load(id, leaderId, epoch)
    if (folded === undefined) {
      this.step({ kind: 'snapshot-failed', id })
      return
    }
    history.restart(folded.history)
    standby.restart(folded)
    this.#votersOffset = Number.NaN
    this.votersChanged()
    this.step({ kind: 'snapshot-loaded', id })
  }
}
