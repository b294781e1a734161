import type { Epoch, Millis, Offset } from '#base/units.ts'
import type { ErrorName } from '#protocol/errors.ts'
import { baseOffset, checkBatch, checkCrc, lastOffset, leaderEpoch, magic, wholeBatchSize } from '#records/batch.ts'

/** The log of the replica, as the follower reads it. What is done to it comes out as effects. */
export interface FollowedLog {
  readonly startOffset: Offset
  /** Of what is stored. */
  readonly endOffset: Offset
  /** Of the last batch, or of the last leadership of this replica; undefined where neither is known. */
  readonly latestEpoch: Epoch | undefined
  endOffsetForEpoch(epoch: Epoch): { readonly leaderEpoch: Epoch; readonly endOffset: Offset } | undefined
}

/** What the next fetch asks for. The same object as long as nothing of it changes. */
export interface FetchPosition {
  readonly leaderEpoch: Epoch
  readonly offset: Offset
  /** -1 where the log is empty. */
  readonly lastFetchedEpoch: Epoch
  readonly startOffset: Offset
}

export type FollowerEvent =
  /** The leader's answer to the fetch of a position. */
  | {
      readonly kind: 'fetched'
      readonly position: FetchPosition
      readonly highWatermark: Offset
      readonly startOffset: Offset
      readonly records: Buffer | null
    }
  /** The leader's log has another history: its `epoch` ended at `endOffset`. */
  | {
      readonly kind: 'diverged'
      readonly position: FetchPosition
      readonly epoch: Epoch
      readonly endOffset: Offset
    }
  | { readonly kind: 'refused'; readonly position: FetchPosition; readonly error: ErrorName }
  /** What `askOffsets` wanted to know; undefined when it could not be had. */
  | {
      readonly kind: 'offsets'
      readonly range: { readonly startOffset: Offset; readonly endOffset: Offset } | undefined
    }
  /** What was under way in the log is done, one way or the other; the log says where it ends. */
  | { readonly kind: 'settled'; readonly failed: boolean }
  /** The time of `wakeAt` has come. */
  | { readonly kind: 'tick' }

export type FollowerEffect =
  /** Whole batches, checked, unchanged. The result comes back as `settled`, as do those of the next two. */
  | { readonly kind: 'append'; readonly records: Buffer; readonly size: number; readonly endOffset: Offset }
  | { readonly kind: 'truncate'; readonly offset: Offset }
  | { readonly kind: 'startAnew'; readonly offset: Offset }
  | { readonly kind: 'highWatermark'; readonly offset: Offset }
  /** Records below are gone at the leader. */
  | { readonly kind: 'logStart'; readonly offset: Offset }
  /** Where the leader's log starts and ends. */
  | { readonly kind: 'askOffsets' }
  | { readonly kind: 'complain'; readonly message: string }

export interface FollowerOptions {
  readonly epoch: Epoch
  readonly log: FollowedLog
  readonly highWatermark: Offset
  /** Something is under way in the log already, and will be said to be settled. */
  readonly isBusy: boolean
  /** `replica.fetch.backoff.ms`. */
  readonly backoffMs: Millis
}

const NONE: readonly never[] = []
const RETRY_MS: Millis = 10

/**
 * A follower of one partition in one leader epoch: where it fetches from, what it appends, where its log has to be cut so
 * that it becomes the leader's (KIP-101, KIP-279, KIP-595's divergence in Fetch), and what it knows of the high watermark.
 */
export class PartitionFollower {
  readonly epoch: Epoch
  readonly #log: FollowedLog
  readonly #backoffMs: Millis
  #state: 'ready' | 'busy' | 'asking' | 'paused'
  #pausedUntil: Millis = 0
  /** Doubles with every refusal that time alone may cure. */
  #pauseMs = RETRY_MS
  #position: FetchPosition | undefined
  #highWatermark: Offset
  /** The leader's, which may lie beyond what this log holds. */
  #leaderHighWatermark: Offset = -1
  #leaderStart: Offset = -1
  /** What is appended as soon as the log begins where it does. */
  #held: { readonly records: Buffer; readonly base: Offset } | undefined

  constructor({ epoch, log, highWatermark, isBusy, backoffMs }: FollowerOptions) {
    this.epoch = epoch
    this.#log = log
    this.#highWatermark = highWatermark
    this.#backoffMs = backoffMs
    this.#state = isBusy ? 'busy' : 'ready'
  }

