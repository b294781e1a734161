import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ByteReader } from '#base/bytes.ts'
import type { FetchPosition } from '#core/partition/follower.ts'
import { FramePool } from '#network/frame-pool.ts'
import { API } from '#protocol/apis.ts'
import { decode } from '#protocol/codec.ts'
import { decodeRequestHeader, encodeResponseFrame } from '#protocol/frames.ts'
import type { FetchRequest } from '#protocol/messages/fetch.ts'
import type { InputOf } from '#protocol/schema.ts'
import { LinesLogger, ManualClock } from '#storage/testing/rig.ts'
import type { Sink, Socket, World } from '#world/world.ts'
import { Deadlines } from '../deadlines.ts'
import { FetchLane } from './fetch-lane.ts'
import type { Partition } from './partition.ts'
import type { ReplicationThrottle } from './replication-throttle.ts'

const TOPIC = 'aaaaaaaaaaaaaaaaaaaaaA'

/** The leader's end of the connection: keeps the fetch that it was sent last until the test answers it. */
class LeaderSocket implements Socket {
  readonly local = { host: 'follower', port: 1 }
  readonly remote = { host: 'leader', port: 9092 }
  readonly queuedBytes = 0
  fetch: FetchRequest | undefined
  #sink: Sink | undefined
  #respond: ((message: InputOf<typeof API.Fetch.response>) => void) | undefined

  attach(sink: Sink): void {
    this.#sink = sink
  }

  write(parts: readonly Uint8Array[]): void {
    const reader = new ByteReader(Buffer.concat(parts), 4)
    const { apiKey, apiVersion, correlationId } = decodeRequestHeader(reader)
    if (apiKey === API.ApiVersions.key) {
      const answer = { errorCode: 0, apiKeys: [{ apiKey: API.Fetch.key, minVersion: 4, maxVersion: 17 }] }
      const frame = encodeResponseFrame(API.ApiVersions, apiVersion, correlationId, answer)
      queueMicrotask(() => this.#receive(frame as Buffer[]))
      return
    }
    this.fetch = decode(API.Fetch.request, apiVersion, reader)
    this.#respond = message =>
      this.#receive(encodeResponseFrame(API.Fetch, apiVersion, correlationId, message) as Buffer[])
  }

  /** Something for each of these partitions. */
  answer(...indexes: readonly number[]): void {
    this.fetch = undefined
    const partitions = indexes.map(partitionIndex => ({ partitionIndex, highWatermark: 0, records: Buffer.alloc(0) }))
    this.#respond?.({ sessionId: 7, responses: [{ topicId: TOPIC, partitions }] })
  }

  #receive(parts: readonly Buffer[]): void {
    const bytes = Buffer.concat(parts)
    for (let at = 0; at < bytes.length; ) {
      const space = this.#sink?.space() as Uint8Array
      const count = Math.min(space.length, bytes.length - at)
      space.set(bytes.subarray(at, at + count))
      this.#sink?.received(count)
      at += count
    }
  }

  sendFile(): void {}
  pause(): void {}
  resume(): void {}
  end(): void {}
  destroy(): void {}
}

/** A partition that moves on by one with each answer, at once or when the test says that its log is done. */
class Followed {
  readonly topicId = TOPIC
  readonly index: number
  readonly written = undefined
  isSettling = false
  isSlow = false
  lane: FetchLane | undefined
  #position: FetchPosition = { leaderEpoch: 0, offset: 0, lastFetchedEpoch: -1, startOffset: 0 }

  constructor(index: number) {
    this.index = index
  }

  get partition(): Partition {
    return this as unknown as Partition
  }

  get fetchPosition(): FetchPosition | undefined {
    return this.isSettling ? undefined : this.#position
  }

  fetched(): void {
    this.isSettling = true
    if (!this.isSlow) this.settle()
  }

  settle(): void {
    this.isSettling = false
    this.#position = { ...this.#position, offset: this.#position.offset + 1 }
    this.lane?.settled(this.partition)
  }
}

function laneOf(followed: readonly Followed[]) {
  const clock = new ManualClock()
  const socket = new LeaderSocket()
  const world = { clock, network: { connect: async () => socket } } as unknown as World
  const endPoints = [{ name: 'PLAINTEXT', ...socket.remote }]
  const lane = new FetchLane(
    2,
    0,
    {
      world,
      nodeId: 1,
      broker: () => ({ endPoints }) as never,
      listener: 'PLAINTEXT',
      memory: new FramePool(0),
      deadlines: new Deadlines(clock),
      log: new LinesLogger(),
      brokerEpoch: () => 1,
      terms: () => ({
        waitMs: 500,
        minBytes: 1,
        partitionBytes: 1000,
        answerBytes: 1000,
        timeoutMs: 1000,
        backoffMs: 1000,
      }),
      hosted: (_, index) => followed[index]?.partition,
      throttle: { followerWaitMs: () => 0, followed() {} } as unknown as ReplicationThrottle,
    },
    () => true,
  )
  for (const each of followed) {
    each.lane = lane
    lane.join(each.partition)
    lane.settled(each.partition)
  }
  return { clock, socket, lane }
}

const quiet = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

test('what the log takes at once is said to be held in the turn in which it came', async () => {
  const { socket } = laneOf([new Followed(0), new Followed(1)])
  await quiet()
  assert.deepEqual(
    socket.fetch?.topics[0]?.partitions.map(({ partition }) => partition),
    [0, 1],
  )
  socket.answer(0, 1)
  const { topics = [] } = (socket as LeaderSocket).fetch ?? {}
  assert.deepEqual(
    topics[0]?.partitions.map(({ fetchOffset }) => fetchOffset),
    [1, 1],
  )
})

test('a partition that settled slowly and went to another lane is not waited for in this one', async () => {
  const [slow, other] = [new Followed(0), new Followed(1)]
  const { clock, socket, lane } = laneOf([slow, other])
  await quiet()
  slow.isSlow = true
  socket.answer(0, 1)
  assert.equal(socket.fetch, undefined)
  clock.advance(10)
  assert.deepEqual(
    (socket as LeaderSocket).fetch?.topics[0]?.partitions.map(({ partition }) => partition),
    [1],
  )
  // As the fetcher does with what this lane does not ask for: another asks sooner.
  assert.ok(lane.isAway(slow.partition))
  lane.part(slow.partition)
  slow.lane = undefined
  slow.settle()
  socket.answer(1)
  assert.notEqual((socket as LeaderSocket).fetch, undefined)
})
