import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ChannelError } from '#network/channel.ts'
import { NO_DISK_FAULTS } from '#world/fake/fake-disk.ts'
import type { Simulation } from '#world/fake/simulation.ts'
import { Client, inAll, startController } from './testing/rig.ts'

const SEEDS = Number(process.env.TIDEMARK_SEEDS ?? 25)
const LIVES = 5

/**
 * A controller that is killed, or whose power is cut, at any moment, and whose disk fails now and then: topics whose
 * creation was acknowledged are there in the next life, and what a follower read as committed never becomes something else.
 */
async function live(simulation: Simulation): Promise<number> {
  const { random } = simulation
  const machine = simulation.node('controller')
  const { world: clientWorld } = simulation.node('client')
  const acknowledged = new Set<string>()
  const committed: string[] = []
  let created = 0
  await machine.world.disk.makeFolder('/data')
  await machine.world.disk.syncFolder('/')
  for (let life = 0; life < LIVES; life++) {
    machine.disk.faults = { ...NO_DISK_FAULTS }
    const snapshotBytes = random.pick([500, 2000, 1_000_000])
    const controller = await startController(machine.world, '/data', { snapshotBytes }, machine.host)
    const client = await Client.connect(clientWorld, controller.address)
    const image = await client.follow()
    const names = [...image.topicIds.keys()]
    for (const name of acknowledged) assert(names.includes(name), `${name} was acknowledged and is gone`)
    assert.deepEqual(names.slice(0, committed.length), committed, 'what was committed has changed')
    committed.splice(0, committed.length, ...names)
    await client.register(`AAAAAAAAAAAAAAAAAAAA${life}Q`)
    await client.heartbeat()
    const { faults } = machine.disk
    if (random.chance(0.3)) machine.disk.faults = { ...faults, syncFails: 0.1, writeFails: 0.05 }

    let over = false
    const ends = simulation.wait(random.between(1, 300)).then(() => {
      over = true
      if (random.chance(0.5)) machine.crash()
      else machine.powerCut()
      // What goes to a machine without power is never answered.
      client.channel.close()
    })
    while (!over) {
      const name = `topic-${created++}`
      const answer = await client.createTopic(name).catch((error: unknown) => {
        if (!(error instanceof ChannelError)) throw error
        return undefined
      })
      if (answer?.errorCode === 0) acknowledged.add(name)
      else await simulation.wait(5)
    }
    await ends
    await simulation.wait(10)
  }
  return acknowledged.size
}

test(`acknowledged metadata survives kills, power cuts and a failing disk: ${SEEDS} seeds`, async t => {
  const acknowledged = await inAll(SEEDS, live)
  t.diagnostic(`${acknowledged} topics in ${SEEDS * LIVES} lives`)
  assert.ok(acknowledged > SEEDS)
})
