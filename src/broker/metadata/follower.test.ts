import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MetadataDelta } from '#core/metadata/delta.ts'
import { type MetadataRecord, metadataRecord } from '#core/metadata/record.ts'
import { encodeToBuffer } from '#protocol/codec.ts'
import { KRaftVersionRecord } from '#protocol/records/control-records.ts'
import { buildControlBatch, type ControlRecord } from '#records/control.ts'
import { Simulation } from '#world/fake/simulation.ts'
import { Deadlines } from '../deadlines.ts'
import { ControllerLink } from './controller-link.ts'
import { Controllers } from './controllers.ts'
import { MetadataFollower } from './follower.ts'
import { ControllerDouble, snapshotOf } from './testing/controller-double.ts'

const METADATA_VERSION = 30

/** A follower beside a controller whose log is the test's. */
class Rig extends ControllerDouble {
  readonly simulation: Simulation
  readonly changes: MetadataDelta[] = []
  /** How long the broker takes to act on a change. */
  actsMs = 0
  readonly follower: MetadataFollower

  constructor(simulation: Simulation) {
    super(simulation.node('controller'), simulation.node('broker'))
    this.simulation = simulation
    const { world } = this.asking
    this.follower = new MetadataFollower({
      nodeId: 4,
      clusterId: 'MkU3OEVBNTcwNTJENDM2Qk',
      link: this.link,
      controllers: this.controllers,
      clock: world.clock,
      deadlines: new Deadlines(world.clock),
      log: world.log,
      changed: async delta => {
        if (this.actsMs > 0) await new Promise<void>(resolve => world.clock.after(this.actsMs, resolve))
        this.changes.push(delta)
      },
    })
  }

  topic(name: string): MetadataRecord {
    return metadataRecord('Topic', METADATA_VERSION, { name, topicId: this.uuid() })
  }

  get topics(): string[] {
    return [...this.follower.image.topics.values()].map(({ name }) => name).sort()
  }
}

function followerTest(name: string, body: (rig: Rig) => Promise<void>): void {
  test(name, async () => {
    const rig = new Rig(new Simulation(11))
    await rig.simulation.run(
      (async () => {
        const server = await rig.listen()
        rig.follower.start()
        await body(rig)
        rig.follower.stop()
        rig.link.close()
        await server.close()
      })(),
    )
  })
}

followerTest('what is committed is in the image, in order and once; what is not may still change', async rig => {
  rig.append([rig.topic('a'), rig.topic('b')])
  rig.append([rig.topic('c')], false)
  await rig.simulation.wait(1000)
  assert.deepEqual([rig.topics, rig.follower.appliedOffset], [['a', 'b'], 2])
  rig.cutTo(2)
  rig.append([rig.topic('d')])
  await rig.simulation.wait(1000)
  assert.deepEqual([rig.topics, rig.follower.appliedOffset], [['a', 'b', 'd'], 3])
  assert.equal(
    rig.changes.reduce((count, { topics }) => count + topics.size, 0),
    3,
  )
})

followerTest('a log with a gap is not taken: what lies in it would never come', async rig => {
  rig.append([rig.topic('a')])
  await rig.simulation.wait(1000)
  rig.nextOffset = 5
  rig.append([rig.topic('f')])
  await rig.simulation.wait(5000)
  assert.deepEqual([rig.topics, rig.follower.appliedOffset], [['a'], 1])
})

