import { assert, unreachable } from '#base/assert.ts'
import { DecodeError } from '#base/bytes.ts'
import type { Millis } from '#base/units.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { JoinGroupResponse } from '#protocol/messages/join-group.ts'
import type { SyncGroupResponse } from '#protocol/messages/sync-group.ts'
import type { Machine } from '../machine.ts'
import { type TopicPartition, without } from './assignment.ts'
import { type Assignor, assignorByName } from './assignors.ts'
import {
  cooperativeUserData,
  decodeAssignment,
  decodeMember,
  encodeAssignment,
  encodeSubscription,
} from './membership-messages.ts'

export interface MembershipOptions {
  /** The names of the assignors, best first. */
  readonly assignors: readonly string[]
  readonly sessionTimeoutMs: Millis
  readonly heartbeatIntervalMs: Millis
  /** How long the application may take between two polls before it counts as stuck (max.poll.interval.ms). */
  readonly pollIntervalMs: Millis
  readonly retryBackoffMs: Millis
  readonly retryBackoffMaxMs: Millis
  readonly groupInstanceId: string | null
  readonly rackId: string | null
}

export type MembershipEvent =
  | { readonly type: 'subscribe'; readonly topics: readonly string[] }
  | { readonly type: 'coordinator-found' }
  | { readonly type: 'join-answered'; readonly response: JoinGroupResponse }
  | { readonly type: 'partitions-counted'; readonly counts: ReadonlyMap<string, number> }
  | { readonly type: 'sync-answered'; readonly response: SyncGroupResponse }
  | { readonly type: 'heartbeat-answered'; readonly errorCode: number }
  /** A commit was refused with an error that tells something about the membership. */
  | { readonly type: 'commit-refused'; readonly errorCode: number }
  /** A request was not answered, or its coordinator not found. */
  | { readonly type: 'request-failed' }
  /** The application has let go of the partitions of the last `revoke`. */
  | { readonly type: 'revoked' }
  /** The application asked for records. */
  | { readonly type: 'polled' }
  | { readonly type: 'leave' }
  | { readonly type: 'tick' }

export type MembershipEffect =
  | { readonly type: 'find-coordinator' }
  | { readonly type: 'join'; readonly memberId: string; readonly protocols: readonly MemberProtocol[] }
  /** Asks for the partition counts of these topics: we lead the group and are to assign them. */
  | { readonly type: 'count-partitions'; readonly topics: readonly string[] }
  | {
      readonly type: 'sync'
      readonly memberId: string
      readonly generationId: number
      readonly protocolName: string
      readonly assignments: readonly { readonly memberId: string; readonly assignment: Buffer }[]
    }
  | { readonly type: 'heartbeat'; readonly memberId: string; readonly generationId: number }
  | { readonly type: 'leave'; readonly memberId: string }
  /** These are to be given up in good order: their offsets can still be committed. Answered by `revoked`. */
  | { readonly type: 'revoke'; readonly partitions: readonly TopicPartition[] }
  /** These are gone already; another member may have them. */
  | { readonly type: 'lost'; readonly partitions: readonly TopicPartition[] }
  /** From now on these are ours; `added` are those that were not before. */
  | {
      readonly type: 'assigned'
      readonly partitions: readonly TopicPartition[]
      readonly added: readonly TopicPartition[]
    }
  /** The membership has ended for good. */
  | { readonly type: 'failed'; readonly errorCode: number }

export interface MemberProtocol {
  readonly name: string
  readonly metadata: Buffer
}

type Phase =
  | 'idle'
  | 'finding'
  /** Partitions are being given up before the next join. */
  | 'revoking'
  | 'joining'
  | 'counting'
  | 'syncing'
  | 'stable'
  | 'left'
  | 'failed'

const NO_GENERATION = -1

/**
 * One member of a classic group, the client's side (JoinGroup, SyncGroup, Heartbeat; KIP-394, KIP-345, KIP-429). One
 * of its requests is under way at a time, besides heartbeats. When all assignors are cooperative it keeps its
 * partitions through a rebalance and gives up only what goes to others; otherwise it gives up all before it joins.
 */
