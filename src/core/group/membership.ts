import { assert, unreachable } from '#base/assert.ts'
import { Heap } from '#base/heap.ts'
import type { Millis } from '#base/units.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { JoinGroupRequest, JoinGroupResponse } from '#protocol/messages/join-group.ts'
import type { SyncGroupResponse } from '#protocol/messages/sync-group.ts'
import type { InputOf } from '#protocol/schema.ts'
import { ClassicGroup, type Deadline, type GroupProtocol, type Member, NO_BYTES, type Waiter } from './classic-group.ts'
import type {
  GroupReply,
  HeartbeatCommand,
  JoinGroupCommand,
  LeaveGroupCommand,
  SyncGroupCommand,
  Turn,
} from './commands.ts'
import { type GroupConfig, NEW_MEMBER_JOIN_TIMEOUT_MS, PENDING_MEMBERS_MAX, STRING_BYTES_MAX } from './config.ts'
import { encodeEntry } from './entries.ts'
import type { GroupStore } from './store.ts'

/** Delimiter and UUID behind the client's part of a member id. */
const MEMBER_ID_SUFFIX_BYTES = 64

type JoinResponse = InputOf<typeof JoinGroupResponse>
type SyncResponse = InputOf<typeof SyncGroupResponse>

/**
 * Who is in which group, and the classic rebalance: join phase, sync phase, sessions. This is the soft state of a shard.
 * It changes when a command is decided, since no answer leaves before what it rests on is committed, and is thrown
 * away together with the shard when that fails.
 *
 * Where Kafka leaves a call without an answer for ever (a second JoinGroup or SyncGroup of the same member while the
 * first waits, a member removed while its SyncGroup waits) the first call is answered here, and it learns of closed
 * connections, where Kafka does not.
 */
export class Membership {
  readonly #config: GroupConfig
  readonly #store: GroupStore
  readonly #groups = new Map<string, ClassicGroup>()
  readonly #deadlines = new Heap<Deadline>()
  /** Whoever waits, by call. */
  readonly #waiting = new Map<number, { readonly group: ClassicGroup; readonly member: Member }>()

  constructor(config: GroupConfig, store: GroupStore) {
    this.#config = config
    this.#store = store
  }

  wakeAt(): Millis | undefined {
    return this.#deadlines.peek()?.key
  }

  get waitingCount(): number {
    return this.#waiting.size
  }

  /** The group as it is, if it exists. Groups without members are made from the store when they are looked at. */
  find(groupId: string): ClassicGroup | undefined {
    const group = this.#groups.get(groupId)
    if (group !== undefined) return group
    const stored = this.#store.group(groupId)
    return stored && new ClassicGroup(groupId, stored.currentStateTimestamp, stored)
  }

  /** Begins to lead: members that were stored have a whole session to be heard of. */
  lead(turn: Turn): void {
    for (const groupId of this.#store.groupIds) {
      const group = this.find(groupId)
      if (group === undefined || group.members.size === 0) continue
      this.#groups.set(groupId, group)
      for (const member of group.members.values()) this.#keepAlive(group, member, turn)
      if (group.members.size > this.#config.maxSize) this.#prepareRebalance(group, turn)
    }
  }

  /** Answers all who wait, once the shard leads no more. */
  resign(): GroupReply[] {
    const replies: GroupReply[] = []
    const turn: Turn = { now: 0, entries: [], replies }
    for (const { group, member } of [...this.#waiting.values()]) {
      const { memberId } = member
      this.#answerJoin(group, member, turn, { memberId, errorCode: ErrorCode.NOT_COORDINATOR })
      this.#answerSync(member, turn, { errorCode: ErrorCode.NOT_COORDINATOR })
    }
    return replies
  }

  /** Forgets a group that nobody is in. */
  delete(groupId: string): void {
    const group = this.#groups.get(groupId)
    if (group === undefined) return
    assert(group.state === 'Empty', 'a group with members is not deleted')
    for (const node of group.pendingJoins.values()) this.#deadlines.remove(node)
    this.#groups.delete(groupId)
  }

  /** Puts the end of the member's session off. */
  keepAlive(group: ClassicGroup, memberId: string, turn: Turn): void {
    const member = group.members.get(memberId)
    if (member !== undefined) this.#keepAlive(group, member, turn)
  }

  #keepAlive(group: ClassicGroup, member: Member, turn: Turn, timeoutMs: Millis = member.sessionTimeoutMs): void {
    this.#endSession(member)
    const deadline: Deadline = { kind: 'session', group, memberId: member.memberId }
    member.session = this.#deadlines.push(turn.now + timeoutMs, deadline)
  }

  #endSession(member: Member): void {
    if (member.session !== undefined) this.#deadlines.remove(member.session)
    member.session = undefined
  }

