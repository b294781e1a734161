import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ErrorCode } from '#protocol/errors.ts'
import type { TopicPartition } from './assignment.ts'
import { Membership, type MembershipEffect, type MembershipEvent, type MembershipOptions } from './membership.ts'
import {
  cooperativeUserData,
  decodeAssignment,
  decodeMember,
  encodeAssignment,
  encodeSubscription,
} from './membership-messages.ts'

const OPTIONS: MembershipOptions = {
  assignors: ['range'],
  sessionTimeoutMs: 10_000,
  heartbeatIntervalMs: 3000,
  pollIntervalMs: 60_000,
  retryBackoffMs: 100,
  retryBackoffMaxMs: 1000,
  groupInstanceId: null,
  rackId: null,
}

const places = (...numbers: number[]): TopicPartition[] => numbers.map(partition => ({ topic: 't', partition }))

/** A membership whose answers the test gives. */
class Member {
  readonly machine: Membership
  now = 0

  constructor(options: Partial<MembershipOptions> = {}) {
    this.machine = new Membership({ ...OPTIONS, ...options })
  }

  step(event: MembershipEvent): readonly MembershipEffect[] {
    return this.machine.step(event, this.now)
  }

  types(event: MembershipEvent): string[] {
    return this.step(event).map(({ type }) => type)
  }

  /** Time passes until the machine wants a step. */
  wake(): string[] {
    const at = this.machine.wakeAt()
    assert.ok(at !== undefined)
    this.now = Math.max(this.now, at)
    return this.types({ type: 'tick' })
  }

  joined(as: 'leader' | 'follower' | number, generationId = 1): readonly MembershipEffect[] {
    const metadata = encodeSubscription({
      topics: ['t'],
      ownedPartitions: [],
      generationId: -1,
      userData: null,
      rackId: null,
    })
    return this.step({
      type: 'join-answered',
      response: {
        throttleTimeMs: 0,
        errorCode: typeof as === 'number' ? as : 0,
        generationId,
        protocolType: 'consumer',
        protocolName: this.machine.memberId === '' ? 'range' : 'range',
        leader: as === 'leader' ? 'me' : 'other',
        skipAssignment: false,
        memberId: 'me',
        members: as === 'leader' ? [{ memberId: 'me', groupInstanceId: null, metadata }] : [],
      },
    })
  }

  synced(partitions: readonly TopicPartition[] | number): readonly MembershipEffect[] {
    const errorCode = typeof partitions === 'number' ? partitions : 0
    const assignment = typeof partitions === 'number' ? Buffer.alloc(0) : encodeAssignment(partitions)
    return this.step({
      type: 'sync-answered',
      response: { throttleTimeMs: 0, errorCode, protocolType: null, protocolName: null, assignment },
    })
  }

  /** A follower with these partitions, in generation 1. */
  static stable(partitions: readonly TopicPartition[], options: Partial<MembershipOptions> = {}): Member {
    const member = new Member(options)
    assert.deepEqual(member.types({ type: 'subscribe', topics: ['t'] }), ['find-coordinator'])
    assert.deepEqual(member.types({ type: 'coordinator-found' }), ['join'])
    assert.deepEqual(
      member.joined('follower').map(({ type }) => type),
      ['sync'],
    )
    member.synced(partitions)
    assert.ok(member.machine.stable)
    return member
  }
}

test('a new member gets its id, joins with it, and as leader assigns for all', () => {
  const member = new Member()
  member.step({ type: 'subscribe', topics: ['t'] })
  const [join] = member.step({ type: 'coordinator-found' })
  assert.equal(join?.type === 'join' && join.memberId, '')
  const [again] = member.joined(ErrorCode.MEMBER_ID_REQUIRED)
  assert.equal(again?.type === 'join' && again.memberId, 'me')
  assert.deepEqual(member.joined('leader'), [{ type: 'count-partitions', topics: ['t'] }])
  const [sync] = member.step({ type: 'partitions-counted', counts: new Map([['t', 2]]) })
  assert.ok(sync?.type === 'sync')
  assert.deepEqual(
    sync.assignments.map(each => [each.memberId, decodeAssignment(each.assignment)]),
    [['me', places(0, 1)]],
  )
  assert.deepEqual(member.synced(places(0, 1)), [{ type: 'assigned', partitions: places(0, 1), added: places(0, 1) }])
  assert.ok(member.machine.leading)
})

