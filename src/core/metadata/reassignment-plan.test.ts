import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { copiesOf, type PlanBroker, type PlanPartition, planProblem, planReassignment } from './reassignment-plan.ts'

const brokersOf = (...ids: number[]): PlanBroker[] => ids.map(id => ({ id, host: `h${id}`, rack: '' }))

const partitionsOf = (topic: string, replicas: readonly (readonly number[])[]): PlanPartition[] =>
  replicas.map((each, partition) => ({ topic, partition, replicas: each }))

/** All partitions as they are once the plan is done. */
function after(partitions: readonly PlanPartition[], changes: readonly PlanPartition[]): PlanPartition[] {
  return partitions.map(
    each => changes.find(({ topic, partition }) => topic === each.topic && partition === each.partition) ?? each,
  )
}

function counts(brokers: readonly PlanBroker[], partitions: readonly PlanPartition[], leadersOnly = false): number[] {
  return brokers.map(
    ({ id }) => partitions.filter(({ replicas }) => (leadersOnly ? replicas[0] === id : replicas.includes(id))).length,
  )
}

const isEven = (loads: readonly number[]): boolean => Math.max(...loads) - Math.min(...loads) <= 1

/** Pairs of a partition's replicas that share what `of` names. */
function pairs(brokers: readonly PlanBroker[], replicas: readonly number[], of: 'host' | 'rack'): number {
  const names = replicas.map(id => brokers.find(broker => broker.id === id)?.[of])
  return names.reduce((sum, name, at) => sum + names.slice(0, at).filter(other => other === name).length, 0)
}

test('a cluster that is even stays as it is', () => {
  const partitions = partitionsOf('a', [
    [1, 2],
    [2, 3],
    [3, 1],
  ])
  assert.deepEqual(planReassignment(brokersOf(1, 2, 3), partitions), [])
})

test('a new broker takes its share and no more', () => {
  const partitions = partitionsOf('a', [
    [1, 2, 3],
    [2, 3, 1],
    [3, 1, 2],
    [1, 3, 2],
  ])
  const brokers = brokersOf(1, 2, 3, 4)
  const changes = planReassignment(brokers, partitions)
  assert.equal(
    changes.reduce((sum, change) => sum + copiesOf(change), 0),
    3,
  )
  assert.deepEqual(counts(brokers, after(partitions, changes)), [3, 3, 3, 3])
  assert.deepEqual(counts(brokers, after(partitions, changes), true), [1, 1, 1, 1])
})

test('a broker that goes is replaced in its places', () => {
  const partitions = partitionsOf('a', [
    [1, 2],
    [2, 3],
    [3, 1],
  ])
  assert.deepEqual(planReassignment(brokersOf(1, 2, 4), partitions), [
    { topic: 'a', partition: 1, before: [2, 3], replicas: [2, 4] },
    { topic: 'a', partition: 2, before: [3, 1], replicas: [4, 1] },
  ])
})

test('more and fewer replicas, where they are asked for', () => {
  const brokers = brokersOf(1, 2, 3)
  const one = partitionsOf('a', [[1], [1], [1]])
  const grown = after(one, planReassignment(brokers, one, 3))
  assert.deepEqual(counts(brokers, grown), [3, 3, 3])
  assert.deepEqual(counts(brokers, grown, true), [1, 1, 1])
  const shrunk = after(grown, planReassignment(brokers, grown, 1))
  assert.deepEqual(counts(brokers, shrunk), [1, 1, 1])
})

test('more replicas than brokers cannot be', () => {
  const partitions = partitionsOf('a', [[1], [1, 2]])
  assert.equal(planProblem(brokersOf(3, 4), partitions), undefined)
  assert.match(planProblem(brokersOf(3), partitions) ?? '', /2 replicas of a-1 cannot be placed on 1 broker/)
  assert.match(planProblem(brokersOf(3), partitions, 3) ?? '', /3 replicas of a-0/)
  assert.match(planProblem([], []) ?? '', /no broker/)
})

