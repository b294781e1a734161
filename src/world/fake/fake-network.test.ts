import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Sink, Socket, WorldError } from '../world.ts'
import { Simulation } from './simulation.ts'

class Collector implements Sink {
  readonly #buffer = Buffer.alloc(100)
  bytes = Buffer.alloc(0)
  ended: { error: WorldError | undefined } | undefined
  drains = 0
  space(): Uint8Array {
    return this.#buffer
  }
  received(count: number): void {
    this.bytes = Buffer.concat([this.bytes, this.#buffer.subarray(0, count)])
  }
  drained(): void {
    this.drains++
  }
  closed(error: WorldError | undefined): void {
    assert.equal(this.ended, undefined, 'closed once')
    this.ended = { error }
  }
}

async function connected(simulation: Simulation): Promise<{
  client: Socket
  server: Socket
  atClient: Collector
  atServer: Collector
}> {
  const [a, b] = [simulation.node('a'), simulation.node('b')]
  const [atClient, atServer] = [new Collector(), new Collector()]
  const accepted = Promise.withResolvers<Socket>()
  await a.world.network.listen({ host: '', port: 9092 }, socket => {
    socket.attach(atServer)
    accepted.resolve(socket)
  })
  const client = await b.world.network.connect({ host: 'a', port: 9092 }, 1000)
  client.attach(atClient)
  return { client, server: await accepted.promise, atClient, atServer }
}

describe('the network of the simulation', () => {
  test('bytes and files arrive once, whole and in order, whatever the seed', async () => {
    for (let seed = 0; seed < 50; seed++) {
      const simulation = new Simulation(seed)
      await simulation.run(
        (async () => {
          const { client, server, atClient, atServer } = await connected(simulation)
          const file = await simulation.node('a').world.disk.open('/f', { create: true, write: true })
          const content = simulation.random.fill(Buffer.alloc(200_000))
          await file.write([content], 0)
          simulation.network.faults.windowBytes = 10_000
          server.write([Buffer.from('head'), Buffer.alloc(0)])
          server.sendFile(file, 1000, 150_000)
          server.write([Buffer.from('tail')])
          void file.close()
          client.write([content.subarray(0, 5000)])
          assert.ok(server.queuedBytes > 100_000)
          server.end()
          await simulation.wait(10_000)
          const expected = [Buffer.from('head'), content.subarray(1000, 151_000), Buffer.from('tail')]
          assert.ok(atClient.bytes.equals(Buffer.concat(expected)), `seed ${seed}: ${atClient.bytes.length} bytes`)
          assert.deepEqual(atClient.ended, { error: undefined })
          assert.deepEqual(atServer.ended, { error: undefined })
        })(),
      )
    }
  })

  test('a reader that stops fills the window; drained comes when it reads again', async () => {
    const simulation = new Simulation(3)
    await simulation.run(
      (async () => {
        const { client, server, atClient, atServer } = await connected(simulation)
        client.pause()
        server.write([Buffer.alloc(1_000_000)])
        await simulation.wait(60_000)
        assert.ok(server.queuedBytes >= 1_000_000 - simulation.network.faults.windowBytes)
        assert.equal(atServer.drains, 0)
        client.resume()
        await simulation.wait(60_000)
        assert.equal(atClient.bytes.length, 1_000_000)
        assert.equal(atServer.drains, 1)
      })(),
    )
  })

  test('nobody listens, no such host, a cut, a dead process, a machine without power', async () => {
    const simulation = new Simulation(4)
    const [a, b] = [simulation.node('a'), simulation.node('b')]
    await simulation.run(
      (async () => {
        const { network } = b.world
        await assert.rejects(network.connect({ host: 'a', port: 1 }, 1000), { code: 'ECONNREFUSED' })
        await assert.rejects(network.connect({ host: 'c', port: 1 }, 1000), { code: 'ENOTFOUND' })
        const { client, atClient, atServer } = await connected(simulation)
        simulation.network.cut(b, a)
        client.write([Buffer.from('late')])
        await assert.rejects(network.connect({ host: a.host, port: 9092 }, 1000), { code: 'ETIMEDOUT' })
        assert.equal(atServer.bytes.length, 0)
        simulation.network.heal(b, a)
        await simulation.wait(1000)
        assert.equal(atServer.bytes.toString(), 'late')
        a.crash()
        await simulation.wait(1000)
        assert.equal(atClient.ended?.error?.code, 'ECONNRESET')
        await assert.rejects(network.connect({ host: 'a', port: 9092 }, 1000), { code: 'ECONNREFUSED' })

        const again = await connected(simulation)
        a.powerCut()
        await simulation.wait(1000)
        assert.ok(again.atClient.ended === undefined)
        again.client.write([Buffer.from('anyone?')])
        await assert.rejects(network.connect({ host: 'a', port: 9092 }, 1000), { code: 'ETIMEDOUT' })
        await simulation.wait(30_000)
        assert.equal((again.atClient as Collector).ended?.error?.code, 'ETIMEDOUT')
      })(),
    )
  })

  test('who is walled in dials others and is dialled by nobody, until the wall is gone', async () => {
    const simulation = new Simulation(9)
    await simulation.run(
      (async () => {
        const { client, server, atClient, atServer } = await connected(simulation)
        const [a, b] = [simulation.node('a'), simulation.node('b')]
        simulation.network.wall(a)
        client.write([Buffer.from('in')])
        server.write([Buffer.from('out')])
        await assert.rejects(b.world.network.connect({ host: 'a', port: 9092 }, 500), { code: 'ETIMEDOUT' })
        const atB = new Collector()
        await b.world.network.listen({ host: '', port: 9093 }, socket => socket.attach(atB))
        const dialled = await a.world.network.connect({ host: 'b', port: 9093 }, 1000)
        dialled.attach(new Collector())
        dialled.write([Buffer.from('from a')])
        await simulation.wait(1000)
        assert.equal(atB.bytes.toString(), 'from a')
        assert.equal(atServer.bytes.length + atClient.bytes.length, 0)
        simulation.network.unwall(a)
        await simulation.wait(1000)
        assert.deepEqual([atServer.bytes.toString(), atClient.bytes.toString()], ['in', 'out'])
      })(),
    )
  })
})
