import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BrokerConfigs } from '#core/config/broker-configs.ts'
import { MetadataImage } from '#core/metadata/image.ts'
import { metadataRecord } from '#core/metadata/record.ts'
import type { Server } from '#network/server.ts'
import { serve } from '#network/service.ts'
import { serving } from '#network/testing/serving.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode, errorOf } from '#protocol/errors.ts'
import { Simulation } from '#world/fake/simulation.ts'
import type { Broker } from './broker.ts'
import { ControllerLink } from './metadata/controller-link.ts'
import { Controllers } from './metadata/controllers.ts'
import { TopicCreation } from './topic-creation.ts'

const PORT = 9093

/** A controller of a quorum: whether it is the active one, and how often it was asked for topics. */
class Double {
  isActive = false
  asked = 0

  async listen(simulation: Simulation, host: string): Promise<Server> {
    const createTopics = serve({
      api: API.CreateTopics,
      handle: ({ topics }) => {
        this.asked++
        const errorCode = this.isActive ? ErrorCode.NONE : ErrorCode.NOT_CONTROLLER
        return { topics: topics.map(({ name }) => ({ name, errorCode })) }
      },
    })
    const heartbeat = serve({ api: API.BrokerHeartbeat, handle: () => ({ errorCode: ErrorCode.NOT_CONTROLLER }) })
    const served = { machine: simulation.node(host), name: 'CONTROLLER', port: PORT }
    return await serving(served, [createTopics, heartbeat])
  }
}

test('a topic is created by the active controller, though the way led to another one', async () => {
  const simulation = new Simulation(11)
  await simulation.run(
    (async () => {
      const first = new Double()
      const second = new Double()
      second.isActive = true
      const servers = [await first.listen(simulation, 'first'), await second.listen(simulation, 'second')]
      const { world } = simulation.node('broker')
      const addresses = ['first', 'second'].map(host => ({ host, port: PORT }))
      const link = new ControllerLink(world, new Controllers(addresses, 'CONTROLLER'), 'broker-own-1', world.log)
      const broker = {
        world,
        configs: new BrokerConfigs({ nodeId: 1 }),
        metadata: { image: new MetadataImage(), caughtUp: () => Promise.resolve() },
      } as unknown as Broker
      const errors = await new TopicCreation(broker, link).autoCreate(['hello'])
      assert.deepEqual(
        [...errors].map(([name, code]) => [name, errorOf(code).name]),
        [['hello', 'LEADER_NOT_AVAILABLE']],
      )
      assert.deepEqual([first.asked, second.asked], [1, 1])
      // Nobody is active: who asked is told to ask again, not that the topic cannot be.
      second.isActive = false
      const later = await new TopicCreation(broker, link).autoCreate(['later'])
      assert.deepEqual(
        [...later].map(([name, code]) => [name, errorOf(code).name]),
        [['later', 'LEADER_NOT_AVAILABLE']],
      )
      link.close()
      for (const server of servers) await server.close()
    })(),
  )
})

test('committed offsets get as many copies as brokers are known, whoever of them is up at that moment', async () => {
  const image = new MetadataImage()
  for (const brokerId of [1, 2, 3, 4]) {
    const broker = { brokerId, brokerEpoch: brokerId, fenced: brokerId !== 1, inControlledShutdown: brokerId === 4 }
    image.apply(metadataRecord('RegisterBroker', 30, broker), brokerId, 1)
  }
  const asked: number[] = []
  const link = {
    ask: (
      _: object,
      { topics }: { topics: readonly { readonly name: string; readonly replicationFactor: number }[] },
    ) => {
      for (const { replicationFactor } of topics) asked.push(replicationFactor)
      return Promise.resolve({ topics: topics.map(({ name }) => ({ name, errorCode: ErrorCode.NONE })) })
    },
    wasTaken: () => {},
  } as unknown as ControllerLink
  const broker = {
    world: new Simulation(1).node('broker').world,
    configs: new BrokerConfigs({ nodeId: 1 }),
    metadata: { image, caughtUp: () => Promise.resolve() },
  } as unknown as Broker
  await new TopicCreation(broker, link).createOffsetsTopic()
  assert.deepEqual(asked, [3])
})
