import { Recency, type Recent } from '#base/recency.ts'
import { type Epoch, INT32_MAX, type Millis, type Offset, type ProducerId } from '#base/units.ts'
import {
  baseOffset,
  baseSequence,
  isControl,
  lastOffset,
  lastOffsetDelta,
  lastSequence,
  maxTimestamp,
  producerEpoch,
  producerId,
} from '#records/batch.ts'
import type { ProducerRoom } from './producer-room.ts'

/** How many of a producer's last batches are remembered, so that a repeat is known as one (KIP-98, KAFKA-5494). */
const BATCHES_REMEMBERED = 5

/** Of a partition: what a checkpoint writes down in one go. Decision 0018 says why so many. */
export const PRODUCERS_MAX = 50_000

/**
 * A producer and one of its batches as the `.snapshot` files of a log hold it (schema ProducerSnapshot). Kafka writes the
 * last batch only, so a restart makes it forget the four before, and takes their repeats for new ones. Here every batch
 * that is remembered has an entry, oldest first; Kafka reads all and keeps the last.
 */
export interface ProducerSnapshotEntry {
  readonly producerId: ProducerId
  readonly epoch: Epoch
  /** Of the last batch; -1 when there is none. */
  readonly lastSequence: number
  readonly lastOffset: Offset
  /** Last offset minus first offset of the last batch. */
  readonly offsetDelta: number
  readonly timestamp: Millis
  readonly coordinatorEpoch: Epoch
  /** First offset of the open transaction, -1 when there is none. */
  readonly currentTxnFirstOffset: Offset
}

interface Batch {
  readonly epoch: Epoch
  readonly firstSequence: number
  readonly lastSequence: number
  readonly firstOffset: Offset
  readonly lastOffset: Offset
  readonly timestamp: Millis
}

interface Producer extends Recent<Producer> {
  readonly id: ProducerId
  epoch: Epoch
  coordinatorEpoch: Epoch
  currentTxnFirstOffset: Offset
  timestamp: Millis
  /** The newest last, at most BATCHES_REMEMBERED; all of the current epoch. Replaced, never changed: most have one only. */
  batches: readonly Batch[]
  /** Admitted, and not yet in the log. Forgotten when their write fails. */
  pending: readonly Batch[]
}

export type ProducerVerdict =
  | { readonly kind: 'new' }
  /** Written before (or being written): answered with where it was put. */
  | {
      readonly kind: 'duplicate'
      readonly firstOffset: Offset
      readonly lastOffset: Offset
      readonly timestamp: Millis
    }
  | {
      readonly kind: 'refused'
      readonly error: 'OUT_OF_ORDER_SEQUENCE_NUMBER' | 'INVALID_PRODUCER_EPOCH'
      readonly message: string
    }

const NEW: ProducerVerdict = { kind: 'new' }
const NONE: readonly never[] = []

/** How many at most are passed over, of those that have to stay, to make room for one. */
const PASSED_OVER = 8

/**
 * What one partition knows of the idempotent producers that wrote to it: the fold of its log's batch headers. A batch
 * is checked against what the log holds and what is on its way there, so that a pipelining producer is judged by what
 * it sent before.
 *
 * Of more than PRODUCERS_MAX, those that wrote last are known. That follows from the log alone, so replicas forget the
 * same ones; where they do not (one has folded less of the log), nothing follows: what is in the log is folded unchecked.
 */
export class ProducerStates {
  readonly #producers = new Map<ProducerId, Producer>()
  /** In the order in which they wrote. */
  readonly #recency = new Recency<Producer>()
  readonly #withPending = new Set<Producer>()
  #room: ProducerRoom | undefined
  readonly #max: number

  constructor(room?: ProducerRoom, max: number = PRODUCERS_MAX) {
    this.#room = room
    this.#max = max
  }

  get size(): number {
    return this.#producers.size
  }