  #setDeadline(turn: Turn, afterMs: Millis, deadline: Exclude<Deadline, { kind: 'session' }>): void {
    const { group } = deadline
    this.#clearDeadline(group)
    // At least one millisecond: a deadline that sets itself again must not keep one tick going.
    group.deadline = this.#deadlines.push(turn.now + Math.max(1, afterMs), deadline)
  }

  #clearDeadline(group: ClassicGroup): void {
    if (group.deadline !== undefined) this.#deadlines.remove(group.deadline)
    group.deadline = undefined
  }

  // Answers

  #awaitJoin(group: ClassicGroup, member: Member, waiter: Waiter, turn: Turn): void {
    // The client gave up on the call before: only its retry counts.
    const { memberId } = member
    this.#answerJoin(group, member, turn, { memberId, errorCode: ErrorCode.REBALANCE_IN_PROGRESS })
    group.setWaitingJoin(member, waiter)
    this.#waiting.set(waiter.call, { group, member })
  }

  #answerJoin(group: ClassicGroup, member: Member, turn: Turn, response: JoinResponse): void {
    const waiter = member.waitingJoin
    if (waiter === undefined) return
    group.setWaitingJoin(member, undefined)
    this.#waiting.delete(waiter.call)
    member.isIdKnown = true
    replyJoin(waiter, turn, response)
  }

  #awaitSync(group: ClassicGroup, member: Member, waiter: Waiter, turn: Turn): void {
    this.#answerSync(member, turn, { errorCode: ErrorCode.REBALANCE_IN_PROGRESS })
    member.waitingSync = waiter
    this.#waiting.set(waiter.call, { group, member })
  }

  #answerSync(member: Member, turn: Turn, response: SyncResponse): boolean {
    const waiter = member.waitingSync
    if (waiter === undefined) return false
    member.waitingSync = undefined
    this.#waiting.delete(waiter.call)
    turn.replies.push({ kind: 'SyncGroup', call: waiter.call, response })
    return true
  }

  // JoinGroup

  join(command: JoinGroupCommand, turn: Turn) {
    const { request, version } = command
    const { groupId, memberId } = request
    const { minSessionTimeoutMs, maxSessionTimeoutMs } = this.#config
    if (groupId === '') return refuseJoin(command, turn, ErrorCode.INVALID_GROUP_ID)
    if (request.sessionTimeoutMs < minSessionTimeoutMs || request.sessionTimeoutMs > maxSessionTimeoutMs) {
      return refuseJoin(command, turn, ErrorCode.INVALID_SESSION_TIMEOUT)
    }
    const found = this.find(groupId)
    if (found === undefined && memberId !== '') return refuseJoin(command, turn, ErrorCode.UNKNOWN_MEMBER_ID)
    const group = found ?? new ClassicGroup(groupId, turn.now)
    this.#groups.set(groupId, group)
    if (!this.#hasRoomFor(group, memberId)) {
      const member = group.members.get(memberId)
      if (member !== undefined) this.#drop(group, member, turn)
      refuseJoin(command, turn, ErrorCode.GROUP_MAX_SIZE_REACHED, '')
      this.#completeJoinIfAllCame(group, turn)
    } else if (!group.supports(request.protocolType, request.protocols)) {
      refuseJoin(command, turn, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    } else if (memberId !== '') {
      this.#joinKnown(group, command, turn)
    } else if (request.groupInstanceId !== null) {
      this.#joinStatic(group, command, turn, request.groupInstanceId)
    } else {
      const newMemberId = newId(command, command.clientId)
      if (newMemberId === undefined) return refuseJoin(command, turn, ErrorCode.INVALID_REQUEST)
      if (version >= 4) this.#requireMemberId(group, command, turn, newMemberId)
      else this.#add(group, command, turn, newMemberId)
    }
    // The first sign of a group is kept: who was given a member id for it finds the group again.
    if (found === undefined) turn.entries.push(emptyGroup(group))
  }

  #hasRoomFor(group: ClassicGroup, memberId: string): boolean {
    const { maxSize } = this.#config
    const member = group.members.get(memberId)
    switch (group.state) {
      case 'Empty':
        return true
      case 'PreparingRebalance':
        // Those who joined count, so that the last ones to rejoin are left out of a group that has become too large.
        return member?.waitingJoin !== undefined || group.joiningCount < maxSize
      case 'CompletingRebalance':
      case 'Stable':
        return member !== undefined || group.members.size < maxSize
      default:
        return unreachable(group.state)
    }
  }

  #requireMemberId(group: ClassicGroup, command: JoinGroupCommand, turn: Turn, memberId: string) {
    if (group.pendingJoins.size >= PENDING_MEMBERS_MAX) {
      return refuseJoin(command, turn, ErrorCode.GROUP_MAX_SIZE_REACHED)
    }
    const deadline: Deadline = { kind: 'session', group, memberId }
    group.pendingJoins.set(memberId, this.#deadlines.push(turn.now + command.request.sessionTimeoutMs, deadline))
    refuseJoin(command, turn, ErrorCode.MEMBER_ID_REQUIRED, memberId)
  }

  #joinStatic(group: ClassicGroup, command: JoinGroupCommand, turn: Turn, groupInstanceId: string) {
    const memberId = newId(command, groupInstanceId)
    if (memberId === undefined) return refuseJoin(command, turn, ErrorCode.INVALID_REQUEST)
    const old = group.members.get(group.staticIds.get(groupInstanceId) ?? '')
    if (old === undefined) this.#add(group, command, turn, memberId)
    else this.#replace(group, command, turn, old, memberId)
  }

  #joinKnown(group: ClassicGroup, command: JoinGroupCommand, turn: Turn) {
    const { request } = command
    const { memberId } = request
    if (group.pendingJoins.has(memberId)) {
      if (request.groupInstanceId !== null) return refuseJoin(command, turn, ErrorCode.UNKNOWN_SERVER_ERROR, '')
      return this.#add(group, command, turn, memberId)
    }
    const errorCode = group.check(memberId, request.groupInstanceId)
    const member = group.members.get(memberId)
    if (errorCode !== ErrorCode.NONE || member === undefined) {
      return refuseJoin(command, turn, errorCode)
    }
    const isUnchanged = haveSameProtocols(member.protocols, request.protocols)
    switch (group.state) {
      case 'Empty':
        return refuseJoin(command, turn, ErrorCode.UNKNOWN_MEMBER_ID)
      case 'PreparingRebalance':
        return this.#rejoin(group, member, command, turn)
      case 'CompletingRebalance':
        // Its answer was lost.
        if (isUnchanged) return replyJoin(command, turn, joinedResponse(group, member))
        return this.#rejoin(group, member, command, turn)
      case 'Stable':
        // A leader that joins again wants new assignments, say because the topics have changed.
        if (isUnchanged && !group.isLeader(memberId)) return replyJoin(command, turn, joinedResponse(group, member))
        return this.#rejoin(group, member, command, turn)
      default:
        return unreachable(group.state)
    }
  }

  #rejoin(group: ClassicGroup, member: Member, command: JoinGroupCommand, turn: Turn): void {
    member.isIdKnown = true
    this.#update(group, member, command, turn)
    this.#rebalance(group, turn)
  }

  #update(group: ClassicGroup, member: Member, command: JoinGroupCommand, turn: Turn): void {
    group.setProtocols(member, ownProtocols(command.request))
    member.rebalanceTimeoutMs = rebalanceTimeoutMs(command)
    member.sessionTimeoutMs = command.request.sessionTimeoutMs
    this.#awaitJoin(group, member, command, turn)
  }

  #add(group: ClassicGroup, command: JoinGroupCommand, turn: Turn, memberId: string): void {
    const { request, clientId, clientHost } = command
    const pending = group.pendingJoins.get(memberId)
    if (pending !== undefined) this.#deadlines.remove(pending)
    group.pendingJoins.delete(memberId)
    if (group.isFirstRebalance) group.newMemberAdded = true
    const member: Member = {
      memberId,
      groupInstanceId: request.groupInstanceId,
      clientId,
      clientHost,
      rebalanceTimeoutMs: rebalanceTimeoutMs(command),
      sessionTimeoutMs: request.sessionTimeoutMs,
      protocols: ownProtocols(request),
      assignment: NO_BYTES,
      isNew: true,
      isIdKnown: pending !== undefined,
      waitingJoin: undefined,
      waitingSync: undefined,
      session: undefined,
    }
    group.add(member, request.protocolType)
    this.#awaitJoin(group, member, command, turn)
    this.#keepAlive(group, member, turn, NEW_MEMBER_JOIN_TIMEOUT_MS)
    this.#rebalance(group, turn)
  }

  /** A static member came back without its id. What still speaks with the old id is fenced. */
  #replace(group: ClassicGroup, command: JoinGroupCommand, turn: Turn, old: Member, memberId: string) {
    const oldLeader = group.leader
    const errorCode = ErrorCode.FENCED_INSTANCE_ID
    this.#answerJoin(group, old, turn, { memberId: old.memberId, errorCode })
    this.#answerSync(old, turn, { errorCode })
    this.#endSession(old)
    const wasPendingSync = group.pendingSyncs.has(old.memberId)
    const member: Member = { ...old, memberId, isNew: false, isIdKnown: false }
    group.replace(old, member)
    this.#update(group, member, command, turn)
    this.#keepAlive(group, member, turn)
    if (group.state === 'CompletingRebalance') {
      // The leader may be making assignments for the old id.
      return this.#prepareRebalance(group, turn)
    }
    if (group.state !== 'Stable') return this.#completeJoinIfAllCame(group, turn)
    if (group.selectProtocol() !== (group.protocolName ?? '')) return this.#rebalance(group, turn)
    const entry = group.toEntry(({ assignment }) => assignment)
    if (!this.#fits(entry)) return this.#rebalance(group, turn)
    if (wasPendingSync) group.pendingSyncs.add(memberId)
    turn.entries.push(entry)
    const response = joinedResponse(group, member)
    const isLeader = group.isLeader(memberId)
    // Before version 9 a leader could not be told to keep the assignments, so it is told that another one leads.
    if (command.version >= 9) this.#answerJoin(group, member, turn, { ...response, skipAssignment: isLeader })
    else this.#answerJoin(group, member, turn, { ...response, leader: oldLeader ?? '', members: [] })
  }

  #fits(entry: ReturnType<ClassicGroup['toEntry']>): boolean {
    return (encodeEntry(entry).value?.length ?? 0) <= this.#config.recordBytesMax
  }

  // Rebalance

  #rebalance(group: ClassicGroup, turn: Turn): void {
    if (group.state === 'PreparingRebalance') this.#completeJoinIfAllCame(group, turn)
    else this.#prepareRebalance(group, turn)
  }

  #prepareRebalance(group: ClassicGroup, turn: Turn): void {
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

  #completeJoinIfAllCame(group: ClassicGroup, turn: Turn): void {
    if (group.state === 'PreparingRebalance' && !group.isFirstRebalance && group.hasAllJoined) {
      this.#completeJoin(group, turn)
    }
  }

  /** The end of the join phase: who has not come is out, except static members, whose session has yet to end. */
  #completeJoin(group: ClassicGroup, turn: Turn) {
    this.#clearDeadline(group)
    for (const member of [...group.members.values()]) {
      if (member.waitingJoin === undefined && member.groupInstanceId === null) this.#drop(group, member, turn)
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
      this.#answerJoin(group, member, turn, joinedResponse(group, member))
      this.#keepAlive(group, member, turn)
      member.isNew = false
      group.pendingSyncs.add(member.memberId)
    }
    this.#setDeadline(turn, group.rebalanceTimeoutMs, { kind: 'sync', group })
  }

  /** Answers all who wait for their assignment with an error. */
  #endSync(group: ClassicGroup, turn: Turn, errorCode: number): void {
    for (const member of group.members.values()) {
      member.assignment = NO_BYTES
      if (this.#answerSync(member, turn, { errorCode })) this.#keepAlive(group, member, turn)
    }
  }

  /** Takes a member out. What it waits for ends with UNKNOWN_MEMBER_ID, so that it starts anew if it is still there. */
  #drop(group: ClassicGroup, member: Member, turn: Turn): void {
    const errorCode = ErrorCode.UNKNOWN_MEMBER_ID
    this.#answerJoin(group, member, turn, { memberId: '', errorCode })
    this.#answerSync(member, turn, { errorCode })
    this.#endSession(member)
    group.remove(member)
  }

  /** As `drop`, and the others go on without it. */
  #remove(group: ClassicGroup, member: Member, turn: Turn): void {
    this.#drop(group, member, turn)
    if (group.state === 'Stable' || group.state === 'CompletingRebalance') this.#prepareRebalance(group, turn)
    else if (group.state === 'PreparingRebalance' && group.hasAllJoined) this.#completeJoin(group, turn)
  }

  // SyncGroup

  sync(command: SyncGroupCommand, turn: Turn) {
    const { request, call, version } = command
    const reply = (response: SyncResponse): void => {
      turn.replies.push({ kind: 'SyncGroup', call, response })
    }
    // Version 5 must name both (KIP-559).
    if (version >= 5 && (request.protocolType === null || request.protocolName === null)) {
      return reply({ errorCode: ErrorCode.INCONSISTENT_GROUP_PROTOCOL })
    }
    if (request.groupId === '') return reply({ errorCode: ErrorCode.INVALID_GROUP_ID })
    const group = this.find(request.groupId)
    if (group === undefined || group.state === 'Empty') return reply({ errorCode: ErrorCode.UNKNOWN_MEMBER_ID })
    const errorCode = group.check(request.memberId, request.groupInstanceId)
    const member = group.members.get(request.memberId)
    if (errorCode !== ErrorCode.NONE || member === undefined) return reply({ errorCode })
    if (request.generationId !== group.generationId) return reply({ errorCode: ErrorCode.ILLEGAL_GENERATION })
    if (differs(request.protocolType, group.protocolType) || differs(request.protocolName, group.protocolName)) {
      return reply({ errorCode: ErrorCode.INCONSISTENT_GROUP_PROTOCOL })
    }
    member.isIdKnown = true
    switch (group.state) {
      case 'PreparingRebalance':
        return reply({ errorCode: ErrorCode.REBALANCE_IN_PROGRESS })
      case 'CompletingRebalance':
        this.#awaitSync(group, member, command, turn)
        this.#hasSynced(group, member)
        if (group.isLeader(member.memberId)) this.#assign(group, command, turn)
        return
      case 'Stable':
        this.#hasSynced(group, member)
        return reply(syncedResponse(group, member))
      default:
        return unreachable(group.state)
    }
  }

  #hasSynced(group: ClassicGroup, member: Member): void {
    group.pendingSyncs.delete(member.memberId)
    if (group.pendingSyncs.size === 0) this.#clearDeadline(group)
  }

  /** The leader's assignments: they are stored, and all who wait have theirs. Who was left out has nothing. */
  #assign(group: ClassicGroup, { request }: SyncGroupCommand, turn: Turn) {
    const assignments = new Map(request.assignments.map(({ memberId, assignment }) => [memberId, assignment]))
    for (const member of group.members.values()) {
      member.assignment = Buffer.from(assignments.get(member.memberId) ?? NO_BYTES)
    }
    const entry = group.toEntry(({ assignment }) => assignment)
    if (!this.#fits(entry)) {
      this.#endSync(group, turn, ErrorCode.UNKNOWN_SERVER_ERROR)
      return this.#prepareRebalance(group, turn)
    }
    turn.entries.push(entry)
    group.moveTo('Stable', turn.now)
    for (const member of group.members.values()) {
      if (this.#answerSync(member, turn, syncedResponse(group, member))) this.#keepAlive(group, member, turn)
    }
  }

  // Heartbeat and LeaveGroup

  heartbeat({ call, request }: HeartbeatCommand, turn: Turn): void {
    turn.replies.push({ kind: 'Heartbeat', call, response: { errorCode: this.#heartbeat(request, turn) } })
  }

  #heartbeat(request: HeartbeatCommand['request'], turn: Turn): number {
    if (request.groupId === '') return ErrorCode.INVALID_GROUP_ID
    const group = this.find(request.groupId)
    if (group === undefined) return ErrorCode.UNKNOWN_MEMBER_ID
    const errorCode = group.check(request.memberId, request.groupInstanceId)
    if (errorCode !== ErrorCode.NONE) return errorCode
    if (request.generationId !== group.generationId) return ErrorCode.ILLEGAL_GENERATION
    if (group.state === 'Empty') return ErrorCode.UNKNOWN_MEMBER_ID
    this.keepAlive(group, request.memberId, turn)
    return group.state === 'PreparingRebalance' ? ErrorCode.REBALANCE_IN_PROGRESS : ErrorCode.NONE
  }

  leave({ call, version, request }: LeaveGroupCommand, turn: Turn) {
    const reply = (response: Extract<GroupReply, { kind: 'LeaveGroup' }>['response']): void => {
      turn.replies.push({ kind: 'LeaveGroup', call, response })
    }
    if (request.groupId === '') return reply({ errorCode: ErrorCode.INVALID_GROUP_ID })
    const leaving = version >= 3 ? request.members : [{ memberId: request.memberId, groupInstanceId: null }]
    const group = this.find(request.groupId)
    let hasLeft = false
    const members = leaving.map(({ memberId, groupInstanceId }) => {
      const errorCode = group ? this.#leave(group, memberId, groupInstanceId, turn) : ErrorCode.UNKNOWN_MEMBER_ID
      if (errorCode === ErrorCode.NONE) hasLeft = true
      return { memberId, groupInstanceId, errorCode }
    })
    if (version >= 3) reply({ errorCode: ErrorCode.NONE, members })
    else reply({ errorCode: members[0]?.errorCode ?? ErrorCode.NONE })
    if (group !== undefined && hasLeft && group.state !== 'Empty') this.#rebalance(group, turn)
  }

  #leave(group: ClassicGroup, memberId: string, groupInstanceId: string | null, turn: Turn): number {
    const pending = group.pendingJoins.get(memberId)
    if (pending !== undefined) {
      this.#deadlines.remove(pending)
      group.pendingJoins.delete(memberId)
      return ErrorCode.NONE
    }
    // An administrator takes static members out by their instance id alone.
    const id = memberId === '' ? (group.staticIds.get(groupInstanceId ?? '') ?? '') : memberId
    const errorCode = group.check(id, groupInstanceId)
    const member = group.members.get(id)
    if (errorCode !== ErrorCode.NONE || member === undefined) return errorCode
    this.#drop(group, member, turn)
    return ErrorCode.NONE
  }

  // Time and connections

  /** Does what is due. */
  tick(turn: Turn): void {
    for (let next = this.#deadlines.peek(); next !== undefined && next.key <= turn.now; next = this.#deadlines.peek()) {
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
      if (member !== undefined) this.#drop(group, member, turn)
    }
    this.#prepareRebalance(group, turn)
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
    if (member.isIdKnown || member.groupInstanceId !== null) return this.#keepAlive(group, member, turn)
    this.#drop(group, member, turn)
    this.#rebalance(group, turn)
  }
}

