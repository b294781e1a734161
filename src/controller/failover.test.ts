import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ErrorCode } from '#protocol/errors.ts'
import { NO_DISK_FAULTS } from '#world/fake/fake-disk.ts'
import { Simulation } from '#world/fake/simulation.ts'
import { Client, startController } from './testing/rig.ts'

async function started(simulation: Simulation) {
  const machine = simulation.node('controller')
  const controller = await startController(machine.world, '/data', {}, machine.host)
  const client = await Client.connect(simulation.node('client').world, controller.address)
  await client.register()
  await client.heartbeat()
  return { machine, controller, client }
}

test('a disk that fails ends the term; when it is well again the next begins, with what was acknowledged', async () => {
  const simulation = new Simulation(1)
  await simulation.run(
    (async () => {
      const { machine, controller, client } = await started(simulation)
      assert.equal((await client.createTopic('before'))?.errorCode, 0)
      machine.disk.faults = { ...NO_DISK_FAULTS, writeFails: 1, syncFails: 1 }
      assert.equal((await client.createTopic('refused'))?.errorCode, ErrorCode.NOT_CONTROLLER)
      assert.equal(controller.isActive, false)
      client.leaderEpoch = 1
      assert.equal((await client.fetch(0, 0)).errorCode, ErrorCode.NOT_LEADER_OR_FOLLOWER)
      assert.equal((await client.heartbeat()).errorCode, ErrorCode.NOT_CONTROLLER)
      await simulation.wait(3000)
      assert.equal(controller.isActive, false)
      machine.disk.faults = { ...NO_DISK_FAULTS }
      await simulation.wait(5000)
      assert.equal(controller.isActive, true)
      assert.ok(controller.epoch > 1)
      const image = await client.follow()
      assert.ok(image.topicByName('before') !== undefined)
      assert.equal(image.topicByName('refused'), undefined)
      await client.heartbeat()
      assert.equal((await client.createTopic('after'))?.errorCode, 0)
      await controller.stop()
    })(),
  )
})

test('a broker that falls silent is fenced when its session ends, and not before', async () => {
  const simulation = new Simulation(2)
  await simulation.run(
    (async () => {
      const { controller, client } = await started(simulation)
      await client.createTopic('led', 2)
      await client.heartbeat()
      await simulation.wait(8900)
      assert.equal(controller.image?.broker(1)?.fenced, false)
      await simulation.wait(200)
      assert.equal(controller.image?.broker(1)?.fenced, true)
      assert.equal(controller.image.topicByName('led')?.partitions[1]?.leader, -1)
      const { nextOffset } = controller
      await simulation.wait(600_000)
      assert.equal(controller.nextOffset, nextOffset)
      await controller.stop()
    })(),
  )
})

test('an hour makes a snapshot if something was written, and none if nothing was', async () => {
  const simulation = new Simulation(3)
  await simulation.run(
    (async () => {
      const { machine, controller } = await started(simulation)
      const snapshots = async () =>
        (await machine.world.disk.list('/data/__cluster_metadata-0')).filter(({ name }) => name.endsWith('.checkpoint'))
      await simulation.wait(3_590_000)
      assert.equal((await snapshots()).length, 0)
      await simulation.wait(20_000)
      assert.equal((await snapshots()).length, 1)
      await simulation.wait(3 * 3_600_000)
      assert.equal((await snapshots()).length, 1)
      await controller.stop()
    })(),
    24 * 3_600_000,
  )
})
