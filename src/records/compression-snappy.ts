/**
 * Snappy in the framing of xerial's Java streams, which Kafka writes: `82 "SNAPPY" 00`, int32 version 1, int32 compatible
 * version 1, then blocks of int32 size and a raw snappy blob. Some producers send one raw blob instead; it is read too.
 */
import type * as snappy from 'snappy'
import { RecordsError } from './records-error.ts'

type Snappy = Pick<typeof snappy, 'compressSync' | 'uncompressSync'>

const HEADER = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0, 0, 0, 0, 1, 0, 0, 0, 1])
const MAGIC_SIZE = 8
/** The block that Java's stream writes; its reader takes any. */
const BLOCK_SIZE = 32 * 1024
/** No snappy element turns fewer bytes into more: 3 bytes that copy 64. */
const RATIO_MAX = 22

export function compressSnappy(library: Snappy, bytes: Buffer): Buffer {
  const pieces: Buffer[] = [HEADER]
  for (let at = 0; at < bytes.length; at += BLOCK_SIZE) {
    const block = library.compressSync(bytes.subarray(at, at + BLOCK_SIZE))
    const size = Buffer.allocUnsafe(4)
    size.writeInt32BE(block.length)
    pieces.push(size, block)
  }
  return Buffer.concat(pieces)
}

export function decompressSnappy(library: Snappy, bytes: Buffer, bytesMax: number): Buffer {
  if (bytes.length === 0) throw new RecordsError('UNKNOWN_SERVER_ERROR', 'the snappy stream is empty')
  if (!startsWithHeader(bytes, 0)) return block(library, bytes, bytesMax)
  const blocks: Buffer[] = []
  let left = bytesMax
  for (let at = HEADER.length; at < bytes.length; ) {
    // Streams may be put one after the other; a block of this negative size does not exist.
    if (startsWithHeader(bytes, at)) {
      at += HEADER.length
      continue
    }
    const size = bytes.length - at < 4 ? -1 : bytes.readInt32BE(at)
    if (size < 0 || size > bytes.length - at - 4) {
      throw new RecordsError('UNKNOWN_SERVER_ERROR', `the snappy stream is cut in the block at byte ${at}`)
    }
    const plain = block(library, bytes.subarray(at + 4, at + 4 + size), left)
    left -= plain.length
    blocks.push(plain)
    at += 4 + size
  }
  return blocks.length === 1 && blocks[0] !== undefined ? blocks[0] : Buffer.concat(blocks)
}

function startsWithHeader(bytes: Buffer, at: number): boolean {
  return bytes.length - at >= HEADER.length && bytes.compare(HEADER, 0, MAGIC_SIZE, at, at + MAGIC_SIZE) === 0
}

function block(library: Snappy, bytes: Buffer, bytesMax: number): Buffer {
  // The plain size comes first. The library allocates what it says, so it is not believed blindly.
  let size = 0
  for (let index = 0; index < 5; index++) {
    const byte = bytes[index] ?? 0x80
    size += (byte & 0x7f) * 2 ** (7 * index)
    if (byte < 0x80) break
    if (index === 4) size = Number.POSITIVE_INFINITY
  }
  if (size > bytes.length * RATIO_MAX) {
    throw new RecordsError('UNKNOWN_SERVER_ERROR', 'a snappy block states a size that its bytes cannot hold')
  }
  if (size > bytesMax) throw new RecordsError('MESSAGE_TOO_LARGE', 'the snappy records exceed the limit decompressed')
  try {
    const plain = library.uncompressSync(bytes, { asBuffer: true })
    return typeof plain === 'string' ? Buffer.from(plain) : plain
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error)
    throw new RecordsError('UNKNOWN_SERVER_ERROR', `the records are no snappy stream: ${cause}`)
  }
}
