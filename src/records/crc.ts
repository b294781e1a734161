import { crc32 as nativeCrc32, crc32c as nativeCrc32c } from '@node-rs/crc32'

/**
 * CRC-32C (Castagnoli) of `buffer[start, end)`, as an unsigned number. `seed` is the CRC of the bytes before, so a
 * checksum can be continued over several pieces.
 */
export function crc32c(buffer: Buffer, start = 0, end: number = buffer.length, seed = 0): number {
  return nativeCrc32c(start === 0 && end === buffer.length ? buffer : buffer.subarray(start, end), seed)
}

/** CRC-32 (the one of zip), which message formats 0 and 1 use. */
export function crc32(buffer: Buffer, start = 0, end: number = buffer.length, seed = 0): number {
  return nativeCrc32(start === 0 && end === buffer.length ? buffer : buffer.subarray(start, end), seed)
}
