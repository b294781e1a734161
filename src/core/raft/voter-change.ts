import type { Millis, NodeId, Offset } from '#base/units.ts'
import { ZERO_UUID } from '#base/uuid.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Leader } from './leader.ts'
import type { RaftResponse, VoterAnswer } from './messages.ts'
import { areRecorded, isSameVoter, isVoter, type ReplicaKey, type Voter } from './quorum.ts'
import type { Replica, Sent } from './replica.ts'
import { NEVER } from './role.ts'

/** The level of kraft.version that knows voters as records. */
const RECORDED = 1

type CallKind = 'add-voter' | 'remove-voter' | 'record-voters'

/** The one change of the voters that is under way. */
interface Pending {
  readonly kind: CallKind
  /** Undefined once it is answered, or nobody waits. */
  call: number | undefined
  readonly ackWhenCommitted: boolean
  readonly deadline: Millis
  /** Who is added, until the record is appended. */
  joining: { voter: Voter; rangeRequest: number | undefined } | undefined
  /** Of the VotersRecord, once it is appended. */
  offset: Offset | undefined
}

export const NOT_LEADING = 'this controller does not lead the quorum'

const answers: Record<'timedOut' | 'notLeader' | 'unrecorded' | 'done', VoterAnswer> = {
  timedOut: { errorCode: ErrorCode.REQUEST_TIMED_OUT, message: 'the change of voters was not committed in time' },
  notLeader: { errorCode: ErrorCode.NOT_LEADER_OR_FOLLOWER, message: NOT_LEADING },
  unrecorded: {
    errorCode: ErrorCode.UNSUPPORTED_VERSION,
    message: 'the voters are a static list (kraft.version 0); raise kraft.version to 1 to change them',
  },
  done: { errorCode: ErrorCode.NONE, message: null },
}

/**
 * Changes of the voters under a leader (KIP-853), one at a time: a majority of the old and one of the new voters then
 * always have a node in common. A change counts from its append, and the next one waits until it is committed.
 */
export class VoterChange {
  readonly #replica: Replica
  readonly #leader: Leader
  #pending: Pending | undefined
  /** What the voters of a static list told of themselves. */
  readonly #described = new Map<NodeId, Voter>()

  constructor(replica: Replica, leader: Leader) {
    this.#replica = replica
    this.#leader = leader
  }

  wakeAt(): Millis {
    return this.#pending?.deadline ?? NEVER
  }

  tick(now: Millis): void {
    const pending = this.#pending
    if (pending === undefined || now < pending.deadline) return
    this.#answer(pending, answers.timedOut)
    this.#pending = undefined
    this.#considerOwn()
  }

  abandon(): void {
    if (this.#pending !== undefined) this.#answer(this.#pending, answers.notLeader)
    this.#pending = undefined
  }

  /** Nobody waits for it any more: who is not in the log yet need not come into it, and others may have their turn. */
  gone(call: number): void {
    const pending = this.#pending
    if (pending?.call !== call) return
    pending.call = undefined
    if (pending.joining === undefined) return
    this.#pending = undefined
    this.#considerOwn()
  }

  // -- what is asked for

  add(call: number, voter: Voter, timeoutMs: Millis, ackWhenCommitted: boolean, now: Millis): void {
    const refused = this.refusal() ?? this.#refuseJoining(voter)
    if (refused !== undefined) {
      this.#replica.answer(call, { kind: 'add-voter', answer: refused })
      return
    }
    const rangeRequest = this.#replica.send(this.#leader, voter.id, { kind: 'kraft-range', voter })
    const joining = { voter, rangeRequest }
    const deadline = now + Math.max(0, timeoutMs)
    this.#pending = { kind: 'add-voter', call, ackWhenCommitted, deadline, joining, offset: undefined }
  }

  remove(call: number, key: ReplicaKey, now: Millis): void {
    const { voters, timing } = this.#replica
    const leaving = voters.find(voter => voter.id === key.id && voter.directoryId === key.directoryId)
    const staying = voters.filter(voter => voter !== leaving)
    const refused = this.refusal() ?? refuseLeaving(leaving, voters, key) ?? this.#refuseStaying(staying, now)
    if (refused !== undefined) {
      this.#replica.answer(call, { kind: 'remove-voter', answer: refused })
      return
    }
    const deadline = now + timing.requestTimeoutMs
    this.#pending = {
      kind: 'remove-voter',
      call,
      ackWhenCommitted: true,
      deadline,
      joining: undefined,
      offset: undefined,
    }
    this.#append(staying)
  }

