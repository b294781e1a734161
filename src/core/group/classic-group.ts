import { assert } from '#base/assert.ts'
import { ByteReader, DecodeError } from '#base/bytes.ts'
import type { HeapNode } from '#base/heap.ts'
import { INT32_MAX, type Millis } from '#base/units.ts'
import { decode } from '#protocol/codec.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { ConsumerProtocolSubscription } from '#protocol/records/consumer-protocol.ts'
import type { GroupMetadataValue } from '#protocol/records/offset-records.ts'
import type { GroupMetadataEntry } from './entries.ts'

/** Dead is what a group that does not exist is called; none is kept in that state. */
export type GroupState = 'Empty' | 'PreparingRebalance' | 'CompletingRebalance' | 'Stable'

export interface GroupProtocol {
  readonly name: string
  readonly metadata: Buffer
}

/** A call that is answered later. */
export interface Waiter {
  readonly call: number
  readonly version: number
}

/** What is to happen to a group when nothing else happens first. */
export type Deadline =
  | { readonly kind: 'session'; readonly group: ClassicGroup; readonly memberId: string }
  /** The join phase of the first members: it grows while more of them come, up to `remainingMs`. */
  | {
      readonly kind: 'initial-join'
      readonly group: ClassicGroup
      readonly delayMs: Millis
      readonly remainingMs: Millis
    }
  | { readonly kind: 'join'; readonly group: ClassicGroup }
  | { readonly kind: 'sync'; readonly group: ClassicGroup }

export const NO_BYTES: Buffer = Buffer.alloc(0)
/** The protocol type of groups whose members are consumers. */
const CONSUMER = 'consumer'

export interface Member {
  readonly memberId: string
  readonly groupInstanceId: string | null
  readonly clientId: string
  readonly clientHost: string
  rebalanceTimeoutMs: Millis
  sessionTimeoutMs: Millis
  /** What it supports, in its order of preference. */
  protocols: readonly GroupProtocol[]
  assignment: Buffer
  /** Its first JoinGroup is not answered. */
  isNew: boolean
  /** Whether its client has the id: it asked with it, or was answered. */
  isIdKnown: boolean
  waitingJoin: Waiter | undefined
  waitingSync: Waiter | undefined
  session: HeapNode<Deadline> | undefined
}

/**
 * One group of the classic protocol while its coordinator leads: members, who waits, and for what. All of it is soft
 * state; what must outlive the coordinator is in the entry that `toEntry` makes. It keeps the group consistent, and
 * leaves time and answers to `Membership`.
 */
export class ClassicGroup {
  readonly groupId: string
  readonly members = new Map<string, Member>()
  /** Member ids by instance id. */
  readonly staticIds = new Map<string, string>()
  /** Ids that were given out with MEMBER_ID_REQUIRED, with the deadline for their use. */
  readonly pendingJoins = new Map<string, HeapNode<Deadline>>()
  /** Members of this generation that have not asked for their assignment. */
  readonly pendingSyncs = new Set<string>()
  protocolType: string | null
  protocolName: string | null
  generationId: number
  leader: string | null
  /** When it came into its state; -1 is unknown. */
  stateSince: Millis
  /** A member came while the first join phase was under way. */
  newMemberAdded = false
  /** The end of the join phase or of the sync phase, whichever the group is in. */
  deadline: HeapNode<Deadline> | undefined
  #state: GroupState
  #cameFromEmpty = false
  #joining = 0
  /** How many members support each protocol. */
  readonly #supporters = new Map<string, number>()
  /** Topics of all members of this generation; undefined where the members are no consumers, or not to be understood. */
  #subscribedTopics: ReadonlySet<string> | undefined

