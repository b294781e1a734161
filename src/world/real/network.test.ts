import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Sink, Socket, WorldError } from '../world.ts'
import { realDisk } from './disk.ts'
import { realNetwork } from './network.ts'

let folder = ''
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tidemark-network-'))
})
after(() => rm(folder, { recursive: true, force: true }))

/** Collects what arrives, in buffers of a given size. */
class Collector implements Sink {
  readonly chunks: Buffer[] = []
  readonly closing = Promise.withResolvers<WorldError | undefined>()
  drains = 0
  size = 0
  #space: Buffer
  #onData: () => void = () => {}
  constructor(size = 64) {
    this.#space = Buffer.alloc(size)
  }
  space(): Uint8Array {
    return this.#space
  }
  received(count: number): void {
    this.chunks.push(Buffer.from(this.#space.subarray(0, count)))
    this.size += count
    this.#onData()
  }
  drained(): void {
    this.drains++
  }
  closed(error: WorldError | undefined): void {
    this.closing.resolve(error)
  }
  get bytes(): Buffer {
    return Buffer.concat(this.chunks)
  }
  until(size: number): Promise<void> {
    return new Promise(resolve => {
      this.#onData = () => {
        if (this.size >= size) resolve()
      }
      this.#onData()
    })
  }
}

async function pair(clientSpace = 64): Promise<{
  client: Socket
  server: Socket
  fromServer: Collector
  fromClient: Collector
  close: () => Promise<void>
}> {
  const accepted = Promise.withResolvers<Socket>()
  const fromClient = new Collector()
  const fromServer = new Collector(clientSpace)
  const listener = await realNetwork.listen({ host: '127.0.0.1', port: 0 }, socket => {
    socket.attach(fromClient)
    accepted.resolve(socket)
  })
  const client = await realNetwork.connect(listener.address, 1000)
  client.attach(fromServer)
  const server = await accepted.promise
  return { client, server, fromServer, fromClient, close: () => listener.close() }
}

/** What is looked at, when it has not moved for many turns of the loop: nothing tells that a system's buffer is full. */
async function still(look: () => number): Promise<number> {
  let [seen, turns] = [look(), 0]
  while (turns++ < 1000) {
    await new Promise(setImmediate)
    if (look() !== seen) [seen, turns] = [look(), 0]
  }
  return seen
}

const pattern = (size: number, seed: number): Buffer => {
  const bytes = Buffer.alloc(size)
  for (let i = 0; i < size; i++) bytes[i] = (i * 31 + (i >> 8) * 7 + seed) & 255
  return bytes
}

describe('sockets of the system', () => {
  test('bytes arrive in order both ways, in the sink’s own buffers', async () => {
    const { client, server, fromServer, fromClient, close } = await pair()
    client.write([Buffer.from('hello '), Buffer.from('tide'), Buffer.from('mark')])
    await fromClient.until(14)
    assert.equal(fromClient.bytes.toString(), 'hello tidemark')
    const large = pattern(3_000_001, 1)
    server.write([large.subarray(0, 10), large.subarray(10)])
    await fromServer.until(large.length)
    assert.ok(fromServer.bytes.equals(large))
    assert.equal(server.queuedBytes, 0)
    assert.equal(server.local.port, client.remote.port)
    assert.equal(server.remote.port, client.local.port)
    client.end()
    assert.equal(await fromServer.closing.promise, undefined)
    assert.equal(await fromClient.closing.promise, undefined)
    await close()
  })

  test('a range of a file keeps its place between written bytes, whatever its size', async () => {
    const { server, client, fromServer, close } = await pair(100_000)
    const path = join(folder, 'ranges')
    const content = pattern(5_000_000, 3)
    await writeFile(path, content)
    const file = await realDisk.open(path, { create: false, write: false })
    const wanted: Buffer[] = []
    for (const [position, size] of [
      [0, 1],
      [4096, 70_000],
      [17, 4_900_000],
      [4_999_999, 1],
    ] as const) {
      const head = Buffer.from(`<${position}:${size}>`)
      server.write([head])
      server.sendFile(file, position, size)
      wanted.push(head, content.subarray(position, position + size))
    }
    server.write([Buffer.from('end')])
    wanted.push(Buffer.from('end'))
    assert.ok(server.queuedBytes > 0)
    // Closing is deferred until all was sent.
    const closed = file.close()
    const all = Buffer.concat(wanted)
    await fromServer.until(all.length)
    assert.ok(fromServer.bytes.equals(all))
    await closed
    server.end()
    await fromServer.closing.promise
    client.destroy()
    await close()
  })

  test('a reader that stops leaves bytes queued; drained comes when it reads again', async () => {
    const { server, client, fromServer, fromClient, close } = await pair(1 << 20)
    client.pause()
    const path = join(folder, 'slow')
    await writeFile(path, pattern(30_000_000, 5))
    const file = await realDisk.open(path, { create: false, write: false })
    server.sendFile(file, 0, 30_000_000)
    const stuck = await still(() => server.queuedBytes)
    assert.ok(stuck > 10_000_000 && stuck < 30_000_000, `${stuck} bytes are queued`)
    assert.equal(fromClient.drains, 0)
    client.resume()
    await fromServer.until(30_000_000)
    assert.ok(fromServer.bytes.equals(pattern(30_000_000, 5)))
    assert.equal(server.queuedBytes, 0)
    assert.equal(fromClient.drains, 1)
    await file.close()
    server.destroy()
    await fromServer.closing.promise
    await fromClient.closing.promise
    await close()
  })

  test('of many small ranges only a few are in memory for a reader that stops', async () => {
    const { server, client, fromServer, close } = await pair(1 << 20)
    client.pause()
    const path = join(folder, 'many')
    await writeFile(path, pattern(16_384, 9))
    const file = await realDisk.open(path, { create: false, write: false })
    const before = process.memoryUsage().arrayBuffers
    const count = 2000
    for (let range = 0; range < count; range++) {
      server.write([Buffer.from('head')])
      server.sendFile(file, 0, 16_384)
    }
    const held = process.memoryUsage().arrayBuffers - before
    assert.ok(held < 4_000_000, `${held} bytes are held for a reader that stopped`)
    client.resume()
    await fromServer.until(count * 16_388)
    const one = Buffer.concat([Buffer.from('head'), pattern(16_384, 9)])
    const { bytes } = fromServer
    for (let at = 0; at < bytes.length; at += one.length) assert.ok(bytes.subarray(at, at + one.length).equals(one))
    await file.close()
    server.destroy()
    await fromServer.closing.promise
    await close()
  })

  test('where connections cannot be moved, what waits for a reader goes on when he does', () => {
    const path = join(folder, 'plain')
    const count = 600
    writeFileSync(path, pattern(16_384, 9))
    // Another process, because without the system's calls the choice is made once for a process.
    const script = `
      import { realDisk } from ${JSON.stringify(join(import.meta.dirname, 'disk.ts'))}
      import { realNetwork } from ${JSON.stringify(join(import.meta.dirname, 'network.ts'))}
      const space = Buffer.alloc(1 << 20)
      let size = 0
      const sink = { space: () => space, received: count => (size += count), drained() {}, closed() {} }
      const accepted = Promise.withResolvers()
      const listener = await realNetwork.listen({ host: '127.0.0.1', port: 0 }, accepted.resolve)
      const client = await realNetwork.connect(listener.address, 1000)
      const server = await accepted.promise
      server.attach(sink)
      client.attach(sink)
      client.pause()
      const file = await realDisk.open(${JSON.stringify(path)}, { create: false, write: false })
      for (let range = 0; range < ${count}; range++) {
        server.write([Buffer.from('head')])
        server.sendFile(file, 0, 16384)
      }
      let before
      while (server.queuedBytes !== before) {
        before = server.queuedBytes
        await new Promise(resolve => setTimeout(resolve, 200))
      }
      client.resume()
      while (size < ${count} * 16388) await new Promise(resolve => setTimeout(resolve, 10))
      process.exit(7)`
    const run = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      env: { ...process.env, TIDEMARK_NO_NATIVE: '1' },
      encoding: 'utf8',
      timeout: 60_000,
    })
    assert.equal(run.status, 7, run.stderr)
  })