  /** What to fetch now; undefined while there is nothing to be fetched. */
  get position(): FetchPosition | undefined {
    if (this.#state !== 'ready') return undefined
    const { endOffset, startOffset, latestEpoch } = this.#log
    const known = this.#position
    const lastFetchedEpoch = latestEpoch ?? -1
    if (
      known !== undefined &&
      known.offset === endOffset &&
      known.startOffset === startOffset &&
      known.lastFetchedEpoch === lastFetchedEpoch
    ) {
      return known
    }
    this.#position = { leaderEpoch: this.epoch, offset: endOffset, lastFetchedEpoch, startOffset }
    return this.#position
  }

  /** What was fetched, or a cut, is under way in the log. */
  get isBusy(): boolean {
    return this.#state === 'busy'
  }

  /** It holds all that the leader had committed when it last answered. */
  get isCaughtUp(): boolean {
    return this.#leaderHighWatermark >= 0 && this.#log.endOffset >= this.#leaderHighWatermark
  }

  /** To be called once, before the first fetch. */
  begin(): readonly FollowerEffect[] {
    return this.#state === 'ready' ? this.#withoutHistory() : NONE
  }

  step(event: FollowerEvent, now: Millis): readonly FollowerEffect[] {
    switch (event.kind) {
      case 'fetched':
        return this.#isAwaited(event.position) ? this.#fetched(event, now) : NONE
      case 'diverged':
        return this.#isAwaited(event.position) ? this.#diverged(event.epoch, event.endOffset) : NONE
      case 'refused':
        return this.#isAwaited(event.position) ? this.#refused(event.error, now) : NONE
      case 'offsets':
        return this.#state === 'asking' ? this.#offsets(event.range, now) : NONE
      case 'settled':
        return this.#settled(event.failed, now)
      case 'tick':
        if (this.#state === 'paused' && now >= this.#pausedUntil) this.#state = 'ready'
        return NONE
    }
  }

  wakeAt(): Millis | undefined {
    return this.#state === 'paused' ? this.#pausedUntil : undefined
  }

  /** An answer to what was asked before something else happened to the log does not count. */
  #isAwaited(position: FetchPosition): boolean {
    return this.#state === 'ready' && position === this.#position && position.offset === this.#log.endOffset
  }

  #fetched(event: FollowerEvent & { kind: 'fetched' }, now: Millis): readonly FollowerEffect[] {
    this.#pauseMs = RETRY_MS
    this.#leaderHighWatermark = event.highWatermark
    this.#leaderStart = event.startOffset
    const { records } = event
    if (records === null || records.length === 0) return this.#follow()
    const straddled = this.#straddled(records)
    if (straddled !== undefined) {
      // Longer than the bytes that came are anybody's.
      this.#held = { records: Buffer.from(records), base: straddled }
      this.#state = 'busy'
      return [{ kind: 'startAnew', offset: straddled }]
    }
    return this.#append(records, now)
  }

