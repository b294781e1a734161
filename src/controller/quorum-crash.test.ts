import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ChannelError } from '#network/channel.ts'
import { API } from '#protocol/apis.ts'
import { NO_DISK_FAULTS } from '#world/fake/fake-disk.ts'
import type { Simulation } from '#world/fake/simulation.ts'
import { brokerOf, clientOf, QuorumRig, recordsOf, simulated } from './testing/quorum-rig.ts'
import { inAll } from './testing/rig.ts'

const SEEDS = Number(process.env.TIDEMARK_SEEDS ?? 5)
const ROUNDS = 6

/** Three of a fixed list, or one that the others join. */
async function founded(simulation: Simulation, rig: QuorumRig): Promise<void> {
  const { random } = simulation
  const snapshotBytes = random.pick([500, 5000, 1_000_000])
  const isFixed = random.chance(0.5)
  if (isFixed) rig.addStatic(3, { snapshotBytes })
  else for (let index = 0; index < 3; index++) rig.add()
  for (const { machine } of rig.members) {
    await machine.world.disk.makeFolder('/data')
    await machine.world.disk.syncFolder('/')
  }
  if (isFixed) {
    await rig.startAll()
    return
  }
  const [founder, ...others] = rig.members
  assert.ok(founder !== undefined)
  const addresses = rig.members.map(({ machine }) => ({ host: machine.host, port: 9093 }))
  founder.config = { snapshotBytes }
  await rig.start(founder)
  for (const member of others) {
    const bootstrapServers = addresses.filter(({ host }) => host !== member.machine.host)
    member.config = { snapshotBytes, bootstrapServers, autoJoin: true }
    const controller = await rig.start(member)
    await rig.until(() => controller.voters.some(({ id }) => id === member.id), `node ${member.id} votes`)
  }
}

/**
 * Three controllers of which one at a time dies, loses power, is cut off, or has a failing disk, at any moment: topics
 * whose creation was acknowledged stay, and all come to say the same.
 */
async function live(simulation: Simulation): Promise<number> {
  const { random, network } = simulation
  const rig = new QuorumRig(simulation)
  const { world } = simulation.node('client')
  await founded(simulation, rig)
  const acknowledged = new Set<string>()
  let created = 0
  for (let round = 0; round < ROUNDS; round++) {
    const victim = random.pick(rig.members)
    const others = rig.members.filter(member => member !== victim)
    const what = random.pick(['crash', 'powerCut', 'cut', 'disk', 'stop'] as const)
    let over = false
    const trouble = (async () => {
      await simulation.wait(random.between(1, 1500))
      if (what === 'crash' || what === 'powerCut') rig.crash(victim, what)
      else if (what === 'stop') await rig.stop(victim)
      else if (what === 'disk') victim.machine.disk.faults = { ...NO_DISK_FAULTS, syncFails: 0.3, writeFails: 0.2 }
      else {
        const [a, b] = random.chance(0.5) ? [true, true] : [true, false]
        for (const { machine } of others) {
          if (a) network.cut(victim.machine, machine)
          if (b) network.cut(machine, victim.machine)
        }
      }
      await simulation.wait(random.between(1, 6000))
      rig.rejoin(victim)
      victim.machine.disk.faults = { ...NO_DISK_FAULTS }
      await simulation.wait(random.between(0, 500))
      if (victim.controller === undefined) await rig.start(victim)
      over = true
    })()
    while (!over) {
      const controller = rig.running.find(({ isActive }) => isActive)
      if (controller === undefined) {
        await simulation.wait(5)
        continue
      }
      const name = `topic-${created++}`
      try {
        const client = await clientOf(world, controller)
        await client.register()
        await client.heartbeat()
        const topics = [{ name, numPartitions: 1, replicationFactor: 1 }]
        const body = { topics, timeoutMs: 1000 }
        const answer = await client.channel.ask(API.CreateTopics, body, { timeoutMs: 3000 })
        if (answer.topics[0]?.errorCode === 0) acknowledged.add(name)
        client.channel.close()
      } catch (error) {
        if (!(error instanceof ChannelError)) throw error
      }
      await simulation.wait(random.between(5, 200))
    }
    await trouble
    const active = await rig.active()
    await rig.caughtUp()
    for (const name of acknowledged) {
      assert.ok(active.image?.topicByName(name) !== undefined, `${name} was acknowledged and is gone after ${what}`)
    }
    for (const controller of rig.running) {
      assert.deepEqual(recordsOf(controller), recordsOf(active), `node ${controller.nodeId} says other things`)
      assert.equal(controller.clusterId, active.clusterId)
    }
  }
  await rig.stopAll()
  return acknowledged.size
}

test(`a quorum that is troubled at any moment keeps what it acknowledged: ${SEEDS} seeds`, async t => {
  const acknowledged = await inAll(SEEDS, live)
  t.diagnostic(`${acknowledged} topics in ${SEEDS * ROUNDS} rounds`)
  assert.ok(acknowledged > SEEDS)
})

test('a voter whose metadata were deleted elects nobody until it has them again: what only it and the dead had is not lost', async () => {
  await simulated(
    77,
    async (rig, simulation) => {
      const founder = rig.add()
      const first = await rig.start(founder)
      const bootstrapServers = [{ host: founder.machine.host, port: 9093 }]
      const behind = rig.add({ bootstrapServers, autoJoin: true })
      const emptied = rig.add({ bootstrapServers, autoJoin: true })
      for (const member of [behind, emptied]) await rig.start(member)
      await rig.until(() => first.voters.length === 3, 'three vote')
      await rig.caughtUp()
      await rig.stop(behind)
      const client = await brokerOf(simulation.node('broker').world, first)
      assert.equal((await client.createTopic('kept'))?.errorCode, 0)
      for (const member of [founder, emptied]) rig.crash(member)
      await emptied.machine.world.disk.remove('/data/__cluster_metadata-0')
      founder.config = { bootstrapServers: [{ host: behind.machine.host, port: 9093 }] }
      emptied.config = { ...emptied.config, bootstrapServers: founder.config.bootstrapServers ?? [] }
      for (const member of [behind, emptied]) await rig.start(member)
      await simulation.wait(30_000)
      assert.deepEqual(
        rig.running.map(({ isActive }) => isActive),
        [false, false],
      )
      await rig.start(founder)
      const active = await rig.active()
      assert.notEqual(active.image?.topicByName('kept'), undefined)
      await rig.caughtUp()
      await rig.stopAll()
    },
    600_000,
  )
})
