import type { Epoch, Millis, NodeId } from '#base/units.ts'
import { ZERO_UUID } from '#base/uuid.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { Follower } from './follower.ts'
import type { BeginEpochRequest, EndEpochRequest, VoteRequest } from './messages.ts'
import { isVoter, type ReplicaKey } from './quorum.ts'
import type { Refusals } from './refusals.ts'
import type { Replica } from './replica.ts'
import { type Role, STAND_SPREAD_MS } from './role.ts'

/** Whoever got a pre-vote has this long before the one who gave it stands itself. */
const PRE_VOTE_HEAD_START_MS: Millis = 100
/** No quorum has so many elections behind a node's back: who claims it would make the epochs run out. */
const EPOCH_LEAP_MAX = 1_000_000

/** What this node is now, and what it may become by what it hears. */
interface Hearer {
  readonly role: Role
  unattached(epoch: Epoch, standAt: Millis, now: Millis): void
  learn(leaderId: NodeId, epoch: Epoch, from: NodeId, now: Millis): void
}

/** Votes, and leaders that come and go (KIP-595, 853, 996). */
export class PeerRequests {
  readonly #replica: Replica
  readonly #refusals: Refusals
  readonly #raft: Hearer

  constructor(replica: Replica, refusals: Refusals, raft: Hearer) {
    this.#replica = replica
    this.#refusals = refusals
    this.#raft = raft
  }

