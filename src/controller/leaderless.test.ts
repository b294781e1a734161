import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Simulation } from '#world/fake/simulation.ts'
import { QuorumRig } from './testing/quorum-rig.ts'

for (const dies of ['the leader', 'the others'] as const)
  test(`a quorum without a majority, as ${dies} died, is told of in one line that names the voters, and its end too`, async () => {
    const simulation = new Simulation(5, { keepTrace: true })
    const rig = new QuorumRig(simulation)
    const told = (text: string) => simulation.trace.lines?.filter(line => line.includes(text)).length
    await simulation.run(
      (async () => {
        rig.addStatic(3)
        await rig.startAll()
        const active = await rig.active()
        await rig.caughtUp()
        const others = rig.members.filter(({ controller }) => controller !== active)
        const [down, other] = others
        const dead = dies === 'the leader' ? rig.memberOf(active) : other
        assert.ok(down !== undefined && dead !== undefined)
        rig.crash(dead)
        rig.crash(down)
        await simulation.wait(60_000)
        const names = rig.members.map(({ id, machine }) => `${id} (${machine.host}:9093)`).join(', ')
        assert.equal(told(`Of the voters ${names} 2 must run`), 1)
        const next = await rig.start(down)
        await rig.active()
        // The one that waited follows, or leads itself.
        await simulation.wait(2000)
        assert.equal(told('leads again'), 1)
        assert.equal(next.voters.length, 3)
        await rig.stopAll()
      })(),
      600_000,
    )
    assert.equal(told('no controller leads for'), 1)
  })

test('a controller that hands over and stops has no timer left that keeps its process', async () => {
  const simulation = new Simulation(9, { keepTrace: true })
  const rig = new QuorumRig(simulation)
  await simulation.run(
    (async () => {
      rig.addStatic(3)
      await rig.startAll()
      await rig.active()
      await rig.caughtUp()
      const before = simulation.trace.lines?.length ?? 0
      await rig.stopAll()
      const since = simulation.trace.lines?.slice(before) ?? []
      assert.deepEqual(
        since.filter(line => line.includes('no active controller is known')),
        [],
      )
      // What the network still has to deliver is no timer of theirs.
      await simulation.wait(1000)
      assert.equal(simulation.schedule.pending, 0)
    })(),
  )
})
