import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ByteReader, ByteWriter } from '#base/bytes.ts'
import { decode, encode } from '#protocol/codec.ts'
import { ApiVersionsRequest, ApiVersionsResponse } from '#protocol/messages/api-versions.ts'
import { FetchRequest, FetchResponse } from '#protocol/messages/fetch.ts'
import { RequestHeader } from '#protocol/messages/headers.ts'
import { HeartbeatRequest, HeartbeatResponse } from '#protocol/messages/heartbeat.ts'
import { MetadataRequest, MetadataResponse } from '#protocol/messages/metadata.ts'
import { type InputOf, includesVersion, type MessageOf, type Schema } from '#protocol/schema.ts'
import { type Address, type Clock, type Network, type Sink, type Socket, WorldError } from '#world/world.ts'
import { Channel, ChannelError, type ChannelOptions } from './channel.ts'
import { FramePool } from './frame-pool.ts'

const ADDRESS: Address = { host: 'broker', port: 9092 }
const HEARTBEAT = { request: HeartbeatRequest, response: HeartbeatResponse }
const METADATA = { request: MetadataRequest, response: MetadataResponse }
const FETCH = { request: FetchRequest, response: FetchResponse }

class ManualClock implements Clock {
  time = 1000
  readonly timers = new Set<{ at: number; run: () => void }>()

  now(): number {
    return this.time
  }
  monotonic(): number {
    return this.time
  }
  after(delay: number, run: () => void) {
    const timer = { at: this.time + delay, run }
    this.timers.add(timer)
    return { cancel: () => void this.timers.delete(timer) }
  }
  soon(run: () => void): void {
    this.after(0, run)
  }
  advance(ms: number): void {
    this.time += ms
    for (const timer of [...this.timers].sort((a, b) => a.at - b.at)) {
      if (timer.at > this.time || !this.timers.delete(timer)) continue
      timer.run()
    }
  }
}

/** Our end of a connection; the test plays the broker. */
class FakeSocket implements Socket {
  readonly local = { host: 'client', port: 1 }
  readonly remote = ADDRESS
  readonly queuedBytes = 0
  sink: Sink | undefined
  destroyed = false
  written = Buffer.alloc(0)

  attach(sink: Sink): void {
    this.sink = sink
  }
  write(parts: readonly Uint8Array[]): void {
    this.written = Buffer.concat([this.written, ...parts])
  }
  sendFile(): void {}
  pause(): void {}
  resume(): void {}
  end(): void {}
  destroy(): void {
    this.destroyed = true
  }

  /** The next request that was written. */
  request<S extends Schema>(schema: S): { header: MessageOf<typeof RequestHeader>; body: MessageOf<S> } {
    const size = this.written.readInt32BE(0)
    const reader = new ByteReader(this.written, 4, 4 + size)
    const version = this.written.readInt16BE(6)
    const header = decode(RequestHeader, includesVersion(schema.flexible, version) ? 2 : 1, reader)
    const body = decode(schema, version, reader)
    assert.equal(reader.remaining, 0)
    this.written = this.written.subarray(4 + size)
    return { header, body }
  }

  answer<S extends Schema>(schema: S, version: number, correlationId: number, body: InputOf<S>): Buffer {
    const writer = new ByteWriter()
    writer.int32(0)
    writer.int32(correlationId)
    if (includesVersion(schema.flexible, version) && schema.apiKey !== 18) writer.uvarint(0)
    encode(schema, version, body, writer)
    writer.buffer.writeInt32BE(writer.position - 4, 0)
    return writer.written()
  }

  /** Brings bytes to the channel in pieces. */
  deliver(bytes: Uint8Array, piece = bytes.length): void {
    const sink = this.sink
    assert.ok(sink !== undefined)
    for (let at = 0; at < bytes.length; ) {
      const space = sink.space()
      const count = Math.min(space.length, piece, bytes.length - at)
      assert.ok(count > 0)
      space.set(bytes.subarray(at, at + count))
      sink.received(count)
      at += count
    }
  }
}

