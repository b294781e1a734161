import type { Epoch, Millis, Offset, ProducerId } from '#base/units.ts'

/** One batch of a producer in a snapshot (schema ProducerSnapshot). Of several, the last one is the youngest. */
export interface ProducerEntry {
  readonly producerId: ProducerId
  readonly epoch: number
  readonly lastSequence: number
  readonly lastOffset: Offset
  /** Last sequence less the first of the batch. */
  readonly offsetDelta: number
  readonly timestamp: Millis
  readonly coordinatorEpoch: Epoch
  /** -1 when no transaction is open. */
  readonly currentTxnFirstOffset: Offset
}

/** An aborted transaction as the `.txnindex` keeps it. */
export interface AbortedTransaction {
  readonly producerId: ProducerId
  readonly firstOffset: Offset
  /** The offset of the abort marker. */
  readonly lastOffset: Offset
  /** The last stable offset when the marker was written. */
  readonly lastStableOffset: Offset
}

/**
 * What is known of producers, as a fold over the batches of one log. The log never looks inside; it keeps the snapshots
 * and replays. Batches that are appended while the log is open are folded by whoever appends them, after `Log.append`
 * was called: a snapshot that the append's roll makes is taken inside of that call, before the batch.
 */
export interface BatchFold {
  /** Forgets everything, then takes over what a snapshot held that covers all offsets below `at`. */
  restore(entries: readonly ProducerEntry[], at: Offset): void
  /**
   * Folds the batch whose header lies at `at`; only of a control batch are the bytes after the header there. Returns the
   * transaction that it aborted, if it did, so that a lost transaction index can be written again.
   */
  apply(buffer: Buffer, at: number): AbortedTransaction | undefined
  snapshot(): readonly ProducerEntry[]
}

/** For logs without producers, as `__cluster_metadata`. */
export const NO_FOLD: BatchFold = { restore() {}, apply: () => undefined, snapshot: () => [] }
