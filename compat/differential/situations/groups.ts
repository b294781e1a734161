import { setTimeout as delay } from 'node:timers/promises'
import { API } from '#protocol/apis.ts'
import { pick, type Twin, type Two } from '../twin.ts'
import { batchOf, createTopic, NO_ID, produce, type Situation, UNKNOWN_ID, untilThere } from './tools.ts'

interface Join {
  readonly memberId?: Two<string>
  readonly groupInstanceId?: string
  readonly sessionTimeoutMs?: number
  readonly protocolType?: string
  readonly protocols?: readonly string[]
  readonly metadata?: string
}

/** What consumers say of themselves: version 0, one topic. Kafka's groups of consumers never come together over other bytes. */
function subscription(userData: string): Buffer {
  const text = Buffer.from(userData)
  const size = Buffer.alloc(4)
  size.writeInt32BE(text.length)
  return Buffer.concat([Buffer.from('000000000001', 'hex'), Buffer.from('0001', 'hex'), Buffer.from('g'), size, text])
}

const NOBODY = ['', ''] as const
const SHORTLY_MS = 25

/** One group, asked in versions that go together. */
class Group {
  readonly #twin: Twin
  readonly id: string
  readonly version: number

  constructor(twin: Twin, id: string, version: number) {
    this.#twin = twin
    this.id = id
    this.version = version
  }

  #in(api: typeof API.JoinGroup | typeof API.SyncGroup | typeof API.Heartbeat | typeof API.LeaveGroup): number {
    return Math.min(this.version, api.versions.last)
  }

  /** Each member has its own connection: one that waits keeps others from being heard on it. */
  join(member: string, join: Join = {}) {
    const version = this.#in(API.JoinGroup)
    const { memberId = NOBODY, groupInstanceId, protocols = ['range', 'roundrobin'], metadata = member } = join
    return this.#twin.call(
      API.JoinGroup,
      version,
      side => ({
        groupId: this.id,
        sessionTimeoutMs: join.sessionTimeoutMs ?? 30_000,
        ...(version >= 1 && { rebalanceTimeoutMs: 10_000 }),
        memberId: memberId[side],
        ...(version >= 5 && { groupInstanceId: groupInstanceId ?? null }),
        protocolType: join.protocolType ?? 'consumer',
        protocols: protocols.map(name => ({ name, metadata: subscription(`${name}:${metadata}`) })),
      }),
      `${this.id}-${member}`,
    )
  }

  /** Joins whatever the version asks for: twice, where the first answer only names the member. */
  async joinWhole(member: string, join: Join = {}) {
    const first = await this.join(member, join)
    const id = idOf(first)
    if (first[0]?.errorCode !== 79) return first
    return this.join(member, { ...join, memberId: id })
  }

  sync(
    member: string,
    memberId: Two<string>,
    generationId: number,
    assigned: readonly Two<string>[] = [],
    options: object = {},
  ) {
    const version = this.#in(API.SyncGroup)
    return this.#twin.call(
      API.SyncGroup,
      version,
      side => ({
        groupId: this.id,
        generationId,
        memberId: memberId[side],
        assignments: assigned.map((id, i) => ({ memberId: id[side], assignment: Buffer.from(`assignment ${i}`) })),
        ...(version >= 5 && { protocolType: 'consumer', protocolName: 'range' }),
        ...options,
      }),
      `${this.id}-${member}`,
    )
  }

  heartbeat(memberId: Two<string>, generationId: number, groupInstanceId?: string, groupId = this.id) {
    const version = this.#in(API.Heartbeat)
    return this.#twin.call(API.Heartbeat, version, side => ({
      groupId,
      generationId,
      memberId: memberId[side],
      ...(version >= 3 && { groupInstanceId: groupInstanceId ?? null }),
    }))
  }

  leave(...members: readonly { readonly memberId: Two<string>; readonly groupInstanceId?: string }[]) {
    const version = this.#in(API.LeaveGroup)
    return this.#twin.call(API.LeaveGroup, version, side =>
      version < 3
        ? { groupId: this.id, memberId: members[0]?.memberId[side] ?? '' }
        : {
            groupId: this.id,
            members: members.map(({ memberId, ...rest }) => ({ memberId: memberId[side], ...rest })),
          },
    )
  }

  async look(): Promise<void> {
    const version = Math.min(this.version, API.DescribeGroups.versions.last)
    const groups = [this.id]
    await this.#twin.call(API.DescribeGroups, version, {
      groups,
      ...(version >= 3 && { includeAuthorizedOperations: true }),
    })
  }
}

