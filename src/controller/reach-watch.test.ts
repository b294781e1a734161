import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ZERO_UUID } from '#base/uuid.ts'
import { MetadataImage } from '#core/metadata/image.ts'
import { metadataRecord } from '#core/metadata/record.ts'
import { serving } from '#network/testing/serving.ts'
import type { FakeNode } from '#world/fake/fake-node.ts'
import { Simulation } from '#world/fake/simulation.ts'
import { ReachWatch } from './reach-watch.ts'

const PORT = 9092
const VERSION = 25

/** A controller's machine that watches brokers on machines of their own, each of which listens. */
class Rig {
  readonly simulation: Simulation
  readonly brokers: FakeNode[] = []
  readonly image = new MetadataImage()
  /** What was told, in order. */
  readonly told: string[] = []
  readonly watch: ReachWatch

  constructor(simulation: Simulation) {
    this.simulation = simulation
    const machine = simulation.node('controller')
    this.watch = new ReachWatch({
      world: machine.world,
      nodeId: 100,
      logger: machine.world.log,
      image: () => this.image,
      interBrokerListener: 'PLAINTEXT',
      changed: (id, epoch, isReached) => this.told.push(`${id}@${epoch} ${isReached ? 'reached' : 'unreachable'}`),
    })
  }

  async add(count: number): Promise<void> {
    for (let index = 0; index < count; index++) {
      const machine = this.simulation.node(`broker-${this.brokers.length + 1}`)
      this.brokers.push(machine)
      await serving({ machine, name: 'PLAINTEXT', port: PORT }, [])
      this.register(this.brokers.length)
    }
  }

  register(brokerId: number): void {
    const { image } = this
    const offset = image.offset + 1
    const endPoints = [{ name: 'PLAINTEXT', host: `broker-${brokerId}`, port: PORT, securityProtocol: 0 }]
    const life = { brokerId, brokerEpoch: offset, incarnationId: ZERO_UUID, rack: null, logDirs: [], fenced: false }
    image.apply(metadataRecord('RegisterBroker', VERSION, { ...life, endPoints, features: [] }), offset, 1)
  }

  fence(brokerId: number, isFenced: boolean): void {
    const { image } = this
    const change = { brokerId, brokerEpoch: image.broker(brokerId)?.epoch ?? -1, fenced: isFenced ? 1 : -1 }
    image.apply(metadataRecord('BrokerRegistrationChange', VERSION, change), image.offset + 1, 1)
  }

  machine(id: number): FakeNode {
    return this.brokers[id - 1] as FakeNode
  }
}

function watching(seed: number, brokers: number, run: (rig: Rig) => Promise<void>): Promise<void> {
  const simulation = new Simulation(seed)
  const rig = new Rig(simulation)
  return simulation.run(
    rig.add(brokers).then(() => {
      rig.watch.begin()
      return run(rig).finally(() => rig.watch.end())
    }),
  )
}

test('who is walled in is told of after five seconds and no sooner, and again when it has answered for ten', async () => {
  await watching(1, 3, async rig => {
    const { simulation, told } = rig
    await simulation.wait(30_000)
    assert.deepEqual(told, [])
    simulation.network.wall(rig.machine(2))
    await simulation.wait(4500)
    assert.deepEqual(told, [])
    await simulation.wait(4000)
    assert.deepEqual(told, ['2@1 unreachable'])
    simulation.network.unwall(rig.machine(2))
    await simulation.wait(9000)
    assert.equal(told.length, 1)
    await simulation.wait(4000)
    assert.deepEqual(told.slice(1), ['2@1 reached'])
  })
})

