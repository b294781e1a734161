import { assert } from '#base/assert.ts'
import type { Epoch, Millis, NodeId, Offset } from '#base/units.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { Membership } from './membership.ts'
import type { FetchAnswer, RaftResponse } from './messages.ts'
import type { Replica, Sent } from './replica.ts'
import { NEVER, Role, STAND_SPREAD_MS, type Turns } from './role.ts'

/** The longest pause between two tries to reach the leader. */
const PAUSE_MS_MAX: Millis = 200
const HAND_OVER_MS: Millis = 50
/** The longest pause between two tries to have the leader's snapshot, which may be large: so many pauses of a failed disk. */
const SNAPSHOT_PAUSES_MAX = 10

/**
 * Fetches from the leader of its epoch, one request at a time, each of which says that everything before is durable here.
 * A voter that doubts the leader stands: at once where the leader surely is gone, else after the fetch timeout.
 */
export class Follower extends Role {
  readonly name = 'follower'
  override readonly leaderId: NodeId
  readonly epoch: Epoch
  readonly #membership: Membership
  #request: { readonly id: number; readonly sentAt: Millis } | undefined
  #retryAt: Millis
  #standAt: Millis = NEVER
  #fetchTimeoutAt: Millis
  #lastFetchAt: Millis | undefined
  #failures = 0
  #snapshotFailures = 0
  #isHandedOver = false
  #leaderHighWatermark: Offset = -1

  constructor(replica: Replica, turns: Turns, leaderId: NodeId, now: Millis) {
    super(replica, turns)
    this.leaderId = leaderId
    this.epoch = replica.epoch
    this.#retryAt = now
    this.#fetchTimeoutAt = now + replica.timing.fetchTimeoutMs
    this.#membership = new Membership(replica, this, now)
  }

  begin(now: Millis): void {
    this.tick(now)
  }

