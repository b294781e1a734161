import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ErrorCode } from '#protocol/errors.ts'
import type { FakeNode } from '#world/fake/fake-node.ts'
import { type Listener, WorldError } from '#world/world.ts'
import type { Controller } from './controller.ts'
import { brokerOf, clientOf, simulated } from './testing/quorum-rig.ts'
import { Client, DIRECTORY_ID } from './testing/rig.ts'

const ID = 9
const INCARNATION = 'AAAAAAAAAAAAAAAAAAAABQ'

/** What asks a controller for the metadata as the broker in the same process does. */
async function brokerBeside(world: FakeNode['world'], controller: Controller): Promise<Client> {
  const beside = await clientOf(world, controller)
  beside.replicaId = controller.nodeId
  return beside
}

/** A broker with a listener that accepts and says nothing. */
async function brokerOn(
  machine: FakeNode,
  controller: Controller,
  id = ID,
  directoryId = DIRECTORY_ID,
): Promise<{ client: Client; listener: Listener }> {
  const listener = await machine.world.network.listen({ host: machine.host, port: 9092 }, socket => socket.destroy())
  const client = await clientOf(machine.world, controller)
  client.brokerId = id
  client.listens = { host: machine.host, port: 9092 }
  assert.equal((await client.register(INCARNATION, client.clusterId, directoryId)).errorCode, 0)
  await client.heartbeat()
  assert.equal(controller.image?.broker(id)?.fenced, false)
  return { client, listener }
}

test('a broker whose process dies is fenced at once, one that only loses its connection is not', async () => {
  await simulated(1, async (rig, simulation) => {
    const controller = await rig.start(rig.add())
    const machine = simulation.node('broker')
    const { client } = await brokerOn(machine, controller)
    client.channel.close()
    await simulation.wait(1000)
    assert.equal(controller.image?.broker(ID)?.fenced, false)
    const again = await Client.connect(machine.world, controller.address)
    again.brokerId = ID
    again.epoch = client.epoch
    await again.heartbeat()
    machine.crash()
    await rig.until(() => controller.image?.broker(ID)?.fenced === true, 'it is fenced', 200)
    await rig.stopAll()
  })
})

test('a process that closes its connections some time before its listener is fenced as soon as that is gone, too', async () => {
  await simulated(7, async (rig, simulation) => {
    const controller = await rig.start(rig.add())
    const machine = simulation.node('broker')
    const { client, listener } = await brokerOn(machine, controller)
    client.channel.close()
    await simulation.wait(60)
    assert.equal(controller.image?.broker(ID)?.fenced, false)
    await listener.close()
    await rig.until(() => controller.image?.broker(ID)?.fenced === true, 'it is fenced', 600)
    await rig.stopAll()
  })
})

test('a process that takes seconds to die is fenced when it has, though whoever dialled it meanwhile was reset', async () => {
  await simulated(8, async (rig, simulation) => {
    const member = rig.add()
    const machine = simulation.node('broker')
    let isDying = false
    const { network } = member.machine.world
    const connect = network.connect.bind(network)
    network.connect = (address, timeoutMs) =>
      isDying && address.host === machine.host
        ? Promise.reject(new WorldError('ECONNRESET', 'reset'))
        : connect(address, timeoutMs)
    const controller = await rig.start(member)
    const { client, listener } = await brokerOn(machine, controller)
    isDying = true
    client.channel.close()
    await simulation.wait(3000)
    assert.equal(controller.image?.broker(ID)?.fenced, false)
    await listener.close()
    isDying = false
    await rig.until(() => controller.image?.broker(ID)?.fenced === true, 'it is fenced', 1100)
    await rig.stopAll()
  })
})

test('a machine that loses power is fenced when its session ends, not before', async () => {
  await simulated(2, async (rig, simulation) => {
    const controller = await rig.start(rig.add())
    const machine = simulation.node('broker')
    await brokerOn(machine, controller)
    machine.powerCut()
    await simulation.wait(8900)
    assert.equal(controller.image?.broker(ID)?.fenced, false)
    await rig.until(() => controller.image?.broker(ID)?.fenced === true, 'it is fenced', 300)
    await rig.stopAll()
  })
})

test('a broker that cannot be dialled and heartbeats on is not taken for dead a second time', async () => {
  await simulated(3, async (rig, simulation) => {
    const controller = await rig.start(rig.add())
    const machine = simulation.node('broker')
    const { client, listener } = await brokerOn(machine, controller)
    await listener.close()
    client.channel.close()
    await rig.until(() => controller.image?.broker(ID)?.fenced === true, 'it is fenced', 200)
    for (let life = 0; life < 2; life++) {
      const again = await Client.connect(machine.world, controller.address)
      again.brokerId = ID
      again.epoch = client.epoch
      await again.heartbeat()
      assert.equal(controller.image?.broker(ID)?.fenced, false)
      again.channel.close()
      await simulation.wait(500)
      assert.equal(controller.image?.broker(ID)?.fenced, false)
    }
    await rig.stopAll()
  })
})

