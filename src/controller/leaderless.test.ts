import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Simulation } from '#world/fake/simulation.ts'
import { QuorumRig } from './testing/quorum-rig.ts'

test('a quorum without a majority is told of in one line that names the voters, and the end of it too', async () => {
  const simulation = new Simulation(5, { keepTrace: true })
  const rig = new QuorumRig(simulation)
  const told = (text: string) => simulation.trace.lines?.filter(line => line.includes(text)).length
  await simulation.run(
    (async () => {
      rig.addStatic(3)
      await rig.startAll()
      const active = await rig.active()
      await rig.caughtUp()
      const [down, ...left] = rig.members.filter(({ controller }) => controller !== active)
      assert.ok(down !== undefined && left.length === 1)
      rig.crash(rig.memberOf(active))
      rig.crash(down)
      await simulation.wait(60_000)
      const names = rig.members.map(({ id, machine }) => `${id} (${machine.host}:9093)`).join(', ')
      assert.equal(told(`Of the voters ${names} 2 must run`), 1)
      const next = await rig.start(down)
      await rig.active()
      assert.equal(told('leads again'), 1)
      assert.equal(next.voters.length, 3)
      await rig.stopAll()
    })(),
    600_000,
  )
  assert.equal(told('no controller leads for'), 1)
})
