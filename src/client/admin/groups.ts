import type { Epoch, Millis, Offset } from '#base/units.ts'
import { decodeAssignment } from '#core/consumer/membership-messages.ts'
import { DeleteGroupsRequest, DeleteGroupsResponse } from '#protocol/messages/delete-groups.ts'
import { DescribeGroupsRequest, DescribeGroupsResponse } from '#protocol/messages/describe-groups.ts'
import { ListGroupsRequest, ListGroupsResponse } from '#protocol/messages/list-groups.ts'
import { OffsetCommitRequest, OffsetCommitResponse } from '#protocol/messages/offset-commit.ts'
import { OffsetDeleteRequest, OffsetDeleteResponse } from '#protocol/messages/offset-delete.ts'
import { OffsetFetchRequest, OffsetFetchResponse } from '#protocol/messages/offset-fetch.ts'
import type { Client } from '../client.ts'
import { ClientError, throwIfError } from '../errors.ts'
import type { TopicPartition } from '../per-leader.ts'

const LIST_GROUPS = { request: ListGroupsRequest, response: ListGroupsResponse }
const DESCRIBE_GROUPS = { request: DescribeGroupsRequest, response: DescribeGroupsResponse }
const DELETE_GROUPS = { request: DeleteGroupsRequest, response: DeleteGroupsResponse }
const OFFSET_FETCH = { request: OffsetFetchRequest, response: OffsetFetchResponse }
const OFFSET_COMMIT = { request: OffsetCommitRequest, response: OffsetCommitResponse }
const OFFSET_DELETE = { request: OffsetDeleteRequest, response: OffsetDeleteResponse }

/** From version 10 on topics go by id; by name is what an administrator means, also after a topic was made anew. */
const BY_NAME_MAX = 9

export interface GroupListing {
  readonly group: string
  /** Stable, Empty, PreparingRebalance, CompletingRebalance, Dead; '' where the broker is too old to tell. */
  readonly state: string
  /** classic, consumer, share, streams; '' where the broker is too old to tell. */
  readonly type: string
  readonly protocolType: string
}

/** All groups of all brokers, by name. */
export async function listGroups(
  client: Client,
  options: { readonly states?: readonly string[]; readonly types?: readonly string[] } = {},
): Promise<GroupListing[]> {
  await client.retrying(() => client.metadata.refresh([]))
  const body = { statesFilter: options.states ?? [], typesFilter: options.types ?? [] }
  const answers = await Promise.all(
    client.metadata.brokers.map(({ id }) =>
      client.ask(id, LIST_GROUPS, body, { check: ({ errorCode }) => throwIfError(errorCode, `broker ${id}`) }),
    ),
  )
  return answers
    .flatMap(({ groups }) =>
      groups.map(({ groupId, groupState, groupType, protocolType }) => ({
        group: groupId,
        state: groupState,
        type: groupType,
        protocolType,
      })),
    )
    .sort((a, b) => (a.group < b.group ? -1 : 1))
}

export interface GroupMemberDescription {
  readonly memberId: string
  readonly groupInstanceId: string | null
  readonly clientId: string
  readonly host: string
  readonly assignment: readonly TopicPartition[]
}

export interface GroupDescription {
  readonly group: string
  readonly state: string
  readonly protocolType: string
  /** The assignor that the members agreed on; '' while there is none. */
  readonly protocol: string
  readonly members: readonly GroupMemberDescription[]
}

