import { ByteReader, ByteWriter, DecodeError } from '#base/bytes.ts'
import { crc32c } from '#records/crc.ts'
import type { ProducerEntry } from './batch-fold.ts'

export const PRODUCER_SNAPSHOT_SUFFIX = '.snapshot'

const VERSION = 1
const HEADER_BYTES = 6
const ENTRY_BYTES = 8 + 2 + 4 + 8 + 4 + 8 + 4 + 8

/** The bytes of a `.snapshot` (schema ProducerSnapshot v1): int16 version, uint32 CRC-32C of all that follows, entries. */
export function encodeProducerSnapshot(entries: readonly ProducerEntry[]): Buffer {
  const writer = new ByteWriter(HEADER_BYTES + 4 + entries.length * ENTRY_BYTES)
  writer.int16(VERSION)
  writer.uint32(0)
  writer.int32(entries.length)
  for (const entry of entries) {
    writer.int64(entry.producerId)
    writer.int16(entry.epoch)
    writer.int32(entry.lastSequence)
    writer.int64(entry.lastOffset)
    writer.int32(entry.offsetDelta)
    writer.int64(entry.timestamp)
    writer.int32(entry.coordinatorEpoch)
    writer.int64(entry.currentTxnFirstOffset)
  }
  const bytes = writer.written()
  bytes.writeUInt32BE(crc32c(bytes, HEADER_BYTES), 2)
  return bytes
}

/** Undefined when the bytes are torn or of another version: an older snapshot and a longer replay do as well. */
export function decodeProducerSnapshot(bytes: Uint8Array): ProducerEntry[] | undefined {
  try {
    const reader = new ByteReader(bytes)
    if (reader.int16() !== VERSION || reader.uint32() !== crc32c(reader.buffer, HEADER_BYTES)) return undefined
    const count = reader.int32()
    if (count < 0 || count * ENTRY_BYTES !== reader.remaining) return undefined
    const entries: ProducerEntry[] = []
    for (let index = 0; index < count; index++) {
      entries.push({
        producerId: reader.int64(),
        epoch: reader.int16(),
        lastSequence: reader.int32(),
        lastOffset: reader.int64(),
        offsetDelta: reader.int32(),
        timestamp: reader.int64(),
        coordinatorEpoch: reader.int32(),
        currentTxnFirstOffset: reader.int64(),
      })
    }
    return entries
  } catch (error) {
    if (error instanceof DecodeError) return undefined
    throw error
  }
}