  /** Judges a batch that carries a producer id. Changes nothing. */
  check(buffer: Buffer, at: number): ProducerVerdict {
    const id = producerId(buffer, at)
    const producer = this.#producers.get(id)
    const epoch = producerEpoch(buffer, at)
    if (producer === undefined) return NEW // expired or never seen: any sequence (KIP-360)
    const newest = producer.pending.at(-1) ?? producer.batches.at(-1)
    const currentEpoch = Math.max(producer.epoch, newest?.epoch ?? -1)
    if (epoch < currentEpoch) {
      return {
        kind: 'refused',
        error: 'INVALID_PRODUCER_EPOCH',
        message: `producer ${id} wrote with epoch ${epoch}, but epoch ${currentEpoch} has taken over`,
      }
    }
    const first = baseSequence(buffer, at)
    const last = lastSequence(buffer, at)
    if (epoch > currentEpoch) {
      return first === 0 ? NEW : outOfOrder(id, first, `a new epoch ${epoch} starts at sequence 0`)
    }
    if (newest === undefined || newest.epoch !== epoch) {
      return NEW // only markers were written in this epoch, or nothing is left of it
    }
    const known = find(producer.pending, epoch, first, last) ?? find(producer.batches, epoch, first, last)
    if (known !== undefined) {
      return {
        kind: 'duplicate',
        firstOffset: known.firstOffset,
        lastOffset: known.lastOffset,
        timestamp: known.timestamp,
      }
    }
    const expected = newest.lastSequence === INT32_MAX ? 0 : newest.lastSequence + 1
    return first === expected ? NEW : outOfOrder(id, first, `expected sequence ${expected}`)
  }

  /** Notes a batch that was judged new and has its offset, before it is in the log. */
  admit(buffer: Buffer, at: number): void {
    const producer = this.#producer(producerId(buffer, at), producerEpoch(buffer, at))
    producer.pending = [...producer.pending, batchOf(buffer, at)]
    this.#withPending.add(producer)
  }

  /** What was admitted below this offset is in the log now. */
  stored(endOffset: Offset): void {
    for (const producer of this.#withPending) {
      const { pending } = producer
      let stored = 0
      while (stored < pending.length && (pending[stored] as Batch).lastOffset < endOffset) {
        remember(producer, pending[stored++] as Batch)
      }
      producer.pending = stored === pending.length ? NONE : pending.slice(stored)
      if (producer.pending.length === 0) this.#withPending.delete(producer)
    }
  }

