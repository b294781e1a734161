import type { Offset } from '#base/units.ts'
import { type Uuid, ZERO_UUID } from '#base/uuid.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { OffsetCommitRequest } from '#protocol/messages/offset-commit.ts'
import type { OffsetFetchRequest, OffsetFetchResponse } from '#protocol/messages/offset-fetch.ts'
import type { InputOf } from '#protocol/schema.ts'
import type { ClassicGroup } from './classic-group.ts'
import type {
  OffsetCommitCommand,
  OffsetDeleteCommand,
  OffsetFetchCommand,
  OffsetFetchGroup,
  OffsetFetchGroupResponse,
  Turn,
} from './commands.ts'
import { type GroupConfig, STRING_BYTES_MAX } from './config.ts'
import { type GroupEntry, offsetCommitValue } from './entries.ts'
import type { Membership } from './membership.ts'
import type { Rebalance } from './rebalance.ts'
import type { CommittedOffset, GroupStore } from './store.ts'

/** Topics that are gone, by name: one may have been made anew and deleted again. */
export type DoomedTopics = ReadonlyMap<string, readonly Uuid[]>

/** Committed offsets: who may commit, what is answered, and when an offset has outlived its group's interest in it. */
export class Offsets {
  readonly #config: GroupConfig
  readonly #store: GroupStore
  readonly #membership: Membership
  readonly #rebalance: Rebalance

  constructor(config: GroupConfig, store: GroupStore, membership: Membership, rebalance: Rebalance) {
    this.#config = config
    this.#store = store
    this.#membership = membership
    this.#rebalance = rebalance
  }

  commit({ call, version, request }: OffsetCommitCommand, turn: Turn): void {
    const group = this.#membership.find(request.groupId)
    const refusal = group ? whyNotCommit(group, request) : whyNotCommitToNew(request, version)
    const member = group?.members.get(request.memberId)
    if (refusal === ErrorCode.NONE && group !== undefined && member !== undefined) {
      this.#rebalance.keepAlive(group, member, turn)
    }
    const expireTimestamp = request.retentionTimeMs === -1 ? -1 : inTheFuture(turn.now, request.retentionTimeMs)
    const topics = request.topics.map(({ name, topicId, partitions }) => ({
      name,
      topicId,
      partitions: partitions.map(partition => {
        const { partitionIndex, committedOffset, committedLeaderEpoch } = partition
        const metadata = partition.committedMetadata ?? ''
        const errorCode = refusal || this.#whyNotKeep(metadata)
        if (errorCode === ErrorCode.NONE) {
          const value = offsetCommitValue({
            offset: committedOffset,
            leaderEpoch: committedLeaderEpoch,
            metadata,
            commitTimestamp: turn.now,
            expireTimestamp,
            topicId,
          })
          const { groupId } = request
          turn.entries.push({ kind: 'OffsetCommit', group: groupId, topic: name, partition: partitionIndex, value })
        }
        return { partitionIndex, errorCode }
      }),
    }))
    turn.replies.push({ kind: 'OffsetCommit', call, response: { topics } })
  }

