import { assert, unreachable } from '#base/assert.ts'
import type { Epoch, Millis, NodeId, Offset } from '#base/units.ts'
import { type Uuid, ZERO_UUID } from '#base/uuid.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Machine } from '../machine.ts'
import { judgePosition, type LogView, type Position } from './log-view.ts'
import { majorityOf, type QuorumState, type ReplicaProgress, type Voter } from './quorum.ts'

export interface RaftOptions {
  readonly nodeId: NodeId
  readonly directoryId: Uuid
  /** Who votes, at first; changes come as events. */
  readonly voters: readonly Voter[]
  /** What was stored last. */
  readonly state: QuorumState
  readonly log: LogView
  /** How long after a failure of its own disk a node stands again. */
  readonly retryMs: Millis
}

/** Observers that were silent for so long are forgotten. */
const OBSERVER_SESSION_MS: Millis = 300_000
/** Anybody may name any id: beyond so many, the one that is silent the longest is forgotten. */
const OBSERVERS_MAX = 1000
/** More long polls than this are answered at once: their memory is the fetchers' to ask for, and so needs a limit. */
const WAITING_FETCHES_MAX = 10_000

/** A Fetch of the metadata log, as far as raft judges it. */
export interface RaftFetch {
  readonly replicaId: NodeId
  readonly directoryId: Uuid
  readonly currentLeaderEpoch: Epoch
  readonly offset: Offset
  readonly lastFetchedEpoch: Epoch
  /** The high watermark that the fetcher knows (v18); infinite where it does not say. */
  readonly highWatermark: Offset
  readonly maxWaitMs: Millis
}

export type RaftEvent =
  | { readonly kind: 'start' }
  /** `wakeAt` has come. */
  | { readonly kind: 'tick' }
  /** The effect `store-state` was performed. */
  | { readonly kind: 'state-stored'; readonly state: QuorumState }
  /** It could not be, or an append failed: what this node holds may be less than it said. */
  | { readonly kind: 'storage-failed' }
  /** Everything below is durable here. */
  | { readonly kind: 'log-stored'; readonly endOffset: Offset }
  | { readonly kind: 'voters-changed'; readonly voters: readonly Voter[] }
  | { readonly kind: 'fetch'; readonly call: number; readonly fetch: RaftFetch }
  /** Who made this call does not wait for it any more. */
  | { readonly kind: 'call-gone'; readonly call: number }

export interface FetchAnswer {
  readonly errorCode: number
  readonly position: Position
  /** What may be read: from the offset asked for up to here, both may be the same. */
  readonly upTo: Offset
  /** -1 where this leader does not know it yet. */
  readonly highWatermark: Offset
  readonly leaderId: NodeId
  readonly leaderEpoch: Epoch
}

export type RaftEffect =
  /** Store this durably, then say so. */
  | { readonly kind: 'store-state'; readonly state: QuorumState }
  /** This node leads: the first thing that it appends is the LeaderChange of this epoch, at once. */
  | {
      readonly kind: 'lead'
      readonly epoch: Epoch
      readonly voters: readonly Voter[]
      readonly grantingVoters: readonly Voter[]
    }
  /** Everything below is committed. It never goes back. */
  | { readonly kind: 'commit'; readonly highWatermark: Offset }
  /** Leadership is over; what was appended and not committed may or may not stay. */
  | { readonly kind: 'resign'; readonly epoch: Epoch }
  | { readonly kind: 'answer'; readonly call: number; readonly answer: FetchAnswer }

type Role =
  | { readonly name: 'unattached' }
  /** Its own vote is all that it needs, and is being stored together with what follows from it. */
  | { readonly name: 'candidate'; readonly state: QuorumState }
  | { readonly name: 'leader'; readonly epochStart: Offset }

interface WaitingFetch {
  readonly fetch: RaftFetch
  readonly deadline: Millis
}

const VALID: Position = { kind: 'valid' }

/**
 * Kafka's raft (KIP-595) for a quorum of one voter and any number of observers. The voter stands at start and wins with
 * its own vote, which counts once it is stored; what it appends is committed once it is durable. Elections among several
 * voters are not in here yet: a node that is not the only voter stays unattached.
 */
export class Raft implements Machine<RaftEvent, RaftEffect> {
  readonly #options: RaftOptions
  readonly #log: LogView
  #voters: readonly Voter[]
  #state: QuorumState
  #role: Role = { name: 'unattached' }
  #highWatermark: Offset = -1
  #electAt: Millis | undefined
  readonly #observers = new Map<string, ReplicaProgress & { readonly leaderEndOffset: Offset }>()
  readonly #waiting = new Map<number, WaitingFetch>()
  /** Not above the earliest deadline of those that wait. */
  #nextDeadline = Number.POSITIVE_INFINITY

