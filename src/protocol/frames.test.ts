import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ByteReader, DecodeError } from '#base/bytes.ts'
import { SeededRandom } from '#base/random.ts'
import { API } from './apis.ts'
import { decode } from './codec.ts'
import { FrameReader } from './frame-reader.ts'
import {
  decodeRequestHeader,
  decodeResponseHeader,
  encodeRequestFrame,
  encodeResponseFrame,
  requestHeaderVersion,
  responseHeaderVersion,
  sizeOfParts,
} from './frames.ts'
import { EncodeError, PartsWriter } from './wire.ts'

function feed(reader: FrameReader, bytes: Buffer, chunkMax: number): Buffer[] {
  const frames: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const space = reader.space()
    const count = Math.min(space.length, bytes.length - at, chunkMax)
    bytes.copy(space, 0, at, at + count)
    reader.received(count)
    at += count
    for (let frame = reader.next(); frame !== undefined; frame = reader.next()) frames.push(frame)
  }
  return frames
}

function framed(body: Buffer): Buffer {
  const bytes = Buffer.alloc(4 + body.length)
  bytes.writeInt32BE(body.length, 0)
  body.copy(bytes, 4)
  return bytes
}

test('frames of any size come out whole, however they arrive, and stay as they were', () => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = new SeededRandom(seed)
    const sizes = [0, 1, 3, 5, 200, 4090, 4096, 5000, 32_764, 32_765, 65_532, 65_536, 200_000, 3_000_000]
    const bodies = Array.from({ length: 12 }, () => {
      const size = sizes[random.uint32() % (seed % 10 === 0 ? sizes.length : sizes.length - 1)] as number
      const body = Buffer.alloc(size)
      for (let at = 0; at < size; at += 97) body[at] = random.uint32()
      return body
    })
    const chunkMax = [1 + (random.uint32() % 64), 1000, 70_000, 1 << 30][seed % 4] as number
    const stream = Buffer.concat(bodies.map(framed))
    const reader = new FrameReader(1 << 26)
    const frames = feed(reader, stream, stream.length > 1_000_000 ? Math.max(chunkMax, 5000) : chunkMax)
    assert.equal(frames.length, bodies.length)
    for (const [index, body] of bodies.entries()) assert.ok(frames[index]?.equals(body), `seed ${seed}, frame ${index}`)
    assert.equal(reader.partial, false)
  }
})

test('a large frame is one buffer of its own size', () => {
  const body = Buffer.alloc(500_000, 7)
  const [frame] = feed(new FrameReader(1 << 20), framed(body), 1 << 30)
  assert.equal(frame?.length, body.length)
  assert.equal(frame?.buffer.byteLength, body.length)
})

test('a claimed size costs no memory until its bytes arrive', () => {
  const reader = new FrameReader(0x7fff_ffff)
  const size = Buffer.alloc(4)
  size.writeInt32BE(0x7fff_fff0, 0)
  assert.deepEqual(feed(reader, size, 4), [])
  assert.ok(reader.space().length <= 1 << 20)
  assert.equal(reader.partial, true)
})

test('sizes that are negative or too large end the connection', () => {
  for (const size of [-1, 1001, 0x7fff_ffff, 0x4854_5450]) {
    const bytes = Buffer.alloc(4)
    bytes.writeInt32BE(size, 0)
    assert.throws(
      () => feed(new FrameReader(1000), bytes, 4),
      (error: unknown) => error instanceof DecodeError && error.message.includes(String(size)),
    )
  }
})

test('header versions follow the API and its version', () => {
  assert.equal(requestHeaderVersion(API.Produce.key, 8), 1)
  assert.equal(requestHeaderVersion(API.Produce.key, 9), 2)
  assert.equal(responseHeaderVersion(API.Produce.key, 9), 1)
  assert.equal(requestHeaderVersion(API.ApiVersions.key, 99), 2)
  assert.equal(responseHeaderVersion(API.ApiVersions.key, 4), 0)
  assert.equal(requestHeaderVersion(API.SaslHandshake.key, 1), 1)
  assert.equal(requestHeaderVersion(999, 0), 1)
})

test('a request frame reads back, and its client id is an int16 string even in header 2', () => {
  const header = { correlationId: 77, clientId: 'me' }
  const parts = encodeRequestFrame(API.Metadata, 12, header, { topics: null })
  const frame = Buffer.concat(parts as Buffer[])
  assert.equal(frame.readInt32BE(0), frame.length - 4)
  assert.equal(frame.subarray(4, 18).toString('hex'), '0003000c0000004d00026d650000')
  const reader = new ByteReader(frame, 4)
  assert.deepEqual(decodeRequestHeader(reader), { apiKey: 3, apiVersion: 12, ...header })
  assert.equal(decode(API.Metadata.request, 12, reader).topics, null)
  assert.equal(reader.remaining, 0)
})

test('a response frame counts the holes in its records', () => {
  const hole = { size: 1_000_000 }
  const large = Buffer.alloc(5000, 1)
  const partitions = [{ records: hole }, { partitionIndex: 1, records: [large, { size: 10 }] }]
  const parts = encodeResponseFrame(API.Fetch, 17, 5, { responses: [{ partitions }] })
  assert.equal(parts.length, 6)
  assert.equal(parts[1], hole)
  assert.equal(parts[3], large)
  const whole = Buffer.concat(parts.map(part => (Buffer.isBuffer(part) ? part : Buffer.alloc(part.size, 9))))
  assert.equal(sizeOfParts(parts), whole.length)
  assert.equal(whole.readInt32BE(0), whole.length - 4)
  const reader = new ByteReader(whole, 4)
  assert.equal(decodeResponseHeader(API.Fetch.key, 17, reader).correlationId, 5)
  const [topic] = decode(API.Fetch.response, 17, reader).responses
  assert.equal(topic?.partitions[0]?.records?.length, hole.size)
  assert.equal(topic?.partitions[1]?.records?.length, 5010)
  assert.equal(reader.remaining, 0)
})

test('an answer that would fill the memory is not written', () => {
  assert.throws(() => new PartsWriter().reserve(300 << 20), EncodeError)
})
