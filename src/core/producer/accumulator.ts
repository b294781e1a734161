import { assert } from '#base/assert.ts'
import type { Epoch, Millis, Offset, ProducerId } from '#base/units.ts'
import { ErrorCode, isRetriable } from '#protocol/errors.ts'
import { type CompressionName, sequenceAfter, stampProducer } from '#records/batch.ts'
import { BatchBuilder, batchSizeUpperBound, type HeaderToAppend } from '#records/builder.ts'

export interface AccumulatorOptions {
  /** A batch is sent at the latest when it has this size (batch.size). */
  readonly batchBytes: number
  /** How long a batch may wait for more records (linger.ms). */
  readonly lingerMs: Millis
  /** What may wait and be under way in all (buffer.memory). */
  readonly bufferBytesMax: number
  /** The largest record that is taken (max.request.size). */
  readonly recordBytesMax: number
  /** From the first record of a batch to its success or failure (delivery.timeout.ms). */
  readonly deliveryTimeoutMs: Millis
  readonly retryBackoffMs: Millis
  readonly retryBackoffMaxMs: Millis
  readonly compression: CompressionName
  readonly idempotent: boolean
}

/** A producer id with its epoch, as InitProducerId gave it out or as we raised it. */
export interface ProducerIdentity {
  readonly producerId: ProducerId
  readonly epoch: number
}

export interface RecordToAppend {
  readonly timestamp: Millis
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  readonly headers: readonly HeaderToAppend[]
}

/** Records of one partition that travel together. `tags` are the caller's, one per record, in order. */
export class ProducerBatch<Tag> {
  readonly topic: string
  readonly partition: number
  readonly createdAt: Millis
  readonly builder: BatchBuilder
  readonly tags: Tag[] = []
  /** What it counts for in the buffer. */
  reservedBytes = 0
  /** Built when first sent; from then on only its identity changes. */
  bytes: Buffer | undefined
  identity: ProducerIdentity | undefined
  baseSequence = -1
  /** Which of the partition's batches it is, counted as they are numbered. */
  ordinal = -1
  attempts = 0
  /** Not before this time is it sent again, unless another one leads. */
  notBefore = 0
  /** Of the leader that it was sent to last. */
  leaderEpoch: Epoch = -1
  inFlight = false

  constructor(topic: string, partition: number, createdAt: Millis, builder: BatchBuilder) {
    this.topic = topic
    this.partition = partition
    this.createdAt = createdAt
    this.builder = builder
  }

  get recordsCount(): number {
    return this.tags.length
  }
}

export type Settlement =
  /** Written. The base offset is -1 if the broker remembers the batch but not where it is. */
  | { readonly type: 'written'; readonly baseOffset: Offset }
  | { readonly type: 'retry' }
  | { readonly type: 'failed'; readonly errorCode: number }

/** What became of a request: the broker's word on the batch, or no word at all. */
export type Outcome =
  | { readonly answered: true; readonly errorCode: number; readonly baseOffset: Offset }
  | { readonly answered: false }

interface PartitionQueue<Tag> {
  readonly topic: string
  readonly partition: number
  /** Waiting, in the order in which they are to be written: what is to be sent again stands before what is new. */
  readonly waiting: ProducerBatch<Tag>[]
  /** With a sequence, and neither written nor failed; in sequence order. */
  readonly outstanding: ProducerBatch<Tag>[]
  inFlight: number
  identity: ProducerIdentity | undefined
  nextSequence: number
  nextOrdinal: number
  /** A sequence was given up, and whether it was written is not known, or it was not: what comes after it tells. */
  doubtful: boolean
  /** There is a hole in the sequences: nothing after it can be written under this epoch, and nothing after it was. */
  broken: boolean
  /** The broker has taken a batch of this identity. Before that it takes any sequence, so only one batch may be under way. */
  established: boolean
}