test('a broker is doubted from its silence on until others are chosen, and before it has answered this controller', async () => {
  await watching(7, 3, async rig => {
    const { simulation, told, watch } = rig
    const doubted = (): boolean[] => [1, 2, 3, 100].map(id => watch.doubts(id))
    assert.deepEqual(doubted(), [true, true, true, false])
    await simulation.wait(3000)
    assert.deepEqual(doubted(), [false, false, false, false])
    simulation.network.wall(rig.machine(2))
    await simulation.wait(1900)
    assert.deepEqual(doubted(), [false, true, false, false])
    await simulation.wait(2500)
    assert.deepEqual(doubted(), [false, true, false, false])
    await simulation.wait(4000)
    assert.deepEqual([told, doubted()], [['2@1 unreachable'], [false, false, false, false]])
    // Where most are silent it is this controller that cannot dial.
    simulation.network.wall(rig.machine(1))
    simulation.network.wall(rig.machine(3))
    await simulation.wait(3000)
    assert.deepEqual(doubted(), [false, false, false, false])
  })
})

test('a way in that is broken for a moment again and again is no news', async () => {
  await watching(2, 3, async rig => {
    const { simulation, told } = rig
    for (let times = 0; times < 10; times++) {
      simulation.network.wall(rig.machine(1))
      await simulation.wait(2500)
      simulation.network.unwall(rig.machine(1))
      await simulation.wait(3000)
    }
    assert.deepEqual(told, [])
  })
})

test('who refuses is walled in as well, who closes is not: that is what quotas do', async () => {
  await watching(3, 3, async rig => {
    const { simulation, told } = rig
    rig.machine(1).crash()
    rig.machine(2).crash()
    await rig.machine(2).world.network.listen({ host: rig.machine(2).host, port: PORT }, socket => socket.destroy())
    await simulation.wait(20_000)
    assert.deepEqual(told, ['1@0 unreachable'])
  })
})

test('a controller that can dial hardly anybody says nothing of anybody', async () => {
  await watching(4, 4, async rig => {
    const { simulation, told } = rig
    for (const id of [1, 2, 3]) simulation.network.wall(rig.machine(id))
    await simulation.wait(20_000)
    assert.deepEqual(told, [])
    // Of three others one is silent yet: now it is the broker's way in, and not the controller's out.
    simulation.network.unwall(rig.machine(1))
    simulation.network.unwall(rig.machine(2))
    await simulation.wait(3000)
    assert.deepEqual(told, ['3@2 unreachable'])
  })
})

test('the only other broker is told of, too', async () => {
  await watching(5, 1, async rig => {
    const { simulation, told } = rig
    simulation.network.wall(rig.machine(1))
    await simulation.wait(8000)
    assert.deepEqual(told, ['1@0 unreachable'])
  })
})

test('a new life of a broker is asked anew, and nothing is asked when the term has ended', async () => {
  await watching(6, 2, async rig => {
    const { simulation, told, watch } = rig
    simulation.network.wall(rig.machine(1))
    await simulation.wait(8000)
    assert.deepEqual(told, ['1@0 unreachable'])
    rig.register(1)
    await simulation.wait(4000)
    assert.equal(told.length, 1)
    await simulation.wait(4000)
    assert.deepEqual(told.slice(1), ['1@2 unreachable'])
    watch.end()
    // What is under way arrives.
    await simulation.wait(100)
    const { count } = simulation.trace
    await simulation.wait(20_000)
    assert.equal(simulation.trace.count, count)
  })
})

test('who is fenced says nothing of how many are silent, and is looked at anew when it is back', async () => {
  await watching(7, 4, async rig => {
    const { simulation, told } = rig
    // Two are down, as the cluster knows before five seconds are over.
    for (const id of [1, 2]) simulation.network.wall(rig.machine(id))
    await simulation.wait(4000)
    for (const id of [1, 2]) rig.fence(id, true)
    await simulation.wait(4000)
    assert.deepEqual(told, [])
    simulation.network.wall(rig.machine(3))
    await simulation.wait(8000)
    assert.deepEqual(told, ['3@2 unreachable'])
    // The same life of a broker goes on: what it was silent before it was fenced is no five seconds of now.
    simulation.network.unwall(rig.machine(1))
    rig.fence(1, false)
    await simulation.wait(20_000)
    assert.deepEqual(told.slice(1), [])
  })
})

test('of very many brokers each is asked', async () => {
  await watching(8, 300, async rig => {
    rig.simulation.network.wall(rig.machine(300))
    await rig.simulation.wait(15_000)
    assert.deepEqual(rig.told, ['300@299 unreachable'])
  })
})
