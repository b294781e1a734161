import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serverConfig } from '#core/config/server.ts'
import { Channel } from '#network/channel.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { Simulation } from '#world/fake/simulation.ts'
import { startNode } from './node.ts'

test('a topic whose creation waits for a stuck disk is created once, and its client is told so', async () => {
  const simulation = new Simulation(1)
  await simulation.run(
    (async () => {
      const machine = simulation.node('broker')
      const overrides = ['log.dirs=/data', 'listeners=PLAINTEXT://:9092,CONTROLLER://127.0.0.1:0']
      const result = serverConfig({ overrides })
      assert.ok('config' in result)
      const node = await startNode(machine.world, result.config)
      const client = await Channel.connect(simulation.node('client').world, { host: machine.host, port: 9092 })
      await client.negotiate()
      machine.disk.faults.hangs = true
      const created = client.ask(API.CreateTopics, {
        topics: [{ name: 'slow', numPartitions: 1, replicationFactor: 1 }],
        timeoutMs: 20_000,
      })
      // Longer than a heartbeat is waited for, shorter than a session.
      await simulation.wait(7000)
      machine.disk.unhang()
      assert.equal((await created).topics[0]?.errorCode, ErrorCode.NONE)
      client.close()
      await node.stop()
    })(),
  )
})
