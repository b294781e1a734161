import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { DecodeError } from '#base/bytes.ts'
import { ZERO_UUID } from '#base/uuid.ts'
import { decodeEntry, encodeEntry, type GroupEntry, offsetCommitValue } from './entries.ts'
import { partitionForGroup } from './partition-for-group.ts'

const offset = (value: Parameters<typeof offsetCommitValue>[0]): GroupEntry => ({
  kind: 'OffsetCommit',
  group: 'g',
  topic: 't',
  partition: 3,
  value: offsetCommitValue(value),
})

test('offsets are written as Kafka 4.3 writes them', () => {
  const { key, value } = encodeEntry(offset({ offset: 7, leaderEpoch: 2, metadata: 'm', commitTimestamp: 5 }))
  assert.equal(key.toString('hex'), '0001' + '000167' + '000174' + '00000003')
  assert.equal(value?.toString('hex'), '0004' + '0000000000000007' + '00000002' + '026d' + '0000000000000005' + '00')
})

test('an offset with an id of its topic carries it as a tag', () => {
  const topicId = 'AAAAAAAAAAAAAAAAAAAABQ'
  const { value } = encodeEntry(offset({ offset: 0, metadata: '', commitTimestamp: 0, topicId }))
  const tag = `01001000000000000000000000000000000005`
  assert.equal(value?.toString('hex'), `0004${'00'.repeat(8)}ffffffff01${'00'.repeat(8)}${tag}`)
})

test('an offset with a retention time of its own is written in version 1', () => {
  const entry = offset({ offset: 1, metadata: '', commitTimestamp: 2, expireTimestamp: 3 })
  const { key, value } = encodeEntry(entry)
  assert.equal(value?.toString('hex'), '0001' + '0000000000000001' + '0000' + '0000000000000002' + '0000000000000003')
  assert.deepEqual(decodeEntry(key, value), entry)
})

test('tombstones have a key and no value', () => {
  const entry: GroupEntry = { kind: 'GroupMetadata', group: 'g', value: null }
  const { key, value } = encodeEntry(entry)
  assert.equal(key.toString('hex'), '0002000167')
  assert.equal(value, null)
  assert.deepEqual(decodeEntry(key, value), entry)
})

test('offsets of every older version are read', () => {
  const read = (key: string, value: string) => decodeEntry(Buffer.from(key, 'hex'), Buffer.from(value, 'hex'))
  const key = '000167' + '000174' + '00000003'
  const numbers = '0000000000000007' + '00016d' + '0000000000000005'
  const expected = offset({ offset: 7, metadata: 'm', commitTimestamp: 5 })
  assert.deepEqual(read(`0000${key}`, `0000${numbers}`), expected)
  assert.deepEqual(read(`0001${key}`, `0000${numbers}`), expected)
  assert.deepEqual(read(`0001${key}`, `0001${numbers}ffffffffffffffff`), expected)
  assert.deepEqual(read(`0001${key}`, `0002${numbers}`), expected)
  const withEpoch = '0000000000000007' + '00000009' + '00016d' + '0000000000000005'
  assert.deepEqual(
    read(`0001${key}`, `0003${withEpoch}`),
    offset({ offset: 7, leaderEpoch: 9, metadata: 'm', commitTimestamp: 5 }),
  )
})

test('groups of every older version are read', () => {
  const key = Buffer.from('0002000167', 'hex')
  const head = '0001' + '70' + '00000002' + '000172' + '00016c' // p, generation 2, protocol r, leader l
  const ids = '00016d' + '000163' + '00012f' // m, c, /
  const opaque = '00000001aa' + '00000001bb'
  const read = (version: string, middle: string, member: string) =>
    decodeEntry(key, Buffer.from(`${version}${head}${middle}00000001${member}${opaque}`, 'hex'))
  const expected = (known: object, currentStateTimestamp: number) => ({
    kind: 'GroupMetadata',
    group: 'g',
    value: {
      protocolType: 'p',
      generation: 2,
      protocol: 'r',
      leader: 'l',
      currentStateTimestamp,
      members: [
        {
          memberId: 'm',
          groupInstanceId: null,
          clientId: 'c',
          clientHost: '/',
          rebalanceTimeout: -1,
          sessionTimeout: 6,
          subscription: Buffer.of(0xaa),
          assignment: Buffer.of(0xbb),
          ...known,
        },
      ],
    },
  })
  assert.deepEqual(read('0000', '', `${ids}00000006`), expected({}, -1))
  assert.deepEqual(read('0001', '', `${ids}0000000800000006`), expected({ rebalanceTimeout: 8 }, -1))
  assert.deepEqual(read('0002', '0000000000000004', `${ids}0000000800000006`), expected({ rebalanceTimeout: 8 }, 4))
  assert.deepEqual(
    read('0003', '0000000000000004', `00016d000169000163${'00012f'}0000000800000006`),
    expected({ rebalanceTimeout: 8, groupInstanceId: 'i' }, 4),
  )
})

test('other kinds of groups are left alone, and what is broken is a DecodeError', () => {
  for (const keyType of [3, 4, 5, 6, 7, 8, 9, 10, 16, 25, -1]) {
    const key = Buffer.alloc(2)
    key.writeInt16BE(keyType)
    assert.deepEqual(decodeEntry(key, Buffer.of(1)), { kind: 'Unknown', keyType })
  }
  const { key, value } = encodeEntry(offset({ offset: 7, metadata: 'm', commitTimestamp: 5, topicId: ZERO_UUID }))
  assert.ok(value)
  for (let size = 0; size < value.length; size++) {
    assert.throws(() => decodeEntry(key, value.subarray(0, size)), DecodeError)
  }
  for (let size = 0; size < key.length; size++) {
    assert.throws(() => decodeEntry(key.subarray(0, size), value), DecodeError)
  }
  value.writeInt16BE(5)
  assert.throws(() => decodeEntry(key, value), DecodeError)
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), fc.uint8Array({ maxLength: 64 }), (a, b) => {
      try {
        decodeEntry(Buffer.from(a), Buffer.from(b))
      } catch (error) {
        assert.ok(error instanceof DecodeError)
      }
    }),
  )
})

test('the partition of a group is Java’s', () => {
  // What String.hashCode() says.
  const hashes: [string, number][] = [
    ['', 0],
    ['g', 103],
    ['console-consumer-1', 35_782_224],
    ['polygenelubricants', -2_147_483_648],
    ['Grüße', 69_215_351],
  ]
  for (const [groupId, hash] of hashes) {
    const positive = hash === -2_147_483_648 ? 0 : Math.abs(hash)
    assert.equal(partitionForGroup(groupId, 50), positive % 50, groupId)
  }
})