async function open(options: Partial<ChannelOptions> = {}) {
  const clock = new ManualClock()
  const socket = new FakeSocket()
  const network: Network = {
    listen: () => Promise.reject(new WorldError('EINVAL', 'unused')),
    connect: () => Promise.resolve(socket),
  }
  const channel = await Channel.connect({ clock, network }, ADDRESS, { clientId: 'test', ...options })
  return { clock, socket, channel }
}

async function channelError(promise: Promise<unknown>): Promise<ChannelError> {
  try {
    await promise
  } catch (error) {
    assert.ok(error instanceof ChannelError)
    return error
  }
  throw new Error('it did not reject')
}

test('who asks is lent the memory that an answer lies in, and what is given back holds the next one', async () => {
  const pool = new FramePool(1 << 20)
  const { socket, channel } = await open({ memory: pool })
  const fetched = async (fill: string) => {
    let frame: Buffer | undefined
    const lent = (bytes: Buffer) => {
      frame = bytes
    }
    const asked = channel.call(FETCH, 11, { topics: [] }, { lent })
    const { header } = socket.request(FetchRequest)
    const records = Buffer.alloc(100_000, fill)
    const responses = [{ topic: 't', partitions: [{ partitionIndex: 0, highWatermark: 1, records }] }]
    socket.deliver(socket.answer(FetchResponse, 11, header.correlationId, { responses }), 30_000)
    const found = (await asked).responses[0]?.partitions[0]?.records
    assert.ok(frame !== undefined && Buffer.isBuffer(found))
    assert.deepEqual(found, records)
    assert.equal(found.buffer, frame.buffer)
    return { found, frame }
  }
  const first = await fetched('1')
  const second = await fetched('2')
  assert.notEqual(second.frame.buffer, first.frame.buffer, 'one that is used is not written to')
  pool.give(first.frame)
  const third = await fetched('3')
  assert.equal(third.frame.buffer, first.frame.buffer)
  assert.deepEqual(second.found, Buffer.alloc(100_000, '2'))
})

test('requests are pipelined and answers go to who asked, byte by byte', async () => {
  const { socket, channel } = await open()
  const first = channel.call(HEARTBEAT, 4, { groupId: 'g', generationId: 1, memberId: 'm' })
  const second = channel.call(METADATA, 12, { topics: [{ name: 't' }] })
  assert.equal(channel.inFlight, 2)
  const one = socket.request(HeartbeatRequest)
  const two = socket.request(MetadataRequest)
  assert.equal(one.header.clientId, 'test')
  assert.equal(one.body.groupId, 'g')
  assert.equal(two.header.requestApiVersion, 12)
  assert.equal(two.header.correlationId, one.header.correlationId + 1)
  socket.deliver(
    Buffer.concat([
      socket.answer(HeartbeatResponse, 4, one.header.correlationId, { errorCode: 27 }),
      socket.answer(MetadataResponse, 12, two.header.correlationId, { clusterId: 'c', topics: [{ name: 't' }] }),
    ]),
    1,
  )
  assert.equal((await first).errorCode, 27)
  assert.equal((await second).topics[0]?.name, 't')
  assert.equal(channel.inFlight, 0)
})

test('negotiation finds the highest common version', async () => {
  const { socket, channel } = await open()
  const negotiated = channel.negotiate()
  const asked = socket.request(ApiVersionsRequest)
  assert.equal(asked.body.clientSoftwareName, 'tidemark')
  socket.deliver(
    socket.answer(ApiVersionsResponse, 4, asked.header.correlationId, {
      apiKeys: [
        { apiKey: 3, minVersion: 0, maxVersion: 9 },
        { apiKey: 12, minVersion: 7, maxVersion: 9 },
      ],
    }),
  )
  await negotiated
  assert.equal(channel.versionFor(MetadataRequest), 9)
  assert.equal(channel.versionFor(MetadataRequest, 5), 5)
  assert.equal(channel.versionFor(HeartbeatRequest), undefined)
  assert.equal(channel.versionFor(FetchRequest), undefined)
  const error = await channelError(channel.ask(FETCH, {}))
  assert.equal(error.code, 'unsupported-version')
  assert.ok(channel.open)
})