test('a broker whose own controller has a damaged log reads on from another one', async () => {
  const simulation = new Simulation(3)
  const own = new ControllerDouble(simulation.node('own'), simulation.node('broker'))
  const other = new ControllerDouble(simulation.node('other'), simulation.node('broker'))
  await simulation.run(
    (async () => {
      const servers = [await own.listen(), await other.listen()]
      const { world } = own.asking
      const [home, away] = [own, other].map(({ machine: { host } }) => ({ host, port: 9093 }))
      assert.ok(home !== undefined && away !== undefined)
      const controllers = new Controllers([home, away], 'CONTROLLER')
      const link = new ControllerLink(world, controllers, 'test', world.log, home)
      const follower = new MetadataFollower({
        nodeId: 4,
        clusterId: null,
        link,
        controllers,
        clock: world.clock,
        deadlines: new Deadlines(world.clock),
        log: world.log,
        changed: async () => {},
      })
      for (const name of ['a', 'b', 'c']) {
        const topic = [metadataRecord('Topic', METADATA_VERSION, { name, topicId: own.uuid() })]
        if (name === 'b') own.rots = true
        for (const each of [own, other]) each.append(topic)
        own.rots = false
      }
      follower.start()
      await simulation.wait(5000)
      assert.deepEqual([...follower.image.topics.values()].map(({ name }) => name).sort(), ['a', 'b', 'c'])
      follower.stop()
      link.close()
      for (const server of servers) await server.close()
    })(),
  )
})

followerTest('who waits is told when the broker has acted on the change, not before', async rig => {
  rig.actsMs = 5000
  const { clock } = rig.asking.world
  const begun = clock.monotonic()
  rig.append([rig.topic('a')])
  await rig.follower.when(() => rig.follower.appliedOffset >= 1)
  assert.ok(clock.monotonic() - begun >= 5000)
  assert.equal(rig.changes.length, 1)
})

followerTest('a controller that leads no more is asked again until there is one, and nothing is lost', async rig => {
  rig.append([rig.topic('a')])
  await rig.simulation.wait(1000)
  rig.isLeader = false
  rig.append([rig.topic('b')])
  await rig.simulation.wait(5000)
  assert.deepEqual(rig.topics, ['a'])
  rig.isLeader = true
  await rig.simulation.wait(2000)
  assert.deepEqual(rig.topics, ['a', 'b'])
})

followerTest(
  'a snapshot replaces what was known: what it does not have is gone, and the log goes on behind it',
  async rig => {
    const kept = rig.topic('kept')
    rig.append([kept, rig.topic('gone')])
    await rig.simulation.wait(1000)
    assert.deepEqual(rig.topics, ['gone', 'kept'])
    rig.snapshot = { endOffset: 10, bytes: snapshotOf([kept, rig.topic('new')]) }
    rig.nextOffset = 10
    rig.append([rig.topic('later')])
    await rig.simulation.wait(2000)
    assert.deepEqual([rig.topics, rig.follower.appliedOffset], [['kept', 'later', 'new'], 11])
    const deleted = rig.changes.flatMap(({ deletedTopics }) => [...deletedTopics.values()].map(({ name }) => name))
    assert.deepEqual(deleted, ['gone'])
  },
)

followerTest('a snapshot comes over a way that carries no large piece of it in time', async rig => {
  rig.snapshotMsPerByte = 0.005
  rig.snapshot = { endOffset: 10, bytes: snapshotOf([rig.topic('new')]) }
  rig.nextOffset = 10
  rig.highWatermark = 10
  await rig.simulation.wait(300_000)
  assert.deepEqual([rig.topics, rig.follower.appliedOffset], [['new'], 10])
})

followerTest('a damaged snapshot is not taken: what it lacks would be deleted', async rig => {
  const kept = rig.topic('kept')
  rig.append([kept, rig.topic('also')])
  await rig.simulation.wait(1000)
  const whole = snapshotOf([kept, rig.topic('new')])
  rig.nextOffset = 10
  // The second batch, whose length is wrong, reads like the end of the bytes; without it the first one reads well.
  const cut = Buffer.from(whole.subarray(0, -20))
  const flipped = Buffer.from(whole)
  flipped[100] = (flipped[100] ?? 0) ^ 1
  for (const bytes of [cut, flipped]) {
    rig.snapshot = { endOffset: 10, bytes }
    await rig.simulation.wait(5000)
    assert.deepEqual(rig.topics, ['also', 'kept'])
  }
  rig.snapshot = { endOffset: 10, bytes: whole }
  await rig.simulation.wait(8000)
  assert.deepEqual(rig.topics, ['kept', 'new'])
})

