import { ByteReader, ByteWriter } from '#base/bytes.ts'
import type { AbortedTransaction } from './batch-fold.ts'

const ENTRY_BYTES = 34
const VERSION = 0

/** The `.txnindex`: int16 version 0, int64 producerId, firstOffset, lastOffset, lastStableOffset. No file without aborts. */
export function encodeTxnIndex(aborted: readonly AbortedTransaction[]): Buffer {
  const writer = new ByteWriter(aborted.length * ENTRY_BYTES)
  for (const { producerId, firstOffset, lastOffset, lastStableOffset } of aborted) {
    writer.int16(VERSION)
    writer.int64(producerId)
    writer.int64(firstOffset)
    writer.int64(lastOffset)
    writer.int64(lastStableOffset)
  }
  return writer.written()
}

/** The entries up to the first one that cannot be read: a torn tail, or a version of the future. */
export function decodeTxnIndex(bytes: Uint8Array): AbortedTransaction[] {
  const aborted: AbortedTransaction[] = []
  const reader = new ByteReader(bytes)
  let lastBefore = -1
  while (reader.remaining >= ENTRY_BYTES) {
    if (reader.int16() !== VERSION) break
    const [producerId, firstOffset, lastOffset, lastStableOffset] = [
      Number(reader.bigint64()),
      Number(reader.bigint64()),
      Number(reader.bigint64()),
      Number(reader.bigint64()),
    ] as const
    if (lastOffset <= lastBefore || firstOffset > lastOffset) break
    aborted.push({ producerId, firstOffset, lastOffset, lastStableOffset })
    lastBefore = lastOffset
  }
  return aborted
}

/**
 * Adds what a reader of [from, upTo) has to know; true when no later entry can matter, because the transaction that
 * ended here left nothing open below `upTo`.
 */
export function collectAborted(
  aborted: readonly AbortedTransaction[],
  from: number,
  upTo: number,
  into: AbortedTransaction[],
): boolean {
  for (const transaction of aborted) {
    if (transaction.lastOffset >= from && transaction.firstOffset < upTo) into.push(transaction)
    if (transaction.lastStableOffset >= upTo) return true
  }
  return false
}