const idOf = (answers: Two<{ memberId: string } | undefined>): Two<string> =>
  pick(answers, answer => answer.memberId, '')

/** A whole life: two members come, share, work, one goes, the other follows. */
async function life(twin: Twin, version: number): Promise<void> {
  const group = new Group(twin, `g-life-${version}`, version)
  await group.look()
  const one = await group.joinWhole('one')
  const first = idOf(one)
  await group.look()
  await group.heartbeat(first, 1)
  await group.sync('one', first, 0, [first])
  await group.sync('one', first, 2, [first])
  await group.sync('one', first, 1, [first])
  await group.look()
  await group.sync('one', first, 1, [])
  await group.heartbeat(first, 1)
  await group.heartbeat(first, 0)
  await group.heartbeat(first, 2)
  await group.heartbeat(['nobody', 'nobody'], 1)
  await group.heartbeat(NOBODY, 1)
  await group.heartbeat(first, 1, 'who')
  // A second one waits for the first to come back.
  const joining = group.joinWhole('two')
  await delay(SHORTLY_MS * 2)
  await group.heartbeat(first, 1)
  await group.look()
  await group.sync('one', first, 1, [first])
  const rejoined = group.join('one', { memberId: first })
  const [two] = await Promise.all([joining, rejoined])
  const second = idOf(two)
  const following = group.sync('two', second, 2)
  await delay(SHORTLY_MS)
  await group.look()
  await Promise.all([following, group.sync('one', first, 2, [first, second])])
  await group.look()
  await group.heartbeat(second, 2)
  // The same again from a member, without and with news.
  await group.join('two', { memberId: second })
  await group.leave({ memberId: ['nobody', 'nobody'] })
  await group.leave({ memberId: NOBODY })
  if (version >= 3) await group.leave()
  await group.leave({ memberId: second })
  await group.heartbeat(second, 2)
  await group.heartbeat(first, 2)
  await group.join('one', { memberId: first, metadata: 'changed' })
  await group.sync('one', first, 3, [first])
  await group.sync('one', first, 3, [])
  await group.look()
  await group.leave({ memberId: first }, { memberId: ['nobody', 'nobody'] })
  await group.look()
  await group.leave({ memberId: first })
}

/** Members that come back under their instance's name. */
async function staticLife(twin: Twin, version: number): Promise<void> {
  const group = new Group(twin, `g-static-${version}`, version)
  const first = idOf(await group.joinWhole('one', { groupInstanceId: 'a' }))
  await group.sync('one', first, 1, [first])
  await group.look()
  await group.heartbeat(first, 1, 'a')
  await group.heartbeat(first, 1, 'b')
  await group.heartbeat(first, 1)
  // Restarted: the same name, no id; the old id is fenced.
  const again = idOf(await group.joinWhole('again', { groupInstanceId: 'a', metadata: 'one' }))
  await group.heartbeat(first, 1, 'a')
  await group.heartbeat(again, 1, 'a')
  await group.sync('one', first, 1, [first], { groupInstanceId: 'a' })
  await group.sync('again', again, 1, [], { groupInstanceId: 'a' })
  await group.join('one', { memberId: first, groupInstanceId: 'a' })
  await group.join('one', { memberId: first, groupInstanceId: 'other' })
  await group.join('other', { memberId: ['nobody', 'nobody'], groupInstanceId: 'a' })
  await group.look()
  await group.leave({ memberId: first, groupInstanceId: 'a' })
  await group.leave({ memberId: NOBODY, groupInstanceId: 'no-such' })
  await group.leave({ memberId: NOBODY, groupInstanceId: 'a' }, { memberId: again })
  await group.look()
}

