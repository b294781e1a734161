import { assert, unreachable } from '#base/assert.ts'
import type { Millis } from '#base/units.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { JoinGroupRequest } from '#protocol/messages/join-group.ts'
import { ClassicGroup, type GroupProtocol, type Member, NO_BYTES } from './classic-group.ts'
import type {
  GroupReply,
  HeartbeatCommand,
  JoinGroupCommand,
  LeaveGroupCommand,
  SyncGroupCommand,
  Turn,
} from './commands.ts'
import { type GroupConfig, NEW_MEMBER_JOIN_TIMEOUT_MS, PENDING_MEMBERS_MAX, STRING_BYTES_MAX } from './config.ts'
import { joinedResponse, type Rebalance, replyJoin, type SyncResponse, syncedResponse } from './rebalance.ts'
import type { GroupStore } from './store.ts'

/** Delimiter and UUID behind the client's part of a member id. */
const MEMBER_ID_SUFFIX_BYTES = 64

/**
 * Who is in which group: what members ask for, checked against what the group is. Together with the course of its
 * rebalances this is the soft state of a shard. It changes when a command is decided, since no answer leaves before what
 * it rests on is committed, and is thrown away together with the shard when that fails.
 */
export class Membership {
  readonly #config: GroupConfig
  readonly #store: GroupStore
  readonly #groups = new Map<string, ClassicGroup>()
  readonly #rebalance: Rebalance

  constructor(config: GroupConfig, store: GroupStore, rebalance: Rebalance) {
    this.#config = config
    this.#store = store
    this.#rebalance = rebalance
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
      for (const member of group.members.values()) this.#rebalance.keepAlive(group, member, turn)
      if (group.members.size > this.#config.maxSize) this.#rebalance.restart(group, turn)
    }
  }

  /** Forgets a group that nobody is in. */
  delete(groupId: string): void {
    const group = this.#groups.get(groupId)
    if (group === undefined) return
    assert(group.state === 'Empty', 'a group with members is not deleted')
    for (const memberId of [...group.pendingJoins.keys()]) this.#rebalance.takeId(group, memberId)
    this.#groups.delete(groupId)
  }

  join(command: JoinGroupCommand, turn: Turn) {
    const { request } = command
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
      if (member !== undefined) this.#rebalance.drop(group, member, turn)
      refuseJoin(command, turn, ErrorCode.GROUP_MAX_SIZE_REACHED, '')
      this.#rebalance.completeJoinIfAllCame(group, turn)
    } else if (!group.supports(request.protocolType, request.protocols)) {
      refuseJoin(command, turn, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    } else if (memberId !== '') {
      this.#joinKnown(group, command, turn)
    } else if (request.groupInstanceId !== null) {
      this.#joinStatic(group, command, turn, request.groupInstanceId)
    } else {
      this.#joinDynamic(group, command, turn)
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

  /** From version 4 on a new member comes twice, so that it has its id before anybody waits for it (KIP-394). */
  #joinDynamic(group: ClassicGroup, command: JoinGroupCommand, turn: Turn) {
    const memberId = newId(command, command.clientId)
    if (memberId === undefined) return refuseJoin(command, turn, ErrorCode.INVALID_REQUEST)
    if (command.version < 4) return this.#add(group, command, turn, memberId)
    if (group.pendingJoins.size >= PENDING_MEMBERS_MAX) {
      return refuseJoin(command, turn, ErrorCode.GROUP_MAX_SIZE_REACHED)
    }
    this.#rebalance.giveId(group, memberId, turn, command.request.sessionTimeoutMs)
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
    this.#rebalance.start(group, turn)
  }

  #update(group: ClassicGroup, member: Member, command: JoinGroupCommand, turn: Turn): void {
    group.setProtocols(member, ownProtocols(command.request))
    member.rebalanceTimeoutMs = rebalanceTimeoutMs(command)
    member.sessionTimeoutMs = command.request.sessionTimeoutMs
    this.#rebalance.awaitJoin(group, member, command, turn)
  }