export class Membership implements Machine<MembershipEvent, MembershipEffect> {
  readonly #options: MembershipOptions
  readonly #assignors: readonly Assignor[]
  readonly #cooperative: boolean
  #phase: Phase = 'idle'
  #topics: readonly string[] = []
  #memberId = ''
  #generationId = NO_GENERATION
  #protocolName = ''
  #leading = false
  #owned: readonly TopicPartition[] = []
  #coordinatorKnown = false
  /** What the leader waits with for partition counts. */
  #members: JoinGroupResponse['members'] = []
  /** When a heartbeat is due, and when the session ends without an answer to one. */
  #heartbeatAt: Millis | undefined
  #heartbeatUnderWay = false
  #sessionEndsAt = 0
  #pollEndsAt: Millis | undefined
  #retryAt: Millis | undefined
  #failures = 0
  /** The subscription changed while something was under way. */
  #rejoin = false
  #effects: MembershipEffect[] = []

  constructor(options: MembershipOptions) {
    assert(options.assignors.length > 0, 'a member has at least one assignor')
    this.#options = options
    this.#assignors = options.assignors.map(assignorByName)
    this.#cooperative = this.#assignors.every(assignor => assignor.cooperative)
  }

  get memberId(): string {
    return this.#memberId
  }

  /** -1 while we are no member of a generation; commits carry it. */
  get generationId(): number {
    return this.#generationId
  }

  /** Whether we assign for the group, and so look after changes of partition counts. */
  get leading(): boolean {
    return this.#leading && this.#phase === 'stable'
  }

  get owned(): readonly TopicPartition[] {
    return this.#owned
  }

  /** Whether the partitions that we own are settled until the next rebalance. */
  get stable(): boolean {
    return this.#phase === 'stable'
  }

