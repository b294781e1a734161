import type { Epoch, Millis, NodeId } from '#base/units.ts'
import { ZERO_UUID } from '#base/uuid.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { Discovery } from './discovery.ts'
import type { RaftRequest, RaftResponse } from './messages.ts'
import type { Voter } from './quorum.ts'
import type { Replica, Sent } from './replica.ts'
import { NEVER, Role, type Turns } from './role.ts'

/** After the first election that was lost; it doubles with each. */
const BACKOFF_MS: Millis = 50
/** The longest pause between two requests to a voter that does not answer. */
const PAUSE_MS_MAX: Millis = 500
/** A part of the election timeout. */
const PATIENCE = 4
const DISCOVERY_AFTER_MS: Millis = 500

interface Ballot {
  readonly voter: Voter
  verdict: 'granted' | 'rejected' | undefined
  request: number | undefined
  /** Nothing listens where it was: it will not decide this round. */
  isGone: boolean
  retryAt: Millis
  failures: number
}

/**
 * One round of an election: as a prospective node it only asks whether it would win, which disturbs nobody (KIP-996); as
 * a candidate it has voted for itself in a new epoch. Either counts from the moment at which its own vote is stored.
 */
export class Candidacy extends Role {
  readonly name: 'prospective' | 'candidate'
  readonly epoch: Epoch
  /** Rounds lost before this one. */
  readonly failures: number
  readonly #ballots = new Map<NodeId, Ballot>()
  readonly #discovery: Discovery
  #deadline: Millis
  /** Lost: the next round begins then. */
  #nextAt: Millis = NEVER
  won = false
  #isOver = false
  /** Somebody voted against it: those who have not answered yet are waited for less long. */
  #isContested = false
  /** Somebody still hears of the leader that this node doubts. */
  #isLeaderNamed = false

  constructor(replica: Replica, turns: Turns, name: 'prospective' | 'candidate', failures: number, now: Millis) {
    super(replica, turns)
    this.name = name
    this.failures = failures
    this.epoch = replica.epoch
    const { electionTimeoutMs } = replica.timing
    this.#deadline = now + electionTimeoutMs + replica.draw(electionTimeoutMs)
    this.#discovery = new Discovery(replica, this, now + DISCOVERY_AFTER_MS)
  }