  #add(group: ClassicGroup, command: JoinGroupCommand, turn: Turn, memberId: string): void {
    const { request, clientId, clientHost } = command
    const isIdKnown = this.#rebalance.takeId(group, memberId)
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
      isIdKnown,
      waitingJoin: undefined,
      waitingSync: undefined,
      session: undefined,
    }
    group.add(member, request.protocolType)
    this.#rebalance.awaitJoin(group, member, command, turn)
    this.#rebalance.keepAlive(group, member, turn, NEW_MEMBER_JOIN_TIMEOUT_MS)
    this.#rebalance.start(group, turn)
  }

  /** A static member came back without its id. What still speaks with the old id is fenced. */
  #replace(group: ClassicGroup, command: JoinGroupCommand, turn: Turn, old: Member, memberId: string) {
    const oldLeader = group.leader
    const errorCode = ErrorCode.FENCED_INSTANCE_ID
    this.#rebalance.answerJoin(group, old, turn, { memberId: old.memberId, errorCode })
    this.#rebalance.answerSync(old, turn, { errorCode })
    this.#rebalance.endSession(old)
    const wasPendingSync = group.pendingSyncs.has(old.memberId)
    const member: Member = { ...old, memberId, isNew: false, isIdKnown: false }
    group.replace(old, member)
    this.#update(group, member, command, turn)
    this.#rebalance.keepAlive(group, member, turn)
    if (group.state === 'CompletingRebalance') {
      // The leader may be making assignments for the old id.
      return this.#rebalance.restart(group, turn)
    }
    if (group.state !== 'Stable') return this.#rebalance.completeJoinIfAllCame(group, turn)
    if (group.selectProtocol() !== (group.protocolName ?? '')) return this.#rebalance.start(group, turn)
    const entry = group.toEntry(({ assignment }) => assignment)
    if (!this.#rebalance.fits(entry)) return this.#rebalance.start(group, turn)
    if (wasPendingSync) group.pendingSyncs.add(memberId)
    turn.entries.push(entry)
    const response = joinedResponse(group, member)
    const isLeader = group.isLeader(memberId)
    // Before version 9 a leader could not be told to keep the assignments, so it is told that another one leads.
    if (command.version >= 9) this.#rebalance.answerJoin(group, member, turn, { ...response, skipAssignment: isLeader })
    else this.#rebalance.answerJoin(group, member, turn, { ...response, leader: oldLeader ?? '', members: [] })
  }

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
        this.#rebalance.awaitSync(group, member, command, turn)
        this.#rebalance.hasSynced(group, member)
        if (group.isLeader(member.memberId)) this.#rebalance.assign(group, command, turn)
        return
      case 'Stable':
        this.#rebalance.hasSynced(group, member)
        return reply(syncedResponse(group, member))
      default:
        return unreachable(group.state)
    }
  }

  heartbeat({ call, request }: HeartbeatCommand, turn: Turn): void {
    turn.replies.push({ kind: 'Heartbeat', call, response: { errorCode: this.#heartbeat(request, turn) } })
  }

  #heartbeat(request: HeartbeatCommand['request'], turn: Turn): number {
    if (request.groupId === '') return ErrorCode.INVALID_GROUP_ID
    const group = this.find(request.groupId)
    if (group === undefined) return ErrorCode.UNKNOWN_MEMBER_ID
    const errorCode = group.check(request.memberId, request.groupInstanceId)
    const member = group.members.get(request.memberId)
    if (errorCode !== ErrorCode.NONE || member === undefined) return errorCode
    if (request.generationId !== group.generationId) return ErrorCode.ILLEGAL_GENERATION
    this.#rebalance.keepAlive(group, member, turn)
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
    if (group !== undefined && hasLeft && group.state !== 'Empty') this.#rebalance.start(group, turn)
  }

  #leave(group: ClassicGroup, memberId: string, groupInstanceId: string | null, turn: Turn): number {
    if (this.#rebalance.takeId(group, memberId)) return ErrorCode.NONE
    // An administrator takes static members out by their instance id alone.
    const byInstance = memberId === '' && groupInstanceId !== null
    const id = byInstance ? (group.staticIds.get(groupInstanceId) ?? '') : memberId
    const errorCode = group.check(id, groupInstanceId)
    const member = group.members.get(id)
    if (errorCode !== ErrorCode.NONE || member === undefined) return errorCode
    this.#rebalance.drop(group, member, turn)
    return ErrorCode.NONE
  }
}

function refuseJoin(command: JoinGroupCommand, turn: Turn, errorCode: number, memberId?: string): void {
  replyJoin(command, turn, { errorCode, memberId: memberId ?? command.request.memberId })
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
