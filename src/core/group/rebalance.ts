import { assert, unreachable } from '#base/assert.ts'
import { Heap } from '#base/heap.ts'
import type { Millis } from '#base/units.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { JoinGroupResponse } from '#protocol/messages/join-group.ts'
import type { SyncGroupResponse } from '#protocol/messages/sync-group.ts'
import type { InputOf } from '#protocol/schema.ts'
import { type ClassicGroup, type Deadline, type Member, NO_BYTES, type Waiter } from './classic-group.ts'
import type { GroupReply, SyncGroupCommand, Turn } from './commands.ts'
import type { GroupConfig } from './config.ts'
import { encodeEntry } from './entries.ts'

export type JoinResponse = InputOf<typeof JoinGroupResponse>
export type SyncResponse = InputOf<typeof SyncGroupResponse>

/**
 * The course of rebalances: who waits for whom, until when, and what happens then. Join phase, sync phase and sessions
 * of all groups of a shard, with their deadlines and with the calls that are answered later.
 *
 * Where Kafka leaves a call without an answer for ever (a second JoinGroup or SyncGroup of the same member while the
 * first waits, a member removed while its SyncGroup waits) the first call is answered here, and it learns of closed
 * connections, where Kafka does not.
 */
export class Rebalance {
  readonly #config: GroupConfig
  readonly #deadlines = new Heap<Deadline>()
  /** Whoever waits, by call. */
  readonly #waiting = new Map<number, { readonly group: ClassicGroup; readonly member: Member }>()

  constructor(config: GroupConfig) {
    this.#config = config
  }

  wakeAt(): Millis | undefined {
    return this.#deadlines.peek()?.key
  }

  get waitingCount(): number {
    return this.#waiting.size
  }

  /** Answers all who wait, once the shard leads no more. */
  resign(): GroupReply[] {
    const replies: GroupReply[] = []
    const turn: Turn = { now: 0, monotonic: 0, entries: [], replies }
    for (const { group, member } of [...this.#waiting.values()]) {
      const { memberId } = member
      this.answerJoin(group, member, turn, { memberId, errorCode: ErrorCode.NOT_COORDINATOR })
      this.answerSync(member, turn, { errorCode: ErrorCode.NOT_COORDINATOR })
    }
    return replies
  }

  /** Keeps a member id that was given out with MEMBER_ID_REQUIRED until it is used, or its time is over. */
  giveId(group: ClassicGroup, memberId: string, turn: Turn, timeoutMs: Millis): void {
    const deadline: Deadline = { kind: 'session', group, memberId }
    group.pendingJoins.set(memberId, this.#deadlines.push(turn.monotonic + timeoutMs, deadline))
  }

  /** Takes an id back that was given out; false if it was not, or is in use. */
  takeId(group: ClassicGroup, memberId: string): boolean {
    const node = group.pendingJoins.get(memberId)
    if (node === undefined) return false
    this.#deadlines.remove(node)
    group.pendingJoins.delete(memberId)
    return true
  }

  /** Puts the end of the member's session off. */
  keepAlive(group: ClassicGroup, member: Member, turn: Turn, timeoutMs: Millis = member.sessionTimeoutMs): void {
    this.endSession(member)
    const deadline: Deadline = { kind: 'session', group, memberId: member.memberId }
    member.session = this.#deadlines.push(turn.monotonic + timeoutMs, deadline)
  }

  endSession(member: Member): void {
    if (member.session !== undefined) this.#deadlines.remove(member.session)
    member.session = undefined
  }

  #setDeadline(turn: Turn, afterMs: Millis, deadline: Exclude<Deadline, { kind: 'session' }>): void {
    const { group } = deadline
    this.#clearDeadline(group)
    // At least one millisecond: a deadline that sets itself again must not keep one tick going.
    group.deadline = this.#deadlines.push(turn.monotonic + Math.max(1, afterMs), deadline)
  }

  #clearDeadline(group: ClassicGroup): void {
    if (group.deadline !== undefined) this.#deadlines.remove(group.deadline)
    group.deadline = undefined
  }

  awaitJoin(group: ClassicGroup, member: Member, { call, version }: Waiter, turn: Turn): void {
    // The client gave up on the call before: only its retry counts.
    const { memberId } = member
    this.answerJoin(group, member, turn, { memberId, errorCode: ErrorCode.REBALANCE_IN_PROGRESS })
    group.setWaitingJoin(member, { call, version })
    this.#waiting.set(call, { group, member })
  }

  answerJoin(group: ClassicGroup, member: Member, turn: Turn, response: JoinResponse): void {
    const waiter = member.waitingJoin
    if (waiter === undefined) return
    group.setWaitingJoin(member, undefined)
    this.#waiting.delete(waiter.call)
    member.isIdKnown = true
    replyJoin(waiter, turn, response)
  }

