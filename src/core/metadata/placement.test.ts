import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { MetadataImage } from './image.ts'
import { Placement } from './placement.ts'
import { metadataRecord } from './record.ts'

interface Node {
  readonly host?: string
  readonly rack?: string | null
  readonly fenced?: boolean
}

function cluster(nodes: readonly Node[]): MetadataImage {
  const image = new MetadataImage()
  for (const [index, { host, rack, fenced }] of nodes.entries()) {
    const endPoints = [{ name: 'P', host: host ?? `host${index}`, port: 9092, securityProtocol: 0 }]
    const brokerId = index + 1
    const record = metadataRecord('RegisterBroker', 30, {
      brokerId,
      endPoints,
      rack: rack ?? null,
      fenced: fenced ?? false,
    })
    image.apply(record, index, 0)
  }
  return image
}

function spread(counts: Iterable<number>): number {
  const all = [...counts]
  return Math.max(...all) - Math.min(...all)
}

function count(ids: Iterable<number>, brokers: number): number[] {
  const counts = new Array<number>(brokers).fill(0)
  for (const id of ids) counts[id - 1] = (counts[id - 1] ?? 0) + 1
  return counts
}

test('leaders and replicas are even, and the partitions of one leader have different followers', () => {
  const brokers = 6
  const placed = new Placement(cluster(Array.from({ length: brokers }, () => ({})))).place(60, 3)
  assert.ok(
    spread(
      count(
        placed.map(replicas => replicas[0] as number),
        brokers,
      ),
    ) <= 1,
  )
  assert.ok(spread(count(placed.flat(), brokers)) <= 1)
  const followersOfFirst = new Set(placed.filter(([leader]) => leader === 1).flatMap(replicas => replicas.slice(1)))
  assert.ok(followersOfFirst.size >= 4, `the followers of broker 1 are ${[...followersOfFirst]}`)
})

test('each topic by itself is even, wherever the others are', () => {
  const image = cluster([{}, {}, {}])
  image.apply(metadataRecord('Topic', 30, { name: 'old', topicId: 'AACrzQAAAAAAAAAAAA9CQQ' }), 9, 0)
  for (let partitionId = 0; partitionId < 10; partitionId++) {
    image.apply(
      metadataRecord('Partition', 30, { partitionId, topicId: 'AACrzQAAAAAAAAAAAA9CQQ', replicas: [1] }),
      9,
      0,
    )
  }
  const placed = new Placement(image).place(6, 1)
  assert.deepEqual(count(placed.flat(), 3), [2, 2, 2])
  assert.deepEqual(new Placement(image).place(1, 1), [[2]])
})

test('no host has two replicas while there is another, then no rack', () => {
  const image = cluster([
    { host: 'a', rack: 'r1' },
    { host: 'a', rack: 'r1' },
    { host: 'b', rack: 'r1' },
    { host: 'c', rack: 'r2' },
    { host: 'c', rack: 'r2' },
  ])
  const hosts = ['a', 'a', 'b', 'c', 'c']
  for (const replicas of new Placement(image).place(50, 2)) {
    assert.equal(new Set(replicas.map(id => hosts[id - 1])).size, 2)
    assert.equal(new Set(replicas.map(id => (id <= 3 ? 'r1' : 'r2'))).size, 2)
  }
  for (const replicas of new Placement(image).place(50, 3)) {
    assert.equal(new Set(replicas.map(id => hosts[id - 1])).size, 3)
  }
})

test('a host is where brokers reach each other, whatever clients are told', () => {
  const image = new MetadataImage()
  const register = (brokerId: number, clients: string, brokers: string) =>
    image.apply(
      metadataRecord('RegisterBroker', 30, {
        brokerId,
        endPoints: [
          { name: 'PUBLIC', host: clients, port: 9092, securityProtocol: 0 },
          { name: 'INTERNAL', host: brokers, port: 9091, securityProtocol: 0 },
        ],
        fenced: false,
      }),
      brokerId,
      0,
    )
  register(1, 'gateway', 'a')
  register(2, 'gateway', 'A')
  register(3, 'gateway', 'b')
  for (const replicas of new Placement(image, 'INTERNAL').place(30, 2)) assert.ok(replicas.includes(3))
})

test('brokers of one machine are spread over, and never taken for two machines', () => {
  const image = cluster([{ host: 'localhost' }, { host: '127.0.0.1' }, { host: 'b' }, { host: 'b' }])
  for (const replicas of new Placement(image).place(40, 2))
    assert.deepEqual(replicas.map(id => (id <= 2 ? 0 : 1)).sort(), [0, 1])
  const placed = new Placement(cluster([{ host: 'a' }, { host: 'a' }, { host: 'a' }])).place(30, 3)
  assert.deepEqual(
    count(
      placed.map(([leader = 0]) => leader),
      3,
    ),
    [10, 10, 10],
  )
})

test('hosts come before racks, and racks before chance', () => {
  const hosts = ['a', 'a', 'b', 'c', 'c', 'd']
  const racks = ['r', 'r', 'r', 's', 's', 't']
  const image = cluster(hosts.map((host, at) => ({ host, rack: racks[at] ?? null })))
  const distinct = (of: readonly string[], replicas: readonly number[]) => new Set(replicas.map(id => of[id - 1])).size
  for (const replicas of new Placement(image).place(60, 3)) assert.equal(distinct(racks, replicas), 3)
  for (const replicas of new Placement(image).place(60, 4)) {
    assert.equal(distinct(hosts, replicas), 4)
    assert.equal(distinct(racks, replicas), 3)
  }
  for (const replicas of new Placement(image).place(60, 5)) assert.equal(distinct(hosts, replicas), 4)
})

test('fenced brokers come last and never lead; too few are a problem', () => {
  const image = cluster([{}, { fenced: true }, {}])
  for (const replicas of new Placement(image).place(20, 2)) assert.ok(!replicas.includes(2))
  for (const replicas of new Placement(image).place(20, 3)) assert.equal(replicas[2], 2)
  assert.match(new Placement(image).problem(4) ?? '', /only 3 broker/)
  assert.match(new Placement(cluster([{ fenced: true }])).problem(1) ?? '', /fenced/)
  assert.equal(new Placement(image).problem(3), undefined)
})

test('any cluster: replicas differ, there are as many as asked, the same cluster gives the same', () => {
  const node = fc.record({
    host: fc.constantFrom('a', 'b', 'c'),
    rack: fc.constantFrom(null, 'r', 's'),
    fenced: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(node, { minLength: 1, maxLength: 8 }), fc.integer({ min: 1, max: 8 }), (nodes, factor) => {
      const image = cluster(nodes)
      if (new Placement(image).problem(factor) !== undefined) return
      const placed = new Placement(image).place(20, factor)
      for (const replicas of placed) {
        assert.equal(replicas.length, factor)
        assert.equal(new Set(replicas).size, factor)
      }
      assert.deepEqual(new Placement(image).place(20, factor), placed)
    }),
  )
})
