import assert from 'node:assert/strict'
import { test } from 'node:test'
import { API } from '#protocol/apis.ts'
import type { Clock, File, Sink, Socket } from '#world/world.ts'
import { Answers } from './answers.ts'
import { FramePool } from './frame-pool.ts'
import { MemoryBudget } from './memory-budget.ts'
import { type FileRange, HANG_UP, NO_ANSWER, serve } from './service.ts'
import { Slot, type SlotOwner } from './slot.ts'
import { Turns } from './turns.ts'

/** Nothing of it is read until `queuedBytes` says so. */
class SocketDouble implements Socket {
  readonly local = { host: '127.0.0.1', port: 9092 }
  readonly remote = { host: '127.0.0.1', port: 50000 }
  readonly went: (Buffer | string)[] = []
  queuedBytes = 0
  attach(_sink: Sink): void {}
  write(parts: readonly Uint8Array[]): void {
    for (const part of parts) this.#queue(Buffer.from(part), part.length)
  }
  sendFile(_file: File, position: number, size: number): void {
    this.#queue(`file ${position} ${size}`, size)
  }
  #queue(what: Buffer | string, size: number): void {
    this.went.push(what)
    this.queuedBytes += size
  }
  pause(): void {}
  resume(): void {}
  end(): void {}
  destroy(): void {}
}

const heartbeat = serve({ api: API.Heartbeat, handle: () => NO_ANSWER })
const metadata = serve({ api: API.Metadata, handle: () => NO_ANSWER })
const fetch = serve({ api: API.Fetch, handle: () => NO_ANSWER })

function harness() {
  const soon: (() => void)[] = []
  const clock: Clock = {
    now: () => 0,
    monotonic: () => 0,
    after: () => ({ cancel() {} }),
    soon: run => void soon.push(run),
  }
  const socket = new SocketDouble()
  const budget = new MemoryBudget(-1, clock)
  const happened: string[] = []
  const answers = new Answers({
    socket,
    budget,
    turns: new Turns(clock),
    left: ({ header }) => happened.push(`${header.correlationId} left`),
    failed: ({ header }) => happened.push(`${header.correlationId} failed`),
    hangUp: () => happened.push('hung up'),
    goOn: () => happened.push('goes on'),
  })
  const pool = new FramePool(1 << 20)
  const caller = {
    ...{ id: 1, listener: 'PLAINTEXT', local: socket.local, remote: socket.remote },
    ...{ softwareName: '', softwareVersion: '', whenGone: () => () => {}, pool, budget },
  } satisfies SlotOwner
  const begin = (served: typeof heartbeat, apiVersion: number, correlationId: number): Slot => {
    const header = { apiKey: served.api.key, apiVersion, correlationId, clientId: null }
    const slot = new Slot(served, header, caller, Buffer.alloc(10))
    answers.begin(slot)
    return slot
  }
  return { socket, budget, answers, soon, happened, begin }
}

test('answers leave in the order of the requests', () => {
  const { answers, begin, happened, socket } = harness()
  const [one, two, three] = [1, 2, 3].map(id => begin(heartbeat, 0, id)) as [Slot, Slot, Slot]
  answers.settle(two, { errorCode: 0 })
  answers.settle(three, NO_ANSWER)
  assert.deepEqual(happened, [])
  answers.settle(one, { errorCode: 0 })
  assert.deepEqual(happened, ['1 left', '2 left', '3 left'])
  const sent = Buffer.concat(socket.went as Buffer[])
  assert.deepEqual([sent.readInt32BE(4), sent.readInt32BE(14), sent.length], [1, 2, 20])
  assert.equal(answers.waiting, 0)
})

test('a hang-up takes its turn, and nothing follows it', () => {
  const { answers, begin, happened } = harness()
  const [one, two, three] = [1, 2, 3].map(id => begin(heartbeat, 0, id)) as [Slot, Slot, Slot]
  answers.settle(three, { errorCode: 0 })
  answers.settle(two, HANG_UP)
  answers.settle(one, { errorCode: 0 })
  assert.deepEqual(happened, ['1 left', '2 left', 'hung up'])
  assert.deepEqual(answers.end(), [three])
})

test('a long answer is made in turns, and those behind wait for it', () => {
  const { answers, begin, happened, soon } = harness()
  const [long, short] = [begin(metadata, 12, 1), begin(heartbeat, 0, 2)]
  answers.settle(short, { errorCode: 0 })
  answers.settle(long, { topics: Array.from({ length: 50_000 }, () => ({ name: 't', errorCode: 3 })) })
  let turns = 0
  for (let run = soon.shift(); run !== undefined; run = soon.shift()) {
    assert.equal(happened.includes('2 left'), false)
    run()
    turns++
  }
  assert.ok(turns > 10, `${turns} turns`)
  assert.deepEqual(happened.slice(-3), ['1 left', '2 left', 'goes on'])
})

test('of a connection that is gone no more is made', () => {
  const { answers, begin, happened, soon, socket } = harness()
  const long = begin(metadata, 12, 1)
  answers.settle(long, { topics: Array.from({ length: 50_000 }, () => ({ name: 't', errorCode: 3 })) })
  assert.deepEqual(answers.end(), [long])
  while (soon.length > 0) soon.shift()?.()
  assert.deepEqual([happened, socket.went], [[], []])
})

test('nothing is answered in the place of what could not be', () => {
  const { answers, begin, happened, socket } = harness()
  const [one, two] = [begin(heartbeat, 0, 1), begin(heartbeat, 0, 2)]
  const broken = {
    get errorCode(): number {
      throw new TypeError('no such thing')
    },
  }
  answers.settle(one, broken)
  answers.settle(two, { errorCode: 0 })
  assert.deepEqual([happened, socket.went], [['1 failed'], []])
})

test('a range of a file goes in its place, and is no memory', () => {
  const { answers, begin, socket, budget } = harness()
  const records: FileRange = { file: {} as File, position: 100, size: 5000 }
  const partitions = [{ partitionIndex: 0, errorCode: 0, highWatermark: 9, records }]
  answers.settle(begin(fetch, 4, 1), { responses: [{ topic: 't', partitions }] })
  const kinds = socket.went.map(part => (typeof part === 'string' ? part : 'bytes'))
  assert.deepEqual(kinds, ['bytes', 'file 100 5000'])
  const memory = (socket.went[0] as Buffer).length
  assert.deepEqual([answers.countedBytes, budget.bytes, answers.bytesMade], [memory, memory, memory])
  // The client has read all but a little.
  socket.queuedBytes = 7
  answers.count()
  assert.deepEqual([answers.countedBytes, budget.bytes], [7, 7])
  socket.queuedBytes = 0
  answers.count()
  socket.queuedBytes = 3
  answers.count()
  assert.deepEqual([answers.countedBytes, budget.bytes], [0, 0])
})
