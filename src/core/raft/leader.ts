import { assert } from '#base/assert.ts'
import type { Epoch, Millis, NodeId, Offset } from '#base/units.ts'
import { ZERO_UUID } from '#base/uuid.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { Herald } from './herald.ts'
import { judgePosition, type Position } from './log-view.ts'
import type { FetchAnswer, RaftFetch, RaftResponse } from './messages.ts'
import { fetchedAt, Observers, type Progress } from './progress.ts'
import { isVoter, majorityOf, type ReplicaKey, type ReplicaProgress, type Voter } from './quorum.ts'
import type { Replica, Sent } from './replica.ts'
import { NEVER, Role, type Turns } from './role.ts'
import { VoterChange } from './voter-change.ts'
import { WaitingFetches } from './waiting-fetches.ts'

const VALID: Position = { kind: 'valid' }

/** Check quorum: so many fetch timeouts without fetches from a majority, and a leader is none. */
const QUORUM_TIMEOUTS = 1.5

/** Another voter, as its leader sees it. */
interface Follower {
  readonly voter: Voter
  progress: Progress
  /** When it last fetched, or became a voter under this leader. */
  activeAt: Millis
}

/**
 * Leads its epoch: what a majority of the voters holds durably is committed, from the first record of this epoch on.
 * Voters are sent all that is durable here, observers what is committed.
 */
export class Leader extends Role {
  readonly name = 'leader'
  override readonly leaderId: NodeId
  readonly epoch: Epoch
  readonly epochStart: Offset
  readonly observers = new Observers()
  readonly waiting = new WaitingFetches()
  readonly #granting: ReadonlySet<NodeId>
  readonly #herald: Herald
  readonly #change: VoterChange
  #followers = new Map<NodeId, Follower>()
  #isOver = false
  /** A write that is under way takes too long then. */
  #stalledAt: Millis = NEVER

  constructor(replica: Replica, turns: Turns, granting: ReadonlySet<NodeId>) {
    super(replica, turns)
    this.leaderId = replica.key.id
    this.epoch = replica.epoch
    this.epochStart = replica.log.nextOffset
    this.#granting = granting
    this.#herald = new Herald(replica, this)
    this.#change = new VoterChange(replica, this)
  }

