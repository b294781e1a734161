import { assert } from '#base/assert.ts'
import type { Epoch, Millis, NodeId, Offset } from '#base/units.ts'
import type { ErrorName } from '#protocol/errors.ts'

export interface IsrMember {
  readonly brokerId: NodeId
  /** Of the broker's registration under which it is in sync; -1 of the leader itself, and of one that does not say. */
  readonly brokerEpoch: number
}

/** A change of who is in sync, as the leader asks the controller for it (AlterPartition). */
export interface IsrProposal {
  readonly leaderEpoch: Epoch
  /** The change is one of the partition as it was in this epoch, and of no other. */
  readonly partitionEpoch: Epoch
  readonly isr: readonly IsrMember[]
}

export type IsrAnswer =
  | {
      readonly kind: 'accepted'
      readonly isr: readonly NodeId[]
      readonly leaderEpoch: Epoch
      readonly partitionEpoch: Epoch
    }
  | { readonly kind: 'refused'; readonly error: ErrorName }

/** How far a follower is, as its fetches tell. */
export interface FollowerState {
  readonly id: NodeId
  /** -1 before its first fetch of this epoch, or since it was taken out of those in sync. */
  readonly endOffset: Offset
  readonly startOffset: Offset
  /** When it last had all that the leader had. */
  readonly caughtUpAt: Millis
}

/**
 * When a follower's session with this broker last fetched. What the session has at rest, no fetch names, and nobody goes
 * over: this one time stands for a fetch of each such partition from where it was.
 */
export interface FetchContact {
  readonly at: Millis
}

interface Follower {
  readonly id: NodeId
  /** Since it had all that the leader has; undefined when it has not, or nobody speaks for it. */
  contact: FetchContact | undefined
  endOffset: Offset
  startOffset: Offset
  /** Its log begins where the leader's did at that fetch, or above. Of one that does not tell it is believed. */
  hasDeleted: boolean
  brokerEpoch: number
  fetchedAt: Millis
  /** The leader's end when it fetched last. */
  leaderEndThen: Offset
  caughtUpAt: Millis
  /** When it was last in sync by the controller's word, and had to catch up yet. */
  letInAt: Millis
}

/** What the controller has committed, as far as it is known, and what it was asked for since. */
export interface IsrKnown {
  readonly isr: readonly NodeId[]
  readonly partitionEpoch: Epoch
  readonly pending?: IsrProposal | undefined
}

export interface InSyncOptions extends IsrKnown {
  readonly nodeId: NodeId
  readonly epoch: Epoch
  readonly replicas: readonly NodeId[]
  readonly minInSync: number
  readonly lagTimeMaxMs: Millis
  readonly eligibleEpoch: (id: NodeId) => number | undefined
  readonly now: Millis
}

const NEVER: Millis = Number.NEGATIVE_INFINITY
/** After the controller found that somebody may not join, before the same is asked again. */
const REFUSED_PAUSE_MS: Millis = 100
/** What a refusal leaves open the metadata tell within a moment; if not, the same is asked once more. */
const OPEN_PAUSE_MS: Millis = 5_000

/**
 * Who of a partition's replicas is in sync, in the eyes of its leader: what the controller has committed, what is proposed,
 * and how far every follower is.
 *
 * A proposal to let somebody in may be committed before the leader hears of it, and a new leader may be chosen from it: so
 * the high watermark waits for the committed members and the proposed ones alike, and who is to leave counts until the
 * controller has said so (KIP-497).
 */
export class InSyncReplicas {
  readonly #nodeId: NodeId
  readonly #epoch: Epoch
  readonly #lagTimeMaxMs: Millis
  readonly #eligibleEpoch: (id: NodeId) => number | undefined
  /** A follower that has less than what was there when the epoch began may lack what was committed before. */
  #epochStart: Offset
  minInSync: number
  #followers: Follower[] = []
  #isr: readonly NodeId[]
  #partitionEpoch: Epoch
  #pending: IsrProposal | undefined
  #pausedUntil: Millis = NEVER
  /** The pending proposal is to be asked for once more then: its answer left open what became of it. */
  #askAgainAt: Millis | undefined

