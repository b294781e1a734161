import { assert } from '#base/assert.ts'
import type { Epoch, Millis, Offset } from '#base/units.ts'
import { ZERO_UUID } from '#base/uuid.ts'
import type { LogView } from './log-view.ts'
import type { RaftAnswer, RaftFetch, RaftPeer, RaftRequest } from './messages.ts'
import { RAFT_TIMING, type RaftOptions, type RaftTiming } from './options.ts'
import { Outbox } from './outbox.ts'
import {
  isVoter,
  KRAFT_VERSIONS,
  majorityOf,
  type QuorumState,
  type ReplicaKey,
  type Voter,
  type VoterEndpoint,
} from './quorum.ts'
import type { Role } from './role.ts'

/** A request under way, and the role that asked: another one takes no notice of what is answered. */
export interface Sent {
  readonly request: number
  readonly to: RaftPeer
  readonly message: RaftRequest
  readonly role: Role
}

/** What is being done to this node's own log, during which it neither fetches nor stands. */
export type LogWork =
  | { readonly kind: 'append'; readonly endOffset: Offset }
  | { readonly kind: 'truncate' }
  | { readonly kind: 'snapshot' }

/** What a node is in any role: its name, its log, its vote, what it asked others. */
export class Replica {
  readonly options: RaftOptions
  readonly timing: RaftTiming
  readonly log: LogView
  readonly key: ReplicaKey
  readonly outbox: Outbox
  voters: readonly Voter[]
  votersOffset: Offset
  formerVoters: readonly Voter[]
  endpoints: readonly VoterEndpoint[] | undefined
  /** -1 until one is known. */
  highWatermark: Offset = -1
  /** Below this the own log outlives a crash. */
  durableEnd: Offset
  logWork: LogWork | undefined
  /** How often the leader of this epoch seemed gone since it last answered. */
  doubts = 0
  /** The last epoch whose leader answered a fetch. */
  followedEpoch: Epoch = -1
  #state: QuorumState
  #lastRequest = 0
  readonly #requests = new Map<number, Sent>()

  constructor(options: RaftOptions) {
    this.options = options
    this.timing = { ...RAFT_TIMING, ...options.timing }
    this.log = options.log
    this.key = { id: options.nodeId, directoryId: options.directoryId }
    this.voters = options.voters
    this.votersOffset = options.votersOffset ?? -1
    this.formerVoters = options.formerVoters ?? []
    this.durableEnd = options.log.nextOffset
    this.outbox = new Outbox(options.state)
    this.#state = options.state
    // The log is ahead of the file where only that was lost: whom this node voted for then is not known, so for nobody.
    const { lastEpoch } = options.log
    if (lastEpoch > options.state.leaderEpoch) {
      const { id: votedId, directoryId: votedDirectoryId } = this.key
      this.#state = { leaderEpoch: lastEpoch, leaderId: -1, votedId, votedDirectoryId }
    }
  }

  get state(): QuorumState {
    return this.#state
  }

  get epoch(): Epoch {
    return this.#state.leaderEpoch
  }

  /** What depends on the new state leaves when it is stored. */
  become(state: QuorumState): void {
    assert(state.leaderEpoch >= this.#state.leaderEpoch, 'epochs never go back')
    this.#state = state
    this.outbox.touch()
  }

  get isVoter(): boolean {
    return this.voters.some(voter => isVoter(voter, this.key))
  }

  /** Whether it stands for election: a voter, or one that was until a record that is perhaps not committed. */
  get mayStand(): boolean {
    if (this.isVoter) return true
    return this.votersOffset >= this.highWatermark && this.formerVoters.some(voter => isVoter(voter, this.key))
  }

  changeVoters(voters: readonly Voter[], offset: Offset): void {
    // Back to a record before: what came before that one is not known here.
    this.formerVoters = offset > this.votersOffset ? this.voters : []
    this.voters = voters
    this.votersOffset = offset
  }

  isSelf(voter: Voter): boolean {
    return isVoter(voter, this.key)
  }

  get others(): readonly Voter[] {
    return this.voters.filter(voter => !this.isSelf(voter))
  }

  /** How this node wants to be recorded; undefined where nobody told where it can be reached. */
  get self(): Voter | undefined {
    const { endpoints } = this
    return endpoints === undefined ? undefined : { ...this.key, endpoints, kraftVersion: KRAFT_VERSIONS }
  }

  get #isEmpty(): boolean {
    return this.log.nextOffset === 0 && this.log.latestSnapshot === undefined
  }

