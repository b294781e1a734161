import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { SeededRandom } from '#base/random.ts'
import { type Assignment, type GroupMember, partitionKey, type TopicPartition } from './assignment.ts'
import { type Assignor, cooperativeStickyAssignor, rangeAssignor, roundRobinAssignor } from './assignors.ts'
import { assignSticky } from './sticky.ts'

const PEER = fileURLToPath(new URL('../../../../shared/peer/fetch', import.meta.url))
const JAVA = fileURLToPath(new URL('testdata/Assign.java', import.meta.url))

function member(memberId: string, topics: string[], owned: string[] = [], generationId = -1): GroupMember {
  const ownedPartitions = owned.map(text => {
    const [topic = '', partition] = text.split(':')
    return { topic, partition: Number(partition) }
  })
  return { memberId, groupInstanceId: null, topics, ownedPartitions, generationId }
}

function show(assignment: Assignment): Record<string, string> {
  return Object.fromEntries(
    [...assignment].map(([id, list]) => [
      id,
      list
        .map(({ topic, partition }) => `${topic}:${partition}`)
        .sort()
        .join(','),
    ]),
  )
}

test('range gives contiguous partitions of each topic, the first members one more', () => {
  const counts = new Map([
    ['a', 5],
    ['b', 1],
  ])
  assert.deepEqual(show(rangeAssignor.assign([member('y', ['a', 'b']), member('x', ['a', 'b'])], counts)), {
    y: 'a:3,a:4',
    x: 'a:0,a:1,a:2,b:0',
  })
})

test('static members come first, in the order of their instance ids', () => {
  const one = { ...member('z', ['a']), groupInstanceId: '1' }
  const two = { ...member('y', ['a']), groupInstanceId: '2' }
  const assignment = rangeAssignor.assign([member('x', ['a']), two, one], new Map([['a', 3]]))
  assert.deepEqual(show(assignment), { x: 'a:2', y: 'a:1', z: 'a:0' })
})

test('round robin deals all partitions in turn and skips members that do not subscribe', () => {
  const counts = new Map([
    ['a', 3],
    ['b', 2],
  ])
  const assignment = roundRobinAssignor.assign([member('x', ['a', 'b']), member('y', ['a'])], counts)
  assert.deepEqual(show(assignment), { x: 'a:0,a:2,b:0,b:1', y: 'a:1' })
})

test('cooperative: what changes hands is handed on only after its owner gave it up', () => {
  const counts = new Map([['a', 4]])
  const first = [member('x', ['a'], ['a:0', 'a:1', 'a:2', 'a:3'], 5), member('y', ['a'])]
  const held = cooperativeStickyAssignor.assign(first, counts)
  assert.equal(held.get('x')?.length, 2)
  assert.deepEqual(held.get('y'), [])
  const second = [{ ...member('x', ['a'], [], 6), ownedPartitions: held.get('x') ?? [] }, member('y', ['a'], [], 6)]
  const settled = cooperativeStickyAssignor.assign(second, counts)
  assert.deepEqual(settled.get('x'), held.get('x'))
  assert.equal(settled.get('y')?.length, 2)
})

test('cooperative: the claim of a newer generation wins, two of the same one cancel out', () => {
  const counts = new Map([['a', 2]])
  const older = cooperativeStickyAssignor.assign(
    [member('x', ['a'], ['a:0'], 4), member('y', ['a'], ['a:0'], 5)],
    counts,
  )
  assert.deepEqual(show(older), { x: 'a:1', y: 'a:0' })
  const same = cooperativeStickyAssignor.assign(
    [member('x', ['a'], ['a:0'], 5), member('y', ['a'], ['a:0'], 5)],
    counts,
  )
  assert.deepEqual([...same.values()].flat(), [{ topic: 'a', partition: 1 }])
})

test('no topics, no partitions, no members', () => {
  for (const assignor of [rangeAssignor, roundRobinAssignor, cooperativeStickyAssignor]) {
    assert.deepEqual(show(assignor.assign([], new Map([['a', 1]]))), {})
    assert.deepEqual(show(assignor.assign([member('x', [])], new Map([['a', 1]]))), { x: '' })
    assert.deepEqual(show(assignor.assign([member('x', ['gone'], ['gone:0'], 1)], new Map())), { x: '' })
  }
})

interface Case {
  readonly members: readonly GroupMember[]
  readonly counts: ReadonlyMap<string, number>
}

/** A group in the middle of its life: members came and went, some partitions have no owner. */
function randomCase(random: SeededRandom, sameTopics: boolean, owning: boolean): Case {
  const topics = Array.from({ length: random.between(1, 5) }, (_, index) => `t${index}`)
  const counts = new Map(topics.map(topic => [topic, random.between(1, 9)]))
  const ids = Array.from({ length: random.between(1, 7) }, (_, index) => `m${index}`)
  const subscriptions = new Map(ids.map(id => [id, sameTopics ? topics : topics.filter(() => random.chance(0.6))]))
  const owned = new Map(ids.map(id => [id, [] as TopicPartition[]]))
  for (const topic of topics) {
    for (let partition = 0; partition < (counts.get(topic) ?? 0); partition++) {
      const owner = random.pick(ids)
      if (owning && random.chance(0.8) && subscriptions.get(owner)?.includes(topic))
        owned.get(owner)?.push({ topic, partition })
    }
  }
  const members = ids.map(memberId => ({
    memberId,
    groupInstanceId: random.chance(0.2) ? `i${random.between(0, 9)}-${memberId}` : null,
    topics: subscriptions.get(memberId) ?? [],
    ownedPartitions: owned.get(memberId) ?? [],
    generationId: 3,
  }))
  return { members, counts }
}

