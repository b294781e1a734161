import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serving } from '#network/testing/serving.ts'
import { Simulation } from '#world/fake/simulation.ts'
import { Peers } from './peers.ts'

test('a connection that nobody used for long is dialled anew: nobody says that its other end is gone', async () => {
  const simulation = new Simulation(1)
  await simulation.run(
    (async () => {
      const [self, other] = [simulation.node('self'), simulation.node('other')]
      const listen = () => serving({ machine: other, name: 'CONTROLLER', port: 9093 }, [])
      await listen()
      const gone: number[] = []
      const peers = new Peers({
        world: self.world,
        nodeId: 1,
        known: () => ({ host: other.host, port: 9093 }),
        anyone: () => [],
        connectTimeoutMs: 1000,
        gone: id => gone.push(id),
      })
      const first = await peers.channel(2, 'control')
      for (let times = 0; times < 5; times++) {
        await simulation.wait(8000)
        assert.equal(await peers.channel(2, 'control'), first)
        await first.negotiate()
      }
      other.powerCut()
      await simulation.wait(8000)
      await listen()
      await simulation.wait(4000)
      assert.ok(first.open, 'nobody said a word')
      const second = await peers.channel(2, 'control')
      assert.notEqual(second, first)
      await second.negotiate()
      assert.deepEqual([first.open, gone], [false, []])
      peers.close()
    })(),
  )
})