  wakeAt(): Millis {
    const { logWork, isLogSettled } = this.replica
    if (logWork !== undefined) return NEVER
    const fetchAt = this.#request === undefined && isLogSettled ? this.#retryAt : NEVER
    return Math.min(this.#fetchTimeoutAt, this.#standAt, fetchAt, this.#membership.wakeAt())
  }

  tick(now: Millis): void {
    // Whoever stands has a log that stands still; work on it is the driver's to end.
    if (this.replica.logWork !== undefined) return
    if (now >= this.#fetchTimeoutAt || now >= this.#standAt) {
      if (now >= this.#fetchTimeoutAt) this.replica.doubts++
      this.#leaderLost(now)
      return
    }
    if (this.#request === undefined && now >= this.#retryAt && this.replica.isLogSettled) {
      const id = this.replica.send(this, this.leaderId, this.replica.fetchFrom(this.replica.timing.fetchMaxWaitMs))
      this.#request = { id, sentAt: now }
    }
    this.#membership.tick(now)
  }

  #leaderLost(now: Millis): void {
    if (this.replica.mayStand) this.turns.stand(0, now)
    else this.turns.unattached(this.epoch, now, now)
  }

  override grantsPreVote(now: Millis): boolean {
    const { doubts, timing } = this.replica
    return doubts > 0 || this.#lastFetchAt === undefined || now - this.#lastFetchAt >= timing.fetchTimeoutMs
  }

  override postpone(ms: Millis, now: Millis): void {
    if (this.#standAt !== NEVER) this.#standAt = Math.max(this.#standAt, now + ms + this.replica.draw(ms))
  }

  /** There is a sign that the leader is gone: the others who see it agree, those who still fetch do not. */
  doubt(now: Millis, afterMs: Millis = 0): void {
    const { replica } = this
    const spread = Math.min(STAND_SPREAD_MS * 2 ** Math.min(replica.doubts, 16), replica.timing.fetchTimeoutMs)
    replica.doubts++
    this.#standAt = Math.min(this.#standAt, now + afterMs + replica.draw(spread))
  }

  /** The leader goes, and named who stands when: for this node it is after so long. */
  handedOver(afterMs: Millis, now: Millis): void {
    this.replica.doubts++
    this.#isHandedOver = true
    this.#standAt = now + afterMs
  }

  /** The leader says that it is there. */
  called(now: Millis): void {
    this.#retryAt = Math.min(this.#retryAt, now)
    this.tick(now)
  }

  override peerGone(id: NodeId, now: Millis): void {
    if (id === this.leaderId) this.doubt(now)
  }

  override logChanged(now: Millis): void {
    this.#commit()
    this.tick(now)
  }

  /** Its own disk fails, which is no sign against the leader. */
  override logFailed(now: Millis): void {
    const { retryMs } = this.replica.options
    this.#retryAt = now + retryMs
    this.#standAt = NEVER
    this.#fetchTimeoutAt = Math.max(this.#fetchTimeoutAt, now + retryMs + this.replica.timing.fetchTimeoutMs)
  }

  /** Who reads a large snapshot over a slow link does not fetch meanwhile, and yet knows that the leader is there. */
  override snapshotProgressed(now: Millis): void {
    this.#lastFetchAt = now
    this.#fetchTimeoutAt = now + this.replica.timing.fetchTimeoutMs
  }

  /** It took its time, which is no sign against the leader. One that is damaged there is not asked for without pause. */
  override snapshotEnded(isLoaded: boolean, now: Millis): void {
    const { retryMs } = this.replica.options
    this.#fetchTimeoutAt = Math.max(this.#fetchTimeoutAt, now + this.replica.timing.fetchTimeoutMs)
    if (isLoaded) this.#snapshotFailures = 0
    else {
      const pauseMs = this.replica.backoff(this.#snapshotFailures++, retryMs * SNAPSHOT_PAUSES_MAX)
      this.#retryAt = Math.max(this.#retryAt, now + pauseMs)
      this.#fetchTimeoutAt += pauseMs
    }
  }

  override votersChanged(now: Millis): void {
    if (!this.replica.mayStand) this.#standAt = NEVER
    this.tick(now)
  }

  override unanswered(sent: Sent, refused: boolean, now: Millis): void {
    if (sent.request !== this.#request?.id) {
      this.#membership.over(sent, undefined, now)
      return
    }
    this.#request = undefined
    this.#pause(now)
    if (refused) this.doubt(now)
  }

  override answered(sent: Sent, response: RaftResponse, now: Millis): void {
    if (sent.request !== this.#request?.id || sent.message.kind !== 'fetch' || response.kind !== 'fetch') {
      this.#membership.over(sent, response, now)
      return
    }
    const { sentAt } = this.#request
    this.#request = undefined
    const { offset } = sent.message.fetch
    const { answer, endOffset } = response
    if (answer.errorCode !== ErrorCode.NONE || answer.leaderEpoch !== this.epoch) {
      this.#pause(now)
      // It says itself that it does not lead any more, and perhaps is about to say who shall.
      const resigned = answer.errorCode === ErrorCode.NOT_LEADER_OR_FOLLOWER && answer.leaderEpoch === this.epoch
      if (resigned && answer.leaderId !== this.leaderId && !this.#isHandedOver) this.doubt(now, HAND_OVER_MS)
      return
    }
    this.#fetched(now)
    // The disk failed meanwhile, and the log is not what it was.
    if (offset !== this.replica.log.nextOffset) {
      this.tick(now)
      return
    }
    const hadNews = this.#take(sent.request, answer, offset, endOffset, now)
    // A leader that lets nothing wait is not asked without pause.
    if (!hadNews && now - sentAt < this.replica.timing.retryBackoffMs) {
      this.#retryAt = now + this.replica.timing.retryBackoffMs
    }
    this.tick(now)
  }

  #fetched(now: Millis): void {
    this.#lastFetchAt = now
    this.#fetchTimeoutAt = now + this.replica.timing.fetchTimeoutMs
    this.#retryAt = now
    this.#failures = 0
    this.replica.followedEpoch = this.epoch
    // It answered before it said that it goes, on another connection: it leads this epoch no more.
    if (this.#isHandedOver) return
    this.#standAt = NEVER
    this.replica.doubts = 0
  }

  /** Whether the answer brought anything. */
  #take(request: number, answer: FetchAnswer, offset: Offset, endOffset: Offset, now: Millis): boolean {
    const { position } = answer
    const { replica } = this
    switch (position.kind) {
      case 'diverging':
        return this.#truncate(position.epoch, position.endOffset, now)
      case 'snapshot': {
        const { id } = position
        if (id.endOffset <= replica.committedEnd || id.epoch < 0) return this.#pause(now)
        replica.logWork = { kind: 'snapshot' }
        replica.outbox.push({ kind: 'load-snapshot', id, leaderId: this.leaderId, epoch: this.epoch })
        return true
      }
      case 'valid': {
        const knew = this.#leaderHighWatermark
        this.#leaderHighWatermark = Math.max(knew, answer.highWatermark)
        if (endOffset > offset) {
          replica.logWork = { kind: 'append', endOffset }
          replica.outbox.push({ kind: 'append', request })
        }
        this.#commit()
        this.#membership.fetched(answer.highWatermark >= 0 && endOffset >= answer.highWatermark, now)
        return endOffset > offset || this.#leaderHighWatermark > knew
      }
    }
  }

  /** Where both logs agree at the latest: the leader asks again from there (KIP-595). */
  #truncate(epoch: Epoch, endOffset: Offset, now: Millis): boolean {
    const { replica } = this
    const own = replica.log.endOffsetForEpoch(epoch)
    if (own === undefined || epoch < 0 || endOffset < 0) return this.#pause(now)
    const end = own.epoch === epoch ? Math.min(own.endOffset, endOffset) : own.endOffset
    const { nextOffset, lastEpoch } = replica.log
    // Nobody is elected who lacks what is committed: it is no leader, or has lost what it had since, and another should lead.
    if (end < replica.committedEnd) {
      this.doubt(now)
      return this.#pause(now)
    }
    // A term of this node that could append nothing: its epoch goes, and no record.
    const isEmptyTerm = end === nextOffset && own.epoch < lastEpoch
    if (end >= nextOffset && !isEmptyTerm) return this.#pause(now)
    if (isEmptyTerm) this.#pause(now)
    this.truncateTo(end)
    return true
  }

  truncateTo(endOffset: Offset): void {
    const { replica } = this
    assert(endOffset >= replica.committedEnd, 'what is committed is never cut off')
    replica.logWork = { kind: 'truncate' }
    replica.outbox.push({ kind: 'truncate', endOffset })
  }

  #pause(now: Millis): false {
    this.#retryAt = now + this.replica.backoff(this.#failures++, PAUSE_MS_MAX)
    return false
  }

  /** What the leader knows to be committed, as far as it is durable here. */
  #commit(): void {
    const { replica } = this
    if (replica.logWork?.kind === 'truncate') return
    replica.commit(Math.min(this.#leaderHighWatermark, replica.durableEnd))
  }
}
