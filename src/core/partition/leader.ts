import { assert } from '#base/assert.ts'
import type { Epoch, NodeId, Offset } from '#base/units.ts'
import { baseOffset, lastOffsetDelta, NO_PRODUCER_ID, producerId, stamp } from '#records/batch.ts'
import type { ProducerStates } from './producers.ts'

/** Why a partition's leader refuses or fails a produce, by the name of Kafka's error. */
export type ProduceError =
  | 'OUT_OF_ORDER_SEQUENCE_NUMBER'
  | 'INVALID_PRODUCER_EPOCH'
  | 'NOT_ENOUGH_REPLICAS'
  | 'NOT_ENOUGH_REPLICAS_AFTER_APPEND'
  | 'NOT_LEADER_OR_FOLLOWER'
  | 'KAFKA_STORAGE_ERROR'

export interface Produced<Token> {
  readonly token: Token
  readonly error: ProduceError | undefined
  readonly message: string | undefined
  /** First offset of the batch, or of the batch that it repeats; -1 on error. */
  readonly baseOffset: Offset
}

export type LeaderEvent<Token> =
  /** A checked batch of a client or a coordinator. */
  | {
      readonly kind: 'produce'
      readonly buffer: Buffer
      readonly at: number
      readonly size: number
      readonly acks: -1 | 0 | 1
      readonly token: Token
    }
  /** The local log holds everything below `endOffset`. */
  | { readonly kind: 'stored'; readonly endOffset: Offset }
  /** The local log could not take what was sent to it and ends at `endOffset`. */
  | { readonly kind: 'storeFailed'; readonly endOffset: Offset; readonly message: string }
  /** The leadership ended; whoever waits is told so. */
  | { readonly kind: 'resigned' }

export type LeaderEffect<Token> =
  | {
      readonly kind: 'append'
      readonly buffer: Buffer
      readonly at: number
      readonly size: number
      readonly firstOffset: Offset
      readonly lastOffset: Offset
    }
  | { readonly kind: 'answer'; readonly answer: Produced<Token> }
  | { readonly kind: 'highWatermark'; readonly offset: Offset }

interface Waiting<Token> {
  readonly token: Token
  readonly baseOffset: Offset
  /** The answer leaves when the log (acks=1) or the high watermark (acks=all) has come here. */
  readonly endOffset: Offset
  readonly all: boolean
}

export interface LeaderOptions {
  readonly epoch: Epoch
  readonly endOffset: Offset
  /** Behind what was appended before this epoch and is not stored yet; the end where nothing is. */
  readonly nextOffset?: Offset
  readonly highWatermark: Offset
  readonly inSync: readonly NodeId[]
  readonly minInSync: number
  readonly producers: ProducerStates
}

const NONE: readonly never[] = []

/**
 * The leader of one partition: gives offsets, knows repeats, and says when an answer may leave. The in-sync replicas
 * are today the leader alone, so the high watermark is the end of the local log.
 */
export class PartitionLeader<Token> {
  readonly epoch: Epoch
  readonly producers: ProducerStates
  minInSync: number
  readonly #inSync: readonly NodeId[]
  /** The next offset to give. */
  #nextOffset: Offset
  #storedEnd: Offset
  #highWatermark: Offset
  /** In the order of their offsets. */
  readonly #waiting: Waiting<Token>[] = []

  constructor(options: LeaderOptions) {
    assert(options.highWatermark <= options.endOffset, 'the high watermark is never beyond the log')
    this.epoch = options.epoch
    this.producers = options.producers
    this.minInSync = options.minInSync
    this.#inSync = options.inSync
    this.#nextOffset = options.nextOffset ?? options.endOffset
    this.#storedEnd = options.endOffset
    this.#highWatermark = options.highWatermark
  }

  get highWatermark(): Offset {
    return this.#highWatermark
  }

  get nextOffset(): Offset {
    return this.#nextOffset
  }

