import { assert } from '#base/assert.ts'
import type { Epoch, Millis, NodeId, Offset } from '#base/units.ts'
import { baseOffset, lastOffsetDelta, NO_PRODUCER_ID, producerId, stamp } from '#records/batch.ts'
import { type FetchContact, InSyncReplicas, type IsrAnswer, type IsrProposal } from './in-sync-replicas.ts'
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
  /** A follower fetches from `offset`: it holds everything below, from `startOffset` on. */
  | {
      readonly kind: 'followerFetched'
      readonly replica: NodeId
      readonly offset: Offset
      readonly startOffset: Offset
      /** Where this leader's own log starts. */
      readonly leaderStart: Offset
      /** As the follower said it; -1 where it did not. */
      readonly brokerEpoch: number
      /** Of the session that fetches on behalf of it without naming it again. */
      readonly contact?: FetchContact | undefined
    }
  /** What the metadata says of this epoch's partition. May be older or newer than the answer to a proposal. */
  | {
      readonly kind: 'assigned'
      readonly replicas: readonly NodeId[]
      readonly isr: readonly NodeId[]
      readonly partitionEpoch: Epoch
    }
  /** What became of a proposal. */
  | { readonly kind: 'isrAnswered'; readonly proposal: IsrProposal; readonly answer: IsrAnswer }
  /** Brokers came, went, or were fenced. */
  | { readonly kind: 'brokersChanged' }
  | { readonly kind: 'minInSync'; readonly minInSync: number }
  /** The time of `wakeAt` has come. */
  | { readonly kind: 'tick' }
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
  /** To the controller; its answer comes back as `isrAnswered`. At most one is under way. */
  | { readonly kind: 'alterIsr'; readonly proposal: IsrProposal }

interface Waiting<Token> {
  readonly token: Token
  readonly baseOffset: Offset
  /** The answer leaves when the log (acks=1) or the high watermark (acks=all) has come here. */
  readonly endOffset: Offset
}

export interface LeaderOptions {
  readonly nodeId: NodeId
  readonly epoch: Epoch
  readonly endOffset: Offset
  /** Behind what was appended before this epoch and is not stored yet; the end where nothing is. */
  readonly nextOffset?: Offset
  /** As this replica knew it before it led. */
  readonly highWatermark: Offset
  readonly replicas: readonly NodeId[]
  readonly isr: readonly NodeId[]
  readonly partitionEpoch: Epoch
  /** Asked of the controller when this replica led in this epoch before. */
  readonly pending?: IsrProposal | undefined
  /** `min.insync.replicas`. */
  readonly minInSync: number
  readonly producers: ProducerStates
  /** `replica.lag.time.max.ms`. */
  readonly lagTimeMaxMs: Millis
  /** The epoch of a broker that may be in sync: registered, not fenced, not about to leave. Of others undefined. */
  readonly eligibleEpoch: (id: NodeId) => number | undefined
  readonly now: Millis
}

const NONE: readonly never[] = []

/**
 * The leader of one partition in one epoch: gives offsets, knows repeats, knows how far its followers are, moves the
 * high watermark, says who is in sync, and when an answer may leave.
 */
export class PartitionLeader<Token> {
  readonly epoch: Epoch
  readonly producers: ProducerStates
  readonly replicas: InSyncReplicas
  /** The next offset to give. */
  #nextOffset: Offset
  #storedEnd: Offset
  #highWatermark: Offset
  /** Both in the order of their offsets. */
  readonly #waitingForLog: Waiting<Token>[] = []
  readonly #waitingForAll: Waiting<Token>[] = []

