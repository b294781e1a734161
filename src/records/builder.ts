/** Builds one record batch, record by record. Layouts: batch.ts for the header, records.ts for a record. */
import { assert } from '#base/assert.ts'
import type { CompressionName } from './batch.ts'
import * as batch from './batch.ts'
import { compress } from './compression.ts'

/** A header to write; {@link LogRecord} headers fit. */
export interface HeaderToAppend {
  readonly key: string
  readonly value: Uint8Array | null
}

export interface BatchOptions {
  /** Producers send 0, and the leader stamps the real one. */
  readonly baseOffset?: number
  readonly leaderEpoch?: number
  readonly compression?: CompressionName
  readonly compressionLevel?: number
  /** Makes it a batch with LogAppendTime, whose records all have this time. */
  readonly logAppendTime?: number
  readonly producerId?: number
  readonly producerEpoch?: number
  readonly baseSequence?: number
  readonly transactional?: boolean
  readonly control?: boolean
  /** The time from which compaction may drop the tombstones or markers within (KIP-534). */
  readonly deleteHorizonMs?: number
  /** The last offset, where compaction removed the record that had it. */
  readonly lastOffset?: number
  /** The highest time, where compaction left no records to tell it. */
  readonly maxTimestamp?: number
  /** How many bytes the batch may become, by {@link BatchBuilder.wouldFit}: `batch.size`. */
  readonly bytesMax?: number
  /** What the codec is expected to make of a byte: of the batches before, see {@link BatchBuilder.compressionRatio}. */
  readonly compressionRatio?: number
}

/** Kafka's margin on an expected compression ratio, so that batches rarely come out larger than wanted. */
const RATIO_MARGIN = 1.05
const NO_HEADERS: readonly HeaderToAppend[] = []

export class BatchBuilder {
  readonly #options: BatchOptions
  readonly #compression: CompressionName
  /** Header and plain records. */
  #bytes: Buffer
  #position = batch.RECORDS_AT
  #count = 0
  #baseTimestamp: number
  #maxTimestamp: number = batch.NO_TIMESTAMP
  #nextDelta = 0
  #compressedSize: number | undefined

  constructor(options: BatchOptions = {}) {
    this.#options = options
    this.#compression = options.compression ?? 'none'
    this.#baseTimestamp = options.deleteHorizonMs ?? batch.NO_TIMESTAMP
    this.#bytes = Buffer.allocUnsafe(Math.min(options.bytesMax ?? 1024, 64 * 1024) + batch.BATCH_OVERHEAD)
  }

  get recordsCount(): number {
    return this.#count
  }

  /** The bytes of the batch as it stands: exact without compression, else an estimate by the expected ratio. */
  get sizeEstimate(): number {
    return batch.BATCH_OVERHEAD + this.#estimate(this.#position - batch.RECORDS_AT)
  }

