import { assert, unreachable } from '#base/assert.ts'
import type { Millis, Offset } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Decision, ReplicatedMachine } from '../machine.ts'
import { NO_BYTES } from './classic-group.ts'
import type {
  DeleteGroupsCommand,
  DescribeGroupsCommand,
  GroupCommand,
  GroupReply,
  ListGroupsCommand,
  Turn,
} from './commands.ts'
import { DEFAULT_GROUP_CONFIG, DELETION_LOOKS_MAX, EXPIRED_ENTRIES_MAX, type GroupConfig } from './config.ts'
import type { GroupEntry, UnknownEntry } from './entries.ts'
import { Membership } from './membership.ts'
import { type DoomedTopics, Offsets } from './offsets.ts'
import { Rebalance } from './rebalance.ts'
import { GroupStore } from './store.ts'

type DescribedGroup = NonNullable<Extract<GroupReply, { kind: 'DescribeGroups' }>['response']['groups']>[number]

/** Topics that are gone and what is left to do for it. What was written later belongs to a topic that came after. */
interface TopicsDeletion {
  readonly topics: DoomedTopics
  readonly upTo: Offset
  /** Groups that were not looked at yet; undefined before it is under way. */
  groups: string[] | undefined
}

/**
 * The coordinator of those groups that one partition of `__consumer_offsets` keeps. Its driver folds the log with
 * `apply`, says `Lead` once, and from then on applies the entries of each decision before it asks for the next. The
 * replies of a decision, also to calls of earlier commands, leave when its entries and all before them are committed.
 * When that fails, or leadership ends, the shard is thrown away; `resign` answers those who still wait.
 */
export class GroupShard implements ReplicatedMachine<GroupCommand, GroupEntry | UnknownEntry, readonly GroupReply[]> {
  readonly #config: GroupConfig
  readonly #store: GroupStore
  readonly #rebalance: Rebalance
  readonly #membership: Membership
  readonly #offsets: Offsets
  #leads = false
  /** Entries that were decided and not yet applied. */
  #owed = 0
  /** Groups that the sweep for expired offsets has yet to look at, and when it goes on. */
  #unswept: string[] = []
  #sweepAt: Millis | undefined
  /** Deletions of topics, the oldest first; the first is under way. */
  readonly #deletions: TopicsDeletion[] = []
  #deletionAt: Millis | undefined
  #appliedAt: Offset = -1

  constructor(config: GroupConfig = DEFAULT_GROUP_CONFIG, store: GroupStore = new GroupStore()) {
    this.#config = config
    this.#store = store
    this.#rebalance = new Rebalance(config)
    this.#membership = new Membership(config, store, this.#rebalance)
    this.#offsets = new Offsets(config, store, this.#membership, this.#rebalance)
  }

  /** Calls that are waiting for a reply of a later decision. */
  get waitingCount(): number {
    return this.#rebalance.waitingCount
  }

