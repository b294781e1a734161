import assert from 'node:assert/strict'
import { test } from 'node:test'
import { API } from '#protocol/apis.ts'
import { decodeMessage } from '#protocol/codec.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { encodeRequestFrame } from '#protocol/frames.ts'
import { ApiVersionsResponse } from '#protocol/messages/api-versions.ts'
import type { Clock, File, Logger, Sink, Socket } from '#world/world.ts'
import { apiVersions } from './api-versions.ts'
import { Connection, DEFAULT_CONNECTION_LIMITS } from './connection.ts'
import { FramePool } from './frame-pool.ts'
import { MemoryBudget } from './memory-budget.ts'
import { type Call, HANG_UP, NO_ANSWER, type ServedApi, type Service, serve, service } from './service.ts'
import { Turns } from './turns.ts'

class SocketDouble implements Socket {
  readonly local = { host: '127.0.0.1', port: 9092 }
  readonly remote = { host: '127.0.0.1', port: 50000 }
  readonly written: Buffer[] = []
  queuedBytes = 0
  reading = true
  ended = false
  destroyed = false
  attach(_sink: Sink): void {}
  write(parts: readonly Uint8Array[]): void {
    this.written.push(...parts.map(part => Buffer.from(part)))
  }
  sendFile(_file: File, position: number, size: number): void {
    this.written.push(Buffer.from(`[file ${position} ${size}]`))
  }
  pause(): void {
    this.reading = false
  }
  resume(): void {
    this.reading = true
  }
  end(): void {
    this.ended = true
  }
  destroy(): void {
    this.destroyed = true
  }
}

const clock: Clock = { now: () => 0, monotonic: () => 0, after: () => ({ cancel() {} }), soon: run => run() }

interface Harness {
  readonly socket: SocketDouble
  readonly connection: Connection
  readonly lines: string[]
  send(bytes: Uint8Array, pieces?: number): void
  /** Correlation ids of the answers so far. */
  answered(): number[]
}

function harness(
  served: readonly ServedApi[],
  limits = DEFAULT_CONNECTION_LIMITS,
  time = clock,
  budget = new MemoryBudget(-1, time),
  turns = new Turns(time),
): Harness {
  const lines: string[] = []
  const note = (_fields: object, message: string) => void lines.push(message)
  const log: Logger = { debug: note, info: note, warn: note, error: note, child: () => log }
  const socket = new SocketDouble()
  const all: Service = service([
    ...served,
    apiVersions(
      () => all,
      () => ({ supported: new Map(), finalized: new Map(), epoch: -1 }),
    ),
  ])
  const connection = new Connection({
    id: 1,
    socket,
    listener: 'PLAINTEXT',
    service: all,
    limits,
    pool: new FramePool(1 << 20),
    budget,
    turns,
    clock: time,
    log,
    onClosed: () => {},
  })
  return {
    socket,
    connection,
    lines,
    send(bytes, pieces = bytes.length) {
      for (let at = 0; at < bytes.length; ) {
        const space = connection.space()
        const count = Math.min(space.length, pieces, bytes.length - at)
        space.set(bytes.subarray(at, at + count))
        connection.received(count)
        at += count
      }
    },
    answered() {
      const bytes = Buffer.concat(socket.written)
      const ids: number[] = []
      for (let at = 0; at < bytes.length; at += 4 + bytes.readInt32BE(at)) ids.push(bytes.readInt32BE(at + 4))
      return ids
    },
  }
}

function frame(api: (typeof API)[keyof typeof API], version: number, correlationId: number, body: object = {}): Buffer {
  const parts = encodeRequestFrame(api as typeof API.Heartbeat, version, { correlationId, clientId: 'test' }, body)
  return Buffer.concat(parts as Buffer[])
}