  step(event: LeaderEvent<Token>): readonly LeaderEffect<Token>[] {
    switch (event.kind) {
      case 'produce':
        return this.#produce(event)
      case 'stored':
        return this.#stored(event.endOffset)
      case 'storeFailed':
        return this.#storeFailed(event.endOffset, event.message)
      case 'resigned':
        return this.#failAll('NOT_LEADER_OR_FOLLOWER', 'the leadership of this partition has ended')
    }
  }

  #produce(event: LeaderEvent<Token> & { kind: 'produce' }): readonly LeaderEffect<Token>[] {
    const { buffer, at, size, acks, token } = event
    if (acks === -1 && this.#inSync.length < this.minInSync) {
      const message = `${this.#inSync.length} replicas are in sync, min.insync.replicas is ${this.minInSync}`
      return [refuse(token, 'NOT_ENOUGH_REPLICAS', message)]
    }
    const idempotent = producerId(buffer, at) !== NO_PRODUCER_ID
    if (idempotent) {
      const verdict = this.producers.check(buffer, at)
      if (verdict.kind === 'refused') return [refuse(token, verdict.error, verdict.message)]
      if (verdict.kind === 'duplicate')
        return this.#answerWhenDue(token, acks, verdict.firstOffset, verdict.lastOffset + 1)
    }
    const firstOffset = this.#nextOffset
    stamp(buffer, at, firstOffset, this.epoch)
    const lastOffset = firstOffset + lastOffsetDelta(buffer, at)
    assert(baseOffset(buffer, at) === firstOffset, 'the batch carries the offset that it was given')
    this.#nextOffset = lastOffset + 1
    if (idempotent) this.producers.admit(buffer, at)
    const append: LeaderEffect<Token> = { kind: 'append', buffer, at, size, firstOffset, lastOffset }
    return [append, ...this.#answerWhenDue(token, acks, firstOffset, lastOffset + 1)]
  }

  /** Answers now if nothing has to be waited for, else when it has come. */
  #answerWhenDue(token: Token, acks: -1 | 0 | 1, first: Offset, end: Offset): readonly LeaderEffect<Token>[] {
    const all = acks === -1
    if (acks !== 0 && end > (all ? this.#highWatermark : this.#storedEnd)) {
      const waiting = { token, baseOffset: first, endOffset: end, all }
      // Only a repeat can belong before the last one that waits.
      let index = this.#waiting.length
      while (index > 0 && (this.#waiting[index - 1] as Waiting<Token>).endOffset > end) index--
      this.#waiting.splice(index, 0, waiting)
      return NONE
    }
    return [{ kind: 'answer', answer: { token, error: undefined, message: undefined, baseOffset: first } }]
  }

  #stored(endOffset: Offset): readonly LeaderEffect<Token>[] {
    assert(endOffset >= this.#storedEnd && endOffset <= this.#nextOffset, 'the log holds what it was given, in order')
    this.#storedEnd = endOffset
    this.producers.stored(endOffset)
    const effects: LeaderEffect<Token>[] = []
    if (endOffset > this.#highWatermark) {
      this.#highWatermark = endOffset
      effects.push({ kind: 'highWatermark', offset: endOffset })
    }
    let answered = 0
    for (const waiting of this.#waiting) {
      if (waiting.endOffset > (waiting.all ? this.#highWatermark : this.#storedEnd)) break
      answered++
      const { token, baseOffset } = waiting
      effects.push({ kind: 'answer', answer: { token, error: undefined, message: undefined, baseOffset } })
    }
    if (answered > 0) this.#waiting.splice(0, answered)
    return effects
  }

  #storeFailed(endOffset: Offset, message: string): readonly LeaderEffect<Token>[] {
    assert(endOffset === this.#storedEnd, 'a failed write moves nothing')
    this.#nextOffset = endOffset
    this.producers.forgetPending()
    return this.#failAll('KAFKA_STORAGE_ERROR', message)
  }

  #failAll(error: ProduceError, message: string): readonly LeaderEffect<Token>[] {
    return this.#waiting.splice(0).map(waiting => refuse(waiting.token, error, message))
  }
}

function refuse<Token>(token: Token, error: ProduceError, message: string): LeaderEffect<Token> {
  return { kind: 'answer', answer: { token, error, message, baseOffset: -1 } }
}
