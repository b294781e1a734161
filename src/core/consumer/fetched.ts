import { DecodeError } from '#base/bytes.ts'
import type { Epoch, Offset, ProducerId } from '#base/units.ts'
import * as batch from '#records/batch.ts'
import { controlTypeOf } from '#records/control.ts'
import { type LogRecord, openRecords, type Records } from '#records/records.ts'
import { ReadEpochs } from './read-epochs.ts'

/**
 * The records of one fetched partition, handed out one by one. It skips what lies before the position asked for (a batch
 * is always sent whole), control records, and when reading committed only, the records of aborted transactions (KIP-98:
 * aborted transactions come in the order of their first offset, and an abort marker ends each).
 */
export class FetchedRecords {
  readonly #bytes: Buffer
  readonly #committedOnly: boolean
  readonly #aborted: { readonly producerId: ProducerId; readonly firstOffset: Offset }[]
  readonly #abortedNow = new Set<ProducerId>()
  #at = 0
  #batchEnd = 0
  #records: Records | undefined
  #position: Offset
  readonly #epochs: ReadEpochs

  constructor(
    bytes: Buffer,
    position: Offset,
    abortedTransactions?: readonly { readonly producerId: ProducerId; readonly firstOffset: Offset }[] | null,
    epochs: ReadEpochs = new ReadEpochs(position),
  ) {
    this.#bytes = bytes
    this.#position = position
    this.#epochs = epochs
    this.#committedOnly = abortedTransactions !== undefined && abortedTransactions !== null
    this.#aborted = [...(abortedTransactions ?? [])].sort((a, b) => a.firstOffset - b.firstOffset)
  }

  /** The offset behind everything that was handed out or skipped so far: where reading goes on. */
  get position(): Offset {
    return this.#position
  }

  /** The next record, or undefined behind the last whole batch. A DecodeError for bytes that are none. */
  next(): LogRecord | undefined {
    for (;;) {
      if (this.#records !== undefined) {
        while (this.#records.next()) {
          if (this.#records.offset < this.#position) continue
          this.#position = this.#records.offset + 1
          return this.#records.record()
        }
        this.#records = undefined
        // Compaction may have taken the last records of the batch; its offsets are passed all the same.
        this.#position = Math.max(this.#position, this.#batchEnd)
      }
      if (!this.#openBatch()) return undefined
    }
  }

  /** Moves to the next batch that has something to hand out, or skips it. */
  #openBatch(): boolean {
    const at = this.#at
    const size = batch.wholeBatchSize(this.#bytes, at, this.#bytes.length)
    if (size === 0) return false
    const fault = size < 0 ? { message: 'bytes that are no record batch' } : batch.checkCrc(this.#bytes, at)
    if (fault !== undefined) throw new DecodeError(`at offset ${this.#position}: ${fault.message}`)
    this.#at += size
    this.#batchEnd = batch.lastOffset(this.#bytes, at) + 1
    if (this.#batchEnd <= this.#position) return true
    this.#epochs.read(epochOf(this.#bytes, at), Math.max(this.#position, batch.baseOffset(this.#bytes, at)))
    if (this.#isHidden(at)) this.#position = this.#batchEnd
    else this.#records = openRecords(this.#bytes, at)
    return true
  }

  #isHidden(at: number): boolean {
    if (batch.magic(this.#bytes, at) < 2) return false
    const producerId = batch.producerId(this.#bytes, at)
    if (batch.isControl(this.#bytes, at)) {
      if (this.#committedOnly && this.#endsAbort(at)) this.#abortedNow.delete(producerId)
      return true
    }
    if (!this.#committedOnly || !batch.isTransactional(this.#bytes, at)) return false
    while (this.#aborted.length > 0 && (this.#aborted[0]?.firstOffset ?? 0) < this.#batchEnd) {
      const { producerId: aborted } = this.#aborted.shift() ?? {}
      if (aborted !== undefined) this.#abortedNow.add(aborted)
    }
    return this.#abortedNow.has(producerId)
  }

  #endsAbort(at: number): boolean {
    const records = openRecords(this.#bytes, at)
    return records.next() && controlTypeOf(records.key) === 'abort'
  }
}

/** Messages of the formats before 2 have none. */
function epochOf(bytes: Buffer, at: number): Epoch {
  return batch.magic(bytes, at) < 2 ? -1 : batch.leaderEpoch(bytes, at)
}