test('a broker that does not know our ApiVersions is asked in one that it knows', async () => {
  const { socket, channel } = await open()
  const negotiated = channel.negotiate()
  const asked = socket.request(ApiVersionsRequest)
  socket.deliver(
    socket.answer(ApiVersionsResponse, 0, asked.header.correlationId, {
      errorCode: 35,
      apiKeys: [{ apiKey: 18, minVersion: 0, maxVersion: 2 }],
    }),
  )
  await Promise.resolve()
  const again = socket.request(ApiVersionsRequest)
  assert.equal(again.header.requestApiVersion, 2)
  socket.deliver(
    socket.answer(ApiVersionsResponse, 2, again.header.correlationId, {
      apiKeys: [{ apiKey: 3, minVersion: 0, maxVersion: 5 }],
    }),
  )
  await negotiated
  assert.equal(channel.versionFor(MetadataRequest), 5)
})

test('who is asked for versions cannot answer with what takes the memory', async () => {
  const { socket, channel } = await open()
  const negotiated = channelError(channel.negotiate())
  const { header } = socket.request(ApiVersionsRequest)
  const apiKeys = Array.from({ length: 20_000 }, (_, apiKey) => ({ apiKey, minVersion: 0, maxVersion: 1 }))
  socket.deliver(socket.answer(ApiVersionsResponse, 4, header.correlationId, { apiKeys }))
  assert.equal((await negotiated).code, 'protocol')
  assert.ok(!channel.open)
})

test('after the versions, answers may be as large as they are', async () => {
  const { socket, channel } = await open()
  const negotiated = channel.negotiate()
  const { header } = socket.request(ApiVersionsRequest)
  const apiKeys = [{ apiKey: 3, minVersion: 0, maxVersion: 12 }]
  socket.deliver(socket.answer(ApiVersionsResponse, 4, header.correlationId, { apiKeys }))
  await negotiated
  const asked = channel.ask(METADATA, {})
  const topics = Array.from({ length: 20_000 }, (_, index) => ({ name: `topic-${index}` }))
  const { correlationId } = socket.request(MetadataRequest).header
  socket.deliver(socket.answer(MetadataResponse, 12, correlationId, { topics }))
  assert.equal((await asked).topics.length, 20_000)
})

test('an answer of more elements than are allowed closes the channel', async () => {
  const { socket, channel } = await open({ elementsMax: 1000 })
  const asked = channelError(channel.call(METADATA, 12, {}))
  const topics = Array.from({ length: 1001 }, () => ({ name: 't' }))
  const { correlationId } = socket.request(MetadataRequest).header
  socket.deliver(socket.answer(MetadataResponse, 12, correlationId, { topics }))
  assert.equal((await asked).code, 'protocol')
})

test('a late answer closes the channel and rejects all that is under way', async () => {
  const { clock, socket, channel } = await open({ requestTimeoutMs: 1000 })
  const slow = channelError(channel.call(HEARTBEAT, 4, {}))
  clock.advance(600)
  const patient = channelError(channel.call(HEARTBEAT, 4, {}, { timeoutMs: 60_000 }))
  clock.advance(399)
  assert.ok(channel.open)
  clock.advance(1)
  assert.equal((await slow).code, 'timed-out')
  assert.equal((await patient).code, 'timed-out')
  assert.ok(socket.destroyed)
  assert.equal((await channelError(channel.call(HEARTBEAT, 4, {}))).code, 'timed-out')
  assert.equal(clock.timers.size, 0)
})