  /** Answered without waiting (KIP-853). */
  update(voter: Voter): number {
    const { voters, outbox } = this.#replica
    const { min, max } = voter.kraftVersion
    const former = voters.find(each => isVoter(each, voter))
    if (voter.directoryId === ZERO_UUID || voter.endpoints.length === 0) return ErrorCode.INVALID_REQUEST
    if (former === undefined) return ErrorCode.VOTER_NOT_FOUND
    if (!areRecorded(voters)) {
      this.#described.set(voter.id, voter)
      this.#considerOwn()
      return ErrorCode.NONE
    }
    if (min > RECORDED || max < RECORDED) return ErrorCode.INVALID_REQUEST
    if (isSameVoter(former, voter)) return ErrorCode.NONE
    const refused = this.refusal()
    if (refused !== undefined) return refused.errorCode
    outbox.push({
      kind: 'append-voters',
      voters: voters.map(each => (each === former ? voter : each)),
      raisesVersion: false,
    })
    return ErrorCode.NONE
  }

  record(call: number, validateOnly: boolean, now: Millis): void {
    if (areRecorded(this.#replica.voters)) {
      this.#replica.answer(call, { kind: 'record-voters', answer: answers.done })
      return
    }
    const recorded = this.#recordedVoters()
    const refused =
      recorded === undefined
        ? { errorCode: ErrorCode.INVALID_UPDATE_VERSION, message: 'not every voter told its directory yet' }
        : this.refusal(false)
    if (refused !== undefined || recorded === undefined || validateOnly) {
      this.#replica.answer(call, { kind: 'record-voters', answer: refused ?? answers.done })
      return
    }
    const deadline = now + this.#replica.timing.requestTimeoutMs
    this.#pending = {
      kind: 'record-voters',
      call,
      ackWhenCommitted: true,
      deadline,
      joining: undefined,
      offset: undefined,
    }
    this.#append(recorded, true)
  }