followerTest('a setting or a broker that a snapshot does not have any more is a change like others', async rig => {
  const topic = rig.topic('kept')
  const minIsr = { resourceType: 2, resourceName: 'kept', name: 'min.insync.replicas', value: '1' }
  rig.append([
    topic,
    metadataRecord('Config', METADATA_VERSION, minIsr),
    metadataRecord('RegisterBroker', METADATA_VERSION, { brokerId: 9, brokerEpoch: 2 }),
  ])
  await rig.simulation.wait(1000)
  rig.changes.length = 0
  rig.snapshot = { endOffset: 10, bytes: snapshotOf([topic]) }
  rig.nextOffset = 10
  rig.append([rig.topic('later')])
  await rig.simulation.wait(2000)
  const [change] = rig.changes
  assert.deepEqual([...(change?.configs.values() ?? [])], [{ type: 2, name: 'kept' }])
  assert.deepEqual([...(change?.brokers ?? [])], [9])
})

followerTest(
  'a controller that lacks what was committed is asked again until it has it, and not without pause',
  async rig => {
    rig.append([rig.topic('a')])
    await rig.simulation.wait(1000)
    rig.isOther = true
    const before = rig.fetched.length
    await rig.simulation.wait(10_000)
    const asked = rig.fetched.length - before
    assert.ok(asked > 0 && asked <= 200, `${asked} fetches in ten seconds`)
    rig.isOther = false
    rig.append([rig.topic('b')])
    await rig.simulation.wait(2000)
    assert.deepEqual(rig.topics, ['a', 'b'])
  },
)

followerTest('what cannot be read is tried again with a pause, and what came before it is acted on', async rig => {
  rig.append([rig.topic('a')])
  await rig.simulation.wait(1000)
  rig.tellsAll = true
  rig.append([rig.topic('b')])
  rig.append([{ type: 'Unreadable' } as unknown as MetadataRecord])
  const before = rig.fetched.length
  await rig.simulation.wait(10_000)
  const asked = rig.fetched.length - before
  assert.ok(asked > 0 && asked <= 20, `${asked} fetches in ten seconds`)
  assert.deepEqual([rig.topics, rig.follower.appliedOffset], [['a', 'b'], 2])
  assert.equal(rig.changes.length, 2)
})

followerTest('kraft.version is known from the log, or from a snapshot, once it is committed', async rig => {
  const version = (kRaftVersion: number): ControlRecord => {
    return { type: 'kraftVersion', value: encodeToBuffer(KRaftVersionRecord, 0, { version: 0, kRaftVersion }) }
  }
  rig.append([rig.topic('a')])
  rig.appendControl([version(1)], false)
  await rig.simulation.wait(1000)
  assert.equal(rig.follower.kraftVersion, 0)
  rig.highWatermark = rig.nextOffset
  rig.append([rig.topic('b')])
  await rig.simulation.wait(1000)
  assert.equal(rig.follower.kraftVersion, 1)
  const of = { baseOffset: 0, leaderEpoch: 3, timestamp: 0 }
  for (const [endOffset, records, level] of [
    [10, [], 0],
    [20, [version(1)], 1],
  ] as const) {
    const control = records.length === 0 ? [] : [buildControlBatch(of, records)]
    rig.snapshot = { endOffset, bytes: Buffer.concat([...control, snapshotOf([rig.topic('c')])]) }
    rig.nextOffset = endOffset
    rig.append([rig.topic('d')])
    await rig.simulation.wait(2000)
    assert.equal(rig.follower.kraftVersion, level)
  }
})

followerTest('nobody waits for ever for a follower that stops', async rig => {
  const never = rig.follower.when(() => false)
  rig.follower.stop()
  await never
})