  begin(now: Millis): void {
    const { voters } = this.replica
    const grantingVoters = voters.filter(({ id }) => this.#granting.has(id))
    this.replica.outbox.push({ kind: 'lead', epoch: this.epoch, voters, grantingVoters })
    this.#meet(now)
    this.tick(now)
  }

  override leave(): void {
    this.#isOver = true
    this.replica.outbox.push({ kind: 'resign', epoch: this.epoch })
  }

  /** After the new role is known: those who wait are sent away to it. */
  dismiss(answer: (call: number) => void): void {
    this.#change.abandon()
    for (const [call] of this.waiting.take(() => true)) answer(call)
  }

  get changes(): VoterChange {
    return this.#change
  }

  /** Something of its own epoch is committed, so that what came before is too (raft, 5.4.2). */
  get hasCommitted(): boolean {
    return this.replica.highWatermark > this.epochStart
  }

  wakeAt(): Millis {
    return Math.min(
      this.#stalledAt,
      this.waiting.wakeAt(),
      this.#herald.wakeAt(),
      this.#quorumLostAt(),
      this.#change.wakeAt(),
    )
  }

  tick(now: Millis): void {
    if (this.#isOver) return
    if (now >= this.#quorumLostAt() || now >= this.#stalledAt) {
      const { electionTimeoutMs } = this.replica.timing
      const successors = now >= this.#stalledAt ? this.successors : []
      this.turns.resign(successors, now + electionTimeoutMs + this.replica.draw(electionTimeoutMs), now)
      return
    }
    this.#watchDisk(now)
    for (const [call, fetch] of this.waiting.expired(now)) this.#release(call, fetch)
    this.#herald.tick(now)
    this.#change.tick(now)
  }

  /** A disk that hangs fails nothing and finishes nothing: others who would lead are better off without this leader. */
  #watchDisk(now: Millis): void {
    const { durableEnd, log, timing } = this.replica
    const isWriting = durableEnd < log.nextOffset && this.replica.others.length > 0
    if (!isWriting) this.#stalledAt = NEVER
    else if (this.#stalledAt === NEVER) this.#stalledAt = now + timing.fetchTimeoutMs * QUORUM_TIMEOUTS
  }

  // -- followers

  /** Who reads a snapshot fetches nothing until it has it, which may take longer than a leader waits for fetches. */
  snapshotRead(key: ReplicaKey, now: Millis): void {
    const follower = this.followerOf(key)
    if (follower === undefined) return
    follower.activeAt = now
    this.#herald.heard(key.id, now)
  }

  #meet(now: Millis): void {
    const before = this.#followers
    this.#followers = new Map()
    for (const voter of this.replica.others) {
      const { id, directoryId } = voter
      const known = before.get(id)
      if (known !== undefined && known.voter.directoryId === directoryId) {
        this.#followers.set(id, { ...known, voter })
        continue
      }
      const none = {
        id,
        directoryId,
        endOffset: -1,
        lastFetchAt: undefined,
        lastCaughtUpAt: undefined,
        leaderEndOffset: -1,
      }
      const progress = this.observers.get(voter) ?? none
      this.observers.delete(voter)
      this.#followers.set(id, { voter, progress, activeAt: now })
    }
    this.#herald.meet([...this.#followers.keys()], now)
  }

  /** Which voter fetches. Who names no directory is a client, such as the broker beside a controller, and never one. */
  followerOf({ id, directoryId }: ReplicaKey): Follower | undefined {
    const follower = this.#followers.get(id)
    if (follower === undefined || directoryId === ZERO_UUID) return undefined
    return isVoter(follower.voter, { id, directoryId }) ? follower : undefined
  }

  #quorumLostAt(): Millis {
    const { voters, isVoter: isSelfVoter, timing } = this.replica
    const needed = majorityOf(voters) - (isSelfVoter ? 1 : 0)
    if (needed <= 0) return NEVER
    const active = [...this.#followers.values()].map(({ activeAt }) => activeAt).toSorted((a, b) => b - a)
    return (active[needed - 1] ?? NEVER) + timing.fetchTimeoutMs * QUORUM_TIMEOUTS
  }

  voterProgress(now: Millis): ReplicaProgress[] {
    return this.replica.voters.map(voter => {
      const follower = this.#followers.get(voter.id)
      if (follower !== undefined) return follower.progress
      const { id, directoryId } = voter
      return { id, directoryId, endOffset: this.replica.log.endOffset, lastFetchAt: now, lastCaughtUpAt: now }
    })
  }

  /** Whether these voters could commit something now, as far as is known. */
  isMajorityActive(voters: readonly Voter[], now: Millis): boolean {
    const since = now - this.replica.timing.fetchTimeoutMs * QUORUM_TIMEOUTS
    const active = voters.filter(voter => {
      const follower = this.#followers.get(voter.id)
      return follower === undefined ? this.replica.isSelf(voter) : follower.activeAt > since
    })
    return active.length >= majorityOf(voters)
  }

  /** Who has the most of the log goes first. */
  get successors(): ReplicaKey[] {
    return [...this.#followers.values()]
      .toSorted((a, b) => b.progress.endOffset - a.progress.endOffset)
      .map(({ voter: { id, directoryId } }) => ({ id, directoryId }))
  }

  // -- the high watermark

  /** The durable end of this leader's own log. */
  get ownEnd(): Offset {
    return this.replica.durableEnd
  }

  /** Up to where a majority of the voters holds the log durably. */
  majorityEnd(): Offset {
    const ends = this.replica.voters.map(voter =>
      this.replica.isSelf(voter) ? this.ownEnd : (this.#followers.get(voter.id)?.progress.endOffset ?? -1),
    )
    return ends.toSorted((a, b) => b - a)[majorityOf(this.replica.voters) - 1] ?? -1
  }

  /** Records of earlier epochs are committed only by one of this epoch behind them (raft, 5.4.2). */
  mayCommit(endOffset: Offset): boolean {
    return endOffset > this.epochStart
  }

  #advance(now: Millis): void {
    const end = this.majorityEnd()
    if (!this.mayCommit(end) || !this.replica.commit(end)) return
    this.#news()
    this.#change.committed(now)
  }

  /** Those who wait for what there is now. */
  #news(): void {
    for (const [call, fetch] of this.waiting.take(each => this.#hasNews(each))) this.#release(call, fetch)
  }

  override logChanged(now: Millis): void {
    this.#stalledAt = NEVER
    this.#watchDisk(now)
    if (this.replica.others.length > 0) this.#news()
    this.#advance(now)
  }

  override votersChanged(now: Millis): void {
    this.#meet(now)
    this.#change.votersChanged(now)
    if (!this.#isOver) this.#advance(now)
  }

  // -- fetches

  fetch(call: number, fetch: RaftFetch, now: Millis): void {
    const { log } = this.replica
    const position = judgePosition(log, fetch.offset, fetch.lastFetchedEpoch)
    if (position.kind !== 'valid') {
      this.#answer(call, position, 0)
      return
    }
    this.#note(fetch, now)
    this.#watchDisk(now)
    if (this.#isOver) {
      this.#answer(call, VALID, 0)
      return
    }
    const waits = !this.#hasNews(fetch) && fetch.maxWaitMs > 0 && this.waiting.add(call, fetch, now)
    if (!waits) this.#release(call, fetch)
  }

  #keyOf({ replicaId: id, directoryId }: RaftFetch): ReplicaKey {
    return { id, directoryId }
  }

  #note(fetch: RaftFetch, now: Millis): void {
    const key = this.#keyOf(fetch)
    const leaderEnd = this.replica.log.endOffset
    const follower = this.followerOf(key)
    if (follower !== undefined) {
      follower.progress = fetchedAt(key, fetch.offset, leaderEnd, follower.progress, now)
      follower.activeAt = now
      this.#herald.heard(key.id, now)
      this.#advance(now)
      return
    }
    const isVotersNode = (voter: Voter) => isVoter(voter, key) || (voter.id === key.id && key.directoryId === ZERO_UUID)
    if (key.id < 0 || this.replica.voters.some(isVotersNode)) return
    this.observers.note(key, fetch.offset, leaderEnd, now)
    this.#change.observerFetched(now)
  }

  /** Up to where who fetches may read. */
  #readableBy(fetch: RaftFetch): Offset {
    const { durableEnd, highWatermark } = this.replica
    return this.followerOf(this.#keyOf(fetch)) === undefined ? highWatermark : Math.max(durableEnd, highWatermark)
  }

  #hasNews(fetch: RaftFetch): boolean {
    return fetch.offset < this.#readableBy(fetch) || fetch.highWatermark < this.replica.highWatermark
  }

  #release(call: number, fetch: RaftFetch): void {
    this.#answer(call, VALID, Math.max(fetch.offset, this.#readableBy(fetch)))
  }