  /** What was admitted and is not in the log will not get there. */
  forgetPending(): void {
    for (const producer of this.#withPending) producer.pending = NONE
    this.#withPending.clear()
  }

  /** Folds a batch that is in the log: at recovery, or as a follower. */
  apply(buffer: Buffer, at: number): void {
    const id = producerId(buffer, at)
    if (id < 0) return
    const producer = this.#producer(id, producerEpoch(buffer, at))
    if (isControl(buffer, at)) {
      producer.epoch = Math.max(producer.epoch, producerEpoch(buffer, at))
      producer.timestamp = maxTimestamp(buffer, at)
      producer.currentTxnFirstOffset = -1
      return
    }
    remember(producer, batchOf(buffer, at))
  }

  /** Starts again from a snapshot of the log. */
  restore(entries: readonly ProducerSnapshotEntry[]): void {
    this.#room?.left(this)
    this.#producers.clear()
    this.#recency.clear()
    this.#withPending.clear()
    // By their offsets is by when they wrote, in whichever order the file has them.
    for (const entry of entries.toSorted((a, b) => a.lastOffset - b.lastOffset)) {
      const producer = this.#producer(entry.producerId, entry.epoch)
      producer.epoch = entry.epoch
      producer.coordinatorEpoch = entry.coordinatorEpoch
      producer.currentTxnFirstOffset = entry.currentTxnFirstOffset
      producer.timestamp = entry.timestamp
      if (entry.lastSequence < 0) continue
      remember(producer, {
        epoch: entry.epoch,
        firstSequence: sequenceBefore(entry.lastSequence, entry.offsetDelta),
        lastSequence: entry.lastSequence,
        firstOffset: entry.lastOffset - entry.offsetDelta,
        lastOffset: entry.lastOffset,
        timestamp: entry.timestamp,
      })
    }
  }

  /** What a `.snapshot` file holds: the last batches of each producer below an offset, on their way to the log or in it. */
  snapshot(below: Offset): ProducerSnapshotEntry[] {
    const entries: ProducerSnapshotEntry[] = []
    for (const producer of this.#recency) {
      const { id: producerId, coordinatorEpoch, currentTxnFirstOffset } = producer
      const batches = batchesBelow(producer, below)
      const last = batches.at(-1)
      if (last === undefined) {
        if (producer.epoch < 0) continue
        const { epoch, timestamp } = producer
        const none = { lastSequence: -1, lastOffset: -1, offsetDelta: 0 }
        entries.push({ producerId, epoch, ...none, timestamp, coordinatorEpoch, currentTxnFirstOffset })
        continue
      }
      for (const { epoch, firstOffset, lastSequence, lastOffset, timestamp } of batches) {
        if (epoch !== last.epoch) continue
        const offsetDelta = lastOffset - firstOffset
        entries.push({
          producerId,
          epoch,
          lastSequence,
          lastOffset,
          offsetDelta,
          timestamp,
          coordinatorEpoch,
          currentTxnFirstOffset,
        })
      }
    }
    return entries
  }

  /** Forgets producers that have not written since `before` and have no open transaction (producer.id.expiration.ms). */
  expire(before: Millis): void {
    for (const producer of this.#recency) if (mayGo(producer) && producer.timestamp < before) this.#forget(producer)
  }

  /** The partition leaves the broker. What is known stays, as the log writes it down when it is closed. */
  leaveRoom(): void {
    this.#room?.left(this)
    this.#room = undefined
  }

  /** Forgets the one that has been idle for longest. False where that is none, or only ones that have to stay. */
  forgetIdlest(): boolean {
    for (let passed = 0; passed <= PASSED_OVER; passed++) {
      const idlest = this.#recency.oldest
      if (idlest === undefined) return false
      if (mayGo(idlest)) {
        this.#forget(idlest)
        return true
      }
      this.#recency.use(idlest)
    }
    return false
  }

  #forget(producer: Producer): void {
    this.#producers.delete(producer.id)
    this.#recency.remove(producer)
    this.#room?.forgotten()
  }

  #producer(id: ProducerId, epoch: Epoch): Producer {
    const known = this.#producers.get(id)
    if (known !== undefined) {
      this.#recency.use(known)
      return known
    }
    if (this.#producers.size >= this.#max) this.forgetIdlest()
    this.#room?.coming(this)
    const producer: Producer = {
      id,
      epoch,
      coordinatorEpoch: -1,
      currentTxnFirstOffset: -1,
      timestamp: -1,
      batches: NONE,
      pending: NONE,
      older: undefined,
      newer: undefined,
    }
    this.#producers.set(id, producer)
    this.#recency.use(producer)
    return producer
  }
}

/** Nothing of it is under way, and no transaction is open: to forget it does no more than a day of silence does. */
function mayGo({ pending, currentTxnFirstOffset }: Producer): boolean {
  return pending.length === 0 && currentTxnFirstOffset < 0
}

function batchesBelow({ batches, pending }: Producer, below: Offset): readonly Batch[] {
  if (pending.length === 0) return batches
  return [...batches, ...pending.filter(batch => batch.lastOffset < below)].slice(-BATCHES_REMEMBERED)
}

function outOfOrder(id: ProducerId, first: number, why: string): ProducerVerdict {
  return {
    kind: 'refused',
    error: 'OUT_OF_ORDER_SEQUENCE_NUMBER',
    message: `producer ${id} sent sequence ${first}; ${why}`,
  }
}

function find(batches: readonly Batch[], epoch: Epoch, first: number, last: number): Batch | undefined {
  return batches.find(batch => batch.epoch === epoch && batch.firstSequence === first && batch.lastSequence === last)
}

function remember(producer: Producer, batch: Batch): void {
  const goesOn = batch.epoch === producer.epoch && batch.firstSequence >= 0 && producer.batches.length > 0
  producer.epoch = batch.epoch
  producer.timestamp = batch.timestamp
  producer.batches = goesOn ? [...producer.batches.slice(1 - BATCHES_REMEMBERED), batch] : [batch]
}

function batchOf(buffer: Buffer, at: number): Batch {
  return {
    epoch: producerEpoch(buffer, at),
    firstSequence: baseSequence(buffer, at),
    lastSequence: lastSequence(buffer, at),
    firstOffset: lastOffset(buffer, at) - lastOffsetDelta(buffer, at),
    lastOffset: baseOffset(buffer, at) + lastOffsetDelta(buffer, at),
    timestamp: maxTimestamp(buffer, at),
  }
}

/** Sequences wrap from 2147483647 to 0. */
function sequenceBefore(sequence: number, steps: number): number {
  return sequence >= steps ? sequence - steps : INT32_MAX - (steps - sequence) + 1
}
