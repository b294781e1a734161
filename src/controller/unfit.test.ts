import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Controller } from './controller.ts'
import { brokerOf, type Member, simulated } from './testing/quorum-rig.ts'

/** One byte of the log is another; done twice it is whole again. */
async function rot({ machine }: Member): Promise<void> {
  const path = '/data/__cluster_metadata-0/00000000000000000000.log'
  const file = await machine.world.disk.open(path, { create: false, write: true })
  const byte = Buffer.alloc(1)
  await file.read(byte, 100)
  await file.write([Buffer.from([(byte[0] as number) ^ 1])], 100)
  await file.close()
}

test('a leader that cannot read its own log lets another one lead', async () => {
  await simulated(
    12,
    async (rig, simulation) => {
      rig.addStatic(3)
      const [ill, ...others] = rig.members
      assert.ok(ill !== undefined)
      await rig.startAll()
      // The first in the order of the voters leads, and has something of which it does not know that it is committed.
      for (let active = await rig.active(); active !== ill.controller; active = await rig.active()) {
        await rig.caughtUp()
        await rig.stop(rig.memberOf(active))
        await rig.active()
        for (const member of rig.members) if (member.controller === undefined) await rig.start(member)
      }
      await rig.caughtUp()
      const first = ill.controller as unknown as Controller
      const client = await brokerOf(simulation.node('broker').world, first)
      // The others take what it appends, and it does not hear that they did.
      for (const { machine } of others) simulation.network.cut(machine, ill.machine)
      client.createTopic('kept').catch(() => {})
      await rot(ill)
      await rig.until(() => !first.isActive, 'it has stepped down')
      rig.rejoin(ill)
      let terms = 0
      for (let round = 0; round < 8; round++) {
        await rig.until(() => others.some(({ controller }) => controller?.isActive === true), 'one that can leads')
        const active = others.find(({ controller }) => controller?.isActive === true)
        assert.ok(active !== undefined)
        const end = active.controller?.nextOffset ?? 0
        await rig.until(() => rig.running.every(({ highWatermark }) => highWatermark >= end), 'all have the log')
        rig.crash(active)
        await rig.until(() => rig.running.some(({ leaderId }) => leaderId > 0 && leaderId !== active.id), 'one leads')
        if (first.leaderId === ill.id) terms++
        await rig.start(active)
      }
      assert.ok(terms > 0, 'it led')
      await rot(ill)
      await rig.caughtUp()
      await rig.stopAll()
    },
    600_000,
  )
})
