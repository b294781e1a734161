import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeToBuffer } from '#protocol/codec.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { DeleteGroupsResponse } from '#protocol/messages/delete-groups.ts'
import { DescribeGroupsResponse } from '#protocol/messages/describe-groups.ts'
import { HeartbeatResponse } from '#protocol/messages/heartbeat.ts'
import { JoinGroupResponse } from '#protocol/messages/join-group.ts'
import { LeaveGroupResponse } from '#protocol/messages/leave-group.ts'
import { ListGroupsResponse } from '#protocol/messages/list-groups.ts'
import { OffsetCommitResponse } from '#protocol/messages/offset-commit.ts'
import { OffsetDeleteResponse } from '#protocol/messages/offset-delete.ts'
import { OffsetFetchResponse } from '#protocol/messages/offset-fetch.ts'
import { SyncGroupResponse } from '#protocol/messages/sync-group.ts'
import type { GroupCommand, GroupReply } from './commands.ts'
import { DEFAULT_GROUP_CONFIG, type GroupConfig } from './config.ts'
import { decodeEntry, encodeEntry, type GroupEntry } from './entries.ts'
import { offsetFetchResponse } from './offsets.ts'
import { GroupShard } from './shard.ts'
import { GroupStore } from './store.ts'

export interface Reaction {
  readonly entries: readonly GroupEntry[]
  readonly replies: readonly GroupReply[]
}

/**
 * Drives a shard as a broker does, with its log in memory as bytes. It checks what must hold for every command: entries
 * survive their encoding, and every reply can be encoded in the version of its call, once.
 */
export class Harness {
  config: GroupConfig
  now = 1_000_000
  shard: GroupShard
  #store: GroupStore
  readonly #log: { key: Buffer; value: Buffer | null }[] = []
  readonly #openCalls = new Map<number, number>()

  constructor(config: Partial<GroupConfig> = {}) {
    this.config = { ...DEFAULT_GROUP_CONFIG, ...config }
    this.#store = new GroupStore()
    this.shard = new GroupShard(this.config, this.#store)
    this.do({ kind: 'Lead' })
  }

  get openCalls(): readonly number[] {
    return [...this.#openCalls.keys()]
  }

  do(command: GroupCommand): Reaction {
    if ('version' in command) this.#openCalls.set(command.call, command.version)
    const { entries, answer } = this.shard.decide(command, this.now)
    for (const entry of entries) {
      const record = encodeEntry(entry)
      const read = decodeEntry(record.key, record.value)
      assert.ok(read.kind !== 'Unknown')
      if (entry.value === null || !('expireTimestamp' in entry.value) || entry.value.expireTimestamp === -1) {
        assert.deepEqual(read, entry)
      }
      this.#log.push(record)
      this.shard.apply(read, this.#log.length - 1)
    }
    for (const reply of answer) this.#answered(reply)
    if (command.kind === 'CallGone') this.#openCalls.delete(command.call)
    assert.equal(this.shard.waitingCount, this.#openCalls.size, 'every call that was not answered waits')
    return { entries, replies: answer }
  }

  #answered(reply: GroupReply): void {
    const version = this.#openCalls.get(reply.call)
    assert.ok(version !== undefined, `call ${reply.call} is answered once`)
    this.#openCalls.delete(reply.call)
    assert.ok(encodeReply(reply, version).length > 0)
  }

  /** Lets time pass, with a tick whenever the shard wants one. */
  *pass(ms: number): Generator<Reaction & { readonly at: number }> {
    const until = this.now + ms
    for (let at = this.shard.wakeAt(); at !== undefined && at <= until; at = this.shard.wakeAt()) {
      this.now = Math.max(this.now, at)
      yield { ...this.do({ kind: 'Tick' }), at: this.now }
    }
    this.now = until
  }

  /** Another broker takes over: what was soft is lost, what was written is read again. */
  failOver(config: Partial<GroupConfig> = {}): { resigned: readonly GroupReply[]; reaction: Reaction } {
    const before = dump(this.#store)
    const resigned = this.shard.resign()
    for (const reply of resigned) this.#answered(reply)
    assert.equal(this.#openCalls.size, 0, 'whoever waits is told')
    this.config = { ...this.config, ...config }
    this.#store = new GroupStore()
    this.shard = new GroupShard(this.config, this.#store)
    for (const [at, { key, value }] of this.#log.entries()) this.shard.apply(decodeEntry(key, value), at)
    assert.deepEqual(dump(this.#store), before, 'the fold of the log is what the shard knew')
    return { resigned, reaction: this.do({ kind: 'Lead' }) }
  }
}

function dump(store: GroupStore): unknown {
  return [...store.groupIds].map(groupId => [groupId, store.group(groupId), store.offsets(groupId)])
}

function encodeReply(reply: GroupReply, version: number): Buffer {
  switch (reply.kind) {
    case 'JoinGroup':
      return encodeToBuffer(JoinGroupResponse, version, reply.response)
    case 'SyncGroup':
      return encodeToBuffer(SyncGroupResponse, version, reply.response)
    case 'Heartbeat':
      return encodeToBuffer(HeartbeatResponse, version, reply.response)
    case 'LeaveGroup':
      return encodeToBuffer(LeaveGroupResponse, version, reply.response)
    case 'OffsetCommit':
      return encodeToBuffer(OffsetCommitResponse, version, reply.response)
    case 'OffsetFetch':
      return encodeToBuffer(OffsetFetchResponse, version, offsetFetchResponse([reply.response], version))
    case 'OffsetDelete':
      return encodeToBuffer(OffsetDeleteResponse, version, reply.response)
    case 'DescribeGroups':
      return encodeToBuffer(DescribeGroupsResponse, version, reply.response)
    case 'ListGroups':
      return encodeToBuffer(ListGroupsResponse, version, reply.response)
    case 'DeleteGroups':
      return encodeToBuffer(DeleteGroupsResponse, version, reply.response)
  }
}

test('an empty shard leads, and wants to be woken for its first sweep', () => {
  const harness = new Harness()
  assert.equal(harness.shard.wakeAt(), harness.now + DEFAULT_GROUP_CONFIG.offsetsRetentionCheckIntervalMs)
  assert.deepEqual(harness.failOver().reaction, { entries: [], replies: [] })
})

test('a client id too long to make a member id of is refused, and the group is there as after every refusal', () => {
  const harness = new Harness()
  const { entries, replies } = harness.do({
    kind: 'JoinGroup',
    call: 1,
    version: 9,
    clientId: 'x'.repeat(32_750),
    clientHost: '/h',
    memberIdSuffix: '1',
    request: {
      groupId: 'g',
      sessionTimeoutMs: 10_000,
      rebalanceTimeoutMs: 10_000,
      memberId: '',
      groupInstanceId: null,
      protocolType: 'consumer',
      protocols: [{ name: 'range', metadata: Buffer.alloc(0) }],
      reason: null,
    },
  })
  assert.equal(entries.length, 1)
  assert.deepEqual(
    replies.map(({ response }) => 'errorCode' in response && response.errorCode),
    [ErrorCode.INVALID_REQUEST],
  )
})