  vote(call: number, vote: VoteRequest, now: Millis): void {
    const { errorCode, granted } = this.#judge(vote, now)
    const answer = { ...this.#refusals.epochAnswer(errorCode), granted }
    this.#replica.answer(call, { kind: 'vote', answer })
  }

  #judge(vote: VoteRequest, now: Millis): { readonly errorCode: number; readonly granted: boolean } {
    const { candidate, epoch, lastEpoch, endOffset, preVote } = vote
    const { key, timing, hasPast } = this.#replica
    const refused = (errorCode: number) => ({ errorCode, granted: false })
    // An epoch begins with the vote for its candidate, whose log is from before.
    const isSane =
      candidate.id >= 0 && endOffset >= 0 && lastEpoch >= 0 && (preVote ? lastEpoch <= epoch : lastEpoch < epoch)
    const isAbsurd = epoch > this.#replica.epoch && !this.isNextEpoch(epoch)
    if (!isSane || isAbsurd || candidate.id === key.id) return refused(ErrorCode.INVALID_REQUEST)
    if (epoch < this.#replica.epoch) return refused(ErrorCode.FENCED_LEADER_EPOCH)
    // Without taking up the epoch, so that it is remembered as one without a past.
    if (!hasPast && endOffset > 0) return refused(ErrorCode.NONE)
    if (epoch > this.#replica.epoch) {
      this.#raft.unattached(epoch, now + timing.electionTimeoutMs + this.#replica.draw(timing.electionTimeoutMs), now)
    }
    if (!this.#isMe(vote.voter)) return refused(ErrorCode.INVALID_VOTER_KEY)
    const granted = preVote ? this.#grantPreVote(vote, now) : this.#grantVote(vote, now)
    return { errorCode: ErrorCode.NONE, granted }
  }

  /** Whether an epoch that somebody claims is one that can have come since. */
  isNextEpoch(epoch: Epoch): boolean {
    return epoch > this.#replica.epoch && (this.#replica.epoch === 0 || epoch - this.#replica.epoch <= EPOCH_LEAP_MAX)
  }

  #isMe({ id, directoryId }: ReplicaKey): boolean {
    const { key } = this.#replica
    return id === -1 || (id === key.id && (directoryId === ZERO_UUID || directoryId === key.directoryId))
  }

  #grantPreVote({ lastEpoch, endOffset }: VoteRequest, now: Millis): boolean {
    if (!this.#raft.role.grantsPreVote(now) || !this.#replica.isAtLeastAsNew(lastEpoch, endOffset)) return false
    this.#raft.role.postpone(PRE_VOTE_HEAD_START_MS, now)
    return true
  }

  #grantVote({ candidate, lastEpoch, endOffset }: VoteRequest, now: Millis): boolean {
    const replica = this.#replica
    if (this.#raft.role.name === 'leader' || !replica.canVoteFor(candidate)) return false
    if (!replica.isAtLeastAsNew(lastEpoch, endOffset)) {
      this.#standInstead(now)
      return false
    }
    const { leaderEpoch } = replica.state
    replica.become({ leaderEpoch, leaderId: -1, votedId: candidate.id, votedDirectoryId: candidate.directoryId })
    if (this.#raft.role.name === 'prospective') this.#raft.unattached(leaderEpoch, now, now)
    this.#raft.role.postpone(replica.timing.electionTimeoutMs, now)
    return true
  }

  /** The candidate cannot win for as long as this log is needed, so this node stands soon. */
  #standInstead(now: Millis): void {
    if (this.#raft.role.name !== 'unattached') return
    this.#raft.unattached(this.#replica.epoch, now + STAND_SPREAD_MS + this.#replica.draw(STAND_SPREAD_MS), now)
  }

  beginEpoch(call: number, { leaderId, epoch, voter }: BeginEpochRequest, now: Millis): void {
    let errorCode: number = ErrorCode.NONE
    if (!this.#canLead(leaderId, epoch)) errorCode = ErrorCode.INVALID_REQUEST
    else if (epoch < this.#replica.epoch) errorCode = ErrorCode.FENCED_LEADER_EPOCH
    else {
      this.#raft.learn(leaderId, epoch, leaderId, now)
      if (this.#namesOther(leaderId, epoch)) errorCode = ErrorCode.INVALID_REQUEST
      else if (!this.#isMe(voter)) errorCode = ErrorCode.INVALID_VOTER_KEY
      if (this.#raft.role instanceof Follower && this.#raft.role.leaderId === leaderId) this.#raft.role.called(now)
    }
    this.#replica.answer(call, { kind: 'begin-epoch', answer: this.#refusals.epochAnswer(errorCode) })
  }

  endEpoch(call: number, { leaderId, epoch, successors }: EndEpochRequest, now: Millis): void {
    let errorCode: number = ErrorCode.NONE
    if (!this.#canLead(leaderId, epoch)) errorCode = ErrorCode.INVALID_REQUEST
    else if (epoch < this.#replica.epoch) errorCode = ErrorCode.FENCED_LEADER_EPOCH
    else {
      this.#raft.learn(leaderId, epoch, leaderId, now)
      if (this.#namesOther(leaderId, epoch)) errorCode = ErrorCode.INVALID_REQUEST
      else if (this.#raft.role instanceof Follower) this.#raft.role.handedOver(this.#turnOf(successors), now)
    }
    this.#replica.answer(call, { kind: 'end-epoch', answer: this.#refusals.epochAnswer(errorCode) })
    this.#raft.role.tick(now)
  }

  /** Whether somebody else can say that it leads this epoch. */
  #canLead(leaderId: NodeId, epoch: Epoch): boolean {
    return (
      leaderId >= 0 && leaderId !== this.#replica.key.id && (epoch <= this.#replica.epoch || this.isNextEpoch(epoch))
    )
  }

  #namesOther(leaderId: NodeId, epoch: Epoch): boolean {
    const known = this.#replica.state.leaderId
    return epoch === this.#replica.epoch && known !== -1 && known !== leaderId
  }

  /** How long this node waits for those before it in the list: the first not at all, the last the longest backoff. */
  #turnOf(successors: readonly ReplicaKey[]): Millis {
    const { key, timing } = this.#replica
    const index = successors.findIndex(({ id, directoryId }) =>
      isVoter({ id, directoryId, endpoints: [], kraftVersion: { min: 0, max: 0 } }, key),
    )
    if (index < 0) return timing.electionBackoffMaxMs
    if (index === 0) return 0
    const base = timing.electionBackoffMaxMs / 2 ** Math.min(successors.length - 1, 16)
    return Math.min(timing.electionBackoffMaxMs, base * 2 ** Math.min(index - 1, 16))
  }
}
