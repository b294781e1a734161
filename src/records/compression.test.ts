import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { compressSync } from 'snappy'
import { COMPRESSION_NAMES } from './batch.ts'
import { COMPRESSION_LEVELS, compress, decompress } from './compression.ts'
import { xxHash32 } from './compression-lz4.ts'
import { RecordsError } from './records-error.ts'

const MIB = 1024 * 1024

function noise(size: number): Buffer {
  const bytes = Buffer.alloc(size)
  for (let at = 0, word = 1; at < size; at++) {
    word = (Math.imul(word, 1664525) + 1013904223) | 0
    bytes[at] = word >>> 24
  }
  return bytes
}

test('every codec gives back what it was given, of any size and kind', () => {
  for (const name of COMPRESSION_NAMES) {
    for (const size of [1, 15, 16, 1000, 65_536, 65_537, 300_000, 5_000_000]) {
      for (const plain of [Buffer.alloc(size, 'abcabd'), noise(size)]) {
        assert.ok(decompress(name, compress(name, plain), size).equals(plain), `${name} ${size}`)
      }
    }
  }
})

test('levels are taken', () => {
  const plain = Buffer.concat(Array.from({ length: 200 }, (_, n) => Buffer.from(`record ${n * n} of many `)))
  for (const name of ['gzip', 'zstd'] as const) {
    const { min, max } = COMPRESSION_LEVELS[name]
    const [low, high] = [compress(name, plain, name === 'zstd' ? -5 : min), compress(name, plain, max)]
    assert.ok(high.length < low.length)
    for (const bytes of [low, high]) assert.ok(decompress(name, bytes, MIB).equals(plain))
  }
})

test('a limit on what comes out holds to the byte', () => {
  for (const name of ['gzip', 'snappy', 'lz4', 'zstd'] as const) {
    for (const size of [100, 70_000, 5_000_000]) {
      const bytes = compress(name, Buffer.alloc(size))
      assert.equal(decompress(name, bytes, size).length, size)
      const tooLarge = (error: unknown) => error instanceof RecordsError && error.code === 'MESSAGE_TOO_LARGE'
      assert.throws(() => decompress(name, bytes, size - 1), tooLarge, `${name} ${size}`)
    }
  }
})

test('raw snappy, and xerial streams one after the other, are read', () => {
  const plain = Buffer.alloc(100_000, 'snappy')
  assert.ok(decompress('snappy', compressSync(plain), MIB).equals(plain))
  const twice = Buffer.concat([compress('snappy', plain), compress('snappy', plain)])
  assert.ok(decompress('snappy', twice, MIB).equals(Buffer.concat([plain, plain])))
})

test('a snappy block that lies about its size is refused before anything is allocated', () => {
  for (const bytes of [Buffer.from('ffffffff0f00', 'hex'), Buffer.from('ffffffffffffff', 'hex')]) {
    assert.throws(() => decompress('snappy', bytes, Number.MAX_SAFE_INTEGER), RecordsError)
  }
})

test('concatenated gzip and zstd streams are one', () => {
  const [a, b] = [Buffer.from('first '), Buffer.from('second')]
  const both = Buffer.concat([a, b])
  assert.ok(decompress('gzip', Buffer.concat([gzipSync(a), gzipSync(b)]), MIB).equals(both))
  assert.ok(decompress('zstd', Buffer.concat([zstdCompressSync(a), zstdCompressSync(b)]), MIB).equals(both))
})

test('lz4 frames with block checksums, content size and content checksum are read', () => {
  const plain = Buffer.from('stored as it is')
  const frame = (flags: number, options: { checksum?: number; contentSize?: boolean } = {}) => {
    const head = Buffer.from([flags, 0x40, ...(options.contentSize ? [plain.length, 0, 0, 0, 0, 0, 0, 0] : [])])
    const word = (value: number) => {
      const four = Buffer.alloc(4)
      four.writeUInt32LE(value >>> 0)
      return four
    }
    return Buffer.concat([
      Buffer.from('04224d18', 'hex'),
      head,
      Buffer.from([(xxHash32(head, 0, head.length) >>> 8) & 0xff]),
      word(plain.length | 0x8000_0000),
      plain,
      flags & 0x10 ? word(options.checksum ?? xxHash32(plain, 0, plain.length)) : Buffer.alloc(0),
      word(0),
      flags & 0x04 ? word(0xdead) : Buffer.alloc(0), // Kafka does not look at this one
    ])
  }
  assert.ok(decompress('lz4', frame(0x60), MIB).equals(plain))
  assert.ok(decompress('lz4', frame(0x7c, { contentSize: true }), MIB).equals(plain))
  assert.throws(() => decompress('lz4', frame(0x70, { checksum: 5 }), MIB), RecordsError)
  assert.throws(() => decompress('lz4', frame(0x40), MIB), RecordsError, 'linked blocks, which Kafka refuses')
  const wrong = frame(0x60)
  wrong[6] = (wrong[6] ?? 0) ^ 1
  assert.throws(() => decompress('lz4', wrong, MIB), RecordsError)
  assert.ok(decompress('lz4', wrong, MIB, 0).equals(plain), 'format 0 has wrong header checksums')
})

test('xxHash32 gives the published values', () => {
  assert.equal(xxHash32(Buffer.alloc(0), 0, 0), 0x02cc5d05)
  const text = Buffer.from('Nobody inspects the spammish repetition')
  assert.equal(xxHash32(text, 0, text.length), 0xe2293b2f)
})
