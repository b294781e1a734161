import type { Millis } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import type { DeleteGroupsRequest, DeleteGroupsResponse } from '#protocol/messages/delete-groups.ts'
import type { DescribeGroupsRequest, DescribeGroupsResponse } from '#protocol/messages/describe-groups.ts'
import type { HeartbeatRequest, HeartbeatResponse } from '#protocol/messages/heartbeat.ts'
import type { JoinGroupRequest, JoinGroupResponse } from '#protocol/messages/join-group.ts'
import type { LeaveGroupRequest, LeaveGroupResponse } from '#protocol/messages/leave-group.ts'
import type { ListGroupsRequest, ListGroupsResponse } from '#protocol/messages/list-groups.ts'
import type { OffsetCommitRequest, OffsetCommitResponse } from '#protocol/messages/offset-commit.ts'
import type { OffsetDeleteRequest, OffsetDeleteResponse } from '#protocol/messages/offset-delete.ts'
import type { OffsetFetchResponse } from '#protocol/messages/offset-fetch.ts'
import type { SyncGroupRequest, SyncGroupResponse } from '#protocol/messages/sync-group.ts'
import type { InputOf } from '#protocol/schema.ts'
import type { GroupEntry } from './entries.ts'

/** A request for one shard. `call` names it in its reply; no two calls that are open at a time have the same. */
interface Call<Kind extends string, Request> {
  readonly kind: Kind
  readonly call: number
  readonly version: number
  readonly request: Request
}

export interface JoinGroupCommand extends Call<'JoinGroup', JoinGroupRequest> {
  /** From the request's header; empty where that has none. */
  readonly clientId: string
  /** As Kafka writes it: a slash and the address, `/127.0.0.1`. */
  readonly clientHost: string
  /** A random UUID with dashes, in case that a member id must be made. */
  readonly memberIdSuffix: string
}
export type SyncGroupCommand = Call<'SyncGroup', SyncGroupRequest>
export type HeartbeatCommand = Call<'Heartbeat', HeartbeatRequest>
export type LeaveGroupCommand = Call<'LeaveGroup', LeaveGroupRequest>
/** Every topic comes with its name, and with its id where that is known; topics that do not exist were taken out. */
export type OffsetCommitCommand = Call<'OffsetCommit', OffsetCommitRequest>

/** One group of an OffsetFetch, whatever its version (see `offsetFetchGroups`). */
export interface OffsetFetchGroup {
  readonly groupId: string
  readonly memberId: string | null
  readonly memberEpoch: number
  /** Null asks for all. Every topic comes with its name, and with its id where that is known. */
  readonly topics:
    | readonly { readonly name: string; readonly topicId: Uuid; readonly partitionIndexes: readonly number[] }[]
    | null
}
export type OffsetFetchCommand = Call<'OffsetFetch', OffsetFetchGroup>
export type OffsetDeleteCommand = Call<'OffsetDelete', OffsetDeleteRequest>
/** Those groups of the request that this shard keeps. */
export type DescribeGroupsCommand = Call<'DescribeGroups', DescribeGroupsRequest>
/** Those groups of the request that this shard keeps. */
export type DeleteGroupsCommand = Call<'DeleteGroups', DeleteGroupsRequest>
export type ListGroupsCommand = Call<'ListGroups', ListGroupsRequest>

export type GroupCommand =
  /** The log is folded and this replica leads: sessions begin. Comes once, before everything else. */
  | { readonly kind: 'Lead' }
  /** Time has come to `wakeAt()`. */
  | { readonly kind: 'Tick' }
  /** The connection of a call that waits is closed: its reply is no longer wanted. Unknown calls are ignored. */
  | { readonly kind: 'CallGone'; readonly call: number }
  /** Topics are gone for good, and what was committed for them with them; not what was for another of that name. */
  | { readonly kind: 'TopicsDeleted'; readonly topics: readonly { readonly name: string; readonly topicId: Uuid }[] }
  | JoinGroupCommand
  | SyncGroupCommand
  | HeartbeatCommand
  | LeaveGroupCommand
  | OffsetCommitCommand
  | OffsetFetchCommand
  | OffsetDeleteCommand
  | DescribeGroupsCommand
  | DeleteGroupsCommand
  | ListGroupsCommand

interface Reply<Kind extends string, Response> {
  readonly kind: Kind
  readonly call: number
  readonly response: Response
}

export type OffsetFetchGroupResponse = NonNullable<InputOf<typeof OffsetFetchResponse>['groups']>[number]

/** Responses to encode, without their throttle time. Those of OffsetFetch are one group's. */
export type GroupReply =
  | Reply<'JoinGroup', InputOf<typeof JoinGroupResponse>>
  | Reply<'SyncGroup', InputOf<typeof SyncGroupResponse>>
  | Reply<'Heartbeat', InputOf<typeof HeartbeatResponse>>
  | Reply<'LeaveGroup', InputOf<typeof LeaveGroupResponse>>
  | Reply<'OffsetCommit', InputOf<typeof OffsetCommitResponse>>
  | Reply<'OffsetFetch', OffsetFetchGroupResponse>
  | Reply<'OffsetDelete', InputOf<typeof OffsetDeleteResponse>>
  | Reply<'DescribeGroups', InputOf<typeof DescribeGroupsResponse>>
  | Reply<'DeleteGroups', InputOf<typeof DeleteGroupsResponse>>
  | Reply<'ListGroups', InputOf<typeof ListGroupsResponse>>

/** What one command has led to so far. */
export interface Turn {
  /** Wall time, for what is written down. */
  readonly now: Millis
  /** On a clock that never goes back, for deadlines: a wall clock that is set must not hold up a rebalance. */
  readonly monotonic: Millis
  readonly entries: GroupEntry[]
  readonly replies: GroupReply[]
}