  constructor(options: InSyncOptions, epochStart: Offset) {
    this.#nodeId = options.nodeId
    this.#epoch = options.epoch
    this.#lagTimeMaxMs = options.lagTimeMaxMs
    this.#eligibleEpoch = options.eligibleEpoch
    this.#epochStart = epochStart
    this.minInSync = options.minInSync
    this.#isr = options.isr
    this.#partitionEpoch = options.partitionEpoch
    this.#pending = options.pending
    this.#setReplicas(options.replicas)
    for (const follower of this.#followers) {
      // Who is in sync gets the time that anybody has, counted from now on.
      if (options.isr.includes(follower.id)) follower.letInAt = options.now
    }
  }

  /** As the controller has committed it. */
  get isr(): readonly NodeId[] {
    return this.#isr
  }

  get epochStart(): Offset {
    return this.#epochStart
  }

  get partitionEpoch(): Epoch {
    return this.#partitionEpoch
  }

  /** Asked for, and not answered for certain. */
  get pending(): IsrProposal | undefined {
    return this.#pending
  }

  /** What is known, here or by this later word of the metadata: for a leader that begins in the same epoch once more. */
  known(isr: readonly NodeId[], partitionEpoch: Epoch): IsrKnown {
    if (partitionEpoch > this.#partitionEpoch) return { isr, partitionEpoch }
    return { isr: this.#isr, partitionEpoch: this.#partitionEpoch, pending: this.#pending }
  }

  get followers(): readonly FollowerState[] {
    return this.#followers
  }

  get isAlone(): boolean {
    return this.#followers.length === 0
  }

  /** min.insync.replicas, but no more than there are replicas. */
  get minInSyncHere(): number {
    return Math.min(this.minInSync, this.#followers.length + 1)
  }

  get tooFew(): boolean {
    return this.#isr.length < this.minInSyncHere
  }

  get tooFewEvenWithPending(): boolean {
    return Math.max(this.#isr.length, this.#pending?.isr.length ?? 0) < this.minInSyncHere
  }

  hosts(id: NodeId): boolean {
    return this.#followers.some(follower => follower.id === id)
  }

  /** Notes a fetch. True when the follower holds more, or less, than before. Of a stranger nothing is noted. */
  fetched(
    id: NodeId,
    at: {
      readonly offset: Offset
      readonly startOffset: Offset
      readonly leaderStart: Offset
      readonly brokerEpoch: number
    },
    leaderEnd: Offset,
    now: Millis,
    contact?: FetchContact,
  ): boolean {
    const follower = this.#followers.find(each => each.id === id)
    if (follower === undefined) return false
    if (at.offset >= leaderEnd) follower.caughtUpAt = Math.max(follower.caughtUpAt, now)
    else if (at.offset >= follower.leaderEndThen) {
      follower.caughtUpAt = Math.max(follower.caughtUpAt, follower.fetchedAt)
    }
    follower.contact = at.offset >= leaderEnd ? contact : undefined
    follower.fetchedAt = now
    follower.leaderEndThen = Math.max(follower.leaderEndThen, leaderEnd)
    const moved = follower.endOffset !== at.offset || follower.brokerEpoch !== at.brokerEpoch
    follower.endOffset = at.offset
    follower.startOffset = at.startOffset
    follower.hasDeleted = at.startOffset < 0 || at.startOffset >= at.leaderStart
    follower.brokerEpoch = at.brokerEpoch
    return moved
  }

  /** The leader's log goes on: until now, who fetched and had all of it was caught up. */
  endMoves(): void {
    for (const follower of this.#followers) {
      if (follower.contact === undefined) continue
      follower.fetchedAt = Math.max(follower.fetchedAt, follower.contact.at)
      follower.caughtUpAt = Math.max(follower.caughtUpAt, follower.fetchedAt)
      follower.contact = undefined
    }
  }

  /** Only what is newer counts: the answer to a proposal may have come before, and says the same. */
  assigned(replicas: readonly NodeId[], isr: readonly NodeId[], partitionEpoch: Epoch, now: Millis): void {
    if (partitionEpoch <= this.#partitionEpoch) return
    this.#commit(isr, partitionEpoch, now)
    this.#setReplicas(replicas)
  }

  answered(proposal: IsrProposal, answer: IsrAnswer, now: Millis): void {
    if (this.#pending !== proposal) return
    if (answer.kind === 'accepted') {
      // With another leader epoch it speaks of a change that the metadata brings.
      if (answer.leaderEpoch !== this.#epoch || answer.partitionEpoch < this.#partitionEpoch) return
      this.#commit(answer.isr, answer.partitionEpoch, now)
      return
    }
    // Only these say that nothing was changed and nothing will be. Of all others it is open: the proposal stays, and counts.
    if (answer.error !== 'INELIGIBLE_REPLICA' && answer.error !== 'OPERATION_NOT_ATTEMPTED') {
      // Who refuses by an epoch (FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION, NEW_LEADER_ELECTED) or does not know the
      // topic speaks of metadata that will come here and end this. INVALID_REQUEST does not, nor does a controller that
      // spoke of what was never committed: without being asked again nobody could ever join or leave.
      this.#askAgainAt = now + OPEN_PAUSE_MS
      return
    }
    this.#pending = undefined
    this.#pausedUntil = now + REFUSED_PAUSE_MS
  }

  /** The end of what all hold who are in sync, may be by now, or are about to be. */
  heldByAll(leaderEnd: Offset, now: Millis): Offset {
    let end = leaderEnd
    for (const follower of this.#followers) {
      if (follower.endOffset >= end) continue
      const counts = this.#mayBeInSync(follower.id) || this.#isAboutToJoin(follower, leaderEnd, now)
      if (counts) end = follower.endOffset
    }
    return end
  }

  /** What was to come before this epoch did not come to the log. */
  logEnds(endOffset: Offset): void {
    this.#epochStart = Math.min(this.#epochStart, endOffset)
  }

  /** The start of what is left anywhere: of all replicas whose broker lives, and of `others` as they were. */
  lowestStart(own: Offset, others: readonly NodeId[]): Offset {
    let lowest = own
    for (const { id, startOffset } of this.#followers) {
      const counts = this.#eligibleEpoch(id) !== undefined || others.includes(id)
      if (startOffset < lowest && counts) lowest = startOffset
    }
    return lowest
  }

  /** What has to be asked of the controller now, if anything; it then counts as under way. */
  propose(leaderEnd: Offset, highWatermark: Offset, now: Millis): IsrProposal | undefined {
    if (this.#pending !== undefined) {
      if (this.#askAgainAt === undefined || now < this.#askAgainAt) return undefined
      this.#askAgainAt = undefined
      return this.#pending
    }
    if (now < this.#pausedUntil) return undefined
    let changes = false
    for (const follower of this.#followers) {
      if (this.#isr.includes(follower.id)) changes ||= this.#lags(follower, leaderEnd, now)
      else changes ||= this.#mayJoin(follower, highWatermark)
    }
    if (!changes) return undefined
    const members = [
      ...this.#isr.filter(id => !this.#followers.some(each => each.id === id && this.#lags(each, leaderEnd, now))),
      ...this.#followers.filter(each => this.#mayJoin(each, highWatermark)).map(({ id }) => id),
    ]
    this.#pending = {
      leaderEpoch: this.#epoch,
      partitionEpoch: this.#partitionEpoch,
      isr: members.map(id => ({ brokerId: id, brokerEpoch: this.#brokerEpochOf(id) })),
    }
    return this.#pending
  }

  /** When one who stays behind is to be put out, or is waited for no longer though nobody stirs. */
  wakeAt(leaderEnd: Offset, now: Millis): Millis | undefined {
    let earliest = this.#pending === undefined ? undefined : this.#askAgainAt
    for (const follower of this.#followers) {
      if (follower.endOffset === leaderEnd) continue
      const at = this.#isr.includes(follower.id) ? this.#lagsAt(follower) : this.#isLeftAt(follower, now)
      if (at !== undefined && (earliest === undefined || at < earliest)) earliest = at
    }
    return earliest
  }

  /** Just behind the last moment at which one in sync does not lag. */
  #lagsAt({ caughtUpAt, letInAt }: Follower): Millis | undefined {
    if (this.#pending !== undefined) return undefined
    return Math.max(Math.max(caughtUpAt, letInAt) + this.#lagTimeMaxMs, this.#pausedUntil) + 1
  }

  /** Just behind the last moment at which one that is close to join is waited for; undefined where that is past. */
  #isLeftAt({ caughtUpAt }: Follower, now: Millis): Millis | undefined {
    const at = caughtUpAt + this.#lagTimeMaxMs + 1
    return at > now ? at : undefined
  }

  #commit(isr: readonly NodeId[], partitionEpoch: Epoch, now: Millis): void {
    assert(partitionEpoch >= this.#partitionEpoch, 'the partition epoch never falls')
    for (const follower of this.#followers) {
      // Who was taken out, perhaps because its folder has failed, comes back by a fetch, not by what it once held.
      if (this.#isr.includes(follower.id) && !isr.includes(follower.id)) {
        follower.caughtUpAt = NEVER
        follower.contact = undefined
        follower.endOffset = -1
      }
      // Who is let in has reached the watermark and may still be far from the end: it gets the time that anybody has, or
      // it would be let in and put out without end.
      if (isr.includes(follower.id) && !this.#isr.includes(follower.id)) follower.letInAt = now
    }
    this.#isr = isr
    this.#partitionEpoch = partitionEpoch
    this.#pending = undefined
    this.#askAgainAt = undefined
  }

  #setReplicas(replicas: readonly NodeId[]): void {
    const others = replicas.filter(id => id !== this.#nodeId)
    if (others.length === this.#followers.length && others.every(id => this.hosts(id))) return
    this.#followers = others.map(id => this.#followers.find(each => each.id === id) ?? unknownFollower(id))
  }

  #mayBeInSync(id: NodeId): boolean {
    return this.#isr.includes(id) || (this.#pending?.isr.some(member => member.brokerId === id) ?? false)
  }

  /** The watermark waits a little for one that is close behind, or it could never get in. */
  #isAboutToJoin(follower: Follower, leaderEnd: Offset, now: Millis): boolean {
    const close = follower.endOffset === leaderEnd || now - follower.caughtUpAt <= this.#lagTimeMaxMs
    return close && this.#isEligible(follower)
  }

  #mayJoin(follower: Follower, highWatermark: Offset): boolean {
    if (this.#isr.includes(follower.id)) return false
    if (follower.endOffset < highWatermark || follower.endOffset < this.#epochStart) return false
    // Leading, it would show again what was deleted while it was away: those who deleted waited for who was there.
    if (!follower.hasDeleted) return false
    return this.#isEligible(follower)
  }

  /** KIP-841 and KIP-903: alive, about to stay, and the same life of the broker that the metadata speaks of. */
  #isEligible(follower: Follower): boolean {
    const epoch = this.#eligibleEpoch(follower.id)
    if (epoch === undefined || follower.endOffset < 0) return false
    return follower.brokerEpoch === -1 || follower.brokerEpoch === epoch
  }

  #lags(follower: Follower, leaderEnd: Offset, now: Millis): boolean {
    const from = Math.max(follower.caughtUpAt, follower.letInAt)
    return follower.endOffset !== leaderEnd && now - from > this.#lagTimeMaxMs
  }

  #brokerEpochOf(id: NodeId): number {
    return this.#followers.find(each => each.id === id)?.brokerEpoch ?? -1
  }
}

function unknownFollower(id: NodeId): Follower {
  return {
    id,
    contact: undefined,
    endOffset: -1,
    startOffset: -1,
    hasDeleted: false,
    brokerEpoch: -1,
    fetchedAt: NEVER,
    leaderEndThen: -1,
    caughtUpAt: NEVER,
    letInAt: NEVER,
  }
}
