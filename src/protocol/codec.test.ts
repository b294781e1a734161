import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ByteReader, ByteWriter } from '#base/bytes.ts'
import {
  DecodeError,
  decode,
  decodeExact,
  decodeMessage,
  decodeToEdge,
  EncodeError,
  encodeParts,
  encodeToBuffer,
  UnsafeIntegerError,
} from './codec.ts'
import { FetchRequest, FetchResponse } from './messages/fetch.ts'
import { MetadataRequest, MetadataResponse } from './messages/metadata.ts'
import { OffsetCommitRequest } from './messages/offset-commit.ts'
import { ProduceRequest } from './messages/produce.ts'
import { ConsumerGroupMemberMetadataValue } from './records/consumer-group-records.ts'
import { INT64_MAX, type InputOf } from './schema.ts'

test('fields left out take their defaults, and every field is there after decoding', () => {
  const request = decodeMessage(FetchRequest, 4, encodeToBuffer(FetchRequest, 4, { maxWaitMs: 500 }))
  assert.deepEqual(request, {
    clusterId: null,
    replicaId: -1,
    replicaState: { replicaId: -1, replicaEpoch: -1 },
    maxWaitMs: 500,
    minBytes: 0,
    maxBytes: 0x7fff_ffff,
    isolationLevel: 0,
    sessionId: 0,
    sessionEpoch: -1,
    topics: [],
    forgottenTopicsData: [],
    rackId: '',
  })
})

test('defaults are not shared between messages', () => {
  const bytes = encodeToBuffer(FetchResponse, 4, { responses: [{ partitions: [{}, {}] }] })
  const [first, second] = decodeMessage(FetchResponse, 4, bytes).responses[0]?.partitions ?? []
  assert.ok(first && second)
  first.currentLeader.leaderId = 9
  assert.equal(second.currentLeader.leaderId, -1)
})

test('names and types of what is encoded are checked all the way down', () => {
  // @ts-expect-error a name that is not in the table
  const wrongName: InputOf<typeof FetchResponse> = { responses: [{ partitions: [{ partition: 1 }] }] }
  // @ts-expect-error a string for an int64
  const wrongType: InputOf<typeof FetchResponse> = { responses: [{ partitions: [{ highWatermark: '1' }] }] }
  // @ts-expect-error null where no version allows it
  const wrongNull: InputOf<typeof FetchResponse> = { responses: null }
  assert.ok(wrongName && wrongType && wrongNull)
})

test('unknown tagged fields are kept in their struct and written back in order', () => {
  const unknownTags = [
    { tag: 9000, data: Buffer.from('late') },
    { tag: 4, data: Buffer.alloc(200, 3) },
  ]
  const bytes = encodeToBuffer(FetchRequest, 12, { clusterId: 'c', unknownTags, topics: [{ unknownTags }] })
  const request = decodeMessage(FetchRequest, 12, bytes)
  assert.deepEqual(request.unknownTags, unknownTags.toReversed())
  assert.deepEqual(request.topics[0]?.unknownTags, unknownTags.toReversed())
  assert.equal(request.clusterId, 'c')
  assert.ok(encodeToBuffer(FetchRequest, 12, request).equals(bytes))
  assert.throws(() => encodeToBuffer(FetchRequest, 11, { unknownTags }), /unknownTags/)
})

test('a null struct under a tag is a zero, as Kafka writes it', () => {
  const bytes = encodeToBuffer(ConsumerGroupMemberMetadataValue, 0, { classicMemberMetadata: null })
  assert.equal(bytes.subarray(-4).toString('hex'), '01000100')
  assert.equal(decodeMessage(ConsumerGroupMemberMetadataValue, 0, bytes).classicMemberMetadata, null)
})

test('64-bit integers that no number holds are refused, or kept as bigints when asked for', () => {
  const topics = [{ partitions: [{ committedOffset: (2n ** 60n) as unknown as number }] }]
  const bytes = encodeToBuffer(OffsetCommitRequest, 8, { topics })
  assert.throws(() => decodeMessage(OffsetCommitRequest, 8, bytes), UnsafeIntegerError)
  const atEdge = decodeToEdge(OffsetCommitRequest, 8, new ByteReader(bytes))
  assert.ok(Math.abs(atEdge.topics[0]?.partitions[0]?.committedOffset ?? 0) === Number.MAX_SAFE_INTEGER)
  const exact = decodeExact(OffsetCommitRequest, 8, new ByteReader(bytes))
  assert.equal(exact.topics[0]?.partitions[0]?.committedOffset as unknown, 2n ** 60n)
  assert.ok(encodeToBuffer(OffsetCommitRequest, 8, exact).equals(bytes))
})