test('an answered request leaves no deadline behind', async () => {
  const { clock, socket, channel } = await open({ requestTimeoutMs: 1000 })
  const first = channel.call(HEARTBEAT, 4, {})
  clock.advance(500)
  const second = channel.call(HEARTBEAT, 4, {})
  socket.deliver(socket.answer(HeartbeatResponse, 4, socket.request(HeartbeatRequest).header.correlationId, {}))
  await first
  clock.advance(999)
  assert.ok(channel.open, 'the second request has one millisecond left')
  socket.deliver(socket.answer(HeartbeatResponse, 4, socket.request(HeartbeatRequest).header.correlationId, {}))
  await second
  clock.advance(10_000)
  assert.ok(channel.open)
  assert.equal(clock.timers.size, 0)
})

test('a closed connection rejects what is under way, once', async () => {
  const { socket, channel } = await open()
  const reasons: string[] = []
  channel.whenClosed(error => reasons.push(error.code))
  const waiting = channelError(channel.call(HEARTBEAT, 4, {}))
  socket.sink?.closed(new WorldError('ECONNRESET', 'reset'))
  assert.equal((await waiting).code, 'closed')
  assert.match((await waiting).message, /broker:9092.*ECONNRESET/)
  channel.close()
  assert.deepEqual(reasons, ['closed'])
})

for (const [what, bytes] of [
  ['a wrong correlation id', Buffer.from('0000000800000063' + '00000000', 'hex')],
  ['a negative size', Buffer.from('ffffffff00000000', 'hex')],
  ['a size above the limit', Buffer.from('7fffffff00000000', 'hex')],
  ['a body that ends early', Buffer.from('0000000500000000' + '00', 'hex')],
] as const) {
  test(`${what} is a broken protocol`, async () => {
    const { socket, channel } = await open()
    const waiting = channelError(channel.call(HEARTBEAT, 4, {}))
    socket.deliver(bytes)
    assert.equal((await waiting).code, 'protocol')
    assert.ok(socket.destroyed)
  })
}

test('what is under way is bounded in number and bytes', async () => {
  const { socket, channel } = await open({ inFlightMax: 2 })
  const first = channel.call(HEARTBEAT, 4, {})
  const second = channelError(channel.call(HEARTBEAT, 4, {}))
  assert.equal((await channelError(channel.call(HEARTBEAT, 4, {}))).code, 'overloaded')
  assert.ok(channel.open)
  socket.deliver(socket.answer(HeartbeatResponse, 4, socket.request(HeartbeatRequest).header.correlationId, {}))
  await first
  const third = channelError(channel.call(HEARTBEAT, 4, {}))
  channel.close()
  assert.equal((await second).code, 'closed')
  assert.equal((await third).code, 'closed')

  const bytes = await open({ inFlightBytesMax: 10 })
  const one = channelError(bytes.channel.call(HEARTBEAT, 4, {}))
  assert.equal((await channelError(bytes.channel.call(HEARTBEAT, 4, {}))).code, 'overloaded')
  bytes.channel.close()
  await one
})

test('what a version cannot carry is refused before anything is sent', async () => {
  const { socket, channel } = await open()
  const error = await channelError(channel.call(HEARTBEAT, 0, { groupInstanceId: 'static' }))
  assert.equal(error.code, 'unsendable')
  assert.equal(socket.written.length, 0)
  const next = channelError(channel.call(HEARTBEAT, 0, {}))
  assert.equal(socket.request(HeartbeatRequest).header.correlationId, 0)
  channel.close()
  await next
})

test('a connection that cannot be made says why', async () => {
  for (const [code, expected] of [
    ['ECONNREFUSED', 'refused'],
    ['ETIMEDOUT', 'timed-out'],
    ['ENOTFOUND', 'unknown-host'],
    ['EHOSTUNREACH', 'unreachable'],
  ] as const) {
    const network: Network = {
      listen: () => Promise.reject(new WorldError('EINVAL', 'unused')),
      connect: () => Promise.reject(new WorldError(code, 'no')),
    }
    const error = await channelError(Channel.connect({ clock: new ManualClock(), network }, ADDRESS))
    assert.equal(error.code, expected)
    assert.match(error.message, /broker/)
  }
})