  #whyNotKeep(metadata: string): number {
    const isTooLarge =
      metadata.length > this.#config.offsetMetadataMaxLength || Buffer.byteLength(metadata) > STRING_BYTES_MAX
    return isTooLarge ? ErrorCode.OFFSET_METADATA_TOO_LARGE : ErrorCode.NONE
  }

  fetch({ call, request }: OffsetFetchCommand, turn: Turn): void {
    const { groupId } = request
    const response = { groupId, topics: this.#fetch(request), errorCode: ErrorCode.NONE }
    turn.replies.push({ kind: 'OffsetFetch', call, response })
  }

  #fetch({ groupId, topics }: OffsetFetchGroup): OffsetFetchGroupResponse['topics'] {
    const offsets = this.#store.group(groupId) && this.#store.offsets(groupId)
    if (topics === null) {
      // Of each topic that had the name, what was committed for it: who asks knows which of them there is.
      return [...(offsets ?? [])].flatMap(([name, partitions]) =>
        Array.from(
          Map.groupBy(partitions, ([, { topicId }]) => topicId),
          ([topicId, list]) => ({
            name,
            topicId,
            partitions: list.map(([partition, offset]) => fetched(partition, offset)),
          }),
        ),
      )
    }
    return topics.map(({ name, topicId, partitionIndexes }) => ({
      name,
      topicId,
      partitions: partitionIndexes.map(partition => {
        const offset = offsets?.get(name)?.get(partition)
        return fetched(partition, offset && isOfOtherTopic(offset, topicId) ? undefined : offset)
      }),
    }))
  }

  delete({ call, request }: OffsetDeleteCommand, turn: Turn): void {
    const { groupId } = request
    const group = this.#membership.find(groupId)
    const refusal = whyNotDelete(group, groupId)
    if (group === undefined || refusal !== ErrorCode.NONE) {
      turn.replies.push({ kind: 'OffsetDelete', call, response: { errorCode: refusal } })
      return
    }
    const doomed = new Doomed(turn)
    const topics = request.topics.map(({ name, partitions }) => {
      const errorCode = group.isSubscribedTo(name) ? ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC : ErrorCode.NONE
      if (errorCode === ErrorCode.NONE) {
        for (const { partitionIndex } of partitions) {
          if (this.#store.offset(groupId, name, partitionIndex) !== undefined) doomed.add(groupId, name, partitionIndex)
        }
      }
      return { name, partitions: partitions.map(({ partitionIndex }) => ({ partitionIndex, errorCode })) }
    })
    turn.replies.push({ kind: 'OffsetDelete', call, response: { errorCode: ErrorCode.NONE, topics } })
  }

  /** Deletes all offsets of a group. */
  deleteAll(groupId: string, turn: Turn): void {
    for (const [topic, partitions] of this.#store.offsets(groupId) ?? []) {
      for (const partition of partitions.keys()) turn.entries.push(tombstone(groupId, topic, partition))
    }
  }

  /** Deletes a group's offsets for topics that are gone, as far as they were written by `upTo`; how many topics it looked at. */
  deleteTopics(groupId: string, doomed: DoomedTopics, upTo: Offset, turn: Turn): number {
    const offsets = this.#store.offsets(groupId)
    if (offsets === undefined) return 1
    const fewer = doomed.size < offsets.size ? doomed : offsets
    for (const name of fewer.keys()) {
      const ids = doomed.get(name)
      if (ids === undefined) continue
      for (const [partition, offset] of offsets.get(name) ?? []) {
        if (offset.at > upTo || ids.every(id => isOfOtherTopic(offset, id))) continue
        turn.entries.push(tombstone(groupId, name, partition))
      }
    }
    return fewer.size
  }

  /** Deletes the offsets of a group whose time is over; true if none is left. */
  expire(group: ClassicGroup, turn: Turn): boolean {
    const { groupId } = group
    let isNoneLeft = true
    for (const [topic, partitions] of this.#store.offsets(groupId) ?? []) {
      for (const [partition, offset] of partitions) {
        if (this.#isExpired(group, topic, offset, turn.now)) turn.entries.push(tombstone(groupId, topic, partition))
        else isNoneLeft = false
      }
    }
    return isNoneLeft
  }

  #isExpired(group: ClassicGroup, topic: string, offset: CommittedOffset, now: number): boolean {
    const since = beganToAge(group, offset)
    if (since === undefined || group.isSubscribedTo(topic)) return false
    if (offset.expireTimestamp !== -1) return now >= offset.expireTimestamp
    return now - since >= this.#config.offsetsRetentionMs
  }
}

/** Tombstones of one command, each key once. */
class Doomed {
  readonly #turn: Turn
  readonly #seen = new Set<string>()

  constructor(turn: Turn) {
    this.#turn = turn
  }