  test('a file that was closed before it was to be sent breaks the connection, though its number is another’s', async () => {
    const { server, fromServer, fromClient, close } = await pair()
    const path = join(folder, 'closed')
    await writeFile(path, pattern(40_000, 1))
    const file = await realDisk.open(path, { create: false, write: false })
    await file.close()
    const other = await realDisk.open(path, { create: false, write: false })
    server.sendFile(file, 0, 40_000)
    assert.equal((await fromClient.closing.promise)?.code, 'EBADF')
    await fromServer.closing.promise
    assert.equal(fromServer.size, 0)
    await assert.rejects(file.read(Buffer.alloc(1), 0), { code: 'EBADF' })
    await other.close()
    await close()
  })

  test('a file that is shorter than what was to be sent breaks the connection', async () => {
    const { server, fromServer, fromClient, close } = await pair()
    const path = join(folder, 'short')
    await writeFile(path, 'abc')
    const file = await realDisk.open(path, { create: false, write: false })
    server.sendFile(file, 0, 10)
    assert.equal((await fromClient.closing.promise)?.code, 'EIO')
    await fromServer.closing.promise
    assert.equal(fromServer.bytes.toString(), 'abc')
    await file.close()
    await close()
  })

  test('destroying in the middle of a send closes both ends and the file', async () => {
    const { server, client, fromServer, fromClient, close } = await pair()
    client.pause()
    const path = join(folder, 'cut')
    await writeFile(path, pattern(20_000_000, 5))
    const file = await realDisk.open(path, { create: false, write: false })
    server.sendFile(file, 0, 20_000_000)
    const closed = file.close()
    while (server.queuedBytes === 20_000_000) await new Promise(setImmediate)
    server.destroy()
    await fromClient.closing.promise
    await closed
    assert.equal(server.queuedBytes, 0)
    client.resume()
    await fromServer.closing.promise
    await close()
  })

  test('connecting to nobody, or to a name that is not, says so', async () => {
    const listener = await realNetwork.listen({ host: '127.0.0.1', port: 0 }, () => {})
    await assert.rejects(
      realNetwork.listen(listener.address, () => {}),
      { code: 'EADDRINUSE' },
    )
    await listener.close()
    await assert.rejects(realNetwork.connect(listener.address, 1000), { code: 'ECONNREFUSED' })
  })

  test('a host name and every interface', async () => {
    const sink = new Collector()
    const local = Promise.withResolvers<string>()
    const listener = await realNetwork.listen({ host: '', port: 0 }, socket => {
      socket.attach(sink)
      local.resolve(socket.local.host)
    })
    assert.equal(listener.address.host, '')
    const client = await realNetwork.connect({ host: '127.0.0.1', port: listener.address.port }, 1000)
    client.attach(new Collector())
    assert.equal(await local.promise, '127.0.0.1')
    client.destroy()
    await sink.closing.promise
    await listener.close()
  })
})