  constructor(groupId: string, stateSince: Millis, value?: GroupMetadataValue) {
    this.groupId = groupId
    this.protocolType = value?.protocolType || null
    this.protocolName = value?.protocol ?? null
    this.generationId = value?.generation ?? 0
    this.leader = value?.leader ?? null
    this.stateSince = stateSince
    for (const member of value?.members ?? []) {
      const { rebalanceTimeout, sessionTimeout, subscription } = member
      const { memberId, groupInstanceId } = member
      if (this.members.has(memberId)) continue
      if (groupInstanceId !== null && this.staticIds.has(groupInstanceId)) continue
      this.add({
        memberId,
        groupInstanceId,
        clientId: member.clientId,
        clientHost: member.clientHost,
        rebalanceTimeoutMs: rebalanceTimeout === -1 ? sessionTimeout : rebalanceTimeout,
        sessionTimeoutMs: sessionTimeout,
        protocols: [{ name: this.protocolName ?? '', metadata: subscription }],
        assignment: member.assignment,
        isNew: false,
        isIdKnown: true,
        waitingJoin: undefined,
        waitingSync: undefined,
        session: undefined,
      })
    }
    if (this.members.size > 0 && !this.members.has(this.leader ?? '')) this.#passLeadership()
    this.#state = this.members.size > 0 ? 'Stable' : 'Empty'
    this.#readSubscriptions()
  }

  get state(): GroupState {
    return this.#state
  }

  moveTo(state: GroupState, now: Millis): void {
    this.#cameFromEmpty = this.#state === 'Empty'
    this.#state = state
    this.stateSince = now
  }

  /** The first join phase of a group that was empty: it lasts its time, whoever has come. */
  get isFirstRebalance(): boolean {
    return this.#state === 'PreparingRebalance' && this.#cameFromEmpty
  }

  get isConsumerGroup(): boolean {
    return this.protocolType === CONSUMER
  }

  get joiningCount(): number {
    return this.#joining
  }

  get hasAllJoined(): boolean {
    return this.#joining === this.members.size && this.pendingJoins.size === 0
  }

  /** As long as the slowest of its members may take. */
  get rebalanceTimeoutMs(): Millis {
    let max = 0
    for (const member of this.members.values()) max = Math.max(max, member.rebalanceTimeoutMs)
    return max
  }

  isLeader(memberId: string): boolean {
    return this.leader === memberId
  }

  /** NONE, or why the ids name no member. */
  check(memberId: string, groupInstanceId: string | null): number {
    if (groupInstanceId !== null) {
      const known = this.staticIds.get(groupInstanceId)
      if (known === undefined) return ErrorCode.UNKNOWN_MEMBER_ID
      if (known !== memberId) return ErrorCode.FENCED_INSTANCE_ID
    }
    return this.members.has(memberId) ? ErrorCode.NONE : ErrorCode.UNKNOWN_MEMBER_ID
  }