  /** How many votes make a leader. */
  get votesNeeded(): number {
    const isFounding = this.options.founding === true && this.#isEmpty
    return isFounding ? this.voters.length : majorityOf(this.voters)
  }

  /**
   * False for a node that remembers nothing: perhaps a voter whose disk was replaced, or whose metadata were deleted. With
   * its vote a log could win that lacks what it once acknowledged.
   */
  get hasPast(): boolean {
    return !this.#isEmpty || this.epoch > 0
  }

  /** Whether nothing of the log is in motion and all of it outlives a crash. */
  get isLogSettled(): boolean {
    return this.logWork === undefined && this.durableEnd >= this.log.nextOffset
  }

  /** Whether a log that ends so holds everything that was committed, as far as this node can tell (raft, 5.4.1). */
  isAtLeastAsNew(lastEpoch: Epoch, endOffset: Offset): boolean {
    const { log } = this
    return lastEpoch > log.lastEpoch || (lastEpoch === log.lastEpoch && endOffset >= log.nextOffset)
  }

  /** One vote an epoch, and none where it has a leader. */
  canVoteFor({ id, directoryId }: ReplicaKey): boolean {
    const { leaderId, votedId, votedDirectoryId } = this.#state
    if (leaderId !== -1) return false
    if (votedId === -1) return true
    return votedId === id && (votedDirectoryId === ZERO_UUID || votedDirectoryId === directoryId)
  }

  /** Everything below is committed; false where that was known. */
  commit(highWatermark: Offset): boolean {
    if (highWatermark <= Math.max(0, this.highWatermark)) return false
    this.highWatermark = highWatermark
    this.outbox.push({ kind: 'commit', highWatermark })
    return true
  }

  /** Below this nothing may be cut off. */
  get committedEnd(): Offset {
    const { log } = this
    return Math.max(this.highWatermark, log.startOffset, log.latestSnapshot?.endOffset ?? 0)
  }

  /** The Fetch that says where this node is. All of its log must be durable. */
  fetchFrom(maxWaitMs: Millis): RaftRequest {
    assert(this.isLogSettled, 'a fetch only ever reports a durable end')
    const { key, epoch, log, highWatermark } = this
    const fetch: RaftFetch = {
      replicaId: key.id,
      directoryId: key.directoryId,
      currentLeaderEpoch: epoch,
      offset: log.nextOffset,
      lastFetchedEpoch: log.lastEpoch,
      highWatermark,
      maxWaitMs,
    }
    return { kind: 'fetch', fetch }
  }

  send(role: Role, to: RaftPeer, message: RaftRequest): number {
    const request = ++this.#lastRequest
    this.#requests.set(request, { request, to, message, role })
    this.outbox.push({ kind: 'send', request, to, message })
    return request
  }

  /** The request that was answered, which is over; undefined where there was none. */
  take(request: number): Sent | undefined {
    const sent = this.#requests.get(request)
    this.#requests.delete(request)
    return sent
  }

  answer(call: number, answer: RaftAnswer): void {
    this.outbox.push({ kind: 'answer', call, answer })
  }

  /** A random span below this one. */
  draw(ms: Millis): Millis {
    return Math.floor((this.options.draw?.() ?? 0.5) * ms)
  }

  /** The pause after so many failures in a row. */
  backoff(failures: number, maxMs: Millis): Millis {
    return Math.min(this.timing.retryBackoffMs * 2 ** Math.min(failures, 16), maxMs)
  }
}
