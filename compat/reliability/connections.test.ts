/** Connections that break, lie, stall or do nothing: no second copies, bounded memory, one clear line, and the node lives on. */
import assert from 'node:assert/strict'
import { connect as dial, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createTopic } from '../../src/client/admin/topics.ts'
import { type Client, connect } from '../../src/client/client.ts'
import { Producer } from '../../src/client/producer.ts'
import { API, type Api } from '../../src/protocol/apis.ts'
import { encodeRequestFrame } from '../../src/protocol/frames.ts'
import type { InputOf, Schema } from '../../src/protocol/schema.ts'
import { Server } from '../server.ts'
import { produceBody, RawProducer } from './raw-producer.ts'
import { channelOf, factor, logLines, placesOf, readAll, residentBytes, world } from './rig.ts'

const MiB = 1 << 20

function open(server: Server): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = dial({ port: server.port, host: '127.0.0.1', noDelay: true }, () => resolve(socket))
    socket.on('error', reject)
  })
}

/** Resolves when the other side has closed; how it did is of no interest. */
function closed(socket: Socket, limitMs = 10_000): Promise<void> {
  return new Promise((resolve, reject) => {
    const limit = setTimeout(() => reject(new Error(`not closed after ${limitMs} ms`)), limitMs)
    const end = (): void => {
      clearTimeout(limit)
      resolve()
    }
    if (socket.closed) end()
    socket.on('close', end)
    socket.on('error', () => {})
    socket.resume()
  })
}

function frameOf<Q extends Schema>(api: Api<Q, Schema>, version: number, body: InputOf<Q>, correlationId = 1): Buffer {
  const parts = encodeRequestFrame(api, version, { correlationId, clientId: 'rough' }, body)
  return Buffer.concat(parts.filter(part => Buffer.isBuffer(part)))
}