async function refused(twin: Twin, version: number): Promise<void> {
  const group = new Group(twin, `g-refused-${version}`, version)
  await group.join('a', { sessionTimeoutMs: 1 })
  await group.join('a', { sessionTimeoutMs: 1_800_001 })
  await group.join('a', { memberId: ['nobody', 'nobody'] })
  await group.join('a', { protocolType: '' })
  await group.join('a', { protocols: [] })
  await new Group(twin, '', version).join('a')
  await group.sync('a', NOBODY, 1)
  await group.sync('a', ['nobody', 'nobody'], 1)
  await group.leave({ memberId: ['nobody', 'nobody'] })
  await group.heartbeat(['nobody', 'nobody'], 1)
  await group.heartbeat(['nobody', 'nobody'], 1, undefined, '')
  const first = idOf(await group.joinWhole('one'))
  await group.sync('one', first, 1, [first])
  await group.join('b', { protocolType: 'connect' })
  await group.join('b', { protocols: ['sticky'] })
  await group.join('b', { protocols: [] })
  await group.join('b', { memberId: ['nobody', 'nobody'] })
  if (version >= 5) {
    for (const [protocolType, protocolName] of [
      [null, null],
      ['connect', 'range'],
      ['consumer', 'sticky'],
      ['consumer', null],
      [null, 'range'],
    ]) {
      await group.sync('one', first, 1, [], { protocolType, protocolName })
    }
  }
  await twin.call(API.DeleteGroups, Math.min(version, 2), { groupsNames: [group.id, 'g-none', '', group.id] })
  await group.leave({ memberId: first })
  await twin.call(API.DeleteGroups, Math.min(version, 2), { groupsNames: [group.id, 'g-none'] })
  await group.look()
}