  add(group: string, topic: string, partition: number): void {
    const key = `${partition}/${topic}`
    if (this.#seen.has(key)) return
    this.#seen.add(key)
    this.#turn.entries.push(tombstone(group, topic, partition))
  }
}

function tombstone(group: string, topic: string, partition: number): GroupEntry {
  return { kind: 'OffsetCommit', group, topic, partition, value: null }
}

/** From when an offset's retention counts: with the group's emptiness, or with its commit; undefined is not yet (KIP-211). */
function beganToAge(group: ClassicGroup, { commitTimestamp }: CommittedOffset): number | undefined {
  if (group.protocolType === null) return commitTimestamp
  if (group.state === 'Empty') return group.stateSince === -1 ? commitTimestamp : group.stateSince
  return group.state === 'Stable' && group.hasKnownTopics ? commitTimestamp : undefined
}

/** Anybody may commit to a group that has no members, and makes it, as long as nobody claims to be a member. */
function whyNotCommitToNew({ generationIdOrMemberEpoch }: OffsetCommitRequest, version: number): number {
  if (generationIdOrMemberEpoch < 0) return ErrorCode.NONE
  return version >= 9 ? ErrorCode.GROUP_ID_NOT_FOUND : ErrorCode.ILLEGAL_GENERATION
}

function whyNotCommit(group: ClassicGroup, request: OffsetCommitRequest): number {
  const { memberId, groupInstanceId, generationIdOrMemberEpoch: generationId } = request
  if (generationId < 0 && group.state === 'Empty') return ErrorCode.NONE
  if (generationId < 0 && memberId === '' && groupInstanceId === null) return ErrorCode.UNKNOWN_MEMBER_ID
  const errorCode = group.check(memberId, groupInstanceId)
  if (errorCode !== ErrorCode.NONE) return errorCode
  if (generationId !== group.generationId) return ErrorCode.ILLEGAL_GENERATION
  return group.state === 'CompletingRebalance' ? ErrorCode.REBALANCE_IN_PROGRESS : ErrorCode.NONE
}

function whyNotDelete(group: ClassicGroup | undefined, groupId: string): number {
  if (groupId === '') return ErrorCode.INVALID_GROUP_ID
  if (group === undefined) return ErrorCode.GROUP_ID_NOT_FOUND
  return group.state === 'Empty' || group.isConsumerGroup ? ErrorCode.NONE : ErrorCode.NON_EMPTY_GROUP
}

function inTheFuture(now: number, afterMs: number): number {
  return Math.min(Math.max(now + afterMs, 0), Number.MAX_SAFE_INTEGER)
}

/** Whether it was committed for a topic that had the same name; only known ids can differ. */
function isOfOtherTopic(offset: CommittedOffset, topicId: Uuid): boolean {
  return topicId !== ZERO_UUID && offset.topicId !== ZERO_UUID && offset.topicId !== topicId
}

function fetched(partitionIndex: number, offset: CommittedOffset | undefined) {
  return {
    partitionIndex,
    committedOffset: offset?.offset ?? -1,
    committedLeaderEpoch: offset?.leaderEpoch ?? -1,
    metadata: offset?.metadata ?? '',
    errorCode: ErrorCode.NONE,
  }
}

/** The groups of an OffsetFetch: versions before 8 ask for one. */
export function offsetFetchGroups(request: OffsetFetchRequest, version: number): OffsetFetchGroup[] {
  if (version >= 8) return request.groups
  const topics = request.topics?.map(topic => ({ ...topic, topicId: ZERO_UUID })) ?? null
  return [{ groupId: request.groupId, memberId: null, memberEpoch: -1, topics }]
}

/** The response to an OffsetFetch from those of its groups, in their order. */
export function offsetFetchResponse(
  groups: readonly OffsetFetchGroupResponse[],
  version: number,
): InputOf<typeof OffsetFetchResponse> {
  if (version >= 8) return { groups }
  const group = groups[0]
  return {
    errorCode: group?.errorCode,
    topics: group?.topics?.map(({ name, partitions }) => ({ name, partitions })),
  }
}
