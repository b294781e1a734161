import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SeededRandom } from '#base/random.ts'
import { ZERO_UUID } from '#base/uuid.ts'
import { encodeToBuffer } from '#protocol/codec.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { ConsumerProtocolSubscription } from '#protocol/records/consumer-protocol.ts'
import type { GroupCommand, GroupReply } from './commands.ts'
import { Harness, type Reaction } from './harness.test.ts'

const SEEDS = Number(process.env.TIDEMARK_SEEDS ?? 100)
const FIRST_SEED = Number(process.env.TIDEMARK_SEED ?? 1)
const STEPS = 1_000
/** Clients choose time-outs up to this; no call may wait for longer than a few of them. */
const TIMEOUT_MS = 20_000
const WAIT_MS_MAX = 3 * TIMEOUT_MS

interface Client {
  readonly group: string
  readonly instance: string | null
  readonly version: number
  /** It heartbeats and never asks for its assignment. */
  readonly isLazy: boolean
  memberId: string
  generation: number
  waits: boolean
  hasSynced: boolean
  isLeader: boolean
  members: readonly string[]
}

interface Call {
  readonly client: Client | undefined
  readonly command: GroupCommand
  readonly at: number
}

/** Random members that join, sync, commit, leave, hang up and fall silent, and coordinators that change. */
class Simulation {
  readonly #random: SeededRandom
  readonly #harness: Harness
  readonly #clients: Client[] = []
  readonly #calls = new Map<number, Call>()
  /** The highest generation that was answered, by group, since its coordinator leads. */
  readonly #generations = new Map<string, number>()
  /** Who is in which generation, as leaders were told; static members by their instance. */
  readonly #members = new Map<string, string>()
  /** What is committed, by group, topic and partition. */
  readonly #offsets = new Map<string, number>()
  #call = 0
  joins = 0
  syncs = 0