/** A cluster: its brokers, those that stay or come, and topics placed anyhow on the former. */
function clusters(options: { racks: number; hosts: boolean; topics: number }) {
  return fc
    .record({
      size: fc.integer({ min: 1, max: 8 }),
      added: fc.integer({ min: 0, max: 3 }),
      removed: fc.integer({ min: 0, max: 3 }),
      topics: fc.array(fc.array(fc.array(fc.nat(1000), { minLength: 3, maxLength: 3 }), { maxLength: 12 }), {
        minLength: 1,
        maxLength: options.topics,
      }),
      factor: fc.integer({ min: 1, max: 3 }),
      racks: fc.array(fc.nat(Math.max(0, options.racks - 1)), { minLength: 11, maxLength: 11 }),
      hosts: fc.array(fc.nat(3), { minLength: 11, maxLength: 11 }),
    })
    .map(({ size, added, removed, topics, factor: wanted, racks, hosts }) => {
      const old = Array.from({ length: size }, (_, at) => at + 1)
      const stay = old.slice(Math.min(removed, size - 1))
      const ids = [...stay, ...Array.from({ length: added }, (_, at) => size + at + 1)]
      const factor = Math.min(wanted, size, ids.length)
      const brokers = ids.map(id => {
        const rack = options.racks === 0 ? '' : `r${racks[id - 1]}`
        // A host is in one rack.
        return { id, host: options.hosts ? `${rack}-h${hosts[id - 1]}` : `h${id}`, rack }
      })
      const partitions = topics.flatMap((list, index) =>
        partitionsOf(
          `t${index}`,
          list.map(draws => {
            const left = [...old]
            return draws.slice(0, factor).map(draw => left.splice(draw % left.length, 1)[0] ?? 0)
          }),
        ),
      )
      return { old, brokers, partitions, factor }
    })
}

test('every plan keeps the number of replicas, repeats none, and uses only the brokers given', () => {
  fc.assert(
    fc.property(clusters({ racks: 3, hosts: true, topics: 4 }), ({ brokers, partitions, factor }) => {
      const ids = new Set(brokers.map(({ id }) => id))
      for (const { before, replicas, topic, partition } of planReassignment(brokers, partitions)) {
        assert.equal(replicas.length, factor)
        assert.equal(new Set(replicas).size, factor)
        assert.ok(replicas.every(id => ids.has(id)))
        assert.notDeepEqual(replicas, before)
        const source = partitions.find(each => each.topic === topic && each.partition === partition)
        assert.equal(source?.replicas, before)
      }
    }),
  )
})

test('a plan that was done leaves nothing to do', () => {
  fc.assert(
    fc.property(clusters({ racks: 3, hosts: true, topics: 4 }), ({ brokers, partitions }) => {
      const done = after(partitions, planReassignment(brokers, partitions))
      assert.deepEqual(planReassignment(brokers, done), [])
    }),
  )
})

test('without racks replicas and leaders are even, in each topic and in all', () => {
  fc.assert(
    fc.property(clusters({ racks: 0, hosts: false, topics: 5 }), ({ brokers, partitions }) => {
      const done = after(partitions, planReassignment(brokers, partitions))
      for (const list of [done, ...Map.groupBy(done, ({ topic }) => topic).values()]) {
        assert.ok(isEven(counts(brokers, list)), `replicas ${counts(brokers, list)}`)
        assert.ok(isEven(counts(brokers, list, true)), `leaders ${counts(brokers, list, true)}`)
      }
    }),
  )
})

test('of one topic no more is copied to new brokers than they lack', () => {
  fc.assert(
    fc.property(clusters({ racks: 0, hosts: false, topics: 1 }), ({ old, brokers, partitions, factor }) => {
      const all = [...brokersOf(...old), ...brokers.filter(({ id }) => !old.includes(id))]
      const copies = planReassignment(all, partitions).reduce((sum, change) => sum + copiesOf(change), 0)
      // Whoever has most keeps most: the brokers' shares in the order of what they have.
      const have = counts(all, partitions).sort((a, b) => b - a)
      const total = partitions.length * factor
      const share = Math.floor(total / all.length)
      const larger = total % all.length
      const kept = have.reduce((sum, count, at) => sum + Math.min(count, at < larger ? share + 1 : share), 0)
      assert.equal(copies, total - kept)
    }),
  )
})