  begin(now: Millis): void {
    for (const voter of this.replica.others) {
      this.#ballots.set(voter.id, {
        voter,
        verdict: undefined,
        request: undefined,
        isGone: false,
        retryAt: now,
        failures: 0,
      })
    }
    this.#count(now)
    this.tick(now)
  }

  wakeAt(): Millis {
    if (this.won) return NEVER
    if (this.#nextAt !== NEVER) return this.#nextAt
    let at = Math.min(this.#deadline, this.name === 'prospective' ? this.#discovery.wakeAt() : NEVER)
    for (const { verdict, request, retryAt } of this.#ballots.values()) {
      if (verdict === undefined && request === undefined && retryAt < at) at = retryAt
    }
    return at
  }

  tick(now: Millis): void {
    if (this.won || this.#isOver) return
    if (this.#nextAt !== NEVER) {
      if (now >= this.#nextAt) this.#roundOver(now)
      return
    }
    if (now >= this.#deadline) {
      this.#roundOver(now)
      return
    }
    for (const ballot of this.#ballots.values()) {
      if (ballot.verdict !== undefined || ballot.request !== undefined || now < ballot.retryAt) continue
      ballot.request = this.replica.send(this, ballot.voter.id, this.#voteRequest(ballot.voter))
    }
    if (this.name === 'prospective') this.#discovery.tick(now)
  }

  override leave(): void {
    this.#isOver = true
  }

  #voteRequest({ id, directoryId }: Voter): RaftRequest {
    const { log, key } = this.replica
    const vote = {
      epoch: this.epoch,
      candidate: key,
      voter: { id, directoryId },
      lastEpoch: log.lastEpoch,
      endOffset: log.nextOffset,
      preVote: this.name === 'prospective',
    }
    return { kind: 'vote', vote }
  }

  override answered(sent: Sent, response: RaftResponse, now: Millis): void {
    this.#discovery.over(sent, now)
    if (response.kind !== 'vote') return
    const ballot = this.#ballotOf(sent)
    if (ballot === undefined) return
    ballot.request = undefined
    ballot.isGone = false
    const { errorCode, granted, leaderEpoch } = response.answer
    if (errorCode === ErrorCode.UNSUPPORTED_VERSION && this.name === 'prospective') {
      // A voter of an older release cannot say beforehand: only the election itself asks it.
      ballot.verdict = 'granted'
    } else if (errorCode === ErrorCode.NONE && leaderEpoch <= this.epoch) {
      ballot.verdict = granted && leaderEpoch === this.epoch ? 'granted' : 'rejected'
    } else if (errorCode === ErrorCode.INVALID_VOTER_KEY || errorCode === ErrorCode.INVALID_REQUEST) {
      ballot.verdict = 'rejected'
    } else ballot.retryAt = now + this.replica.backoff(ballot.failures++, PAUSE_MS_MAX)
    this.#count(now)
    this.tick(now)
  }

  override unanswered(sent: Sent, refused: boolean, now: Millis): void {
    this.#discovery.over(sent, now)
    const ballot = this.#ballotOf(sent)
    if (ballot === undefined) return
    ballot.request = undefined
    ballot.isGone = refused
    this.#count(now)
    ballot.retryAt = now + this.replica.backoff(ballot.failures++, PAUSE_MS_MAX)
  }

  #ballotOf({ to, request }: Sent): Ballot | undefined {
    const ballot = to === 'anyone' ? undefined : this.#ballots.get(to)
    return ballot?.request === request ? ballot : undefined
  }

  #count(now: Millis): void {
    const { votesNeeded } = this.replica
    const granting = this.granting
    if (this.won || this.#isOver || this.#nextAt !== NEVER) return
    if (granting.size >= votesNeeded) {
      this.win(now)
      return
    }
    const open = [...this.#ballots.values()].filter(({ verdict, isGone }) => verdict === undefined && !isGone).length
    const isRejected = [...this.#ballots.values()].some(({ verdict }) => verdict === 'rejected')
    // Without anybody against it there is only somebody to wait for.
    if (!isRejected) return
    if (granting.size + open >= votesNeeded) {
      const { electionTimeoutMs } = this.replica.timing
      const patienceMs = electionTimeoutMs / PATIENCE + this.replica.draw(electionTimeoutMs / PATIENCE)
      if (!this.#isContested) this.#deadline = Math.min(this.#deadline, now + patienceMs)
      this.#isContested = true
      return
    }
    const spread = Math.min(BACKOFF_MS * 2 ** Math.min(this.failures, 16), this.replica.timing.electionBackoffMaxMs)
    this.#nextAt = now + 1 + this.replica.draw(spread)
  }

  /** Which voters voted for this node. */
  get granting(): ReadonlySet<NodeId> {
    const granting = new Set(this.replica.isVoter ? [this.replica.key.id] : [])
    for (const [id, { verdict }] of this.#ballots) if (verdict === 'granted') granting.add(id)
    return granting
  }

  win(now: Millis): void {
    if (this.name === 'prospective') {
      this.turns.candidate(this.failures, now)
      return
    }
    this.won = true
    const { replica } = this
    replica.become({
      leaderEpoch: this.epoch,
      leaderId: replica.key.id,
      votedId: -1,
      votedDirectoryId: ZERO_UUID,
    })
  }

  override stateStored(now: Millis): void {
    if (this.won) this.turns.lead(this.granting, now)
  }

  #roundOver(now: Millis): void {
    const { leaderId } = this.replica.state
    if (this.name === 'prospective' && this.#isLeaderNamed) this.turns.follow(leaderId, this.epoch, now)
    else this.turns.stand(this.failures + 1, now)
  }

  /** The leader that was doubted is heard of by others: after this round it is given another chance. */
  override insists(leaderId: NodeId): boolean {
    if (this.name !== 'prospective' || leaderId !== this.replica.state.leaderId) return false
    this.#isLeaderNamed = true
    return true
  }

  override grantsPreVote(): boolean {
    return !this.won
  }

  override postpone(ms: Millis, now: Millis): void {
    if (this.#nextAt !== NEVER) this.#nextAt = Math.max(this.#nextAt, now + ms + this.replica.draw(ms))
  }

  override votersChanged(now: Millis): void {
    if (!this.won) this.turns.unattached(this.epoch, now + 1, now)
  }
}