/**
 * What a producer has taken and not yet written: batches per partition, when they are ready to be sent, in which order,
 * and what their answers mean. An idempotent producer numbers the records of each partition; up to five requests may be
 * under way, and when one has to be sent again it goes alone and before everything that is newer, so that the broker
 * sees the numbers in order (KIP-98, KIP-360).
 */
export class Accumulator<Tag> {
  readonly options: AccumulatorOptions
  readonly #queues = new Map<string, PartitionQueue<Tag>>()
  #bufferedBytes = 0
  #flushing = false
  #identity: ProducerIdentity | undefined
  /** What the codec made of the batches before. */
  #compressionRatio = 1

  constructor(options: AccumulatorOptions) {
    this.options = options
  }

  get bufferedBytes(): number {
    return this.#bufferedBytes
  }

  /** Whether everything that was taken has been written or has failed. */
  get empty(): boolean {
    return this.#bufferedBytes === 0
  }

  /** Whether batches wait for a producer id. */
  get needsIdentity(): boolean {
    return this.options.idempotent && this.#identity === undefined
  }

  identify(identity: ProducerIdentity): void {
    this.#identity = identity
  }

  /** Takes a record. `full`: come back when something was settled. `too-large`: it can never be sent. */
  append(
    topic: string,
    partition: number,
    record: RecordToAppend,
    tag: Tag,
    now: Millis,
  ): 'taken' | 'full' | 'too-large' {
    const { timestamp, key, value, headers } = record
    const bytes = batchSizeUpperBound(key, value, headers)
    if (bytes > this.options.recordBytesMax) return 'too-large'
    if (this.#bufferedBytes + bytes > this.options.bufferBytesMax && this.#bufferedBytes > 0) return 'full'
    const queue = this.#queue(topic, partition)
    let batch = queue.waiting.at(-1)
    if (batch === undefined || batch.bytes !== undefined || !batch.builder.wouldFit(timestamp, key, value, headers)) {
      const { compression, batchBytes } = this.options
      const builder = new BatchBuilder({ compression, bytesMax: batchBytes, compressionRatio: this.#compressionRatio })
      batch = new ProducerBatch<Tag>(topic, partition, now, builder)
      queue.waiting.push(batch)
    }
    batch.builder.append(timestamp, key, value, headers)
    batch.tags.push(tag)
    batch.reservedBytes += bytes
    this.#bufferedBytes += bytes
    return 'taken'
  }

  /** Whether the newest batch of a partition may still take records. */
  filling(topic: string, partition: number): boolean {
    const batch = this.#queues.get(keyOf(topic, partition))?.waiting.at(-1)
    return batch !== undefined && batch.bytes === undefined && batch.builder.sizeEstimate < this.options.batchBytes
  }

  /** How many batches wait for a partition. */
  queued(topic: string, partition: number): number {
    return this.#queues.get(keyOf(topic, partition))?.waiting.length ?? 0
  }

  /** Until everything is settled, nothing lingers. */
  flush(): void {
    if (!this.empty) this.#flushing = true
  }

  /** The partitions that have a batch to send now. */
  ready(now: Millis): { readonly topic: string; readonly partition: number }[] {
    const ready: PartitionQueue<Tag>[] = []
    if (this.needsIdentity) return ready
    for (const queue of this.#queues.values()) {
      const at = this.#readyAt(queue)
      if (at !== undefined && at <= now) ready.push(queue)
    }
    return ready
  }

  /** The first batch of each of the given partitions that is ready, up to a size; they count as under way. */
  drain(
    partitions: readonly { readonly topic: string; readonly partition: number; readonly leaderEpoch?: Epoch }[],
    bytesMax: number,
    now: Millis,
  ): ProducerBatch<Tag>[] {
    const drained: ProducerBatch<Tag>[] = []
    let size = 0
    for (const { topic, partition, leaderEpoch = -1 } of partitions) {
      const queue = this.#queues.get(keyOf(topic, partition))
      const at = queue === undefined ? undefined : this.#readyAt(queue)
      const batch = queue?.waiting[0]
      if (queue === undefined || batch === undefined || at === undefined || at > now) continue
      const estimate = batch.bytes?.length ?? batch.builder.sizeEstimate
      if (drained.length > 0 && size + estimate > bytesMax) continue
      size += estimate
      queue.waiting.shift()
      this.#prepare(queue, batch)
      batch.inFlight = true
      batch.attempts++
      batch.leaderEpoch = leaderEpoch
      queue.inFlight++
      drained.push(batch)
    }
    return drained
  }

  /** A leader in this epoch is known: what an earlier one did not take needs not wait to be sent to it. */
  hasten(topic: string, partition: number, leaderEpoch: Epoch): void {
    for (const batch of this.#queues.get(keyOf(topic, partition))?.waiting ?? []) {
      if (batch.leaderEpoch < leaderEpoch) batch.notBefore = 0
    }
  }

  /** What the outcome of a drained batch means. Unless it is to be sent again the batch is done with. */
  settle(batch: ProducerBatch<Tag>, outcome: Outcome, now: Millis): Settlement {
    const queue = this.#queue(batch.topic, batch.partition)
    assert(batch.inFlight, 'a batch is settled once per send')
    batch.inFlight = false
    queue.inFlight--
    const settlement = this.#judge(queue, batch, outcome, now)
    if (settlement.type === 'retry') this.#requeue(queue, batch, now)
    else this.#finish(queue, batch, settlement.type === 'failed')
    return settlement
  }

  /** Takes out what has waited too long; the caller fails it with REQUEST_TIMED_OUT. */
  expire(now: Millis): ProducerBatch<Tag>[] {
    const expired: ProducerBatch<Tag>[] = []
    for (const queue of this.#queues.values()) {
      while (queue.waiting.length > 0 && this.#expired(queue.waiting[0] as ProducerBatch<Tag>, now)) {
        const batch = queue.waiting.shift() as ProducerBatch<Tag>
        this.#finish(queue, batch, true)
        expired.push(batch)
      }
    }
    return expired
  }

  /** Takes out all that waits; the caller fails it. What is under way is settled as it comes back. */
  abandon(): ProducerBatch<Tag>[] {
    const abandoned: ProducerBatch<Tag>[] = []
    for (const queue of this.#queues.values()) {
      for (const batch of queue.waiting.splice(0)) {
        this.#finish(queue, batch, true)
        abandoned.push(batch)
      }
    }
    return abandoned
  }

  /** When a batch becomes ready or expires next. */
  wakeAt(): Millis | undefined {
    let at: Millis | undefined
    for (const queue of this.#queues.values()) {
      const first = queue.waiting[0]
      if (first === undefined) continue
      const expiry = this.#expiryOf(first)
      const ready = this.needsIdentity ? undefined : this.#readyAt(queue)
      const next = ready === undefined ? expiry : Math.min(ready, expiry)
      if (at === undefined || next < at) at = next
    }
    return at
  }

  #queue(topic: string, partition: number): PartitionQueue<Tag> {
    const key = keyOf(topic, partition)
    let queue = this.#queues.get(key)
    if (queue === undefined) {
      queue = {
        topic,
        partition,
        waiting: [],
        outstanding: [],
        inFlight: 0,
        identity: undefined,
        nextSequence: 0,
        nextOrdinal: 0,
        doubtful: false,
        broken: false,
        established: false,
      }
      this.#queues.set(key, queue)
    }
    return queue
  }

  /** When the first batch may be sent; undefined while it has to wait for others. */
  #readyAt(queue: PartitionQueue<Tag>): Millis | undefined {
    const batch = queue.waiting[0]
    if (batch === undefined) return undefined
    if (this.options.idempotent) {
      // Under a new epoch numbers start at 0, so everything of the old one must have come back; and the first batch of
      // all must have been taken, for were it refused the broker would begin with the second.
      if ((queue.broken || !queue.established) && queue.inFlight > 0) return undefined
      // Of what has a number nobody knows whether it was written: it keeps that, or it may be written twice, and until it
      // is settled nothing follows it that would need a number of another epoch, or would come behind a hole.
      const isSettled = queue.broken || queue.outstanding.length === 0
      if (batch.baseSequence < 0 && !isSettled && (queue.doubtful || this.#stale(queue))) return undefined
      // The broker knows a repeat of its last few only. One that waits for a leader that is none any more may have been
      // written before all that its successor has taken since.
      const [oldest] = queue.outstanding
      const isFar = oldest !== undefined && queue.nextOrdinal - oldest.ordinal >= IDEMPOTENT_IN_FLIGHT_MAX
      if (batch.baseSequence < 0 && isFar) return undefined
      // One that is sent again goes alone, after all that is older is settled.
      if (batch.baseSequence >= 0 && queue.outstanding[0] !== batch) return undefined
    }
    if (batch.attempts > 0) return batch.notBefore
    const full = queue.waiting.length > 1 || batch.builder.sizeEstimate >= this.options.batchBytes
    // A buffer that is nearly full has senders waiting: lingering would only hold them up.
    const pressed = this.#bufferedBytes * 2 > this.options.bufferBytesMax
    return full || pressed || this.#flushing ? batch.createdAt : batch.createdAt + this.options.lingerMs
  }

  #stale(queue: PartitionQueue<Tag>): boolean {
    const { identity } = queue
    const current = this.#identity
    return identity !== undefined && (identity.producerId !== current?.producerId || identity.epoch !== current.epoch)
  }

  #prepare(queue: PartitionQueue<Tag>, batch: ProducerBatch<Tag>): void {
    const built = batch.bytes ?? batch.builder.build()
    if (batch.bytes === undefined && this.options.compression !== 'none') {
      this.#compressionRatio = (this.#compressionRatio * 3 + batch.builder.compressionRatio) / 4
    }
    batch.bytes = built
    if (!this.options.idempotent) return
    this.#renew(queue)
    if (batch.baseSequence < 0) {
      batch.baseSequence = queue.nextSequence
      queue.nextSequence = sequenceAfter(queue.nextSequence, batch.recordsCount)
      batch.ordinal = queue.nextOrdinal++
      queue.outstanding.push(batch)
    }
    const { identity } = queue
    assert(identity !== undefined, 'a partition has an identity before it sends')
    if (batch.identity !== identity) {
      batch.identity = identity
      stampProducer(built, 0, identity.producerId, identity.epoch, batch.baseSequence)
    }
  }

  /**
   * Takes over the producer's identity where the partition has none, an old one, or one whose numbers have a hole. What was
   * sent and may have been written keeps the identity under which it was: by another the broker would not know it again.
   */
  #renew(queue: PartitionQueue<Tag>): void {
    if (queue.broken && !this.#stale(queue)) this.#raiseEpoch()
    const isOld = queue.broken || (this.#stale(queue) && queue.outstanding.length === 0)
    if (queue.identity !== undefined && !isOld) return
    assert(queue.inFlight === 0, 'a partition changes its identity when nothing is under way')
    queue.identity = this.#identity
    queue.doubtful = false
    queue.broken = false
    queue.established = false
    queue.nextSequence = 0
    for (const batch of queue.outstanding) {
      batch.baseSequence = queue.nextSequence
      queue.nextSequence = sequenceAfter(queue.nextSequence, batch.recordsCount)
    }
  }

  /** An idempotent producer raises its epoch by itself; when there is none left it needs a new id. */
  #raiseEpoch(): void {
    assert(this.#identity !== undefined, 'an epoch is raised that was given out')
    const { producerId, epoch } = this.#identity
    assert(epoch < 0x7fff, 'the epoch before the last one asks for a new id')
    this.#identity = { producerId, epoch: epoch + 1 }
  }

  #judge(queue: PartitionQueue<Tag>, batch: ProducerBatch<Tag>, outcome: Outcome, now: Millis): Settlement {
    const late = this.#expired(batch, now)
    if (!outcome.answered) return late ? { type: 'failed', errorCode: ErrorCode.REQUEST_TIMED_OUT } : { type: 'retry' }
    const { errorCode, baseOffset } = outcome
    if (errorCode === ErrorCode.NONE || errorCode === ErrorCode.DUPLICATE_SEQUENCE_NUMBER) {
      queue.established = true
      return { type: 'written', baseOffset: errorCode === ErrorCode.NONE ? baseOffset : -1 }
    }
    if (late) return { type: 'failed', errorCode }
    if (isRetriable(errorCode)) return { type: 'retry' }
    const forgotten =
      errorCode === ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER || errorCode === ErrorCode.UNKNOWN_PRODUCER_ID
    if (forgotten && batch.baseSequence >= 0) {
      // Either an older batch is missing because it is to be sent again, and then this one's turn comes; or the broker
      // has lost what it knew of us, and we start again under a new epoch (KIP-360).
      if (queue.outstanding[0] === batch) this.#break(queue)
      return { type: 'retry' }
    }
    return { type: 'failed', errorCode }
  }

  #expiryOf(batch: ProducerBatch<Tag>): Millis {
    return batch.createdAt + this.options.deliveryTimeoutMs
  }