test('heartbeats are sent in time, one at a time; a silent coordinator is looked for again', () => {
  const member = Member.stable(places(0))
  assert.deepEqual(member.wake(), ['heartbeat'])
  assert.equal(member.now, 3000)
  assert.equal(member.machine.wakeAt(), 10_000, 'the end of the session')
  member.step({ type: 'heartbeat-answered', errorCode: 0 })
  assert.deepEqual(member.wake(), ['heartbeat'])
  assert.equal(member.now, 6000)
  assert.deepEqual(member.wake(), [], 'no answer until the session ended')
  assert.equal(member.now, 13_000)
  assert.deepEqual(member.wake(), ['find-coordinator'])
  member.step({ type: 'coordinator-found' })
  assert.deepEqual(member.machine.owned, places(0), 'it keeps what it has until it is told otherwise')
})

test('eager: everything is given up before the next join', () => {
  const member = Member.stable(places(0, 1))
  assert.deepEqual(member.step({ type: 'heartbeat-answered', errorCode: ErrorCode.REBALANCE_IN_PROGRESS }), [
    { type: 'revoke', partitions: places(0, 1) },
  ])
  assert.deepEqual(member.types({ type: 'heartbeat-answered', errorCode: ErrorCode.REBALANCE_IN_PROGRESS }), [])
  const [join] = member.step({ type: 'revoked' })
  assert.ok(join?.type === 'join')
  const metadata = join.protocols[0]?.metadata ?? Buffer.alloc(0)
  assert.deepEqual(decodeMember({ memberId: 'me', groupInstanceId: null, metadata }).ownedPartitions, [])
  member.joined('follower', 2)
  assert.deepEqual(member.synced(places(1)), [{ type: 'assigned', partitions: places(1), added: places(1) }])
})

test('cooperative: what stays is read on, what goes is given up, and then the group is joined again', () => {
  const member = Member.stable(places(0, 1), { assignors: ['cooperative-sticky'] })
  const [join] = member.step({ type: 'heartbeat-answered', errorCode: ErrorCode.REBALANCE_IN_PROGRESS })
  assert.ok(join?.type === 'join')
  const told = decodeMember({
    memberId: 'me',
    groupInstanceId: null,
    metadata: join.protocols[0]?.metadata ?? Buffer.alloc(0),
  })
  assert.deepEqual([told.ownedPartitions, told.generationId], [places(0, 1), 1])
  member.joined('follower', 2)
  assert.deepEqual(member.synced(places(0)), [
    { type: 'assigned', partitions: places(0), added: [] },
    { type: 'revoke', partitions: places(1) },
  ])
  assert.deepEqual(member.types({ type: 'revoked' }), ['join'])
})

test('a member that the group does not know any more loses what it had and joins as a new one', () => {
  const member = Member.stable(places(0))
  const effects = member.step({ type: 'heartbeat-answered', errorCode: ErrorCode.UNKNOWN_MEMBER_ID })
  assert.deepEqual(effects[0], { type: 'lost', partitions: places(0) })
  assert.ok(effects[1]?.type === 'join' && effects[1].memberId === '')
})

test('a refused commit of an old generation is a rebalance that was missed; the member id stays', () => {
  const member = Member.stable(places(0))
  const effects = member.step({ type: 'commit-refused', errorCode: ErrorCode.ILLEGAL_GENERATION })
  assert.deepEqual(effects[0], { type: 'lost', partitions: places(0) })
  assert.ok(effects[1]?.type === 'join' && effects[1].memberId === 'me')
  assert.equal(member.machine.generationId, -1)
})