/** A heartbeat whose answer the test gives. */
function heldHeartbeat(barrier = false): { api: ServedApi; waiting: (() => void)[] } {
  const waiting: (() => void)[] = []
  const api = serve({
    api: API.Heartbeat,
    barrier,
    handle: () =>
      new Promise<{ errorCode: number }>(resolve => waiting.push(() => resolve({ errorCode: ErrorCode.NONE }))),
  })
  return { api, waiting }
}

const turn = () => new Promise(resolve => setImmediate(resolve))

test('requests are handled as they come and answered in their order', async () => {
  const { api, waiting } = heldHeartbeat()
  const { send, answered } = harness([api])
  send(Buffer.concat([frame(API.Heartbeat, 4, 1), frame(API.Heartbeat, 4, 2), frame(API.ApiVersions, 3, 3, ok)]))
  assert.equal(waiting.length, 2)
  waiting[1]?.()
  await turn()
  assert.deepEqual(answered(), [])
  waiting[0]?.()
  await turn()
  assert.deepEqual(answered(), [1, 2, 3])
})

const ok = { clientSoftwareName: 'test', clientSoftwareVersion: '1' }

test('what comes behind a barrier waits for its answer', async () => {
  const { api, waiting } = heldHeartbeat(true)
  const { send, answered } = harness([api])
  send(Buffer.concat([frame(API.Heartbeat, 4, 1), frame(API.Heartbeat, 4, 2)]))
  assert.equal(waiting.length, 1)
  waiting[0]?.()
  await turn()
  assert.equal(waiting.length, 2)
  waiting[1]?.()
  await turn()
  assert.deepEqual(answered(), [1, 2])
})

test('a frame may come byte by byte, and many in one piece', () => {
  const { send, answered } = harness([])
  send(frame(API.ApiVersions, 3, 7, ok), 1)
  assert.deepEqual(answered(), [7])
})

test('ApiVersions in an unknown version is answered in version 0 with its range, and the connection stays', () => {
  const { send, socket } = harness([])
  const asked = frame(API.ApiVersions, 3, 5, ok)
  asked.writeInt16BE(99, 6)
  send(asked)
  const answer = Buffer.concat(socket.written)
  const body = decodeMessage(ApiVersionsResponse, 0, answer.subarray(8))
  assert.equal(body.errorCode, ErrorCode.UNSUPPORTED_VERSION)
  assert.deepEqual(
    body.apiKeys.map(({ apiKey, minVersion, maxVersion }) => [apiKey, minVersion, maxVersion]),
    [[18, 0, 4]],
  )
  assert.equal(socket.ended || socket.destroyed, false)
})

test('another unknown version, or an API that is not served, closes with a line that names it', () => {
  const one = harness([heldHeartbeat().api])
  const asked = frame(API.Heartbeat, 4, 5)
  asked.writeInt16BE(99, 6)
  one.send(asked)
  assert.equal(one.socket.ended, true)
  assert.match(one.lines[0] ?? '', /Heartbeat version 99; versions 0 to 4 are served/)
  const other = harness([])
  other.send(frame(API.Heartbeat, 4, 5))
  assert.match(other.lines[0] ?? '', /Heartbeat \(12\), which this listener does not serve/)
})

