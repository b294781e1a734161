import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ByteReader, ByteWriter, DecodeError, uvarintSize } from './bytes.ts'

function roundTrip<T>(value: T, write: (to: ByteWriter) => void, read: (from: ByteReader) => T): void {
  const writer = new ByteWriter(1)
  write(writer)
  const reader = new ByteReader(writer.written())
  assert.deepEqual(read(reader), value)
  assert.equal(reader.remaining, 0)
  const cut = new ByteReader(writer.written(), 0, writer.position - 1)
  assert.throws(() => read(cut), DecodeError)
}

test('every value comes back, and one byte less is a DecodeError', () => {
  const int32 = fc.integer({ min: -2147483648, max: 2147483647 })
  const safe = fc.oneof(
    fc.maxSafeInteger(),
    fc.constantFrom(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, -1, 0, 1),
  )
  fc.assert(
    fc.property(int32, v =>
      roundTrip(
        v,
        w => w.int32(v),
        r => r.int32(),
      ),
    ),
  )
  fc.assert(
    fc.property(int32, v =>
      roundTrip(
        v,
        w => w.varint(v),
        r => r.varint(),
      ),
    ),
  )
  fc.assert(
    fc.property(safe, v =>
      roundTrip(
        v,
        w => w.int64(v),
        r => r.int64(),
      ),
    ),
  )
  fc.assert(
    fc.property(safe, v =>
      roundTrip(
        v,
        w => w.varlong(v),
        r => r.varlong(),
      ),
    ),
  )
  fc.assert(
    fc.property(fc.nat(4294967295), v =>
      roundTrip(
        v,
        w => w.uvarint(v),
        r => r.uvarint(),
      ),
    ),
  )
  fc.assert(
    fc.property(fc.double(), v =>
      roundTrip(
        v,
        w => w.float64(v),
        r => r.float64(),
      ),
    ),
  )
})

test('varlong agrees with zig-zag arithmetic on bigints', () => {
  fc.assert(
    fc.property(fc.maxSafeInteger(), value => {
      let zigzag = BigInt.asUintN(64, (BigInt(value) << 1n) ^ (BigInt(value) >> 63n))
      const bytes: number[] = []
      for (; zigzag >= 0x80n; zigzag >>= 7n) bytes.push(Number(zigzag & 0x7fn) | 0x80)
      bytes.push(Number(zigzag))
      const writer = new ByteWriter()
      writer.varlong(value)
      assert.deepEqual([...writer.written()], bytes)
    }),
  )
})

test('a varint longer than 32 bits and an int64 that is not exact are refused', () => {
  assert.throws(() => new ByteReader(Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0x1f)).uvarint(), DecodeError)
  assert.throws(() => new ByteReader(Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0xff, 0x01)).uvarint(), DecodeError)
  assert.throws(() => new ByteReader(Buffer.from('7fffffffffffffff', 'hex')).int64(), DecodeError)
})

test('uvarintSize is what uvarint writes', () => {
  for (const value of [0, 127, 128, 16383, 16384, 2097151, 2097152, 268435455, 268435456, 4294967295]) {
    const writer = new ByteWriter()
    writer.uvarint(value)
    assert.equal(uvarintSize(value), writer.position)
  }
})