  #estimate(plainBytes: number): number {
    if (this.#compression === 'none') return plainBytes
    return Math.ceil(plainBytes * (this.#options.compressionRatio ?? 1) * RATIO_MARGIN)
  }

  /** Whether the batch stays within `bytesMax` with this record. The first one always fits: no batch goes out empty. */
  wouldFit(timestamp: number, key: Uint8Array | null, value: Uint8Array | null, headers = NO_HEADERS): boolean {
    if (this.#count === 0 || this.#options.bytesMax === undefined) return true
    const body = bodySize(timestamp - this.#baseTimestamp, this.#nextDelta, key, value, headers)
    return this.sizeEstimate + varintSize(body) + body <= this.#options.bytesMax
  }

  /** Adds a record at the next offset and returns its distance from the base offset. Time −1 is none. */
  append(timestamp: number, key: Uint8Array | null, value: Uint8Array | null, headers = NO_HEADERS): number {
    const delta = this.#nextDelta
    this.#append(delta, timestamp, key, value, headers)
    return delta
  }

  /** Adds a record at `offset`, which is after the last one's; for batches whose offsets have gaps. */
  appendAt(
    offset: number,
    timestamp: number,
    key: Uint8Array | null,
    value: Uint8Array | null,
    headers = NO_HEADERS,
  ): void {
    this.#append(offset - (this.#options.baseOffset ?? 0), timestamp, key, value, headers)
  }

  #append(
    delta: number,
    timestamp: number,
    key: Uint8Array | null,
    value: Uint8Array | null,
    headers: readonly HeaderToAppend[],
  ): void {
    assert(delta >= this.#nextDelta && delta <= 0x7fff_ffff, 'offsets rise within a batch, by less than 2^31')
    assert(timestamp >= 0 || timestamp === batch.NO_TIMESTAMP, `${timestamp} is no time of a record`)
    if (this.#count === 0 && this.#options.deleteHorizonMs === undefined) this.#baseTimestamp = timestamp
    const timestampDelta = timestamp - this.#baseTimestamp
    const body = bodySize(timestampDelta, delta, key, value, headers)
    this.#reserve(varintSize(body) + body)
    this.#varint(body)
    this.#bytes[this.#position++] = 0
    this.#varlong(timestampDelta)
    this.#varint(delta)
    this.#sized(key)
    this.#sized(value)
    this.#varint(headers.length)
    for (const header of headers) {
      const keySize = Buffer.byteLength(header.key)
      this.#varint(keySize)
      this.#position += this.#bytes.write(header.key, this.#position, keySize, 'utf8')
      this.#sized(header.value)
    }
    this.#count++
    this.#nextDelta = delta + 1
    if (timestamp > this.#maxTimestamp) this.#maxTimestamp = timestamp
  }

  /** The batch. Without compression a view of the builder's own bytes, so it is built once and not appended to after. */
  build(): Buffer {
    const options = this.#options
    const plain = this.#bytes.subarray(0, this.#position)
    let built = plain
    // An empty batch has no codec: there would be nothing for a reader's codec to start on.
    const compression = this.#count === 0 ? 'none' : this.#compression
    if (compression !== 'none') {
      const blob = compress(compression, plain.subarray(batch.RECORDS_AT), options.compressionLevel)
      built = Buffer.allocUnsafe(batch.BATCH_OVERHEAD + blob.length)
      blob.copy(built, batch.RECORDS_AT)
      this.#compressedSize = blob.length
    }
    const base = options.baseOffset ?? 0
    const lastDelta = options.lastOffset === undefined ? this.#nextDelta - 1 : options.lastOffset - base
    assert(lastDelta >= this.#nextDelta - 1 && lastDelta >= 0, 'a batch has a last offset, not before its last record')
    built.writeInt32BE(built.length - batch.LOG_OVERHEAD, batch.BATCH_LENGTH_AT)
    batch.stamp(built, 0, base, options.leaderEpoch ?? batch.NO_LEADER_EPOCH)
    built.writeInt8(2, batch.MAGIC_AT)
    built.writeInt16BE(this.#attributes(compression), batch.ATTRIBUTES_AT)
    built.writeInt32BE(lastDelta, batch.LAST_OFFSET_DELTA_AT)
    batch.writeInt64(built, batch.BASE_TIMESTAMP_AT, this.#baseTimestamp)
    const maxTimestamp = options.logAppendTime ?? options.maxTimestamp ?? this.#maxTimestamp
    batch.writeInt64(built, batch.MAX_TIMESTAMP_AT, maxTimestamp)
    built.writeInt32BE(this.#count, batch.RECORDS_COUNT_AT)
    batch.stampProducer(
      built,
      0,
      options.producerId ?? batch.NO_PRODUCER_ID,
      options.producerEpoch ?? batch.NO_PRODUCER_EPOCH,
      options.baseSequence ?? batch.NO_SEQUENCE,
    )
    return built
  }

  /** What the codec made of a byte in {@link build}: the expectation for the batches to come. */
  get compressionRatio(): number {
    const plainSize = this.#position - batch.RECORDS_AT
    return this.#compressedSize === undefined || plainSize === 0 ? 1 : this.#compressedSize / plainSize
  }

  #attributes(compression: CompressionName): number {
    const options = this.#options
    return (
      batch.COMPRESSION_NAMES.indexOf(compression) |
      (options.logAppendTime === undefined ? 0 : batch.LOG_APPEND_TIME_BIT) |
      (options.transactional ? batch.TRANSACTIONAL_BIT : 0) |
      (options.control ? batch.CONTROL_BIT : 0) |
      (options.deleteHorizonMs === undefined ? 0 : batch.DELETE_HORIZON_BIT)
    )
  }

  #reserve(size: number): void {
    const end = this.#position + size
    if (end <= this.#bytes.length) return
    const grown = Buffer.allocUnsafe(Math.max(end, this.#bytes.length * 2))
    this.#bytes.copy(grown, 0, 0, this.#position)
    this.#bytes = grown
  }

  #sized(value: Uint8Array | null): void {
    if (value === null) {
      this.#varint(-1)
      return
    }
    this.#varint(value.length)
    this.#bytes.set(value, this.#position)
    this.#position += value.length
  }

  #varint(value: number): void {
    let raw = ((value << 1) ^ (value >> 31)) >>> 0
    for (; raw >= 0x80; raw >>>= 7) this.#bytes[this.#position++] = (raw & 0x7f) | 0x80
    this.#bytes[this.#position++] = raw
  }

  #varlong(value: number): void {
    if (value === (value | 0)) {
      this.#varint(value)
      return
    }
    // The lowest seven bits of the zig-zag form, then the rest by division: shifts would cut it to 32 bits.
    const half = value < 0 ? -(value + 1) : value
    this.#bytes[this.#position++] = ((half % 64) * 2 + (value < 0 ? 1 : 0)) | 0x80
    let rest = Math.floor(half / 64)
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.#bytes[this.#position++] = (rest % 0x80) | 0x80
    this.#bytes[this.#position++] = rest
  }
}

/**
 * The bytes that a record takes at most in a batch of its own, header included and without compression: what
 * `max.request.size` and `buffer.memory` of a producer are compared with.
 */
export function batchSizeUpperBound(
  key: Uint8Array | null,
  value: Uint8Array | null,
  headers: readonly HeaderToAppend[] = NO_HEADERS,
): number {
  const lengthsAndDeltas = 21 // length 5, attributes 1, timestamp 10, offset 5
  return batch.BATCH_OVERHEAD + lengthsAndDeltas + contentSize(key, value, headers)
}

function bodySize(
  timestampDelta: number,
  offsetDelta: number,
  key: Uint8Array | null,
  value: Uint8Array | null,
  headers: readonly HeaderToAppend[],
): number {
  return 1 + varlongSize(timestampDelta) + varintSize(offsetDelta) + contentSize(key, value, headers)
}

function contentSize(key: Uint8Array | null, value: Uint8Array | null, headers: readonly HeaderToAppend[]): number {
  let size = sizedSize(key) + sizedSize(value) + varintSize(headers.length)
  for (const header of headers) {
    const keySize = Buffer.byteLength(header.key)
    size += varintSize(keySize) + keySize + sizedSize(header.value)
  }
  return size
}

function sizedSize(value: Uint8Array | null): number {
  return value === null ? 1 : varintSize(value.length) + value.length
}

function varintSize(value: number): number {
  const raw = (value << 1) ^ (value >> 31)
  return ((38 - Math.clz32(raw | 1)) / 7) | 0
}

function varlongSize(value: number): number {
  if (value === (value | 0)) return varintSize(value)
  let size = 1
  for (let rest = Math.floor((value < 0 ? -(value + 1) : value) / 64); rest > 0; rest = Math.floor(rest / 0x80)) size++
  return size
}