  constructor(options: RaftOptions) {
    this.#options = options
    this.#log = options.log
    this.#voters = options.voters
    this.#state = options.state
  }

  get role(): Role['name'] {
    return this.#role.name
  }

  get epoch(): Epoch {
    return this.#state.leaderEpoch
  }

  /** -1 while no leader is known. */
  get leaderId(): NodeId {
    return this.#state.leaderId
  }

  /** -1 until something of this leader's own epoch is committed. */
  get highWatermark(): Offset {
    return this.#highWatermark
  }

  get voters(): readonly Voter[] {
    return this.#voters
  }

  get waitingCount(): number {
    return this.#waiting.size
  }

  wakeAt(): Millis | undefined {
    const first = Math.min(this.#nextDeadline, this.#electAt ?? Number.POSITIVE_INFINITY)
    return first === Number.POSITIVE_INFINITY ? undefined : first
  }

  step(event: RaftEvent, now: Millis): readonly RaftEffect[] {
    const effects: RaftEffect[] = []
    switch (event.kind) {
      case 'start':
        this.#stand(effects)
        break
      case 'tick':
        this.#tick(now, effects)
        break
      case 'state-stored':
        this.#stateStored(event.state, effects)
        break
      case 'storage-failed':
        this.#resign(now, effects)
        break
      case 'log-stored':
        this.#logStored(event.endOffset, effects)
        break
      case 'voters-changed':
        this.#voters = event.voters
        break
      case 'fetch':
        this.#fetch(event.call, event.fetch, now, effects)
        break
      case 'call-gone':
        this.#waiting.delete(event.call)
        break
      default:
        unreachable(event)
    }
    return effects
  }

  /** The voters' progress as the leader sees it: its own is that of its log. */
  voterProgress(now: Millis): ReplicaProgress[] {
    return this.#voters.map(({ id, directoryId }) => {
      const endOffset = id === this.#options.nodeId ? this.#log.endOffset : -1
      return { id, directoryId, endOffset, lastFetchAt: now, lastCaughtUpAt: now }
    })
  }

  observerProgress(now: Millis): ReplicaProgress[] {
    this.#forgetObservers(now)
    return [...this.#observers.values()]
  }

  #stand(effects: RaftEffect[]): void {
    assert(this.#role.name === 'unattached', 'a node stands once at a time')
    const { nodeId, directoryId } = this.#options
    const self = this.#voters.find(voter => voter.id === nodeId)
    const isSelf = self !== undefined && (self.directoryId === ZERO_UUID || self.directoryId === directoryId)
    if (!isSelf || majorityOf(this.#voters) > 1) return
    // A log may be ahead of the stored state where only the state's file was lost.
    const leaderEpoch = Math.max(this.#state.leaderEpoch, this.#log.lastEpoch) + 1
    const state = { leaderEpoch, leaderId: nodeId, votedId: -1, votedDirectoryId: ZERO_UUID }
    this.#role = { name: 'candidate', state }
    effects.push({ kind: 'store-state', state })
  }

  #stateStored(state: QuorumState, effects: RaftEffect[]): void {
    if (this.#role.name !== 'candidate' || this.#role.state !== state) return
    this.#state = state
    this.#role = { name: 'leader', epochStart: this.#log.nextOffset }
    const grantingVoters = this.#voters.filter(voter => voter.id === this.#options.nodeId)
    effects.push({ kind: 'lead', epoch: state.leaderEpoch, voters: this.#voters, grantingVoters })
  }

  #resign(now: Millis, effects: RaftEffect[]): void {
    if (this.#role.name === 'unattached') return
    const wasLeader = this.#role.name === 'leader'
    const epoch = this.#role.name === 'candidate' ? this.#role.state.leaderEpoch : this.#state.leaderEpoch
    // Whether the epoch was stored is not known when storing it failed, so it is not used again.
    this.#state = { leaderEpoch: epoch, leaderId: -1, votedId: -1, votedDirectoryId: ZERO_UUID }
    this.#role = { name: 'unattached' }
    this.#electAt = now + this.#options.retryMs
    this.#observers.clear()
    if (wasLeader) effects.push({ kind: 'resign', epoch })
    for (const call of this.#waiting.keys()) {
      effects.push({ kind: 'answer', call, answer: this.#answer(ErrorCode.NOT_LEADER_OR_FOLLOWER, VALID, 0) })
    }
    this.#waiting.clear()
    this.#nextDeadline = Number.POSITIVE_INFINITY
  }

  #logStored(endOffset: Offset, effects: RaftEffect[]): void {
    // Records of earlier epochs are committed only by one of this epoch behind them (raft, section 5.4.2).
    if (this.#role.name !== 'leader' || endOffset <= this.#role.epochStart) return
    if (endOffset <= this.#highWatermark) return
    this.#highWatermark = endOffset
    effects.push({ kind: 'commit', highWatermark: endOffset })
    for (const [call, { fetch }] of this.#waiting) {
      if (fetch.offset < endOffset || fetch.highWatermark < endOffset) this.#release(call, fetch, effects)
    }
  }

  #tick(now: Millis, effects: RaftEffect[]): void {
    if (this.#electAt !== undefined && now >= this.#electAt) {
      this.#electAt = undefined
      this.#stand(effects)
    }
    if (now < this.#nextDeadline) return
    this.#nextDeadline = Number.POSITIVE_INFINITY
    for (const [call, { fetch, deadline }] of this.#waiting) {
      if (deadline <= now) this.#release(call, fetch, effects)
      else if (deadline < this.#nextDeadline) this.#nextDeadline = deadline
    }
  }

  #fetch(call: number, fetch: RaftFetch, now: Millis, effects: RaftEffect[]): void {
    const errorCode = this.#leaderError(fetch)
    if (errorCode !== ErrorCode.NONE) {
      effects.push({ kind: 'answer', call, answer: this.#answer(errorCode, VALID, 0) })
      return
    }
    const position = judgePosition(this.#log, fetch.offset, fetch.lastFetchedEpoch)
    if (position.kind !== 'valid') {
      effects.push({ kind: 'answer', call, answer: this.#answer(ErrorCode.NONE, position, 0) })
      return
    }
    this.#note(fetch, now)
    const hasNews = fetch.offset < this.#highWatermark || fetch.highWatermark < this.#highWatermark
    if (hasNews || fetch.maxWaitMs <= 0 || this.#waiting.size >= WAITING_FETCHES_MAX) {
      this.#release(call, fetch, effects)
      return
    }
    const deadline = now + fetch.maxWaitMs
    this.#waiting.set(call, { fetch, deadline })
    if (deadline < this.#nextDeadline) this.#nextDeadline = deadline
  }

  #leaderError(fetch: RaftFetch): number {
    if (fetch.currentLeaderEpoch < this.epoch) return ErrorCode.FENCED_LEADER_EPOCH
    if (fetch.currentLeaderEpoch > this.epoch) return ErrorCode.UNKNOWN_LEADER_EPOCH
    return this.#role.name === 'leader' ? ErrorCode.NONE : ErrorCode.NOT_LEADER_OR_FOLLOWER
  }

  /** Observers get what is committed and nothing else. */
  #release(call: number, fetch: RaftFetch, effects: RaftEffect[]): void {
    this.#waiting.delete(call)
    const upTo = Math.max(fetch.offset, this.#highWatermark)
    effects.push({ kind: 'answer', call, answer: this.#answer(ErrorCode.NONE, VALID, upTo) })
  }

  #answer(errorCode: number, position: Position, upTo: Offset): FetchAnswer {
    const { highWatermark, leaderId, epoch: leaderEpoch } = this
    return { errorCode, position, upTo, highWatermark, leaderId, leaderEpoch }
  }

  #note({ replicaId: id, directoryId, offset: endOffset }: RaftFetch, now: Millis): void {
    // The broker beside a controller follows as a client of its own, which has no folder to tell: it is the voter's node.
    const isVoter = (voter: Voter) =>
      voter.id === id && (directoryId === ZERO_UUID || voter.directoryId === directoryId)
    if (id < 0 || this.#voters.some(isVoter)) return
    const key = `${id}:${directoryId}`
    const before = this.#observers.get(key)
    const leaderEndOffset = this.#log.endOffset
    let lastCaughtUpAt = before?.lastCaughtUpAt
    if (endOffset >= leaderEndOffset) lastCaughtUpAt = now
    else if (before !== undefined && endOffset >= before.leaderEndOffset) lastCaughtUpAt = before.lastFetchAt
    if (before === undefined) {
      this.#forgetObservers(now)
      if (this.#observers.size >= OBSERVERS_MAX) this.#forgetSilentObserver()
    }
    this.#observers.set(key, { id, directoryId, endOffset, lastFetchAt: now, lastCaughtUpAt, leaderEndOffset })
  }

  #forgetSilentObserver(): void {
    let silent: string | undefined
    let since = Number.POSITIVE_INFINITY
    for (const [key, { lastFetchAt = -1 }] of this.#observers) {
      if (lastFetchAt >= since) continue
      silent = key
      since = lastFetchAt
    }
    if (silent !== undefined) this.#observers.delete(silent)
  }

  #forgetObservers(now: Millis): void {
    for (const [key, { lastFetchAt }] of this.#observers) {
      if (lastFetchAt !== undefined && now - lastFetchAt > OBSERVER_SESSION_MS) this.#observers.delete(key)
    }
  }
}