async function offsetsOf(twin: Twin): Promise<void> {
  const id = await createTopic(twin, 'g-offsets', 3)
  const other = await createTopic(twin, 'g-other', 1)
  await produce(twin, 'g-offsets', batchOf(5))
  const ids = { 'g-offsets': id, 'g-other': other, 'g-none': [UNKNOWN_ID, UNKNOWN_ID], '': [NO_ID, NO_ID] } as const
  type Name = keyof typeof ids
  const topicOf = (version: number, name: Name, side: 0 | 1) =>
    version >= 10 ? { topicId: ids[name][side] } : { name }
  for (const version of twin.versionsOf(API.OffsetCommit)) {
    const groupId = `g-offsets-${version}`
    const commit = (
      name: Name,
      partitions: {
        partitionIndex: number
        committedOffset: number
        committedLeaderEpoch?: number
        committedMetadata: string | null
      }[],
      options: object = {},
    ) =>
      twin.call(API.OffsetCommit, version, side => ({
        groupId,
        topics: [{ ...topicOf(version, name, side), partitions }],
        ...options,
      }))
    const at = (
      partitionIndex: number,
      committedOffset: number,
      committedMetadata: string | null = '',
      committedLeaderEpoch = -1,
    ) => ({ partitionIndex, committedOffset, committedLeaderEpoch, committedMetadata })
    await commit('g-offsets', [at(0, 3), at(1, 0, 'text', 0), at(2, 1_000_000, null, 7)])
    await commit('g-offsets', [at(0, -1), at(1, -2), at(2, 4, 'x'.repeat(4096)), at(0, 5, 'x'.repeat(4097))])
    await commit('g-offsets', [at(9, 1), at(-1, 1)])
    await commit('g-none', [at(0, 1)])
    await commit('', [at(0, 1)])
    await commit('g-other', [at(0, 1), at(0, 2)])
    await commit('g-other', [])
    await commit('g-other', [at(0, 8)], { generationIdOrMemberEpoch: 5, memberId: 'nobody' })
    await commit('g-other', [at(0, 9)], { generationIdOrMemberEpoch: 0, memberId: '' })
    await commit('g-other', [at(0, 10)], { generationIdOrMemberEpoch: -1, memberId: 'nobody' })
    await commit('g-other', [at(0, 11)], { groupId: '' })
    if (version >= 7) await commit('g-other', [at(0, 12)], { groupInstanceId: 'a' })
    await twin.call(API.OffsetCommit, version, { groupId, topics: [] })
  }
  // By members of a group.
  for (const version of twin.versionsOf(API.OffsetCommit)) {
    const group = new Group(twin, `g-commit-${version}`, Math.min(version, 9))
    const member = idOf(await group.joinWhole('one'))
    const commit = (memberId: Two<string>, generation: number) =>
      twin.call(API.OffsetCommit, version, side => ({
        groupId: group.id,
        generationIdOrMemberEpoch: generation,
        memberId: memberId[side],
        topics: [
          {
            ...topicOf(version, 'g-other', side),
            partitions: [{ partitionIndex: 0, committedOffset: 4, committedMetadata: 'm' }],
          },
        ],
      }))
    await commit(member, 1)
    await group.sync('one', member, 1, [member])
    await commit(member, 1)
    await commit(member, 0)
    await commit(member, 2)
    await commit(['nobody', 'nobody'], 1)
    await commit(NOBODY, -1)
    await twin.call(API.OffsetDelete, 0, {
      groupId: group.id,
      topics: [{ name: 'g-other', partitions: [{ partitionIndex: 0 }] }],
    })
    await group.leave({ memberId: member })
  }
  for (const version of twin.versionsOf(API.OffsetFetch)) {
    const groups = ['g-offsets-5', 'g-offsets-9', 'g-commit-4', 'g-nobody', '']
    for (const groupId of groups) {
      const fetch = (names: readonly Name[] | null, partitionIndexes: number[]) =>
        twin.call(API.OffsetFetch, version, side => {
          const topics =
            names === null
              ? null
              : names.map(name => ({ ...(version >= 10 ? { topicId: ids[name][side] } : { name }), partitionIndexes }))
          const requireStable = version >= 7 ? { requireStable: true } : {}
          if (version >= 8) return { groups: [{ groupId, topics }], ...requireStable }
          return { groupId, topics: topics as { name: string; partitionIndexes: number[] }[] | null, ...requireStable }
        })
      await fetch(['g-offsets', 'g-other'], [0, 1, 2, 9])
      await fetch(['g-none'], [0])
      await fetch(['g-offsets'], [])
      await fetch(['g-offsets'], [0, 0, -1])
      await fetch([], [])
      if (version >= 2) await fetch(null, [])
    }
    if (version >= 8) {
      await twin.call(API.OffsetFetch, version, { groups: [] })
      const two = groups.map(groupId => ({ groupId, topics: null }))
      await twin.call(API.OffsetFetch, version, { groups: [...two, ...two] })
      if (version >= 9)
        for (const [memberId, memberEpoch] of [
          ['nobody', 0],
          [null, 5],
          ['nobody', -1],
          ['', -1],
        ] as const)
          await twin.call(API.OffsetFetch, version, {
            groups: [{ groupId: 'g-offsets-5', memberId, memberEpoch, topics: null }],
          })
    }
  }
  const remove = (groupId: string, name: string, ...partitions: number[]) =>
    twin.call(API.OffsetDelete, 0, {
      groupId,
      topics: [{ name, partitions: partitions.map(partitionIndex => ({ partitionIndex })) }],
    })
  await remove('g-offsets-2', 'g-offsets', 0, 1, 9, -1)
  await remove('g-offsets-2', 'g-offsets', 0)
  await remove('g-offsets-2', 'g-none', 0)
  await remove('g-offsets-2', '', 0)
  await remove('g-offsets-2', 'g-other', 0, 0)
  await remove('g-nobody', 'g-other', 0)
  await remove('', 'g-other', 0)
  await twin.call(API.OffsetDelete, 0, { groupId: 'g-offsets-2', topics: [] })
  await twin.call(API.OffsetFetch, 7, { groupId: 'g-offsets-2', topics: null })
  await twin.vary(API.OffsetCommit, 200, side => ({
    groupId: 'g-varied',
    topics: [
      {
        name: 'g-offsets',
        topicId: id[side],
        partitions: [
          { partitionIndex: 0, committedOffset: 3, committedMetadata: 'a' },
          { partitionIndex: 1, committedOffset: 4, committedMetadata: '' },
        ],
      },
    ],
  }))
  await twin.vary(API.OffsetFetch, 200, side => ({
    groupId: 'g-varied',
    topics: [{ name: 'g-offsets', partitionIndexes: [0, 1] }],
    groups: [{ groupId: 'g-varied', topics: [{ name: 'g-offsets', topicId: id[side], partitionIndexes: [0, 1, 2] }] }],
  }))
  await twin.vary(API.OffsetDelete, 60, {
    groupId: 'g-varied',
    topics: [{ name: 'g-offsets', partitions: [{ partitionIndex: 0 }] }],
  })
}