  /**
   * Where the first batch begins, if the log is empty and begins within it: records were deleted up to the middle of a
   * batch, and batches come whole. From its own begin it cannot be fetched, as that is below the leader's start.
   */
  #straddled(records: Buffer): Offset | undefined {
    const { startOffset, endOffset } = this.#log
    if (startOffset !== endOffset || wholeBatchSize(records, 0, records.length) === 0) return undefined
    const base = baseOffset(records, 0)
    return base < endOffset && lastOffset(records, 0) >= endOffset ? base : undefined
  }

  #append(records: Buffer, now: Millis): readonly FollowerEffect[] {
    const { size, endOffset, problem } = checkFetched(records, this.#log.endOffset, this.epoch)
    if (size === 0) {
      this.#pause(this.#backoffMs, now)
      return [{ kind: 'complain', message: problem ?? 'the leader sent no whole batch' }]
    }
    this.#state = 'busy'
    return [{ kind: 'append', records, size, endOffset }]
  }

  /** Takes up what the leader said of its watermark and its start, as far as this log goes. */
  #follow(): readonly FollowerEffect[] {
    const { endOffset, startOffset } = this.#log
    const effects: FollowerEffect[] = []
    const highWatermark = Math.min(this.#leaderHighWatermark, endOffset)
    if (highWatermark > this.#highWatermark) {
      this.#highWatermark = highWatermark
      effects.push({ kind: 'highWatermark', offset: highWatermark })
    }
    const start = Math.min(this.#leaderStart, endOffset)
    if (start > startOffset) effects.push({ kind: 'logStart', offset: start })
    return effects
  }

  /**
   * Cuts off what the leader does not have: back to the end that both know of the largest epoch that is not above the
   * leader's. Where the epoch is not known here, the next fetch tells more.
   */
  #diverged(epoch: Epoch, leaderEnd: Offset): readonly FollowerEffect[] {
    const { endOffset } = this.#log
    if (leaderEnd < 0) return this.#truncate(Math.min(this.#highWatermark, endOffset))
    const known = epoch < 0 ? undefined : this.#log.endOffsetForEpoch(epoch)
    if (known === undefined) return this.#truncate(Math.min(leaderEnd, endOffset))
    if (known.leaderEpoch !== epoch) return this.#truncate(Math.min(known.endOffset, endOffset))
    return this.#truncate(Math.min(known.endOffset, leaderEnd, endOffset))
  }

  #truncate(offset: Offset): readonly FollowerEffect[] {
    this.#state = 'busy'
    return [{ kind: 'truncate', offset }]
  }

  #refused(error: ErrorName, now: Millis): readonly FollowerEffect[] {
    switch (error) {
      case 'OFFSET_OUT_OF_RANGE':
        this.#state = 'asking'
        return [{ kind: 'askOffsets' }]
      // One of the two has not heard of this epoch yet. When it is this one, another follower comes in our place.
      case 'UNKNOWN_LEADER_EPOCH':
      case 'NOT_LEADER_OR_FOLLOWER':
      case 'FENCED_LEADER_EPOCH':
      case 'UNKNOWN_TOPIC_ID':
      case 'UNKNOWN_TOPIC_OR_PARTITION':
      case 'INCONSISTENT_TOPIC_ID':
        this.#pause(Math.min(this.#pauseMs, this.#backoffMs), now)
        this.#pauseMs *= 2
        return NONE
      default:
        this.#pause(this.#backoffMs, now)
        return [{ kind: 'complain', message: `the leader answers ${error}` }]
    }
  }

  #offsets(
    range: { readonly startOffset: Offset; readonly endOffset: Offset } | undefined,
    now: Millis,
  ): readonly FollowerEffect[] {
    const { endOffset } = this.#log
    if (range !== undefined) {
      // Only after an election that let records go.
      if (range.endOffset < endOffset) return this.#truncate(range.endOffset)
      if (range.startOffset > endOffset) {
        this.#state = 'busy'
        return [{ kind: 'startAnew', offset: range.startOffset }]
      }
    }
    this.#pause(Math.min(this.#pauseMs, this.#backoffMs), now)
    this.#pauseMs *= 2
    return NONE
  }

  #settled(failed: boolean, now: Millis): readonly FollowerEffect[] {
    if (this.#state !== 'busy') return NONE
    const { startOffset, endOffset } = this.#log
    const held = this.#held
    this.#held = undefined
    // A cut may take what was believed to be committed: where the cluster chose a leader that lacked it.
    if (this.#highWatermark > endOffset) this.#highWatermark = endOffset
    // Only what is committed is ever gone: where the log begins anew, all below is.
    if (this.#highWatermark < startOffset) this.#highWatermark = startOffset
    if (failed) {
      this.#pause(this.#backoffMs, now)
      return NONE
    }
    if (held !== undefined && held.base === endOffset) return this.#append(held.records, now)
    this.#state = 'ready'
    const first = this.#withoutHistory()
    return first.length > 0 ? first : this.#follow()
  }

  /** A log without epochs can only be compared up to what is known to be committed. */
  #withoutHistory(): readonly FollowerEffect[] {
    const { latestEpoch, endOffset } = this.#log
    if (latestEpoch !== undefined || endOffset <= this.#highWatermark) return NONE
    return this.#truncate(this.#highWatermark)
  }

  #pause(ms: Millis, now: Millis): void {
    this.#state = 'paused'
    this.#pausedUntil = now + ms
  }
}

/**
 * The whole, sound batches at the beginning of what a leader sent: how many bytes, and where they end. What is behind
 * the first that is not sound is left; it is fetched again.
 */
function checkFetched(
  records: Buffer,
  from: Offset,
  epoch: Epoch,
): { readonly size: number; readonly endOffset: Offset; readonly problem: string | undefined } {
  let at = 0
  let endOffset = from
  while (at < records.length) {
    const size = wholeBatchSize(records, at, records.length)
    if (size === 0) break
    const problem = problemOf(records, at, size, endOffset, epoch)
    if (problem !== undefined) return { size: at, endOffset, problem: `at offset ${endOffset}: ${problem}` }
    endOffset = lastOffset(records, at) + 1
    at += size
  }
  return { size: at, endOffset, problem: undefined }
}

function problemOf(records: Buffer, at: number, size: number, from: Offset, epoch: Epoch): string | undefined {
  const error = checkBatch(records, at, records.length)
  if (error !== undefined) return error.message
  if (size > 0 && magic(records, at) < 2) return 'a message of an old format'
  if (baseOffset(records, at) < from) return `a batch begins at ${baseOffset(records, at)} already`
  if (leaderEpoch(records, at) > epoch) return `a batch of epoch ${leaderEpoch(records, at)}, and ${epoch} leads`
  return checkCrc(records, at)?.message
}