test('no choice of replicas that is as even copies less', () => {
  fc.assert(
    fc.property(clusters({ racks: 0, hosts: false, topics: 1 }), ({ brokers, partitions: many, factor }) => {
      fc.pre(brokers.length <= 5)
      const partitions = many.slice(0, 4)
      const copies = planReassignment(brokers, partitions).reduce((sum, change) => sum + copiesOf(change), 0)
      const ids = brokers.map(({ id }) => id)
      let least = Infinity
      const choose = (at: number, loads: readonly number[], copied: number): void => {
        const replicas = partitions[at]?.replicas
        if (replicas === undefined) {
          if (isEven(loads)) least = Math.min(least, copied)
          return
        }
        for (const choice of choices(ids, factor)) {
          const added = choice.filter(id => !replicas.includes(id)).length
          choose(
            at + 1,
            loads.map((load, index) => load + Number(choice.includes(ids[index] ?? -1))),
            copied + added,
          )
        }
      }
      choose(
        0,
        ids.map(() => 0),
        0,
      )
      assert.equal(copies, least)
    }),
  )
})

test('replicas share a host or a rack only where there are too few', () => {
  fc.assert(
    fc.property(clusters({ racks: 3, hosts: true, topics: 3 }), ({ brokers, partitions, factor }) => {
      const done = after(partitions, planReassignment(brokers, partitions))
      // The fewest pairs of hosts, and among those of racks, that any choice of brokers has.
      let best = [Infinity, Infinity]
      for (const choice of choices(
        brokers.map(({ id }) => id),
        factor,
      )) {
        const found = [pairs(brokers, choice, 'host'), pairs(brokers, choice, 'rack')]
        if (isLess(found, best)) best = found
      }
      for (const { replicas } of done) {
        assert.deepEqual([pairs(brokers, replicas, 'host'), pairs(brokers, replicas, 'rack')], best)
      }
    }),
    { numRuns: 200 },
  )
})

function* choices(ids: readonly number[], count: number): Generator<number[]> {
  if (count === 0) yield []
  for (const [at, id] of ids.entries()) {
    if (count > 0) for (const rest of choices(ids.slice(at + 1), count - 1)) yield [id, ...rest]
  }
}

function isLess(a: readonly number[], b: readonly number[]): boolean {
  const at = a.findIndex((value, index) => value !== b[index])
  return at >= 0 && (a[at] ?? 0) < (b[at] ?? 0)
}

test('racks of one size are even too', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 3 }),
      fc.integer({ min: 2, max: 4 }),
      fc.array(fc.array(fc.nat(1000), { minLength: 3, maxLength: 3 }), { maxLength: 30 }),
      (perRack, racks, draws) => {
        const brokers = Array.from({ length: perRack * racks }, (_, at) => ({
          id: at,
          host: `h${at}`,
          rack: `r${at % racks}`,
        }))
        const factor = Math.min(3, racks)
        const partitions = partitionsOf(
          'a',
          draws.map(draw => {
            const left = brokers.map(({ id }) => id)
            return draw.slice(0, factor).map(each => left.splice(each % left.length, 1)[0] ?? 0)
          }),
        )
        const done = after(partitions, planReassignment(brokers, partitions))
        assert.ok(isEven(counts(brokers, done)), `${counts(brokers, done)}`)
        assert.ok(isEven(counts(brokers, done, true)), `leaders ${counts(brokers, done, true)}`)
      },
    ),
  )
})

test('a large cluster is even too', () => {
  const partitions = Array.from({ length: 6_000 }, (_, at) => ({
    topic: `t${at % 50}`,
    partition: Math.floor(at / 50),
    replicas: [0, 1, 2].map(turn => (at + turn) % 18),
  }))
  const brokers = Array.from({ length: 21 }, (_, id) => ({ id, host: `h${id}`, rack: `r${id % 3}` }))
  const changes = planReassignment(brokers, partitions)
  const changed = new Map(changes.map(change => [`${change.topic}-${change.partition}`, change]))
  const done = partitions.map(each => changed.get(`${each.topic}-${each.partition}`) ?? each)
  assert.ok(isEven(counts(brokers, done)))
  assert.ok(isEven(counts(brokers, done, true)))
})

test('very many partitions of one topic are planned, with as few copies as can be', () => {
  const ring = Array.from({ length: 3000 }, (_, partition) => [0, 1, 2].map(each => ((partition + each) % 10) + 1))
  const brokers = brokersOf(...Array.from({ length: 20 }, (_, index) => index + 1))
  const partitions = partitionsOf('a', ring)
  const changes = planReassignment(brokers, partitions)
  assert.equal(
    changes.reduce((sum, change) => sum + copiesOf(change), 0),
    4500,
  )
  assert.ok(isEven(counts(brokers, after(partitions, changes))))
})