  awaitSync(group: ClassicGroup, member: Member, { call, version }: Waiter, turn: Turn): void {
    this.answerSync(member, turn, { errorCode: ErrorCode.REBALANCE_IN_PROGRESS })
    member.waitingSync = { call, version }
    this.#waiting.set(call, { group, member })
  }

  answerSync(member: Member, turn: Turn, response: SyncResponse): boolean {
    const waiter = member.waitingSync
    if (waiter === undefined) return false
    member.waitingSync = undefined
    this.#waiting.delete(waiter.call)
    turn.replies.push({ kind: 'SyncGroup', call: waiter.call, response })
    return true
  }

  /** Members are to join: what is under way goes on, or a join phase begins. */
  start(group: ClassicGroup, turn: Turn): void {
    if (group.state === 'PreparingRebalance') this.completeJoinIfAllCame(group, turn)
    else this.restart(group, turn)
  }

  /** Begins a join phase; whoever waits for an assignment has to join again. */
  restart(group: ClassicGroup, turn: Turn): void {
    assert(group.state !== 'PreparingRebalance', 'a join phase under way goes on')
    if (group.state === 'CompletingRebalance') this.#endSync(group, turn, ErrorCode.REBALANCE_IN_PROGRESS)
    group.pendingSyncs.clear()
    this.#clearDeadline(group)
    const isFirst = group.state === 'Empty'
    group.moveTo('PreparingRebalance', turn.now)
    if (isFirst) {
      const delayMs = this.#config.initialRebalanceDelayMs
      const remainingMs = Math.max(group.rebalanceTimeoutMs - delayMs, 0)
      this.#setDeadline(turn, delayMs, { kind: 'initial-join', group, delayMs, remainingMs })
    } else if (group.hasAllJoined) {
      this.#completeJoin(group, turn)
    } else {
      this.#setDeadline(turn, group.rebalanceTimeoutMs, { kind: 'join', group })
    }
  }

  /** Ends the join phase when nobody is waited for, unless it has its fixed time. */
  completeJoinIfAllCame(group: ClassicGroup, turn: Turn): void {
    if (group.state === 'PreparingRebalance' && !group.isFirstRebalance && group.hasAllJoined) {
      this.#completeJoin(group, turn)
    }
  }