test('trouble on the way is tried again, later each time', () => {
  const member = new Member()
  member.step({ type: 'subscribe', topics: ['t'] })
  const waits: number[] = []
  for (let round = 0; round < 6; round++) {
    assert.deepEqual(member.types({ type: 'request-failed' }), [])
    const before = member.now
    assert.deepEqual(member.wake(), ['find-coordinator'])
    waits.push(member.now - before)
  }
  assert.deepEqual(waits, [100, 200, 400, 800, 1000, 1000])
  member.step({ type: 'coordinator-found' })
  assert.deepEqual(member.joined(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), [])
  assert.deepEqual(member.wake(), ['join'])
  assert.deepEqual(member.joined(ErrorCode.NOT_COORDINATOR), [])
  assert.deepEqual(member.wake(), ['find-coordinator'])
  assert.deepEqual(member.types({ type: 'coordinator-found' }), ['join'])
  member.joined('follower')
  assert.deepEqual(
    member.synced(ErrorCode.REBALANCE_IN_PROGRESS).map(({ type }) => type),
    ['join'],
  )
})

test('what cannot get better ends the membership', () => {
  const member = Member.stable(places(0))
  assert.deepEqual(member.step({ type: 'heartbeat-answered', errorCode: ErrorCode.FENCED_INSTANCE_ID }), [
    { type: 'lost', partitions: places(0) },
    { type: 'failed', errorCode: ErrorCode.FENCED_INSTANCE_ID },
  ])
  assert.equal(member.machine.wakeAt(), undefined)
  assert.deepEqual(member.types({ type: 'polled' }), [])
})

test('an application that does not poll leaves the group, and joins again when it does', () => {
  const member = Member.stable(places(0))
  const seen: string[] = []
  while (member.now < 60_000) {
    seen.push(...member.wake())
    if (seen.at(-1) === 'heartbeat') member.step({ type: 'heartbeat-answered', errorCode: 0 })
  }
  assert.deepEqual(seen.slice(-2), ['leave', 'lost'])
  assert.equal(member.machine.wakeAt(), undefined)
  assert.deepEqual(member.types({ type: 'polled' }), ['join'])
})

test('a static member leaves without a word', () => {
  assert.deepEqual(Member.stable(places(0), { groupInstanceId: 'i' }).types({ type: 'leave' }), [])
  assert.deepEqual(Member.stable(places(0)).types({ type: 'leave' }), ['leave'])
})

test('a changed subscription joins again, after what is under way', () => {
  const member = Member.stable(places(0))
  assert.deepEqual(member.types({ type: 'subscribe', topics: ['t', 'u'] }), ['revoke'])
  assert.deepEqual(member.types({ type: 'subscribe', topics: ['v'] }), [])
  const [join] = member.step({ type: 'revoked' })
  assert.ok(join?.type === 'join')
  const told = decodeMember({
    memberId: 'me',
    groupInstanceId: null,
    metadata: join.protocols[0]?.metadata ?? Buffer.alloc(0),
  })
  assert.deepEqual(told.topics, ['v'])
})

test('what members say is read from older and newer ones', () => {
  const versionZero = Buffer.from('0000000000010001' + '74' + '00000004' + '00000007', 'hex')
  const old = decodeMember({ memberId: 'm', groupInstanceId: null, metadata: versionZero })
  assert.deepEqual(
    [old.topics, old.generationId],
    [['t'], 7],
    'cooperative-sticky keeps its generation in the user data',
  )
  const newer = encodeSubscription({
    topics: ['t'],
    ownedPartitions: places(3),
    generationId: 9,
    userData: cooperativeUserData(9),
    rackId: 'r',
  })
  newer.writeInt16BE(42, 0)
  const read = decodeMember({
    memberId: 'm',
    groupInstanceId: 'i',
    metadata: Buffer.concat([newer, Buffer.from('more')]),
  })
  assert.deepEqual([read.ownedPartitions, read.generationId, read.groupInstanceId], [places(3), 9, 'i'])
  assert.deepEqual(decodeAssignment(Buffer.alloc(0)), [])
  assert.throws(() => decodeAssignment(Buffer.from('0000ff', 'hex')), { name: 'DecodeError' })
})