  #answer(call: number, position: Position, upTo: Offset): void {
    const { highWatermark } = this.replica
    const errorCode = this.#isOver ? ErrorCode.NOT_LEADER_OR_FOLLOWER : ErrorCode.NONE
    const leaderId = this.#isOver ? -1 : this.leaderId
    const answer: FetchAnswer = { errorCode, position, upTo, highWatermark, leaderId, leaderEpoch: this.epoch }
    this.replica.answer(call, { kind: 'fetch', answer })
  }

  // -- what it asked

  override answered(sent: Sent, response: RaftResponse, now: Millis): void {
    if (sent.message.kind === 'begin-epoch') this.#herald.over(sent, true, now)
    else this.#change.answered(sent, response, now)
  }

  override unanswered(sent: Sent, _refused: boolean, now: Millis): void {
    if (sent.message.kind === 'begin-epoch') this.#herald.over(sent, false, now)
    else this.#change.answered(sent, undefined, now)
  }

  override grantsPreVote(): boolean {
    return false
  }

  /** A voter change makes the leader append; it has to be one still. */
  appendVoters(voters: readonly Voter[], raisesVersion: boolean): void {
    assert(!this.#isOver, 'only a leader changes the voters')
    this.replica.outbox.push({ kind: 'append-voters', voters, raisesVersion })
  }

  resignTo(successors: readonly ReplicaKey[], now: Millis): void {
    this.turns.resign(successors, now + this.replica.timing.electionTimeoutMs, now)
  }
}