test('HTTP, TLS and garbage are told apart and closed', () => {
  for (const [bytes, says] of [
    [Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'), /HTTP; this port speaks the Kafka protocol/],
    [Buffer.from('160301020001000001fc0303', 'hex'), /TLS to the plaintext listener PLAINTEXT/],
    [Buffer.from('ffffffff0000000000000000', 'hex'), /no Kafka request: a frame of -1 bytes/],
    [Buffer.from('00000003001200', 'hex'), /a broken request/],
  ] as const) {
    const { send, socket, lines } = harness([])
    send(bytes)
    assert.equal(socket.ended, true)
    assert.match(lines[0] ?? '', says)
    assert.equal(lines.length, 1)
  }
})

test('who does not read his answers, or asks faster than he is answered, is not read from', async () => {
  const { api, waiting } = heldHeartbeat()
  const one = harness([api], { ...DEFAULT_CONNECTION_LIMITS, inFlightMax: 3 })
  for (let id = 0; id < 3; id++) one.send(frame(API.Heartbeat, 4, id))
  assert.equal(one.socket.reading, false)
  waiting[0]?.()
  await turn()
  assert.equal(one.socket.reading, true)
  const other = harness([], { ...DEFAULT_CONNECTION_LIMITS, queuedBytesMax: 10 })
  other.socket.queuedBytes = 10
  other.send(frame(API.ApiVersions, 3, 1, ok))
  assert.equal(other.socket.reading, false)
  other.socket.queuedBytes = 0
  other.connection.drained()
  assert.equal(other.socket.reading, true)
})

test('of many requests in one piece no more are answered than may be queued, the rest when that is read', () => {
  const one = harness([], { ...DEFAULT_CONNECTION_LIMITS, queuedBytesMax: 1000 })
  const { socket } = one
  const write = socket.write.bind(socket)
  socket.write = parts => {
    write(parts)
    for (const part of parts) socket.queuedBytes += part.length
  }
  const many = Array.from({ length: 300 }, (_, id) => frame(API.ApiVersions, 3, id, ok))
  one.send(Buffer.concat(many))
  let turns = 0
  for (let answered = 0; answered < many.length; turns++) {
    assert.ok(one.answered().length > answered, 'some more are answered in every turn')
    answered = one.answered().length
    assert.ok(socket.queuedBytes < 1100, `${socket.queuedBytes} bytes are queued`)
    assert.equal(socket.reading, answered === many.length)
    socket.queuedBytes = 0
    one.connection.drained()
  }
  assert.ok(turns > 3)
  assert.deepEqual(
    one.answered(),
    many.map((_, id) => id),
  )
  assert.equal(socket.reading, true)
})

test('one connection that sends much in one piece lets the others have their turn', () => {
  const soon: (() => void)[] = []
  const one = harness([], DEFAULT_CONNECTION_LIMITS, { ...clock, soon: run => void soon.push(run) })
  one.send(Buffer.concat(Array.from({ length: 300 }, (_, id) => frame(API.ApiVersions, 3, id, ok))))
  const steps = [one.answered().length]
  assert.equal(one.socket.reading, false)
  for (let run = soon.shift(); run !== undefined; run = soon.shift()) {
    run()
    steps.push(one.answered().length)
  }
  assert.deepEqual(steps, [128, 256, 300])
  assert.equal(one.socket.reading, true)
})

test('acks=0 has no answer and an error hangs up, behind the answers before it', () => {
  for (const [answer, ended] of [
    [NO_ANSWER, false],
    [HANG_UP, true],
  ] as const) {
    const produce = serve({ api: API.Produce, handle: () => answer })
    const { send, socket, answered } = harness([produce])
    send(Buffer.concat([frame(API.ApiVersions, 3, 1, ok), frame(API.Produce, 9, 2), frame(API.ApiVersions, 3, 3, ok)]))
    assert.deepEqual(answered(), ended ? [1] : [1, 3])
    assert.equal(socket.ended, ended)
  }
})

test('a handler that fails costs its client the connection, not the node', async () => {
  const failing = serve({
    api: API.Heartbeat,
    handle: () => Promise.reject(new Error('no')),
  })
  const { send, socket, lines } = harness([failing])
  send(frame(API.Heartbeat, 4, 1))
  await turn()
  assert.equal(socket.destroyed, true)
  assert.equal(lines.length, 1)
})

test('an answer that cannot be written costs its client the connection, not the node', async () => {
  const wrong = () => ({
    get errorCode(): number {
      throw new TypeError('no such thing')
    },
  })
  const api = serve({ api: API.Heartbeat, handle: () => Promise.resolve(wrong()) })
  const { send, socket, lines } = harness([api])
  send(frame(API.Heartbeat, 0, 1, { groupId: '', generationId: 0, memberId: '' }))
  await new Promise(setImmediate)
  assert.equal(socket.destroyed, true)
  assert.match(lines.join(), /for a reason of ours/)
})

test('who waits for the end of a connection is told once, and not after he took it back', () => {
  const { connection } = harness([])
  const told: number[] = []
  connection.whenGone(() => told.push(1))
  connection.whenGone(() => told.push(2))()
  connection.closed(undefined)
  connection.whenGone(() => told.push(3))
  assert.deepEqual(told, [1, 3])
})

test('all connections of a node pause when their requests take up its memory, and go on in turn', async () => {
  const { api, waiting } = heldHeartbeat()
  const budget = new MemoryBudget(100, clock)
  const [one, two, three] = [1, 2, 3].map(() => harness([api], DEFAULT_CONNECTION_LIMITS, clock, budget)) as [
    Harness,
    Harness,
    Harness,
  ]
  const request = frame(API.Heartbeat, 4, 1, { groupId: 'g'.repeat(90) })
  one.send(request)
  assert.equal(budget.bytes, request.length)
  assert.equal(one.socket.reading, false)
  two.send(frame(API.ApiVersions, 3, 1, ok))
  three.send(request)
  assert.deepEqual([two.socket.reading, three.socket.reading], [false, false])
  assert.equal(two.connection.busy, true, 'who waits for us is not idle')
  waiting[0]?.()
  await turn()
  assert.equal(two.socket.reading, false)
  three.connection.closed(undefined)
  assert.deepEqual([one.socket.reading, two.socket.reading], [true, true])
  assert.equal(budget.bytes, 0)
})

test('a client that reads nothing of what waits for it is idle after a while; one that reads slowly, or waits for us, is not', () => {
  let now = 0
  const time: Clock = { ...clock, monotonic: () => now }
  const { api } = heldHeartbeat()
  const [stuck, slow, waits] = [1, 2, 3].map(() => harness([api], DEFAULT_CONNECTION_LIMITS, time)) as [
    Harness,
    Harness,
    Harness,
  ]
  waits.send(frame(API.Heartbeat, 4, 1, { groupId: 'g' }))
  stuck.socket.queuedBytes = 1000
  slow.socket.queuedBytes = 1000
  const idle = []
  for (now = 100; now <= 1500; now += 100) {
    slow.socket.queuedBytes--
    idle.push([stuck, slow, waits].map(({ connection }) => connection.isIdle(1000)))
  }
  assert.deepEqual(idle.at(10), [false, false, false])
  assert.deepEqual(idle.at(-1), [true, false, false])
})

test('who has just been answered after a long wait is not idle', async () => {
  let now = 0
  const { api, waiting } = heldHeartbeat()
  const waits = harness([api], DEFAULT_CONNECTION_LIMITS, { ...clock, monotonic: () => now })
  waits.send(frame(API.Heartbeat, 4, 1, { groupId: 'g' }))
  for (now = 250; now <= 3000; now += 250) assert.equal(waits.connection.isIdle(1000), false)
  waiting[0]?.()
  await turn()
  assert.deepEqual(
    [3500, 4001].map(at => {
      now = at
      return waits.connection.isIdle(1000)
    }),
    [false, true],
  )
})

test('bytes count from their arrival on, to the end of the connection and of whoever holds them', () => {
  const budget = new MemoryBudget(-1, clock)
  const holders: Call[] = []
  const api = serve({
    api: API.Heartbeat,
    handle: (_, call) => {
      call.hold()
      holders.push(call)
      return { errorCode: ErrorCode.NONE }
    },
  })
  const request = frame(API.Heartbeat, 4, 1)
  const one = harness([api], DEFAULT_CONNECTION_LIMITS, clock, budget)
  one.send(request)
  assert.deepEqual(one.answered(), [1])
  assert.equal(budget.bytes, request.length, 'answered, and held')
  one.send(request.subarray(0, 10))
  assert.equal(budget.bytes, request.length + 10)
  one.connection.closed(undefined)
  assert.equal(budget.bytes, request.length)
  holders[0]?.letGo()
  assert.equal(budget.bytes, 0)
  const other = harness([api], DEFAULT_CONNECTION_LIMITS, clock, budget)
  other.send(Buffer.from('0000000a0000000000000001ffff', 'hex'))
  other.connection.closed(undefined)
  assert.equal(budget.bytes, 0, 'a broken request leaves nothing behind')
})

test('answers that are not read count, ranges of files do not', () => {
  const budget = new MemoryBudget(-1, clock)
  const { send, socket, connection, answered } = harness([], DEFAULT_CONNECTION_LIMITS, clock, budget)
  const write = socket.write.bind(socket)
  socket.write = parts => {
    write(parts)
    for (const part of parts) socket.queuedBytes += part.length
    socket.queuedBytes += 1_000_000
  }
  send(frame(API.ApiVersions, 3, 1, ok))
  assert.deepEqual(answered(), [1])
  assert.equal(budget.bytes, socket.queuedBytes - 1_000_000)
  socket.queuedBytes = 0
  connection.drained()
  assert.equal(budget.bytes, 0)
})

test('of requests that fill the memory half arrived, one after the other is read to its end', async () => {
  const { api, waiting } = heldHeartbeat()
  const budget = new MemoryBudget(300, clock)
  const request = frame(API.Heartbeat, 4, 1, { groupId: 'g'.repeat(150) })
  const all = Array.from({ length: 3 }, () => harness([api], DEFAULT_CONNECTION_LIMITS, clock, budget))
  for (const each of all) each.send(request.subarray(0, 110))
  const reading = () => all.map(({ socket }) => socket.reading)
  const [one, two, three] = all as [Harness, Harness, Harness]
  // The third was the first to see that the memory is used up.
  assert.deepEqual(reading(), [true, true, true])
  one.send(request.subarray(110, 111))
  two.send(request.subarray(110, 111))
  assert.deepEqual(reading(), [false, false, true])
  three.send(request.subarray(110))
  assert.deepEqual(reading(), [false, false, false], `${budget.bytes} bytes are too many to begin another one`)
  waiting[0]?.()
  await turn()
  assert.equal(budget.bytes, 222)
  assert.deepEqual(reading(), [true, true, true])
})

test('a large request is taken apart and answered in turns, and meanwhile others are served', () => {
  const steps: (() => void)[] = []
  const time: Clock = { ...clock, soon: run => void steps.push(run) }
  const turns = new Turns(time)
  const echo = serve({
    api: API.Metadata,
    handle: ({ topics }) => ({ topics: (topics ?? []).map(({ name }) => ({ name, errorCode: 3 })) }),
  })
  const [large, other] = [0, 1].map(() => harness([echo], undefined, time, new MemoryBudget(-1, time), turns)) as [
    Harness,
    Harness,
  ]
  const topics = Array.from({ length: 50_000 }, (_, index) => ({ name: `topic-${index}` }))
  const small = (id: number) => frame(API.ApiVersions, 3, id, ok)
  large.send(Buffer.concat([frame(API.Metadata, 12, 1, { topics }), small(2)]))
  let taken = 0
  while (large.answered().length < 2) {
    other.send(small(taken))
    assert.equal(other.answered().length, ++taken)
    const step = steps.shift()
    assert.ok(step !== undefined, 'the large request goes on')
    step()
  }
  assert.deepEqual(large.answered(), [1, 2])
  // Both the request and its answer have 50,000 elements, and some thousand are gone over in one turn.
  assert.ok(taken >= 24, `${taken} turns`)
})

test('a request of more elements than there are uses for is refused before anything is made of it', () => {
  const { send, socket, lines } = harness([serve({ api: API.Metadata, handle: () => ({}) })])
  send(frame(API.Metadata, 12, 1, { topics: Array.from({ length: 300_000 }, () => ({ name: 't' })) }))
  assert.ok(socket.ended)
  assert.match(lines.at(-1) ?? '', /too many array elements/)
})