async function asked(twin: Twin): Promise<void> {
  for (const version of twin.versionsOf(API.FindCoordinator)) {
    const keyTypes = version >= 1 ? [0, 1, 2, 3, -1] : [0]
    for (const keyType of keyTypes) {
      for (const key of ['g-life-4', '', 'g-nobody', 'g:AAAAAAAAAAAAAAAAAAAAAA:0']) {
        // Transactions and share groups have coordinators of their own.
        if (keyType === 1 || keyType === 2) continue
        await twin.call(
          API.FindCoordinator,
          version,
          version >= 4 ? { keyType, coordinatorKeys: [key, key] } : { key, ...(version >= 1 && { keyType }) },
        )
      }
    }
    if (version >= 4) await twin.call(API.FindCoordinator, version, { keyType: 0, coordinatorKeys: [] })
  }
  await twin.everyVersion(API.DescribeGroups, (_, version) => ({
    groups: ['g-life-4', 'g-nobody', '', 'g-life-4'],
    ...(version >= 3 && { includeAuthorizedOperations: true }),
  }))
  await twin.everyVersion(API.DescribeGroups, { groups: [] })
  await twin.everyVersion(API.ListGroups, {})
  for (const version of twin.versionsOf(API.ListGroups, 4)) {
    for (const state of [
      'Empty',
      'Stable',
      'Dead',
      'empty',
      'PreparingRebalance',
      'CompletingRebalance',
      'None',
      'nonsense',
      '',
    ])
      await twin.call(API.ListGroups, version, { statesFilter: [state] })
    await twin.call(API.ListGroups, version, { statesFilter: ['Empty', 'Stable'] })
    if (version >= 5)
      for (const type of ['classic', 'Classic', 'consumer', 'share', 'streams', 'nonsense', ''])
        await twin.call(API.ListGroups, version, { typesFilter: [type] })
  }
  await twin.everyVersion(API.DeleteGroups, { groupsNames: [] })
  await twin.vary(API.DescribeGroups, 60, { groups: ['g-life-4', 'g-nobody'] })
  await twin.vary(API.ListGroups, 40, { statesFilter: ['Empty'], typesFilter: ['classic'] })
  await twin.vary(API.Heartbeat, 80, { groupId: 'g-life-4', memberId: 'nobody', generationId: 1 })
  await twin.vary(API.SyncGroup, 80, {
    groupId: 'g-life-4',
    memberId: 'nobody',
    generationId: 1,
    assignments: [{ memberId: 'nobody', assignment: Buffer.from('a') }],
  })
  await twin.vary(API.LeaveGroup, 80, { groupId: 'g-life-4', memberId: 'nobody', members: [{ memberId: 'nobody' }] })
  await twin.vary(API.DeleteGroups, 40, { groupsNames: ['g-nobody', 'g-nil'] })
}

export const groups: Situation = {
  name: 'groups',
  async perform(twin) {
    await twin.settle(API.FindCoordinator, 2, { key: 'g', keyType: 0 }, answer => answer.errorCode === 0)
    await untilThere(twin, '__consumer_offsets', 50)
    const versions = twin.versionsOf(API.JoinGroup)
    // The first answer of a group's partition may come while it is still being read.
    for (const version of versions) {
      const groupId = `g-life-${version}`
      await twin.settle(
        API.Heartbeat,
        0,
        { groupId, memberId: 'a', generationId: 1 },
        answer => answer.errorCode === 25,
      )
    }
    await Promise.all(versions.map(version => life(twin, version)))
    await Promise.all(versions.filter(version => version >= 5).map(version => staticLife(twin, version)))
    await Promise.all(versions.map(version => refused(twin, version)))
    await offsetsOf(twin)
    await asked(twin)
  },
}
