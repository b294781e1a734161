/**
 * The codecs of record batches, on whole blobs. Kafka's streams never meet here: a batch is small enough to be in memory,
 * and what may come out of it is bounded by the caller, so that a few bytes cannot grow to fill it.
 */
import { createRequire } from 'node:module'
import { constants, gunzipSync, gzipSync, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { unreachable } from '#base/assert.ts'
import type { CompressionName } from './batch.ts'
import { compressLz4, decompressLz4 } from './compression-lz4.ts'
import { compressSnappy, decompressSnappy } from './compression-snappy.ts'
import { RecordsError } from './records-error.ts'

/** The add-ons are loaded when a batch first needs them; together they would cost a start some 20 ms. */
const load = createRequire(import.meta.url)

/**
 * What the records of one batch may take up after decompression, unless the caller says otherwise. Above the largest
 * request that a broker takes by default (100 MiB), so whatever could be sent plain can also be read.
 */
export const DECOMPRESSED_BYTES_MAX_DEFAULT = 128 * 1024 * 1024

/** Levels of the codecs that have some: of the topic's `compression.*.level`. */
export const COMPRESSION_LEVELS = {
  gzip: { min: 1, max: 9, default: constants.Z_DEFAULT_COMPRESSION },
  zstd: { min: -131072, max: 22, default: 3 },
} as const

/** `level` is for gzip and zstd; the others have one here (so lz4's is accepted and means nothing). */
export function compress(compression: CompressionName, bytes: Buffer, level?: number): Buffer {
  switch (compression) {
    case 'none':
      return bytes
    case 'gzip':
      return gzipSync(bytes, { level: level ?? COMPRESSION_LEVELS.gzip.default, chunkSize: chunkSize(bytes.length) })
    case 'snappy':
      return compressSnappy(load('snappy'), bytes)
    case 'lz4':
      return compressLz4(load('lz4-napi'), bytes)
    case 'zstd':
      return zstdCompressSync(bytes, {
        params: { [constants.ZSTD_c_compressionLevel]: level ?? COMPRESSION_LEVELS.zstd.default },
        chunkSize: chunkSize(bytes.length),
      })
    default:
      return unreachable(compression)
  }
}

/**
 * The plain bytes. A RecordsError, never anything else, for bytes that the codec does not understand and for more than
 * `bytesMax` bytes. `magic` 0 marks messages of the oldest format, whose lz4 frames carry a wrong header checksum.
 */
export function decompress(compression: CompressionName, bytes: Buffer, bytesMax: number, magic = 2): Buffer {
  switch (compression) {
    case 'none':
      return bytes
    case 'gzip':
      return withZlib(compression, bytesMax, () =>
        gunzipSync(bytes, { maxOutputLength: bytesMax, chunkSize: chunkSize(bytes.length * 4) }),
      )
    case 'snappy':
      return decompressSnappy(load('snappy'), bytes, bytesMax)
    case 'lz4':
      return decompressLz4(load('lz4-napi'), bytes, bytesMax, magic === 0)
    case 'zstd':
      // No frame at all is an end of stream to Kafka, and so no error of the codec.
      if (bytes.length === 0) return bytes
      return withZlib(compression, bytesMax, () =>
        zstdDecompressSync(bytes, { maxOutputLength: bytesMax, chunkSize: chunkSize(bytes.length * 4) }),
      )
    default:
      return unreachable(compression)
  }
}

/** The pieces in which zlib hands out its result: one is best, for they are put together by copying. */
function chunkSize(expected: number): number {
  return Math.min(Math.max(expected, 1024), 256 * 1024)
}

function withZlib(compression: string, bytesMax: number, decode: () => Buffer): Buffer {
  try {
    return decode()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE') {
      throw new RecordsError(
        'MESSAGE_TOO_LARGE',
        `the ${compression} records are more than ${bytesMax} bytes decompressed`,
      )
    }
    const cause = error instanceof Error ? error.message : String(error)
    throw new RecordsError('UNKNOWN_SERVER_ERROR', `the records are no ${compression} stream: ${cause}`)
  }
}