  constructor(options: LeaderOptions) {
    assert(options.highWatermark <= options.endOffset, 'the high watermark is never beyond the log')
    this.epoch = options.epoch
    this.producers = options.producers
    this.#nextOffset = options.nextOffset ?? options.endOffset
    this.#storedEnd = options.endOffset
    this.#highWatermark = options.highWatermark
    this.replicas = new InSyncReplicas(options, this.#nextOffset)
    this.#highWatermark = this.#nextHighWatermark(options.now)
  }

  get highWatermark(): Offset {
    return this.#highWatermark
  }

  get nextOffset(): Offset {
    return this.#nextOffset
  }

  /** `now` is only read where there are followers. */
  step(event: LeaderEvent<Token>, now: Millis): readonly LeaderEffect<Token>[] {
    switch (event.kind) {
      case 'produce':
        return this.#produce(event)
      case 'stored':
        return this.#stored(event.endOffset, now)
      case 'storeFailed':
        return this.#storeFailed(event.endOffset, event.message)
      case 'followerFetched':
        if (!this.replicas.fetched(event.replica, event, this.#storedEnd, now, event.contact))
          return this.#proposed(now)
        return this.#moved(now)
      case 'assigned':
        this.replicas.assigned(event.replicas, event.isr, event.partitionEpoch, now)
        return this.#moved(now)
      case 'isrAnswered':
        this.replicas.answered(event.proposal, event.answer, now)
        return this.#moved(now)
      case 'minInSync':
        this.replicas.minInSync = event.minInSync
        return this.#moved(now)
      case 'brokersChanged':
      case 'tick':
        return this.#moved(now)
      case 'resigned':
        return this.#failAll('NOT_LEADER_OR_FOLLOWER', 'the leadership of this partition has ended')
    }
  }

  /** When a follower that stays behind must be looked at again. */
  wakeAt(now: Millis): Millis | undefined {
    return this.replicas.wakeAt(this.#storedEnd, now)
  }

  #produce(event: LeaderEvent<Token> & { kind: 'produce' }): readonly LeaderEffect<Token>[] {
    const { buffer, at, size, acks, token } = event
    if (acks === -1 && this.replicas.tooFew) {
      const { isr, minInSyncHere } = this.replicas
      const message = `${isr.length} replicas are in sync, min.insync.replicas is ${minInSyncHere}`
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
      const queue = all ? this.#waitingForAll : this.#waitingForLog
      const waiting = { token, baseOffset: first, endOffset: end }
      // Only a repeat can belong before the last one that waits.
      let index = queue.length
      while (index > 0 && (queue[index - 1] as Waiting<Token>).endOffset > end) index--
      if (index === queue.length) queue.push(waiting)
      else queue.splice(index, 0, waiting)
      return NONE
    }
    return [all ? this.#replicated(token, first) : accepted(token, first)]
  }

  #stored(endOffset: Offset, now: Millis): readonly LeaderEffect<Token>[] {
    assert(endOffset >= this.#storedEnd && endOffset <= this.#nextOffset, 'the log holds what it was given, in order')
    if (endOffset > this.#storedEnd) this.replicas.endMoves()
    this.#storedEnd = endOffset
    this.producers.stored(endOffset)
    return this.#moved(now)
  }

  /** Something of which watermark and answers depend has changed. */
  #moved(now: Millis): readonly LeaderEffect<Token>[] {
    const effects: LeaderEffect<Token>[] = []
    const highWatermark = this.#nextHighWatermark(now)
    if (highWatermark > this.#highWatermark) {
      this.#highWatermark = highWatermark
      effects.push({ kind: 'highWatermark', offset: highWatermark })
    }
    for (const { token, baseOffset } of take(this.#waitingForLog, this.#storedEnd)) {
      effects.push(accepted(token, baseOffset))
    }
    for (const { token, baseOffset } of take(this.#waitingForAll, this.#highWatermark)) {
      effects.push(this.#replicated(token, baseOffset))
    }
    const proposal = this.replicas.propose(this.#storedEnd, this.#highWatermark, now)
    if (proposal !== undefined) effects.push({ kind: 'alterIsr', proposal })
    return effects
  }

  /** A follower is where it was; it may have become fit to join meanwhile. */
  #proposed(now: Millis): readonly LeaderEffect<Token>[] {
    const proposal = this.replicas.propose(this.#storedEnd, this.#highWatermark, now)
    return proposal === undefined ? NONE : [{ kind: 'alterIsr', proposal }]
  }

  /** Never back. It stands still while too few are in sync: what they have is not safe (KIP-966). */
  #nextHighWatermark(now: Millis): Offset {
    if (this.replicas.tooFew) return this.#highWatermark
    return Math.max(this.#highWatermark, this.replicas.heldByAll(this.#storedEnd, now))
  }

  #storeFailed(endOffset: Offset, message: string): readonly LeaderEffect<Token>[] {
    assert(endOffset === this.#storedEnd, 'a failed write moves nothing')
    this.#nextOffset = endOffset
    this.producers.forgetPending()
    this.replicas.logEnds(endOffset)
    // What is stored and waits for followers only is not lost.
    return this.#failAll('KAFKA_STORAGE_ERROR', message, endOffset)
  }

  #failAll(error: ProduceError, message: string, above = -1): readonly LeaderEffect<Token>[] {
    const effects: LeaderEffect<Token>[] = []
    for (const queue of [this.#waitingForLog, this.#waitingForAll]) {
      const stays = queue.findIndex(waiting => waiting.endOffset > above)
      if (stays < 0) continue
      for (const { token } of queue.splice(stays)) effects.push(refuse(token, error, message))
    }
    return effects
  }

  #replicated(token: Token, baseOffset: Offset): LeaderEffect<Token> {
    if (!this.replicas.tooFewEvenWithPending) return accepted(token, baseOffset)
    return refuse(token, 'NOT_ENOUGH_REPLICAS_AFTER_APPEND', 'written, and fewer replicas hold it than must')
  }
}

/** Takes those from the queue whose end is reached. */
function take<Token>(queue: Waiting<Token>[], reached: Offset): readonly Waiting<Token>[] {
  let count = 0
  while (count < queue.length && (queue[count] as Waiting<Token>).endOffset <= reached) count++
  return count === 0 ? NONE : queue.splice(0, count)
}

function accepted<Token>(token: Token, baseOffset: Offset): LeaderEffect<Token> {
  return { kind: 'answer', answer: { token, error: undefined, message: undefined, baseOffset } }
}

function refuse<Token>(token: Token, error: ProduceError, message: string): LeaderEffect<Token> {
  return { kind: 'answer', answer: { token, error, message, baseOffset: -1 } }
}