  apply(entry: GroupEntry | UnknownEntry, at: Offset): void {
    if (this.#owed > 0) this.#owed--
    // What a transaction wrote is applied when that ends.
    this.#appliedAt = Math.max(this.#appliedAt, at)
    if (entry.kind !== 'Unknown') this.#store.apply(entry, at)
  }

  wakeAt(): Millis | undefined {
    let earliest: Millis | undefined
    for (const at of [this.#rebalance.wakeAt(), this.#sweepAt, this.#deletionAt]) {
      if (at !== undefined && (earliest === undefined || at < earliest)) earliest = at
    }
    return earliest
  }

  decide(command: GroupCommand, now: Millis, monotonic: Millis = now): Decision<GroupEntry, readonly GroupReply[]> {
    assert(this.#owed === 0, 'what was decided is applied before the next decision')
    assert(this.#leads === (command.kind !== 'Lead'), 'a shard leads once, before it decides anything else')
    const turn: Turn = { now, monotonic, entries: [], replies: [] }
    this.#decide(command, turn)
    this.#owed = turn.entries.length
    return { entries: turn.entries, answer: turn.replies }
  }

  /** Leadership is over: NOT_COORDINATOR for all who wait. The shard is of no use afterwards. */
  resign(): readonly GroupReply[] {
    return this.#rebalance.resign()
  }

  #decide(command: GroupCommand, turn: Turn) {
    switch (command.kind) {
      case 'Lead':
        this.#leads = true
        this.#sweepAt = turn.monotonic + this.#config.offsetsRetentionCheckIntervalMs
        return this.#membership.lead(turn)
      case 'Tick':
        this.#rebalance.tick(turn)
        this.#deleteOffsets(turn)
        return this.#sweep(turn)
      case 'CallGone':
        return this.#rebalance.callGone(command.call, turn)
      case 'TopicsDeleted':
        this.#deletions.push(topicsDeletion(command.topics, this.#appliedAt))
        // What is under way goes on by itself: a step for each of many deletions would be their product again.
        return this.#deletions.length === 1 ? this.#deleteOffsets(turn) : undefined
      case 'JoinGroup':
        return this.#membership.join(command, turn)
      case 'SyncGroup':
        return this.#membership.sync(command, turn)
      case 'Heartbeat':
        return this.#membership.heartbeat(command, turn)
      case 'LeaveGroup':
        return this.#membership.leave(command, turn)
      case 'OffsetCommit':
        return this.#offsets.commit(command, turn)
      case 'OffsetFetch':
        return this.#offsets.fetch(command, turn)
      case 'OffsetDelete':
        return this.#offsets.delete(command, turn)
      case 'DescribeGroups':
        return this.#describe(command, turn)
      case 'ListGroups':
        return this.#list(command, turn)
      case 'DeleteGroups':
        return this.#deleteGroups(command, turn)
      default:
        return unreachable(command)
    }
  }

  #describe({ call, version, request }: DescribeGroupsCommand, turn: Turn): void {
    const groups = request.groups.map(groupId => this.#describeGroup(groupId, version))
    turn.replies.push({ kind: 'DescribeGroups', call, response: { groups } })
  }

  #describeGroup(groupId: string, version: number): DescribedGroup {
    const group = this.#membership.find(groupId)
    if (group === undefined) {
      if (version < 6) return { groupId, groupState: 'Dead' }
      const errorMessage = `Group ${groupId} not found.`
      return { errorCode: ErrorCode.GROUP_ID_NOT_FOUND, errorMessage, groupId, groupState: 'Dead' }
    }
    const isStable = group.state === 'Stable'
    return {
      errorCode: ErrorCode.NONE,
      groupId,
      groupState: group.state,
      protocolType: group.protocolType ?? '',
      protocolData: isStable ? (group.protocolName ?? '') : '',
      members: Array.from(group.members.values(), member => ({
        memberId: member.memberId,
        groupInstanceId: member.groupInstanceId,
        clientId: member.clientId,
        clientHost: member.clientHost,
        memberMetadata: isStable ? group.metadataOf(member) : NO_BYTES,
        memberAssignment: member.assignment,
      })),
    }
  }

  #list({ call, request }: ListGroupsCommand, turn: Turn): void {
    const states = new Set(request.statesFilter.map(state => state.trim().toLowerCase()))
    const types = new Set(request.typesFilter.map(type => type.trim().toLowerCase()))
    const groups = []
    for (const groupId of this.#store.groupIds) {
      const group = this.#membership.find(groupId)
      if (group === undefined) continue
      if (states.size > 0 && !states.has(group.state.toLowerCase())) continue
      if (types.size > 0 && !types.has('classic')) continue
      const protocolType = group.protocolType ?? ''
      groups.push({ groupId, protocolType, groupState: group.state, groupType: 'classic' })
    }
    turn.replies.push({ kind: 'ListGroups', call, response: { errorCode: ErrorCode.NONE, groups } })
  }

  #deleteGroups({ call, request }: DeleteGroupsCommand, turn: Turn): void {
    const results = Array.from(new Set(request.groupsNames), groupId => {
      const group = this.#membership.find(groupId)
      if (group === undefined) return { groupId, errorCode: ErrorCode.GROUP_ID_NOT_FOUND }
      if (group.state !== 'Empty') return { groupId, errorCode: ErrorCode.NON_EMPTY_GROUP }
      this.#deleteGroup(groupId, turn)
      return { groupId, errorCode: ErrorCode.NONE }
    })
    turn.replies.push({ kind: 'DeleteGroups', call, response: { results } })
  }

  #deleteGroup(groupId: string, turn: Turn): void {
    this.#offsets.deleteAll(groupId, turn)
    turn.entries.push({ kind: 'GroupMetadata', group: groupId, value: null })
    this.#membership.delete(groupId)
  }

  /**
   * One step of the deletion that is under way. The rest follows with the next tick, at once, so that requests come
   * between; so does the next deletion, which may name offsets whose tombstones are not applied yet.
   */
  #deleteOffsets(turn: Turn): void {
    const [deletion] = this.#deletions
    if (deletion === undefined) return
    deletion.groups ??= [...this.#store.groupIds].reverse()
    let looks = 0
    while (turn.entries.length < EXPIRED_ENTRIES_MAX && looks < DELETION_LOOKS_MAX) {
      const groupId = deletion.groups.pop()
      if (groupId === undefined) break
      looks += this.#offsets.deleteTopics(groupId, deletion.topics, deletion.upTo, turn)
    }
    if (deletion.groups.length === 0) this.#deletions.shift()
    this.#deletionAt = this.#deletions.length === 0 ? undefined : turn.monotonic
  }

  /** Expired offsets, and groups that are left with nothing; so many per tick that no decision is too large, and none takes long. */
  #sweep(turn: Turn): void {
    if (this.#sweepAt === undefined || turn.monotonic < this.#sweepAt) return
    if (this.#unswept.length === 0) this.#unswept = [...this.#store.groupIds].reverse()
    for (let looks = 0; turn.entries.length < EXPIRED_ENTRIES_MAX && looks < DELETION_LOOKS_MAX; looks++) {
      const groupId = this.#unswept.pop()
      if (groupId === undefined) break
      const group = this.#membership.find(groupId)
      if (group === undefined || !this.#offsets.expire(group, turn) || group.state !== 'Empty') continue
      turn.entries.push({ kind: 'GroupMetadata', group: groupId, value: null })
      this.#membership.delete(groupId)
    }
    if (this.#unswept.length === 0) this.#sweepAt = turn.monotonic + this.#config.offsetsRetentionCheckIntervalMs
  }
}

function topicsDeletion(
  topics: Extract<GroupCommand, { kind: 'TopicsDeleted' }>['topics'],
  upTo: Offset,
): TopicsDeletion {
  const ids = new Map<string, Uuid[]>()
  for (const { name, topicId } of topics) {
    const known = ids.get(name)
    if (known === undefined) ids.set(name, [topicId])
    else known.push(topicId)
  }
  return { topics: ids, upTo, groups: undefined }
}