  constructor(seed: number) {
    this.#random = new SeededRandom(seed)
    const initialRebalanceDelayMs = this.#random.pick([0, 1, 3_000])
    const maxSize = this.#random.pick([3, 1_000])
    this.#harness = new Harness({
      initialRebalanceDelayMs,
      maxSize,
      offsetsRetentionMs: 100_000,
      offsetsRetentionCheckIntervalMs: 50_000,
    })
  }

  run(): void {
    for (let step = 0; step < STEPS; step++) this.#step()
    // Everybody falls silent: nobody waits for ever, and every group ends empty.
    for (const reaction of this.#harness.pass(2 * 300_000 + WAIT_MS_MAX)) this.#check(reaction)
    assert.deepEqual(this.#harness.openCalls, [])
    const list = this.#do(undefined, {
      kind: 'ListGroups',
      call: ++this.#call,
      version: 5,
      request: { statesFilter: ['Stable', 'PreparingRebalance', 'CompletingRebalance'], typesFilter: [] },
    })
    assert.deepEqual(list.replies[0]?.response, { errorCode: 0, groups: [] })
    this.#harness.failOver()
  }

  #step() {
    const random = this.#random
    const client = random.pick(this.#clients.length > 0 ? this.#clients : [this.#newClient()])
    const { group: groupId, memberId, generation, instance: groupInstanceId } = client
    const call = ++this.#call
    switch (random.below(40)) {
      case 0:
      case 1:
      case 2:
        if (this.#clients.length < 12) this.#join(this.#newClient())
        return
      case 3:
      case 4:
        // It crashes: without a word, or its connection breaks. A static member comes back under its name.
        this.#clients.splice(this.#clients.indexOf(client), 1)
        if (random.chance(0.5)) this.#hangUp(client)
        if (groupInstanceId !== null && random.chance(0.7)) this.#join(this.#newClient(client))
        return
      case 5:
        return this.#hangUp(client)
      case 6:
      case 7:
      case 8:
        for (const reaction of this.#harness.pass(random.below(random.pick([10, 1_000, 1_000, 8_000]))))
          this.#check(reaction)
        return
      case 9: {
        const version = random.between(0, 5)
        this.#clients.splice(this.#clients.indexOf(client), 1)
        const members = [{ memberId, groupInstanceId: version < 3 ? null : groupInstanceId, reason: null }]
        const request = version < 3 ? { groupId, memberId, members: [] } : { groupId, memberId: '', members }
        this.#do(client, { kind: 'LeaveGroup', call, version, request })
        return
      }
      case 10: {
        const partition = {
          partitionIndex: random.below(3),
          committedOffset: random.below(1_000),
          committedLeaderEpoch: random.between(-1, 3),
          committedMetadata: random.pick([null, '', 'm']),
        }
        const topics = [{ name: random.pick(['t', 'u']), topicId: ZERO_UUID, partitions: [partition] }]
        const retentionTimeMs = random.pick([-1, -1, 0, 50_000])
        const generationIdOrMemberEpoch = generation
        const request = { groupId, generationIdOrMemberEpoch, memberId, groupInstanceId, retentionTimeMs, topics }
        this.#do(client, { kind: 'OffsetCommit', call, version: random.between(2, 10), request })
        return
      }
      case 11: {
        const request = { groupId, memberId: null, memberEpoch: -1, topics: null }
        this.#do(client, { kind: 'OffsetFetch', call, version: random.between(1, 10), request })
        return
      }
      case 12:
        if (random.chance(0.1)) return this.#failOver()
        if (random.chance(0.3)) {
          this.#do(client, { kind: 'DeleteGroups', call, version: 2, request: { groupsNames: ['g', 'h'] } })
        } else if (random.chance(0.4)) {
          this.#do(undefined, { kind: 'TopicsDeleted', topics: [{ name: 'u', topicId: ZERO_UUID }] })
        }
        return
      case 13: {
        const topics = [{ name: random.pick(['t', 'u']), partitions: [{ partitionIndex: random.below(3) }] }]
        this.#do(client, { kind: 'OffsetDelete', call, version: 0, request: { groupId, topics } })
        return
      }
      case 14: {
        const request = { groups: ['g', 'h'], includeAuthorizedOperations: false }
        this.#do(client, { kind: 'DescribeGroups', call, version: random.between(0, 6), request })
        return
      }
      case 15: {
        // Anything at all.
        const request = {
          groupId,
          generationId: random.between(-1, 5),
          memberId: random.pick([memberId, 'nobody', '']),
          groupInstanceId: random.pick([groupInstanceId, null, 'nobody']),
          protocolType: random.pick([null, 'consumer', 'connect']),
          protocolName: random.pick([null, 'range', 'none']),
          assignments: [],
        }
        if (request.generationId !== generation) this.#do(undefined, { kind: 'SyncGroup', call, version: 5, request })
        return
      }
      default:
        if (client.waits && random.chance(0.9)) return
        if (memberId === '' || random.chance(0.1)) return this.#join(client)
        if (generation < 0) return this.#join(client)
        if (!client.isLazy && (!client.hasSynced || random.chance(0.2))) return this.#sync(client)
        this.#do(client, {
          kind: 'Heartbeat',
          call,
          version: 4,
          request: { groupId, generationId: generation, memberId, groupInstanceId },
        })
    }
  }

  #newClient(like?: Client): Client {
    const random = this.#random
    const version = random.pick([0, 3, 4, 5, 8, 9])
    const instance = like?.instance ?? (version >= 5 && random.chance(0.5) ? random.pick(['i', 'j', 'k']) : null)
    const client: Client = {
      group: like?.group ?? random.pick(['g', 'h']),
      instance,
      version: instance === null ? version : Math.max(version, 5),
      isLazy: random.chance(0.05),
      memberId: '',
      generation: -1,
      waits: false,
      hasSynced: false,
      isLeader: false,
      members: [],
    }
    this.#clients.push(client)
    return client
  }

  #join(client: Client): void {
    const random = this.#random
    const topics = random.pick([['t'], ['t'], ['t', 'u']])
    const subscription = encodeToBuffer(ConsumerProtocolSubscription, 0, { topics })
    const metadata = Buffer.concat([Buffer.alloc(2), subscription])
    client.waits = true
    this.#do(client, {
      kind: 'JoinGroup',
      call: ++this.#call,
      version: client.version,
      clientId: 'c',
      clientHost: '/h',
      memberIdSuffix: String(this.#call),
      request: {
        groupId: client.group,
        sessionTimeoutMs: random.between(6_000, TIMEOUT_MS),
        rebalanceTimeoutMs: random.between(0, TIMEOUT_MS),
        memberId: client.memberId,
        groupInstanceId: client.instance,
        protocolType: random.chance(0.02) ? 'connect' : 'consumer',
        protocols: random.pick([['range'], ['range', 'roundrobin'], ['roundrobin', 'range']]).map(name => ({
          name,
          metadata,
        })),
        reason: null,
      },
    })
  }

  #sync(client: Client): void {
    client.waits = true
    const { generation } = client
    const members = client.isLeader ? client.members : []
    this.#do(client, {
      kind: 'SyncGroup',
      call: ++this.#call,
      version: 4,
      request: {
        groupId: client.group,
        generationId: generation,
        memberId: client.memberId,
        groupInstanceId: client.instance,
        protocolType: null,
        protocolName: null,
        assignments: members.map(memberId => ({ memberId, assignment: Buffer.from(String(generation)) })),
      },
    })
  }

  #hangUp(client: Client): void {
    for (const [call, open] of this.#calls) {
      if (open.client !== client) continue
      this.#calls.delete(call)
      client.waits = false
      this.#check(this.#harness.do({ kind: 'CallGone', call }))
    }
  }

  #failOver(): void {
    const { resigned, reaction } = this.#harness.failOver()
    for (const group of ['g', 'h']) this.#forget(group)
    this.#check({ entries: [], replies: resigned })
    this.#check(reaction)
  }

  #forget(group: string): void {
    this.#generations.delete(group)
    for (const key of this.#members.keys()) if (key.startsWith(group)) this.#members.delete(key)
  }

  #do(client: Client | undefined, command: GroupCommand): Reaction {
    if ('call' in command) this.#calls.set(command.call, { client, command, at: this.#harness.now })
    const reaction = this.#harness.do(command)
    this.#check(reaction)
    return reaction
  }

  #check({ entries, replies }: Reaction): void {
    for (const entry of entries) {
      if (entry.kind === 'OffsetCommit') {
        const key = `${entry.group}/${entry.topic}/${entry.partition}`
        if (entry.value === null) this.#offsets.delete(key)
        else this.#offsets.set(key, entry.value.offset)
      } else if (entry.value === null) {
        this.#forget(entry.group)
      }
    }
    for (const reply of replies) {
      const call = this.#calls.get(reply.call)
      assert.ok(call !== undefined)
      this.#calls.delete(reply.call)
      this.#answered(call, reply)
    }
    for (const [call, { at }] of this.#calls) {
      assert.ok(this.#harness.now - at <= WAIT_MS_MAX, `call ${call} waits since ${this.#harness.now - at} ms`)
    }
  }

  #answered({ client, command }: Call, reply: GroupReply): void {
    if (client === undefined) return
    const { errorCode } = 'errorCode' in reply.response ? reply.response : { errorCode: ErrorCode.NONE }
    if (reply.kind === 'JoinGroup') {
      client.waits = false
      const { memberId = '', generationId = -1, leader, members = [] } = reply.response
      if (errorCode === ErrorCode.NONE) {
        this.joins++
        const before = this.#generations.get(client.group) ?? 0
        assert.ok(generationId >= before, `generation ${generationId} after ${before}`)
        this.#generations.set(client.group, generationId)
        assert.equal(members.length > 0, leader === memberId, 'the leader, and only the leader, is told of all members')
        if (members.length > 0) {
          const key = `${client.group}/${generationId}`
          const names = members.map(member => member.groupInstanceId ?? member.memberId).sort()
          assert.equal(names.join(), this.#members.get(key) ?? names.join(), `members of ${key} are the same for ever`)
          this.#members.set(key, names.join())
        }
        client.generation = generationId
        client.hasSynced = false
        client.isLeader = members.length > 0
        client.members = members.map(member => member.memberId ?? '')
        assert.ok(!client.isLeader || client.members.includes(memberId))
      }
      if (errorCode !== ErrorCode.REBALANCE_IN_PROGRESS && errorCode !== ErrorCode.NOT_COORDINATOR) {
        client.memberId = errorCode === 0 || errorCode === ErrorCode.MEMBER_ID_REQUIRED ? memberId : ''
      }
    } else if (reply.kind === 'SyncGroup' && command.kind === 'SyncGroup') {
      client.waits = false
      if (errorCode === ErrorCode.NONE) {
        this.syncs++
        client.hasSynced = true
        const text = Buffer.from(reply.response.assignment ?? []).toString()
        assert.ok(text === '' || text === String(command.request.generationId), 'an assignment is of its generation')
      } else if (errorCode !== ErrorCode.NOT_COORDINATOR) {
        client.generation = -1
        if (errorCode !== ErrorCode.REBALANCE_IN_PROGRESS) client.memberId = ''
      }
    } else if (reply.kind === 'OffsetFetch') {
      const { groupId = '', topics = [] } = reply.response
      const fetched = topics.flatMap(({ name, partitions = [] }) =>
        partitions.map(partition => `${groupId}/${name}/${partition.partitionIndex}: ${partition.committedOffset}`),
      )
      const known = [...this.#offsets].filter(([key]) => key.startsWith(`${groupId}/`))
      assert.deepEqual(fetched.sort(), known.map(([key, offset]) => `${key}: ${offset}`).sort())
    } else if (reply.kind === 'Heartbeat' && errorCode !== ErrorCode.NONE) {
      client.generation = -1
      if (errorCode !== ErrorCode.REBALANCE_IN_PROGRESS) client.memberId = ''
    }
  }
}

test(`${SEEDS} random lives of groups`, () => {
  let joins = 0
  let syncs = 0
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++) {
    const simulation = new Simulation(seed)
    try {
      simulation.run()
    } catch (error) {
      throw new Error(`seed ${seed} (TIDEMARK_SEED=${seed} TIDEMARK_SEEDS=1)`, { cause: error })
    }
    joins += simulation.joins
    syncs += simulation.syncs
  }
  assert.ok(joins > 10 * SEEDS && syncs > 5 * SEEDS, `${joins} joins and ${syncs} syncs came to their end`)
})
