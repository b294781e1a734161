import type { CompressionName } from './batch.ts'
import { decompress } from './compression.ts'
import { RecordsError } from './records-error.ts'

/** How many bytes a codec can make of one; zstd repeats a whole block of 128 KiB from four bytes. */
const RATIO_MAX = { none: 1, gzip: 1032, snappy: 64, lz4: 255, zstd: 32768 } as const

/** What several batches may take up after decompression together, since what one request asks for is done in one go. */
export class DecompressionAllowance {
  readonly #bytesMax: number
  #left: number

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
    this.#left = bytesMax
  }

  /** As `decompress` of one batch; MESSAGE_TOO_LARGE also where the batches before left too little. */
  decompress(compression: CompressionName, bytes: Buffer, bytesMax: number): Buffer {
    const max = Math.min(bytesMax, this.#left)
    // Of what fails, nobody knows how far it came.
    let taken = Math.min(max, bytes.length * RATIO_MAX[compression])
    try {
      if (max === 0) throw this.#usedUp()
      const plain = decompress(compression, bytes, max)
      taken = plain.length
      return plain
    } catch (error) {
      const isTooLarge = error instanceof RecordsError && error.code === 'MESSAGE_TOO_LARGE'
      throw isTooLarge && max < bytesMax ? this.#usedUp() : error
    } finally {
      this.#left -= taken
    }
  }

  #usedUp(): RecordsError {
    const message = `the records of the whole request are more than ${this.#bytesMax} bytes decompressed; send fewer batches at once`
    return new RecordsError('MESSAGE_TOO_LARGE', message)
  }
}