  /** Whether a member with these protocols can be with the members that are there. */
  supports(protocolType: string, protocols: readonly { readonly name: string }[]): boolean {
    if (this.#state === 'Empty') return protocolType !== '' && protocols.length > 0
    return protocolType === this.protocolType && protocols.some(({ name }) => this.#isSupportedByAll(name))
  }

  #isSupportedByAll(protocol: string): boolean {
    return (this.#supporters.get(protocol) ?? 0) === this.members.size
  }

  #countSupport(member: Member, by: 1 | -1): void {
    for (const name of new Set(member.protocols.map(protocol => protocol.name))) {
      const count = (this.#supporters.get(name) ?? 0) + by
      if (count === 0) this.#supporters.delete(name)
      else this.#supporters.set(name, count)
    }
  }

  setProtocols(member: Member, protocols: readonly GroupProtocol[]): void {
    this.#countSupport(member, -1)
    member.protocols = protocols
    this.#countSupport(member, 1)
  }

  add(member: Member, protocolType?: string): void {
    assert(!this.members.has(member.memberId), 'a member is added once')
    if (this.members.size === 0 && protocolType !== undefined) this.protocolType = protocolType
    if (member.groupInstanceId !== null) this.staticIds.set(member.groupInstanceId, member.memberId)
    this.members.set(member.memberId, member)
    this.#countSupport(member, 1)
    this.leader ??= member.memberId
  }

  /** Takes a member out that waits for nothing. */
  remove(member: Member): void {
    assert(member.waitingJoin === undefined && member.waitingSync === undefined, 'whoever waits is answered first')
    this.members.delete(member.memberId)
    this.#countSupport(member, -1)
    this.pendingSyncs.delete(member.memberId)
    if (member.groupInstanceId !== null) this.staticIds.delete(member.groupInstanceId)
    if (this.isLeader(member.memberId)) this.#passLeadership()
  }

  /** Puts a static member that came back in the place of what it was. */
  replace(old: Member, member: Member): void {
    const wasLeader = this.isLeader(old.memberId)
    this.remove(old)
    this.add(member)
    if (wasLeader) this.leader = member.memberId
  }

  #passLeadership(): void {
    this.leader = this.members.keys().next().value ?? null
  }

  setWaitingJoin(member: Member, waiter: Waiter | undefined): void {
    if (member.waitingJoin !== undefined) this.#joining--
    if (waiter !== undefined) this.#joining++
    member.waitingJoin = waiter
  }

  /** Whether a member that has joined leads; if the leader has not, one that has takes over. */
  electJoinedLeader(): boolean {
    const leader = this.members.get(this.leader ?? '')
    if (leader?.waitingJoin !== undefined) return true
    for (const member of this.members.values()) {
      if (member.waitingJoin === undefined) continue
      this.leader = member.memberId
      return true
    }
    return false
  }

  /** Ends the join phase with the members that are there. */
  nextGeneration(now: Millis): void {
    this.generationId = this.generationId >= INT32_MAX ? 1 : this.generationId + 1
    this.protocolName = this.members.size > 0 ? this.selectProtocol() : null
    this.#readSubscriptions()
    this.pendingSyncs.clear()
    this.moveTo(this.members.size > 0 ? 'CompletingRebalance' : 'Empty', now)
  }

  /** Of the protocols that all support, the one that most members like best; the first of equals. */
  selectProtocol(): string {
    const votes = new Map<string, number>()
    for (const member of this.members.values()) {
      const vote = member.protocols.find(({ name }) => this.#isSupportedByAll(name))
      assert(vote !== undefined, 'members of a group share a protocol')
      votes.set(vote.name, (votes.get(vote.name) ?? 0) + 1)
    }
    let selected = ''
    let most = 0
    for (const [name, count] of votes) {
      if (count > most) {
        selected = name
        most = count
      }
    }
    return selected
  }

  /** What a member said for the protocol that the group runs. */
  metadataOf(member: Member): Buffer {
    return member.protocols.find(({ name }) => name === this.protocolName)?.metadata ?? NO_BYTES
  }

  /** Whether the group may read the topic: a group of consumers that is not understood may read all. */
  isSubscribedTo(topic: string): boolean {
    return this.#subscribedTopics?.has(topic) ?? this.isConsumerGroup
  }

  get hasKnownTopics(): boolean {
    return this.#subscribedTopics !== undefined
  }

  /** The subscription's first version is the beginning of every later one. */
  #readSubscriptions(): void {
    this.#subscribedTopics = undefined
    if (!this.isConsumerGroup) return
    const topics = new Set<string>()
    try {
      for (const member of this.members.values()) {
        const reader = new ByteReader(this.metadataOf(member))
        reader.int16()
        for (const topic of decode(ConsumerProtocolSubscription, 0, reader).topics) topics.add(topic)
      }
    } catch (error) {
      if (error instanceof DecodeError) return
      throw error
    }
    this.#subscribedTopics = topics
  }

  /** The group as it is to be remembered, with the assignments given. */
  toEntry(assignmentOf: (member: Member) => Buffer): GroupMetadataEntry {
    return {
      kind: 'GroupMetadata',
      group: this.groupId,
      value: {
        protocolType: this.protocolType ?? '',
        generation: this.generationId,
        protocol: this.protocolName,
        leader: this.leader,
        currentStateTimestamp: this.stateSince,
        members: Array.from(this.members.values(), member => ({
          memberId: member.memberId,
          groupInstanceId: member.groupInstanceId,
          clientId: member.clientId,
          clientHost: member.clientHost,
          rebalanceTimeout: member.rebalanceTimeoutMs,
          sessionTimeout: member.sessionTimeoutMs,
          subscription: this.metadataOf(member),
          assignment: assignmentOf(member),
        })),
      },
    }
  }
}
