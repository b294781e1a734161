import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiVersions } from '#network/api-versions.ts'
import { ChannelError } from '#network/channel.ts'
import { DEFAULT_CONNECTION_LIMITS } from '#network/connection.ts'
import { MemoryBudget } from '#network/memory-budget.ts'
import { Server } from '#network/server.ts'
import { type Service, serve, service } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { FakeNode } from '#world/fake/fake-node.ts'
import { Simulation } from '#world/fake/simulation.ts'
import { ControllerLink } from './controller-link.ts'
import { Controllers } from './controllers.ts'

const PORT = 9093
const NO_FEATURES = { supported: new Map(), finalized: new Map(), epoch: 0 }

/** Machines 1 to 3 are controllers of which one is active; 4 asks; 5 is a broker. */
class Rig {
  readonly simulation: Simulation
  readonly asked: string[] = []
  active = 1
  readonly controllers: Controllers
  readonly link: ControllerLink

  constructor(seed: number, named: readonly number[] = [1, 2, 3]) {
    this.simulation = new Simulation(seed)
    // So that each machine has its address, whoever is used first.
    for (let id = 1; id <= 5; id++) this.machine(id)
    const addresses = named.map(id => this.address(id))
    this.controllers = new Controllers(addresses, 'CONTROLLER')
    const { world } = this.machine(4)
    this.link = new ControllerLink(world, this.controllers, 'test', world.log)
  }

  machine(id: number): FakeNode {
    return this.simulation.node(`m${id}`)
  }

  address(id: number) {
    return { id, nodeId: id, host: this.machine(id).host, port: PORT }
  }

  async serve(id: number): Promise<Server> {
    const heartbeat = serve({
      api: API.BrokerHeartbeat,
      handle: () => {
        this.asked.push(`${id}`)
        return { errorCode: this.active === id ? ErrorCode.NONE : ErrorCode.NOT_CONTROLLER }
      },
    })
    return await this.#listen(id, [heartbeat])
  }

  /** A broker, which knows who votes. */
  async serveBroker(id: number): Promise<Server> {
    const cluster = serve({ api: API.DescribeCluster, handle: () => ({ clusterId: 'c', brokers: [] }) })
    const quorum = serve({
      api: API.DescribeQuorum,
      handle: () => ({
        topics: [
          {
            topicName: '__cluster_metadata',
            partitions: [
              {
                partitionIndex: 0,
                currentVoters: [1, 2, 3].map(replicaId => ({ replicaId, logEndOffset: 1 })),
                observers: [{ replicaId: 5, logEndOffset: 1 }],
              },
            ],
          },
        ],
        nodes: [1, 2, 3].map(nodeId => {
          const { host, port } = this.address(nodeId)
          return { nodeId, listeners: [{ name: 'CONTROLLER', host, port }] }
        }),
      }),
    })
    return await this.#listen(id, [cluster, quorum])
  }

  async #listen(id: number, apis: Parameters<typeof service>[0]): Promise<Server> {
    const all: Service = service([
      ...apis,
      apiVersions(
        () => all,
        () => NO_FEATURES,
      ),
    ])
    const { world, host } = this.machine(id)
    return await Server.listen(
      {
        name: 'CONTROLLER',
        address: { host, port: PORT },
        service: all,
        limits: DEFAULT_CONNECTION_LIMITS,
        budget: new MemoryBudget(1_000_000, world.clock),
        idleMs: 600_000,
        connectionsMax: 100,
        connectionsPerHostMax: 100,
      },
      world.network,
      world.clock,
      world.log,
    )
  }

  /** Asks until it is taken, as a broker's life does. Returns how long that took. */
  async beat(): Promise<number> {
    const { clock } = this.machine(4).world
    const begun = clock.monotonic()
    for (;;) {
      try {
        const { errorCode } = await this.link.ask(API.BrokerHeartbeat, { brokerId: 4 }, 4000)
        if (errorCode === ErrorCode.NONE) {
          this.link.wasTaken()
          return clock.monotonic() - begun
        }
        this.link.lookElsewhere()
      } catch (error) {
        if (!(error instanceof ChannelError)) throw error
      }
      await this.link.rest()
    }
  }
}

function rigTest(name: string, body: (rig: Rig) => Promise<void>, named?: readonly number[]): void {
  test(name, async () => {
    const rig = new Rig(1, named)
    await rig.simulation.run(body(rig).finally(() => rig.link.close()))
  })
}