function loads(assignment: Assignment): number[] {
  return [...assignment.values()].map(list => list.length).sort((a, b) => a - b)
}

/** The sum of the differences of all pairs of members: Kafka's measure of balance, 0 is best. */
function imbalance(assignment: Assignment): number {
  const sizes = loads(assignment)
  return sizes.reduce((sum, size, at) => sum + sizes.slice(at + 1).reduce((all, other) => all + other - size, 0), 0)
}

function kept({ members }: Case, assignment: Assignment): number {
  const owners = new Map(members.flatMap(each => each.ownedPartitions.map(of => [partitionKey(of), each.memberId])))
  return [...assignment].flatMap(([id, list]) => list.filter(of => owners.get(partitionKey(of)) === id)).length
}

const sticky: Assignor = {
  name: 'sticky',
  cooperative: false,
  assign: (members, counts) => assignSticky(members, counts),
}

test('every partition that somebody wants has exactly one owner, who wants it; the sticky spread is as small as it can be', () => {
  const random = new SeededRandom(7)
  for (let round = 0; round < 500; round++) {
    const each = randomCase(random, random.chance(0.5), true)
    const wanted = [...each.counts].filter(([topic]) => each.members.some(({ topics }) => topics.includes(topic)))
    const total = wanted.reduce((sum, [, count]) => sum + count, 0)
    for (const assignor of [rangeAssignor, roundRobinAssignor, sticky]) {
      const assignment = assignor.assign(each.members, each.counts)
      const keys = [...assignment.values()].flat().map(partitionKey)
      assert.equal(keys.length, total, assignor.name)
      assert.equal(new Set(keys).size, total, assignor.name)
      for (const { memberId, topics } of each.members) {
        for (const { topic } of assignment.get(memberId) ?? []) assert.ok(topics.includes(topic), assignor.name)
      }
    }
    const balanced = assignSticky(each.members, each.counts)
    for (const receiver of each.members) {
      for (const donor of each.members) {
        const movable = balanced.get(donor.memberId)?.some(({ topic }) => receiver.topics.includes(topic)) ?? false
        const spread = (balanced.get(donor.memberId)?.length ?? 0) - (balanced.get(receiver.memberId)?.length ?? 0)
        assert.ok(!movable || spread < 2, `round ${round}: ${donor.memberId} could give to ${receiver.memberId}`)
      }
    }
  }
})

test('agreement with the assignors of Kafka', t => {
  if (!existsSync(PEER)) return t.skip('../shared/peer is missing')
  if (spawnSync('java', ['-version']).status !== 0) return t.skip('java is missing')
  const random = new SeededRandom(11)
  const cases = Array.from({ length: 300 }, (_, round) => randomCase(random, round % 2 === 0, round % 3 !== 0))
  const names = ['range', 'roundrobin', 'sticky']
  const questions = cases.flatMap(each => names.map(name => question(name, each)))
  const lib = spawnSync(PEER).stdout.toString().trim()
  const run = spawnSync('java', ['-cp', `${lib}/lib/*`, JAVA], { input: questions.join('\n'), maxBuffer: 1 << 28 })
  assert.equal(run.status, 0, run.stderr.toString())
  const answers = run.stdout.toString().trimEnd().split('\n')
  assert.equal(answers.length, questions.length)
  for (const [index, each] of cases.entries()) {
    const [range, roundRobin, theirs] = names.map((_, at) => parse(answers[index * names.length + at] ?? ''))
    assert.deepEqual(
      show(rangeAssignor.assign(each.members, each.counts)),
      show(range as Assignment),
      `range, case ${index}`,
    )
    assert.deepEqual(
      show(roundRobinAssignor.assign(each.members, each.counts)),
      show(roundRobin as Assignment),
      `roundrobin, case ${index}`,
    )
    // Kafka goes through members in no fixed order, so only what it promises is compared: balance first, then stickiness.
    const ours = assignSticky(each.members, each.counts)
    // Members without any topic mislead it into giving them partitions; such answers are no measure.
    const sane = each.members.every(({ memberId, topics }) =>
      theirs?.get(memberId)?.every(({ topic }) => topics.includes(topic)),
    )
    assert.ok(!sane || imbalance(ours) <= imbalance(theirs as Assignment), `sticky balance, case ${index}`)
    if (index % 2 === 0) {
      assert.deepEqual(loads(ours), loads(theirs as Assignment), `sticky loads, case ${index}`)
      assert.ok(kept(each, ours) >= kept(each, theirs as Assignment), `stickiness, case ${index}`)
      if (index % 3 === 0) assert.deepEqual(show(ours), show(theirs as Assignment), `first assignment, case ${index}`)
    }
  }
})

function question(name: string, { members, counts }: Case): string {
  const place = ({ topic, partition }: TopicPartition): string => `${topic}:${partition}`
  const lines = members.map(each =>
    [
      each.memberId,
      each.groupInstanceId ?? '',
      each.topics.join(','),
      each.ownedPartitions.map(place).join(','),
      each.generationId,
    ].join('|'),
  )
  return [name, [...counts].map(([topic, count]) => `${topic}=${count}`).join(','), ...lines].join('\t')
}

function parse(answer: string): Assignment {
  return new Map(
    answer.split('\t').map(part => {
      const [id = '', list = ''] = part.split('=')
      const partitions = list === '' ? [] : list.split(',').map(text => text.split(':'))
      return [id, partitions.map(([topic = '', partition]) => ({ topic, partition: Number(partition) }))]
    }),
  )
}