test('the highest 64-bit integer is the one exception, where it is the default', () => {
  const inVersion = (highWatermark: number) =>
    encodeToBuffer(FetchRequest, 18, { topics: [{ partitions: [{ highWatermark }] }] })
  const of = (bytes: Buffer) => decodeMessage(FetchRequest, 18, bytes).topics[0]?.partitions[0]?.highWatermark
  assert.ok(inVersion(INT64_MAX).equals(encodeToBuffer(FetchRequest, 18, { topics: [{ partitions: [{}] }] })))
  assert.equal(of(inVersion(INT64_MAX)), INT64_MAX)
  assert.equal(of(inVersion(12)), 12)
})

test('counts are checked before anything is made for them', () => {
  const bytes = Buffer.from('7fffffff', 'hex')
  assert.throws(() => decode(MetadataRequest, 0, new ByteReader(bytes)), /2147483647 elements/)
  const many = new ByteWriter()
  many.uvarint(4_500_001)
  many.bytes(Buffer.alloc(9_000_000, 1))
  assert.throws(() => decode(MetadataRequest, 9, new ByteReader(many.written())), /too many array elements/)
  const long = new ByteReader(encodeToBuffer(MetadataRequest, 9, { topics: [{ name: 'x'.repeat(32_000) }] }))
  long.elementsLeft = 500
  assert.throws(() => decode(MetadataRequest, 9, long), /long strings/)
  const tags = Buffer.from('00000000000000000000ffff03', 'hex')
  assert.throws(() => decode(FetchRequest, 12, new ByteReader(tags)), DecodeError)
})

test('a tagged field ends where its size says', () => {
  const bytes = encodeToBuffer(FetchRequest, 12, { clusterId: 'abc' })
  const broken = Buffer.from(bytes)
  const at = broken.indexOf(Buffer.from('04616263', 'hex'))
  broken[at] = 3
  assert.throws(() => decodeMessage(FetchRequest, 12, broken), DecodeError)
})

test('null where it is not allowed, bytes behind the end and unknown versions are refused', () => {
  assert.throws(() => decodeMessage(OffsetCommitRequest, 2, Buffer.from('ffff', 'hex')), /groupId must not be null/)
  const bytes = Buffer.concat([encodeToBuffer(MetadataRequest, 12, {}), Buffer.alloc(3)])
  assert.throws(() => decodeMessage(MetadataRequest, 12, bytes), /3 bytes behind/)
  assert.throws(() => decodeMessage(MetadataRequest, 99, bytes), /no version 99/)
})

test('strings beyond 32,767 bytes are refused on both sides', () => {
  assert.throws(() => encodeToBuffer(MetadataResponse, 9, { clusterId: 'x'.repeat(32_768) }), EncodeError)
  assert.doesNotThrow(() => encodeToBuffer(MetadataResponse, 9, { clusterId: 'x'.repeat(32_767) }))
  const long = new ByteWriter()
  long.uvarint(40_001)
  long.bytes(Buffer.alloc(40_000))
  assert.throws(() => decode(ProduceRequest, 9, new ByteReader(long.written())), /40000 bytes/)
})

test('records are views when decoded and parts when encoded', () => {
  const records = Buffer.alloc(5000, 1)
  const small = Buffer.alloc(100, 2)
  const request = { topicData: [{ name: 't', partitionData: [{ records }, { index: 1, records: small }] }] }
  const parts = encodeParts(ProduceRequest, 9, request)
  assert.equal(parts.length, 3)
  assert.equal(parts[1], records)
  const whole = Buffer.concat(parts as Buffer[])
  assert.ok(whole.equals(encodeToBuffer(ProduceRequest, 9, request)))
  const decoded = decodeMessage(ProduceRequest, 9, whole).topicData[0]?.partitionData[0]?.records
  assert.equal(decoded?.buffer, whole.buffer)
  assert.throws(() => encodeToBuffer(FetchResponse, 12, { responses: [{ partitions: [{ records: { size: 1 } }] }] }))
})