rigTest('the active controller is found among those that say they are not', async rig => {
  for (const id of [1, 2, 3]) await rig.serve(id)
  rig.active = 3
  assert.ok((await rig.beat()) < 100)
  assert.equal(rig.asked.at(-1), '3')
  rig.asked.length = 0
  await rig.beat()
  assert.deepEqual(rig.asked, ['3'])
})

rigTest('one that died is left at once for the next', async rig => {
  for (const id of [1, 2, 3]) await rig.serve(id)
  await rig.beat()
  rig.machine(1).crash()
  rig.active = 2
  await rig.simulation.wait(10)
  assert.ok((await rig.beat()) < 100)
  assert.deepEqual(rig.asked, ['1', '2'])
})

rigTest('news of another leader are followed without asking the one before', async rig => {
  for (const id of [1, 2, 3]) await rig.serve(id)
  await rig.beat()
  rig.active = 3
  rig.controllers.heard(3, 5, [rig.address(3)])
  await rig.beat()
  assert.deepEqual(rig.asked, ['1', '3'])
  // Older news change nothing.
  rig.controllers.heard(2, 4, [rig.address(2)])
  await rig.beat()
  assert.deepEqual(rig.asked, ['1', '3', '3'])
})

rigTest('what waits before it tries again wakes with the news', async rig => {
  for (const id of [1, 2, 3]) await rig.serve(id)
  rig.active = 0
  const taken = rig.beat()
  await rig.simulation.wait(2000)
  rig.active = 2
  rig.controllers.heard(2, 7, [rig.address(2)])
  const at = rig.simulation.schedule.now
  await taken
  assert.ok(rig.simulation.schedule.now - at < 20_000, 'within 20 ms of the news')
})

rigTest('several that are told at once that one is not active move on once', async rig => {
  for (const id of [1, 2, 3]) await rig.serve(id)
  await rig.beat()
  rig.active = 2
  await Promise.all([rig.beat(), rig.beat(), rig.beat()])
  assert.deepEqual(rig.asked, ['1', '1', '1', '1', '2', '2', '2'])
})

rigTest('who waits for a controller that stands still is told soon after there is another', async rig => {
  for (const id of [1, 2, 3]) await rig.serve(id)
  await rig.beat()
  rig.simulation.network.cut(rig.machine(1), rig.machine(4))
  const asked = rig.link.ask(API.BrokerHeartbeat, { brokerId: 4 }, 30_000)
  await rig.simulation.wait(2000)
  rig.active = 2
  rig.controllers.heard(2, 5, [rig.address(2)])
  const at = rig.simulation.schedule.now
  await assert.rejects(asked, { code: 'closed' })
  assert.ok(rig.simulation.schedule.now - at < 1_000_000)
  assert.ok((await rig.beat()) < 100)
})

rigTest('one that is cut off costs a fifth of a second, not a connection time-out', async rig => {
  for (const id of [1, 2, 3]) await rig.serve(id)
  rig.active = 2
  rig.simulation.network.cut(rig.machine(4), rig.machine(1))
  assert.ok((await rig.beat()) < 400)
})

rigTest(
  'a broker tells where the controllers are',
  async rig => {
    for (const id of [1, 2, 3]) await rig.serve(id)
    await rig.serveBroker(5)
    rig.active = 2
    assert.ok((await rig.beat()) < 100)
    assert.equal(rig.asked.at(-1), '2')
  },
  [5],
)

rigTest('with nobody there it asks on, and finds whoever comes', async rig => {
  const taken = rig.beat()
  await rig.simulation.wait(30_000)
  await rig.serve(1)
  const at = rig.simulation.schedule.now
  await taken
  assert.ok(rig.simulation.schedule.now - at < 600_000)
})

rigTest('a link with a home leaves it while it does not serve, and comes back', async rig => {
  for (const id of [1, 2, 3]) await rig.serve(id)
  const { world } = rig.machine(4)
  const link = new ControllerLink(world, rig.controllers, 'test', world.log, rig.address(2))
  const askedAt = async (): Promise<string | undefined> => {
    await link.ask(API.BrokerHeartbeat, { brokerId: 4 }, 4000)
    return rig.asked.at(-1)
  }
  assert.equal(await askedAt(), '2')
  assert.equal(await askedAt(), '2')
  link.lookElsewhere()
  assert.equal(await askedAt(), '1')
  assert.equal(await askedAt(), '1')
  await rig.simulation.wait(5000)
  assert.equal(await askedAt(), '2')
  link.close()
})