function replyJoin({ call, version }: Waiter, turn: Turn, response: JoinResponse): void {
  // No protocol is null from version 7 on, and empty before.
  const protocolName = response.protocolName || (version < 7 ? '' : null)
  turn.replies.push({ kind: 'JoinGroup', call, response: { ...response, protocolName } })
}

function refuseJoin(command: JoinGroupCommand, turn: Turn, errorCode: number, memberId?: string): void {
  replyJoin(command, turn, { errorCode, memberId: memberId ?? command.request.memberId })
}

function joinedResponse(group: ClassicGroup, member: Member): JoinResponse {
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

function syncedResponse(group: ClassicGroup, member: Member): SyncResponse {
  const { protocolType, protocolName } = group
  return { errorCode: ErrorCode.NONE, protocolType, protocolName, assignment: member.assignment }
}

/** A member id that no other client has; undefined if it would be longer than a string may be. */
function newId({ memberIdSuffix }: JoinGroupCommand, prefix: string): string | undefined {
  if (Buffer.byteLength(prefix) + MEMBER_ID_SUFFIX_BYTES > STRING_BYTES_MAX) return undefined
  return `${prefix}-${memberIdSuffix}`
}

/** A copy: what arrived is a view of its frame. */
function ownProtocols(request: JoinGroupRequest): GroupProtocol[] {
  return request.protocols.map(({ name, metadata }) => ({ name, metadata: Buffer.from(metadata) }))
}

function haveSameProtocols(ours: readonly GroupProtocol[], theirs: readonly GroupProtocol[]): boolean {
  return (
    ours.length === theirs.length &&
    ours.every(({ name, metadata }, i) => name === theirs[i]?.name && metadata.equals(theirs[i].metadata))
  )
}

/** Version 0 has only one timeout for both. */
function rebalanceTimeoutMs({ version, request }: JoinGroupCommand): Millis {
  return version === 0 ? request.sessionTimeoutMs : request.rebalanceTimeoutMs
}

/** Only what both sides name can differ. */
function differs(theirs: string | null, ours: string | null): boolean {
  return theirs !== null && ours !== null && theirs !== ours
}

function emptyGroup(group: ClassicGroup): ReturnType<ClassicGroup['toEntry']> {
  return {
    kind: 'GroupMetadata',
    group: group.groupId,
    value: {
      protocolType: '',
      generation: 0,
      protocol: null,
      leader: null,
      currentStateTimestamp: group.stateSince,
      members: [],
    },
  }
}