  wakeAt(): Millis | undefined {
    if (this.#phase === 'left' || this.#phase === 'failed' || this.#phase === 'idle') return undefined
    let at = this.#retryAt
    const consider = (other: Millis | undefined): void => {
      if (other !== undefined && (at === undefined || other < at)) at = other
    }
    if (this.#beats()) {
      if (!this.#heartbeatUnderWay) consider(this.#heartbeatAt)
      consider(this.#sessionEndsAt)
    }
    consider(this.#pollEndsAt)
    return at
  }

  step(event: MembershipEvent, now: Millis): readonly MembershipEffect[] {
    this.#effects = []
    if (this.#phase !== 'left' && this.#phase !== 'failed') this.#take(event, now)
    return this.#effects
  }

  #take(event: MembershipEvent, now: Millis): void {
    switch (event.type) {
      case 'subscribe':
        this.#topics = [...event.topics].sort()
        this.#pollEndsAt ??= now + this.#options.pollIntervalMs
        if (this.#phase === 'idle' || this.#phase === 'stable') this.#startJoin(now)
        else this.#rejoin = true
        return
      case 'coordinator-found':
        this.#coordinatorKnown = true
        if (this.#phase === 'finding') this.#join()
        return
      case 'join-answered':
        if (this.#phase === 'joining') this.#joinAnswered(event.response, now)
        return
      case 'partitions-counted':
        if (this.#phase === 'counting') this.#assign(event.counts, now)
        return
      case 'sync-answered':
        if (this.#phase === 'syncing') this.#syncAnswered(event.response, now)
        return
      case 'heartbeat-answered':
        this.#heartbeatUnderWay = false
        this.#heartbeatAnswered(event.errorCode, now)
        return
      case 'commit-refused':
        if (this.#phase === 'stable' && MEMBERSHIP_ERRORS.has(event.errorCode)) this.#refused(event.errorCode, now)
        return
      case 'request-failed':
        this.#heartbeatUnderWay = false
        this.#coordinatorLost(now)
        return
      case 'revoked':
        if (this.#phase === 'revoking') this.#findOrJoin()
        return
      case 'polled':
        this.#pollEndsAt = now + this.#options.pollIntervalMs
        if (this.#phase === 'idle' && this.#topics.length > 0) this.#startJoin(now)
        return
      case 'leave':
        this.#leave()
        this.#phase = 'left'
        return
      case 'tick':
        this.#tick(now)
        return
      default:
        unreachable(event)
    }
  }

  #tick(now: Millis): void {
    if (this.#pollEndsAt !== undefined && now >= this.#pollEndsAt) {
      // The application is stuck: let others have the partitions, and join again when it comes back.
      this.#leave()
      this.#reset(true)
      this.#pollEndsAt = undefined
      this.#retryAt = undefined
      this.#phase = 'idle'
      return
    }
    if (this.#beats()) {
      if (now >= this.#sessionEndsAt) {
        this.#sessionEndsAt = now + this.#options.sessionTimeoutMs
        this.#coordinatorLost(now)
      } else if (!this.#heartbeatUnderWay && this.#heartbeatAt !== undefined && now >= this.#heartbeatAt) {
        this.#heartbeatAt = now + this.#options.heartbeatIntervalMs
        if (this.#coordinatorKnown) {
          this.#heartbeatUnderWay = true
          this.#effects.push({ type: 'heartbeat', memberId: this.#memberId, generationId: this.#generationId })
        }
      }
    }
    if (this.#retryAt !== undefined && now >= this.#retryAt) {
      this.#retryAt = undefined
      if (!this.#coordinatorKnown) {
        if (this.#phase !== 'stable' && this.#phase !== 'revoking') this.#phase = 'finding'
        this.#effects.push({ type: 'find-coordinator' })
      } else if (this.#phase === 'joining' || this.#phase === 'finding') this.#join()
    }
  }

  /** While a join waits for the others its answer stands for heartbeats. */
  #beats(): boolean {
    return this.#generationId !== NO_GENERATION && this.#phase !== 'joining' && this.#phase !== 'finding'
  }

  #startJoin(now: Millis): void {
    this.#rejoin = false
    this.#heartbeatAt ??= now + this.#options.heartbeatIntervalMs
    if (!this.#cooperative && this.#owned.length > 0) {
      this.#revoke(this.#owned)
      this.#owned = []
    } else this.#findOrJoin()
  }

  #revoke(partitions: readonly TopicPartition[]): void {
    this.#phase = 'revoking'
    this.#effects.push({ type: 'revoke', partitions })
  }

  #findOrJoin(): void {
    if (this.#coordinatorKnown) this.#join()
    else {
      this.#phase = 'finding'
      this.#effects.push({ type: 'find-coordinator' })
    }
  }

  #join(): void {
    this.#phase = 'joining'
    this.#rejoin = false
    this.#retryAt = undefined
    const subscription = {
      topics: this.#topics,
      ownedPartitions: this.#owned.filter(({ topic }) => this.#topics.includes(topic)),
      generationId: this.#generationId,
      rackId: this.#options.rackId,
    }
    const protocols = this.#assignors.map(({ name, cooperative }) => ({
      name,
      metadata: encodeSubscription({
        ...subscription,
        userData: cooperative ? cooperativeUserData(this.#generationId) : null,
      }),
    }))
    this.#effects.push({ type: 'join', memberId: this.#memberId, protocols })
  }

  #joinAnswered(response: JoinGroupResponse, now: Millis): void {
    switch (response.errorCode) {
      case ErrorCode.NONE:
        break
      case ErrorCode.MEMBER_ID_REQUIRED:
        this.#memberId = response.memberId
        this.#join()
        return
      case ErrorCode.REBALANCE_IN_PROGRESS:
      case ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        this.#retryLater(now)
        return
      default:
        this.#refused(response.errorCode, now)
        return
    }
    this.#failures = 0
    this.#memberId = response.memberId
    this.#generationId = response.generationId
    this.#protocolName = response.protocolName ?? ''
    this.#heartbeatAt = now + this.#options.heartbeatIntervalMs
    this.#sessionEndsAt = now + this.#options.sessionTimeoutMs
    this.#leading = response.leader === response.memberId
    if (!this.#leading || response.skipAssignment) {
      this.#sync([])
      return
    }
    this.#members = response.members
    this.#phase = 'counting'
    this.#effects.push({ type: 'count-partitions', topics: this.#subscribedByAny() })
  }

  #subscribedByAny(): string[] {
    const topics = new Set<string>()
    for (const member of this.#members) for (const topic of readMember(member).topics) topics.add(topic)
    return [...topics].sort()
  }

  #assign(counts: ReadonlyMap<string, number>, now: Millis): void {
    const assignor = this.#assignors.find(({ name }) => name === this.#protocolName)
    if (assignor === undefined) {
      this.#refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, now)
      return
    }
    const assignment = assignor.assign(this.#members.map(readMember), counts)
    this.#members = []
    this.#sync([...assignment].map(([memberId, parts]) => ({ memberId, assignment: encodeAssignment(parts) })))
  }

  #sync(assignments: readonly { readonly memberId: string; readonly assignment: Buffer }[]): void {
    this.#phase = 'syncing'
    this.#effects.push({
      type: 'sync',
      memberId: this.#memberId,
      generationId: this.#generationId,
      protocolName: this.#protocolName,
      assignments,
    })
  }

  #syncAnswered(response: SyncGroupResponse, now: Millis): void {
    if (response.errorCode !== ErrorCode.NONE) {
      this.#refused(response.errorCode, now)
      return
    }
    let assigned: TopicPartition[]
    try {
      assigned = decodeAssignment(response.assignment)
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error
      this.#refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, now)
      return
    }
    const before = this.#owned
    const added = without(assigned, before)
    const revoked = without(before, assigned)
    this.#owned = assigned
    this.#sessionEndsAt = now + this.#options.sessionTimeoutMs
    this.#phase = 'stable'
    this.#effects.push({ type: 'assigned', partitions: assigned, added })
    if (this.#cooperative && revoked.length > 0) {
      // Others wait for these: give them up and join at once, so that they can be handed on (KIP-429).
      this.#revoke(revoked)
    } else if (this.#rejoin) this.#startJoin(now)
  }

  #heartbeatAnswered(errorCode: number, now: Millis): void {
    if (errorCode === ErrorCode.NONE) {
      this.#failures = 0
      this.#sessionEndsAt = now + this.#options.sessionTimeoutMs
    } else if (errorCode === ErrorCode.REBALANCE_IN_PROGRESS) {
      this.#sessionEndsAt = now + this.#options.sessionTimeoutMs
      if (this.#phase === 'stable') this.#startJoin(now)
    } else if (this.#beats()) this.#refused(errorCode, now)
  }

  /** An error of any request of a member, and what it means for the membership. */
  #refused(errorCode: number, now: Millis): void {
    switch (errorCode) {
      case ErrorCode.REBALANCE_IN_PROGRESS:
        this.#startJoin(now)
        return
      case ErrorCode.UNKNOWN_MEMBER_ID:
      case ErrorCode.GROUP_ID_NOT_FOUND:
        this.#reset(true)
        this.#findOrJoin()
        return
      case ErrorCode.ILLEGAL_GENERATION:
        this.#reset(false)
        this.#findOrJoin()
        return
      case ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        if (this.#phase !== 'stable' && this.#phase !== 'revoking') this.#phase = 'joining'
        this.#retryLater(now)
        return
      case ErrorCode.NOT_COORDINATOR:
      case ErrorCode.COORDINATOR_NOT_AVAILABLE:
        this.#coordinatorLost(now)
        return
      default:
        this.#reset(true)
        this.#phase = 'failed'
        this.#effects.push({ type: 'failed', errorCode })
    }
  }

  /** What we held may belong to others by now. A static member's id goes too: the group knows it by its instance. */
  #reset(forgetMemberId: boolean): void {
    const lost = this.#owned
    this.#owned = []
    this.#generationId = NO_GENERATION
    if (forgetMemberId) this.#memberId = ''
    if (lost.length > 0) this.#effects.push({ type: 'lost', partitions: lost })
  }

  #coordinatorLost(now: Millis): void {
    this.#coordinatorKnown = false
    if (this.#phase === 'counting' || this.#phase === 'syncing') this.#phase = 'joining'
    if (this.#phase !== 'idle') this.#retryLater(now)
  }

  #retryLater(now: Millis): void {
    const { retryBackoffMs, retryBackoffMaxMs } = this.#options
    this.#retryAt = now + Math.min(retryBackoffMs * 2 ** this.#failures, retryBackoffMaxMs)
    this.#failures = Math.min(this.#failures + 1, 16)
  }

  /** A static member stays in the group until its session ends, so that it can come back without a rebalance. */
  #leave(): void {
    if (this.#memberId !== '' && this.#options.groupInstanceId === null && this.#coordinatorKnown) {
      this.#effects.push({ type: 'leave', memberId: this.#memberId })
    }
  }
}

/** What a refused commit says of the membership; all else concerns the commit alone. */
const MEMBERSHIP_ERRORS: ReadonlySet<number> = new Set([
  ErrorCode.REBALANCE_IN_PROGRESS,
  ErrorCode.UNKNOWN_MEMBER_ID,
  ErrorCode.ILLEGAL_GENERATION,
  ErrorCode.FENCED_INSTANCE_ID,
  ErrorCode.GROUP_ID_NOT_FOUND,
  ErrorCode.NOT_COORDINATOR,
  ErrorCode.COORDINATOR_NOT_AVAILABLE,
])

/** One whose metadata cannot be read takes part with nothing. */
function readMember(member: JoinGroupResponse['members'][number]): ReturnType<typeof decodeMember> {
  try {
    return decodeMember(member)
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error
    const { memberId, groupInstanceId } = member
    return { memberId, groupInstanceId, topics: [], ownedPartitions: [], generationId: NO_GENERATION }
  }
}

/** Whether two sets of partition counts differ in what an assignment depends on. */
export function countsDiffer(
  topics: readonly string[],
  a: ReadonlyMap<string, number>,
  b: ReadonlyMap<string, number>,
): boolean {
  return topics.some(topic => a.get(topic) !== b.get(topic))
}
