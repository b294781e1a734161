/**
 * LZ4 in its frame format. Frames are written by the library. They are read here block by block over its raw decoder,
 * because the library's frame reader has no limit for what comes out, and because Kafka is its own kind of reader: it
 * refuses linked blocks and dictionaries, leaves the content checksum alone and stops at the first end mark.
 *
 * ```
 * uint32 LE magic   FLG   BD   [int64 content size]   HC = second byte of xxHash32(FLG … content size)
 * blocks: uint32 LE size (top bit: stored as it is), bytes, [uint32 xxHash32 of them];   size 0 ends   [content checksum]
 * ```
 */
import type * as lz4 from 'lz4-napi'
import { RecordsError } from './records-error.ts'

type Lz4 = Pick<typeof lz4, 'compressFrameSync' | 'uncompressSync'>

const FRAME_MAGIC = 0x184d2204
const BLOCK_CHECKSUM_BIT = 0x10
const CONTENT_SIZE_BIT = 0x08
/** Version 01 and independent blocks must be set; the reserved bit and the dictionary's must not. */
const FLG_MASK = 0xe3
const FLG_REQUIRED = 0x60
/** No lz4 sequence turns fewer bytes into more: one byte of match length adds 255. */
const RATIO_MAX = 255

export function compressLz4(library: Lz4, bytes: Buffer): Buffer {
  return library.compressFrameSync(bytes)
}

export function decompressLz4(library: Lz4, bytes: Buffer, bytesMax: number, wrongHeaderChecksum: boolean): Buffer {
  if (bytes.length < 7) throw broken('it ends within its header')
  if (bytes.readUInt32LE(0) !== FRAME_MAGIC) throw broken('it does not start with the magic number')
  const flags = bytes.readUInt8(4)
  if ((flags & FLG_MASK) !== FLG_REQUIRED) throw broken(`the frame flags 0x${flags.toString(16)} are not supported`)
  const blockSizeMax = blockBytesMax(bytes.readUInt8(5))
  let at = 6 + (flags & CONTENT_SIZE_BIT ? 8 : 0)
  if (at >= bytes.length) throw broken('it ends within its header')
  if (!wrongHeaderChecksum && bytes.readUInt8(at) !== ((xxHash32(bytes, 4, at) >>> 8) & 0xff)) {
    throw broken('the checksum of the frame header is wrong')
  }
  at++
  const blocks: Buffer[] = []
  let left = bytesMax
  for (;;) {
    if (bytes.length - at < 4) throw broken('it ends before its end mark')
    const word = bytes.readUInt32LE(at)
    at += 4
    const size = word & 0x7fff_ffff
    if (size === 0) break
    if (size > blockSizeMax) throw broken(`a block has ${size} bytes, the header says at most ${blockSizeMax}`)
    if (size > bytes.length - at) throw broken('it ends within a block')
    const stored = word >= 0x8000_0000
    const block = bytes.subarray(at, at + size)
    const plain = stored ? block : uncompress(library, block, Math.min(blockSizeMax, left + 1))
    at += size
    if (flags & BLOCK_CHECKSUM_BIT) {
      if (bytes.length - at < 4) throw broken('it ends within a block checksum')
      if (bytes.readUInt32LE(at) !== xxHash32(block, 0, size)) throw broken('the checksum of a block is wrong')
      at += 4
    }
    left -= plain.length
    if (left < 0)
      throw new RecordsError('MESSAGE_TOO_LARGE', `the lz4 records are more than ${bytesMax} bytes decompressed`)
    blocks.push(plain)
  }
  return blocks.length === 1 && blocks[0] !== undefined ? blocks[0] : Buffer.concat(blocks)
}

function blockBytesMax(descriptor: number): number {
  const id = (descriptor >> 4) & 0x07
  if ((descriptor & 0x8f) !== 0 || id < 4)
    throw broken(`the block descriptor 0x${descriptor.toString(16)} is not valid`)
  return 1 << (2 * id + 8)
}

/** The library's raw decoder expects the plain size before the block, and takes it as an upper bound. */
function uncompress(library: Lz4, block: Buffer, bytesMax: number): Buffer {
  const bound = Math.min(bytesMax, block.length * RATIO_MAX)
  const prefixed = Buffer.allocUnsafe(4 + block.length)
  prefixed.writeUInt32LE(bound)
  block.copy(prefixed, 4)
  try {
    return library.uncompressSync(prefixed)
  } catch (error) {
    if (bound === bytesMax && error instanceof Error && error.message.includes('too small')) {
      throw new RecordsError('MESSAGE_TOO_LARGE', 'an lz4 block is larger than its frame or the limit allows')
    }
    throw broken(error instanceof Error ? error.message : String(error))
  }
}

function broken(cause: string): RecordsError {
  return new RecordsError('UNKNOWN_SERVER_ERROR', `the records are no lz4 frame: ${cause}`)
}

const PRIME_1 = 0x9e3779b1
const PRIME_2 = 0x85ebca77
const PRIME_3 = 0xc2b2ae3d
const PRIME_4 = 0x27d4eb2f
const PRIME_5 = 0x165667b1

function rotateLeft(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits))
}

/** xxHash32 with seed 0, as an unsigned number. */
export function xxHash32(bytes: Buffer, start: number, end: number): number {
  let at = start
  let hash: number
  if (end - start >= 16) {
    let a = (PRIME_1 + PRIME_2) | 0
    let b = PRIME_2 | 0
    let c = 0
    let d = -PRIME_1 | 0
    for (; end - at >= 16; at += 16) {
      a = Math.imul(rotateLeft((a + Math.imul(bytes.readInt32LE(at), PRIME_2)) | 0, 13), PRIME_1)
      b = Math.imul(rotateLeft((b + Math.imul(bytes.readInt32LE(at + 4), PRIME_2)) | 0, 13), PRIME_1)
      c = Math.imul(rotateLeft((c + Math.imul(bytes.readInt32LE(at + 8), PRIME_2)) | 0, 13), PRIME_1)
      d = Math.imul(rotateLeft((d + Math.imul(bytes.readInt32LE(at + 12), PRIME_2)) | 0, 13), PRIME_1)
    }
    hash = (rotateLeft(a, 1) + rotateLeft(b, 7) + rotateLeft(c, 12) + rotateLeft(d, 18)) | 0
  } else {
    hash = PRIME_5 | 0
  }
  hash = (hash + (end - start)) | 0
  for (; end - at >= 4; at += 4) {
    hash = Math.imul(rotateLeft((hash + Math.imul(bytes.readInt32LE(at), PRIME_3)) | 0, 17), PRIME_4)
  }
  for (; at < end; at++) {
    hash = Math.imul(rotateLeft((hash + Math.imul(bytes.readUInt8(at), PRIME_5)) | 0, 11), PRIME_1)
  }
  hash = Math.imul(hash ^ (hash >>> 15), PRIME_2)
  hash = Math.imul(hash ^ (hash >>> 13), PRIME_3)
  return (hash ^ (hash >>> 16)) >>> 0
}