  /** Why no change can begin now. */
  refusal(needsRecords = true): VoterAnswer | undefined {
    const { voters, votersOffset, highWatermark } = this.#replica
    const wait = (message: string) => ({ errorCode: ErrorCode.REQUEST_TIMED_OUT, message })
    if (this.#pending !== undefined) return wait('another change of the voters is under way')
    if (!this.#leader.hasCommitted) return wait('the leader has committed nothing in its epoch yet')
    if (needsRecords && !areRecorded(voters)) return answers.unrecorded
    if (votersOffset >= highWatermark) return wait('the last change of the voters is not committed yet')
    return undefined
  }

  #refuseJoining({ id, directoryId, endpoints }: Voter): VoterAnswer | undefined {
    if (id < 0 || directoryId === ZERO_UUID || endpoints.length === 0) {
      const message = 'a voter has an id, a directory and an endpoint'
      return { errorCode: ErrorCode.INVALID_REQUEST, message }
    }
    if (!this.#replica.voters.some(voter => voter.id === id)) return undefined
    return { errorCode: ErrorCode.DUPLICATE_VOTER, message: `node ${id} is a voter already` }
  }

  /** Without a majority that answers, the change would never be committed, and neither would anything after it. */
  #refuseStaying(staying: readonly Voter[], now: Millis): VoterAnswer | undefined {
    if (this.#leader.isMajorityActive(staying, now)) return undefined
    const message = 'too few of the voters that stay can be reached; remove those that are gone first'
    return { errorCode: ErrorCode.REQUEST_TIMED_OUT, message }
  }

  // -- what happens

  answered(sent: Sent, response: RaftResponse | undefined, now: Millis): void {
    const pending = this.#pending
    if (pending?.joining?.rangeRequest !== sent.request) return
    if (response?.kind !== 'kraft-range') {
      this.#give(pending, ErrorCode.REQUEST_TIMED_OUT, 'the new voter cannot be reached')
      return
    }
    if (response.min > RECORDED || response.max < RECORDED) {
      const message = `the new voter knows kraft.version ${response.min} to ${response.max}, the cluster is at ${RECORDED}`
      this.#give(pending, ErrorCode.INVALID_REQUEST, message)
      return
    }
    const { min, max } = response
    pending.joining = { voter: { ...pending.joining.voter, kraftVersion: { min, max } }, rangeRequest: undefined }
    this.observerFetched(now)
  }

  /** Who joins must have caught up, so that the high watermark does not wait for it. */
  observerFetched(now: Millis): void {
    const pending = this.#pending
    if (pending?.joining === undefined || pending.joining.rangeRequest !== undefined) return
    const { voter } = pending.joining
    const caughtUpAt = this.#leader.observers.get(voter)?.lastCaughtUpAt
    if (caughtUpAt === undefined || now - caughtUpAt > this.#replica.timing.fetchTimeoutMs) return
    pending.joining = undefined
    this.#append([...this.#replica.voters, voter])
    if (!pending.ackWhenCommitted) this.#answer(pending, answers.done)
  }

  /** The record is in the log: `offset` is where. */
  votersChanged(now: Millis): void {
    const pending = this.#pending
    if (pending !== undefined && pending.joining === undefined) pending.offset ??= this.#replica.votersOffset
    this.#resignIfRemoved(now)
  }

  committed(now: Millis): void {
    const pending = this.#pending
    if (pending?.offset !== undefined && this.#replica.highWatermark > pending.offset) {
      this.#answer(pending, answers.done)
      this.#pending = undefined
    }
    this.#resignIfRemoved(now)
    this.#considerOwn()
  }

  /** A leader leads on until the voters that it is not one of are committed (KIP-853). */
  #resignIfRemoved(now: Millis): void {
    const { isVoter: isSelfVoter, votersOffset, highWatermark } = this.#replica
    if (isSelfVoter || votersOffset >= highWatermark) return
    this.#leader.resignTo(this.#leader.successors, now)
  }

  /** The leader's own entry, and the list as a whole where it may become records. */
  #considerOwn(): void {
    const { voters, self, options, isVoter: isSelfVoter } = this.#replica
    if (self === undefined || !isSelfVoter) return
    if (areRecorded(voters)) {
      const own = voters.find(voter => this.#replica.isSelf(voter))
      if (own === undefined || isSameVoter(own, self) || this.refusal() !== undefined) return
      this.#append(voters.map(voter => (voter === own ? self : voter)))
      return
    }
    const recorded = options.recordsVoters === true ? this.#recordedVoters() : undefined
    if (recorded !== undefined && this.refusal(false) === undefined) this.#append(recorded, true)
  }

  #recordedVoters(): readonly Voter[] | undefined {
    const { voters, self } = this.#replica
    const recorded: Voter[] = []
    for (const voter of voters) {
      const known = this.#replica.isSelf(voter) ? self : this.#described.get(voter.id)
      if (known === undefined || known.kraftVersion.min > RECORDED || known.kraftVersion.max < RECORDED)
        return undefined
      recorded.push(known)
    }
    return recorded
  }

  #append(voters: readonly Voter[], raisesVersion = false): void {
    this.#leader.appendVoters(voters, raisesVersion)
  }

  #give(pending: Pending, errorCode: number, message: string): void {
    this.#answer(pending, { errorCode, message })
    this.#pending = undefined
    this.#considerOwn()
  }

  #answer(pending: Pending, answer: VoterAnswer): void {
    if (pending.call !== undefined) this.#replica.answer(pending.call, { kind: pending.kind, answer })
    pending.call = undefined
  }
}

function refuseLeaving(
  leaving: Voter | undefined,
  voters: readonly Voter[],
  { id, directoryId }: ReplicaKey,
): VoterAnswer | undefined {
  if (leaving === undefined) {
    return { errorCode: ErrorCode.VOTER_NOT_FOUND, message: `node ${id} with directory ${directoryId} is no voter` }
  }
  if (voters.length > 1) return undefined
  return { errorCode: ErrorCode.INVALID_REQUEST, message: `node ${id} is the only voter` }
}