  #expired(batch: ProducerBatch<Tag>, now: Millis): boolean {
    return now >= this.#expiryOf(batch)
  }

  #requeue(queue: PartitionQueue<Tag>, batch: ProducerBatch<Tag>, now: Millis): void {
    const { retryBackoffMs, retryBackoffMaxMs, idempotent } = this.options
    batch.notBefore = now + Math.min(retryBackoffMs * 2 ** Math.min(batch.attempts - 1, 16), retryBackoffMaxMs)
    const rank = queue.outstanding.indexOf(batch)
    // Without numbers as well what came first stays before what came later, as far as both wait.
    const isBefore = (other: ProducerBatch<Tag>): boolean =>
      idempotent
        ? other.baseSequence >= 0 && queue.outstanding.indexOf(other) <= rank
        : other.attempts > 0 && other.createdAt <= batch.createdAt
    let at = 0
    while (at < queue.waiting.length && isBefore(queue.waiting[at] as ProducerBatch<Tag>)) at++
    queue.waiting.splice(at, 0, batch)
  }

  #finish(queue: PartitionQueue<Tag>, batch: ProducerBatch<Tag>, failed: boolean): void {
    const at = queue.outstanding.indexOf(batch)
    if (at >= 0) {
      queue.outstanding.splice(at, 1)
      if (failed) queue.doubtful = true
      // What was written with the last number of all was written behind all the others: there is no hole.
      else if (sequenceAfter(batch.baseSequence, batch.recordsCount) === queue.nextSequence) queue.doubtful = false
      if (queue.doubtful && queue.outstanding.length === 0) this.#break(queue)
    }
    this.#bufferedBytes -= batch.reservedBytes
    if (this.empty) this.#flushing = false
    if (
      queue.waiting.length === 0 &&
      queue.outstanding.length === 0 &&
      queue.inFlight === 0 &&
      !this.options.idempotent
    ) {
      this.#queues.delete(keyOf(queue.topic, queue.partition))
    }
  }

  #break(queue: PartitionQueue<Tag>): void {
    queue.broken = true
    // With the last epoch used up, the next batch waits for a new producer id.
    if (this.#identity !== undefined && this.#identity.epoch >= 0x7ffe) this.#identity = undefined
  }
}

function keyOf(topic: string, partition: number): string {
  return `${topic}-${partition}`
}

/** The largest number of requests that an idempotent producer may have under way per broker; brokers remember as many. */
export const IDEMPOTENT_IN_FLIGHT_MAX = 5