/** A group of the classic protocol. Rejects with GROUP_ID_NOT_FOUND if there is none. */
export async function describeGroup(client: Client, group: string): Promise<GroupDescription> {
  const answer = await client.ask(
    { group },
    DESCRIBE_GROUPS,
    { groups: [group] },
    {
      check: ({ groups }) => throwIfError(groups[0]?.errorCode ?? 0, `group "${group}"`, groups[0]?.errorMessage),
    },
  )
  const found = answer.groups[0]
  if (found === undefined || found.groupState === 'Dead') {
    throw new ClientError('GROUP_ID_NOT_FOUND', `there is no group "${group}"`, { errorCode: 69 })
  }
  return {
    group,
    state: found.groupState,
    protocolType: found.protocolType,
    protocol: found.protocolData,
    members: found.members.map(member => ({
      memberId: member.memberId,
      groupInstanceId: member.groupInstanceId,
      clientId: member.clientId,
      host: member.clientHost.replace(/^\//, ''),
      // Other protocol types have formats of their own.
      assignment: found.protocolType === 'consumer' ? decodeAssignment(member.memberAssignment) : [],
    })),
  }
}

/** A group without members, with its committed offsets. */
export async function deleteGroup(client: Client, group: string): Promise<void> {
  await client.ask(
    { group },
    DELETE_GROUPS,
    { groupsNames: [group] },
    { check: ({ results }) => throwIfError(results[0]?.errorCode ?? 0, `group "${group}"`) },
  )
}

export interface CommittedOffset extends TopicPartition {
  readonly offset: Offset
  readonly leaderEpoch: Epoch
  readonly metadata: string
}

/** What a group has committed: everything, or of these partitions. Partitions without a commit are left out. */
export async function fetchOffsets(
  client: Client,
  group: string,
  partitions?: readonly TopicPartition[],
): Promise<CommittedOffset[]> {
  const topics =
    partitions === undefined
      ? null
      : [...Map.groupBy(partitions, each => each.topic)].map(([name, list]) => ({
          name,
          partitionIndexes: list.map(({ partition }) => partition),
        }))
  const about = `group "${group}"`
  const batched = ((await client.retrying(() => client.channel({ group }))).versionFor(OffsetFetchRequest) ?? 0) >= 8
  const answer = await client.ask(
    { group },
    OFFSET_FETCH,
    batched ? { groups: [{ groupId: group, topics }] } : { groupId: group, topics },
    {
      versionMax: BY_NAME_MAX,
      check: ({ errorCode, groups }) => throwIfError(groups[0]?.errorCode ?? errorCode, about),
    },
  )
  const found: CommittedOffset[] = []
  for (const { name: topic, partitions: list } of answer.groups[0]?.topics ?? answer.topics) {
    for (const each of list) {
      throwIfError(each.errorCode, `${about}, partition ${topic}-${each.partitionIndex}`)
      if (each.committedOffset < 0) continue
      found.push({
        topic,
        partition: each.partitionIndex,
        offset: each.committedOffset,
        leaderEpoch: each.committedLeaderEpoch,
        metadata: each.metadata ?? '',
      })
    }
  }
  return found
}

/** Who commits: a member in its generation, or an administrator for a group without members. */
export interface Committer {
  readonly memberId: string
  readonly generationId: number
  readonly groupInstanceId: string | null
}

/** Commits offsets. Rejects with the first partition's error; an administrator's is UNKNOWN_MEMBER_ID while there are members. */
export async function commitOffsets(
  client: Client,
  group: string,
  offsets: readonly (TopicPartition & {
    readonly offset: Offset
    readonly leaderEpoch?: Epoch
    readonly metadata?: string
  })[],
  committer?: Committer,
  timeoutMs?: Millis,
): Promise<void> {
  const topics = [...Map.groupBy(offsets, each => each.topic)].map(([name, list]) => ({
    name,
    partitions: list.map(({ partition, offset, leaderEpoch, metadata }) => ({
      partitionIndex: partition,
      committedOffset: offset,
      committedLeaderEpoch: leaderEpoch ?? -1,
      committedMetadata: metadata ?? '',
    })),
  }))
  const body = {
    groupId: group,
    generationIdOrMemberEpoch: committer?.generationId ?? -1,
    memberId: committer?.memberId ?? '',
    groupInstanceId: committer?.groupInstanceId ?? null,
    topics,
  }
  await client.ask({ group }, OFFSET_COMMIT, body, {
    ...(timeoutMs !== undefined && { timeoutMs }),
    versionMax: BY_NAME_MAX,
    check: answer => {
      for (const { name, partitions } of answer.topics) {
        for (const { partitionIndex, errorCode } of partitions) {
          throwIfError(errorCode, `group "${group}", partition ${name}-${partitionIndex}`)
        }
      }
    },
  })
}

/** Forgets a group's commits to partitions of topics that it does not subscribe to. */
export async function deleteOffsets(
  client: Client,
  group: string,
  partitions: readonly TopicPartition[],
): Promise<void> {
  const topics = [...Map.groupBy(partitions, each => each.topic)].map(([name, list]) => ({
    name,
    partitions: list.map(({ partition }) => ({ partitionIndex: partition })),
  }))
  await client.ask(
    { group },
    OFFSET_DELETE,
    { groupId: group, topics },
    {
      check: answer => {
        throwIfError(answer.errorCode, `group "${group}"`)
        for (const { name, partitions: list } of answer.topics) {
          for (const { partitionIndex, errorCode } of list) {
            throwIfError(errorCode, `group "${group}", partition ${name}-${partitionIndex}`)
          }
        }
      },
    },
  )
}