test('a broker that could not be dialled for a while is seen to die once it can', async () => {
  await simulated(6, async (rig, simulation) => {
    const controller = await rig.start(rig.add())
    const machine = simulation.node('broker')
    const { client, listener } = await brokerOn(machine, controller)
    await listener.close()
    client.channel.close()
    await rig.until(() => controller.image?.broker(ID)?.fenced === true, 'it is fenced', 200)
    const again = await Client.connect(machine.world, controller.address)
    again.brokerId = ID
    again.epoch = client.epoch
    await again.heartbeat()
    await machine.world.network.listen({ host: machine.host, port: 9092 }, socket => socket.destroy())
    await again.heartbeat()
    assert.equal(controller.image?.broker(ID)?.fenced, false)
    await simulation.wait(100)
    machine.crash()
    await rig.until(() => controller.image?.broker(ID)?.fenced === true, 'it is fenced again', 200)
    await rig.stopAll()
  })
})

test('a broker that dies together with the active controller is fenced by the next one at once', async () => {
  await simulated(4, async (rig, simulation) => {
    rig.addStatic(3)
    await rig.startAll()
    const first = await rig.active()
    const member = rig.memberOf(first)
    const machine = simulation.node('broker')
    await brokerOn(machine, first)
    await brokerOn(member.machine, first, 8, 'Zk0hIgUxQzKOhJrA3TpVcQ')
    await rig.caughtUp()
    rig.crash(member)
    const second = await rig.active()
    await rig.until(() => second.image?.broker(8)?.fenced === true, 'it is fenced', 1000)
    assert.equal(second.image?.broker(ID)?.fenced, false)
    await rig.stopAll()
  })
})

test('the broker beside a controller follows the log there, whoever leads, and learns of a new leader at once', async () => {
  await simulated(5, async (rig, simulation) => {
    rig.addStatic(3, { snapshotBytes: 1500 })
    await rig.startAll()
    const active = await rig.active()
    const broker = await brokerOf(simulation.node('broker').world, active)
    for (let index = 0; index < 30; index++) await broker.createTopic(`topic-${index}`)
    await rig.caughtUp()
    const other = rig.running.find(each => each !== active) as Controller
    const beside = await brokerBeside(rig.memberOf(other).machine.world, other)
    assert.equal((await beside.follow()).topics.size, 30)
    // Anybody else is sent to the leader.
    const stranger = await clientOf(simulation.node('broker').world, other)
    stranger.leaderEpoch = active.epoch
    assert.equal((await stranger.fetch(0, 0)).errorCode, 6)

    beside.leaderEpoch = active.epoch
    const waiting = beside.fetch(other.highWatermark, active.epoch, 60_000)
    await broker.createTopic('news')
    assert.ok(((await waiting).records?.length ?? 0) > 0)
    const { epoch } = active
    const next = beside.fetch(other.highWatermark, epoch, 60_000)
    rig.crash(rig.memberOf(active))
    assert.notEqual((await next).currentLeader.leaderId, active.nodeId)
    await rig.stopAll()
  })
})

test('a controller whose disk takes no more metadata sends the broker beside it to the leader, until it does', async () => {
  await simulated(9, async (rig, simulation) => {
    rig.addStatic(3)
    await rig.startAll()
    const active = await rig.active()
    const broker = await brokerOf(simulation.node('broker').world, active)
    await rig.caughtUp()
    const other = rig.running.find(each => each !== active) as Controller
    const { machine } = rig.memberOf(other)
    const beside = await brokerBeside(machine.world, other)
    assert.equal((await beside.fetch(0, 0)).errorCode, ErrorCode.NONE)
    machine.disk.faults.capacity = machine.disk.usedBytes
    await broker.createTopic('unheard')
    await simulation.wait(100)
    assert.equal((await beside.fetch(0, 0)).errorCode, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    machine.disk.faults.capacity = Number.MAX_SAFE_INTEGER
    await rig.caughtUp()
    assert.equal((await beside.fetch(0, 0)).errorCode, ErrorCode.NONE)
    // Who has read further elsewhere than this log goes is sent there, too.
    beside.leaderEpoch = active.epoch
    const ahead = await beside.fetch(other.nextOffset + 10, active.epoch)
    assert.equal(ahead.errorCode, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    await rig.stopAll()
  })
})
