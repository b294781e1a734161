/** A broker that takes connections and answers nothing, as one does whose process is stopped. */
import assert from 'node:assert/strict'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { connect } from '../../src/client/client.ts'
import { world } from '../reliability/rig.ts'
import { Server } from '../server.ts'

test('our client asks a silent broker once, and then whoever answers', { timeout: 60_000 }, async t => {
  const server = await Server.create('tidemark')
  t.after(() => server.remove())
  await server.start()
  const sockets: Socket[] = []
  const silent = createServer(socket => sockets.push(socket))
  await new Promise<void>(resolve => silent.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    silent.close()
  })
  const { port } = silent.address() as AddressInfo
  const client = await connect({ world, bootstrap: [`127.0.0.1:${port}`, server.address], requestTimeoutMs: 300 })
  t.after(() => client.close())
  await client.brokers.any()
  assert.equal(sockets.length, 1)
  // Nothing is known of the cluster yet, and nothing is open any more.
  client.brokers.release('')
  await client.brokers.any()
  assert.equal(sockets.length, 1)
})