describe('connections', { timeout: 80_000 * factor }, () => {
  let server: Server
  let client: Client

  before(async () => {
    server = await Server.create('tidemark', undefined, { 'connections.max.idle.ms': '1500' })
    await server.start()
    client = await connect({ world, bootstrap: server.address, retryBackoffMs: 20 })
    for (const name of ['cut', 'large']) await createTopic(client, { name, partitions: 1 })
  })

  /** Any request; a client whose connection has just been idle for too long asks on another. */
  const refresh = () => client.retrying(() => client.metadata.refresh([]))

  after(async () => {
    client?.close()
    await server?.remove()
  })

  /** Sends a batch again over the network as it should be sent, until it is answered. */
  async function deliver(producer: RawProducer, batch: Buffer): Promise<number> {
    const channel = await channelOf(server)
    const { errorCode, baseOffset } = await producer.send(channel, 'cut', 0, batch)
    channel.close()
    assert.equal(errorCode, 0)
    return baseOffset
  }

  test('requests that are cut anywhere and sent again leave no second copy, also over restarts', async t => {
    const channel = await channelOf(server)
    const producer = await RawProducer.create(channel)
    channel.close()
    const places: number[] = []
    const rounds = 40 * factor
    for (let round = 0; round < rounds; round++) {
      const batch = producer.batch([`cut ${round}`.padEnd(2000)], round)
      // A batch is stamped where it lies, so every sending has a copy of its own.
      const frame = frameOf(API.Produce, 9, produceBody('cut', 0, Buffer.from(batch)))
      const socket = await open(server)
      // Anything from nothing to all of it, and then the answer is not waited for.
      const bytes = round % 4 === 0 ? frame.length : Math.floor((frame.length * (round % 7)) / 6)
      await new Promise<void>(resolve => socket.write(frame.subarray(0, bytes), () => resolve()))
      if (round % 3 === 0) await delay(2)
      if (round % 2 === 0) socket.resetAndDestroy()
      else socket.destroy()
      if (round % 20 === 13) await server.restart()
      places.push(await deliver(producer, Buffer.from(batch)))
      if (round % 20 === 17) {
        await server.restart()
        assert.equal(await deliver(producer, Buffer.from(batch)), places.at(-1))
      }
    }
    assert.deepEqual(
      places,
      Array.from({ length: rounds }, (_, index) => index),
    )
    const records = await readAll(client, 'cut')
    assert.deepEqual([...placesOf(records).values()], places)
    t.diagnostic(`${rounds} requests, ${2 * Math.floor(rounds / 20)} restarts`)
  })

  test('clients that do not read their answers cost bounded memory, and the others nothing', async t => {
    const producer = new Producer(client, { batchBytes: 500_000, requestBytesMax: 4 * MiB, lingerMs: 0 })
    const value = Buffer.alloc(450_000, 'x')
    for (let count = 0; count < 60; count++) await producer.send('large', [{ value }])
    await producer.close()
    const pid = server.pid
    assert.ok(pid !== undefined)
    const before = residentBytes(pid)
    const fetch = (maxBytes: number, offset: number, correlationId: number) =>
      frameOf(
        API.Fetch,
        11,
        {
          replicaId: -1,
          maxWaitMs: 100,
          minBytes: 1,
          maxBytes,
          sessionId: 0,
          sessionEpoch: -1,
          topics: [
            { topic: 'large', partitions: [{ partition: 0, fetchOffset: offset, partitionMaxBytes: maxBytes }] },
          ],
        },
        correlationId,
      )
    const slow = await Promise.all(Array.from({ length: 20 }, () => open(server)))
    let most = before
    for (const socket of slow) {
      socket.pause()
      socket.on('error', () => {})
      // Each asks for 200 times 25 MB and reads nothing of it.
      for (let index = 0; index < 200; index++) socket.write(fetch(25 * MiB, index % 5, index))
    }
    // Metadata answers are made in memory, not sent from files.
    const flood = await Promise.all(Array.from({ length: 4 }, () => open(server)))
    const metadata = frameOf(API.DescribeConfigs, 4, {
      resources: [{ resourceType: 2, resourceName: 'large', configurationKeys: null }],
      includeSynonyms: true,
      includeDocumentation: true,
    })
    for (const socket of flood) {
      socket.pause()
      socket.on('error', () => {})
      for (let index = 0; index < 2000; index++) socket.write(metadata)
    }
    let slowestMs = 0
    const until = performance.now() + 3000
    while (performance.now() < until) {
      most = Math.max(most, residentBytes(pid))
      const begun = performance.now()
      await refresh()
      slowestMs = Math.max(slowestMs, performance.now() - begun)
      await delay(20)
    }
    for (const socket of [...slow, ...flood]) socket.destroy()
    const grownMiB = Math.round((most - before) / MiB)
    t.diagnostic(
      `24 clients asked for 100 GB and read nothing: ${grownMiB} MiB more resident; others waited ${Math.round(slowestMs)} ms at most`,
    )
    assert.ok(grownMiB < 128, `${grownMiB} MiB more`)
    assert.equal((await readAll(client, 'large')).length, 60)
  })

  const strangers: Record<string, { bytes: Buffer; line: RegExp }> = {
    HTTP: { bytes: Buffer.from('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'), line: /HTTP/ },
    TLS: { bytes: Buffer.concat([Buffer.from('16030102000100', 'hex'), Buffer.alloc(600, 7)]), line: /TLS/ },
    garbage: { bytes: Buffer.alloc(3000, 0xa7), line: /no Kafka request/ },
    'a huge size': { bytes: Buffer.from('7fffffff0012000000000001', 'hex'), line: /no Kafka request/ },
    'a negative size': { bytes: Buffer.from('ffffffff00120000', 'hex'), line: /no Kafka request/ },
    'a frame too small': { bytes: Buffer.from('000000020012', 'hex'), line: /broken request/ },
    'an unknown API': { bytes: Buffer.from('0000000a4e20000000000001ffff', 'hex'), line: /20000.*does not serve/ },
    'an unknown version': { bytes: Buffer.from('0000000b0003006300000001ffff00', 'hex'), line: /Metadata version 99/ },
    'a body that breaks off': {
      bytes: Buffer.from('0000000e0003000100000001ffff7fffffff', 'hex'),
      line: /broken request/,
    },
  }
  for (const [name, { bytes, line }] of Object.entries(strangers)) {
    test(`${name} on the port: closed, with one line that says so`, async () => {
      const seen = logLines(server).length
      const socket = await open(server)
      socket.write(bytes)
      await closed(socket)
      const lines = logLines(server).slice(seen)
      assert.equal(lines.length, 1, JSON.stringify(lines))
      assert.ok(lines[0]?.level === 40 && line.test(lines[0].msg), String(lines[0]?.msg))
      await refresh()
    })
  }

  test('half a frame is closed when it has been idle, without a word', async () => {
    const seen = logLines(server).length
    const socket = await open(server)
    socket.write(Buffer.from('000010000012000000000001ffff', 'hex'))
    const begun = performance.now()
    await closed(socket)
    assert.ok(performance.now() - begun > 1000)
    assert.deepEqual(logLines(server).slice(seen), [])
  })

  test('1,000 idle connections: others are served, and all expire', async t => {
    const pid = server.pid
    assert.ok(pid !== undefined)
    const before = residentBytes(pid)
    const sockets: Socket[] = []
    for (let count = 0; count < 1000; count += 100)
      sockets.push(...(await Promise.all(Array.from({ length: 100 }, () => open(server)))))
    const begun = performance.now()
    await refresh()
    const answeredMs = performance.now() - begun
    const grownMiB = (residentBytes(pid) - before) / MiB
    await Promise.all(sockets.map(socket => closed(socket, 15_000)))
    const expiredMs = performance.now() - begun
    assert.ok(grownMiB < 100, `${grownMiB} MiB more`)
    t.diagnostic(
      `answered in ${answeredMs.toFixed(1)} ms beside 1,000 idle ones (${grownMiB.toFixed(1)} MiB more), all closed after ${Math.round(expiredMs)} ms`,
    )
    await refresh()
  })

  test('a connection that waits in a long poll is not idle', async () => {
    const channel = await channelOf(server)
    const answer = await channel.ask(
      API.Fetch,
      {
        replicaId: -1,
        maxWaitMs: 3000,
        minBytes: 100 * MiB,
        maxBytes: 1,
        sessionId: 0,
        sessionEpoch: -1,
        topics: [{ topic: 'cut', partitions: [{ partition: 0, fetchOffset: 0, partitionMaxBytes: 1 }] }],
      },
      { versionMax: 12 },
    )
    assert.equal(answer.errorCode, 0)
    channel.close()
  })

  test('the node has nothing to complain about but the strangers', async () => {
    const other = logLines(server).filter(
      ({ level, msg }) => level >= 40 && !msg.startsWith('closed a connection that sent'),
    )
    assert.deepEqual(other, [])
    assert.equal(await server.stop(), 0)
  })
})