  /** The end of the join phase: who has not come is out, except static members, whose session has yet to end. */
  #completeJoin(group: ClassicGroup, turn: Turn) {
    this.#clearDeadline(group)
    for (const member of [...group.members.values()]) {
      if (member.waitingJoin === undefined && member.groupInstanceId === null) this.drop(group, member, turn)
    }
    if (group.members.size > 0 && !group.electJoinedLeader()) {
      return this.#setDeadline(turn, group.rebalanceTimeoutMs, { kind: 'join', group })
    }
    group.newMemberAdded = false
    group.nextGeneration(turn.now)
    if (group.members.size === 0) {
      turn.entries.push(group.toEntry(() => NO_BYTES))
      return
    }
    for (const member of group.members.values()) {
      this.answerJoin(group, member, turn, joinedResponse(group, member))
      this.keepAlive(group, member, turn)
      member.isNew = false
      group.pendingSyncs.add(member.memberId)
    }
    this.#setDeadline(turn, group.rebalanceTimeoutMs, { kind: 'sync', group })
  }

  /** The leader's assignments: they are stored, and all who wait have theirs. Who was left out has nothing. */
  assign(group: ClassicGroup, { request }: SyncGroupCommand, turn: Turn) {
    const assignments = new Map(request.assignments.map(({ memberId, assignment }) => [memberId, assignment]))
    for (const member of group.members.values()) {
      member.assignment = Buffer.from(assignments.get(member.memberId) ?? NO_BYTES)
    }
    const entry = group.toEntry(({ assignment }) => assignment)
    if (!this.fits(entry)) {
      this.#endSync(group, turn, ErrorCode.UNKNOWN_SERVER_ERROR)
      return this.restart(group, turn)
    }
    turn.entries.push(entry)
    group.moveTo('Stable', turn.now)
    for (const member of group.members.values()) {
      if (this.answerSync(member, turn, syncedResponse(group, member))) this.keepAlive(group, member, turn)
    }
  }

  /** The member has asked for its assignment. */
  hasSynced(group: ClassicGroup, member: Member): void {
    group.pendingSyncs.delete(member.memberId)
    if (group.pendingSyncs.size === 0) this.#clearDeadline(group)
  }

  /** Answers all who wait for their assignment with an error. */
  #endSync(group: ClassicGroup, turn: Turn, errorCode: number): void {
    for (const member of group.members.values()) {
      member.assignment = NO_BYTES
      if (this.answerSync(member, turn, { errorCode })) this.keepAlive(group, member, turn)
    }
  }

  /** Whether a record can hold the group. */
  fits(entry: ReturnType<ClassicGroup['toEntry']>): boolean {
    return (encodeEntry(entry).value?.length ?? 0) <= this.#config.recordBytesMax
  }

  /** Takes a member out. What it waits for ends with UNKNOWN_MEMBER_ID, so that it starts anew if it is still there. */
  drop(group: ClassicGroup, member: Member, turn: Turn): void {
    const errorCode = ErrorCode.UNKNOWN_MEMBER_ID
    this.answerJoin(group, member, turn, { memberId: '', errorCode })
    this.answerSync(member, turn, { errorCode })
    this.endSession(member)
    group.remove(member)
  }

  /** As `drop`, and the others go on without it. */
  #remove(group: ClassicGroup, member: Member, turn: Turn): void {
    this.drop(group, member, turn)
    if (group.state === 'Stable' || group.state === 'CompletingRebalance') this.restart(group, turn)
    else if (group.state === 'PreparingRebalance' && group.hasAllJoined) this.#completeJoin(group, turn)
  }

  /** Does what is due. */
  tick(turn: Turn): void {
    for (
      let next = this.#deadlines.peek();
      next !== undefined && next.key <= turn.monotonic;
      next = this.#deadlines.peek()
    ) {
      this.#deadlines.pop()
      const deadline = next.value
      const { group } = deadline
      switch (deadline.kind) {
        case 'session':
          this.#endOfSession(group, deadline.memberId, turn)
          break
        case 'initial-join':
          group.deadline = undefined
          this.#endOfInitialJoin(deadline, turn)
          break
        case 'join':
          group.deadline = undefined
          this.#completeJoin(group, turn)
          break
        case 'sync':
          group.deadline = undefined
          this.#endOfSync(group, turn)
          break
        default:
          unreachable(deadline)
      }
    }
  }

  #endOfSession(group: ClassicGroup, memberId: string, turn: Turn): void {
    if (group.pendingJoins.delete(memberId)) {
      if (group.state === 'PreparingRebalance' && group.hasAllJoined) this.#completeJoin(group, turn)
      return
    }
    const member = group.members.get(memberId)
    if (member === undefined) return
    member.session = undefined
    // Who waits for the others is alive as far as one can know; its session begins again with its answer.
    const waits = member.waitingJoin !== undefined || member.waitingSync !== undefined
    if (member.isNew || !waits) this.#remove(group, member, turn)
  }

  #endOfInitialJoin(deadline: Extract<Deadline, { kind: 'initial-join' }>, turn: Turn) {
    const { group, remainingMs } = deadline
    if (!group.newMemberAdded || remainingMs === 0) return this.#completeJoin(group, turn)
    group.newMemberAdded = false
    const delayMs = Math.min(this.#config.initialRebalanceDelayMs, remainingMs)
    const leftMs = Math.max(remainingMs - deadline.delayMs, 0)
    this.#setDeadline(turn, delayMs, { kind: 'initial-join', group, delayMs, remainingMs: leftMs })
  }

  /** Members that never asked for their assignment are out. */
  #endOfSync(group: ClassicGroup, turn: Turn): void {
    for (const memberId of [...group.pendingSyncs]) {
      const member = group.members.get(memberId)
      if (member !== undefined) this.drop(group, member, turn)
    }
    this.restart(group, turn)
  }

  /**
   * The client of a waiting call hung up. It may come back with its member id, and has the time of a session for that;
   * a client that was never told its id cannot.
   */
  callGone(call: number, turn: Turn) {
    const waiting = this.#waiting.get(call)
    if (waiting === undefined) return
    const { group, member } = waiting
    this.#waiting.delete(call)
    if (member.waitingJoin?.call === call) group.setWaitingJoin(member, undefined)
    else member.waitingSync = undefined
    if (member.isIdKnown || member.groupInstanceId !== null) return this.keepAlive(group, member, turn)
    this.drop(group, member, turn)
    this.start(group, turn)
  }
}

export function replyJoin({ call, version }: Waiter, turn: Turn, response: JoinResponse): void {
  // No protocol is null from version 7 on, and empty before.
  const protocolName = response.protocolName || (version < 7 ? '' : null)
  turn.replies.push({ kind: 'JoinGroup', call, response: { ...response, protocolName } })
}

export function joinedResponse(group: ClassicGroup, member: Member): JoinResponse {
  const members = group.isLeader(member.memberId) ? [...group.members.values()] : []
  return {
    errorCode: ErrorCode.NONE,
    generationId: group.generationId,
    protocolType: group.protocolType,
    protocolName: group.protocolName,
    leader: group.leader ?? '',
    memberId: member.memberId,
    members: members.map(other => ({
      memberId: other.memberId,
      groupInstanceId: other.groupInstanceId,
      metadata: group.metadataOf(other),
    })),
  }
}

export function syncedResponse(group: ClassicGroup, member: Member): SyncResponse {
  const { protocolType, protocolName } = group
  return { errorCode: ErrorCode.NONE, protocolType, protocolName, assignment: member.assignment }
}
