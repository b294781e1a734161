import type { Millis } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { RaftRequest, RaftResponse } from './messages.ts'
import { areRecorded, hasSameEndpoints, isSameVoter } from './quorum.ts'
import type { Replica, Sent } from './replica.ts'
import { NEVER, type Role } from './role.ts'

/**
 * What a follower tells the leader of itself (KIP-853): that a voter is not recorded as it is, that a controller which
 * does not vote wants to, or, for a static list, where it is and what it knows.
 */
export class Membership {
  readonly #replica: Replica
  readonly #role: Role
  #at: Millis
  #request: number | undefined
  #isCaughtUp = false
  /** The directory of a voter with this node's number that nobody answers for any more. */
  #goneNamesake: Uuid | undefined
  /** A leader with a static list knows this node's directory for as long as it leads. */
  #isDescribed = false

  constructor(replica: Replica, role: Role, now: Millis) {
    this.#replica = replica
    this.#role = role
    this.#at = now
  }

  wakeAt(): Millis {
    return this.#request === undefined && this.#wanted() !== undefined ? this.#at : NEVER
  }

  tick(now: Millis): void {
    if (this.#request !== undefined || now < this.#at) return
    const message = this.#wanted()
    if (message === undefined) return
    const to = message.kind === 'kraft-range' ? message.voter.id : this.#role.leaderId
    this.#request = this.#replica.send(this.#role, to, message)
  }

  /** A fetch was answered: with all that there is, or not. */
  fetched(isCaughtUp: boolean, now: Millis): void {
    if (isCaughtUp && !this.#isCaughtUp) this.#at = Math.max(this.#at, now)
    this.#isCaughtUp ||= isCaughtUp
  }

  over(sent: Sent, response: RaftResponse | undefined, now: Millis): void {
    if (sent.request !== this.#request) return
    this.#request = undefined
    const { fetchTimeoutMs } = this.#replica.timing
    if (sent.message.kind === 'kraft-range') {
      if (response === undefined) this.#goneNamesake = sent.message.voter.directoryId
      this.#at = response === undefined ? now : now + fetchTimeoutMs
      return
    }
    const isDone = response !== undefined && 'answer' in response && response.answer.errorCode === ErrorCode.NONE
    // What was granted is seen by fetching. What was refused mostly was so for another change that is under way.
    this.#at = now + (isDone ? fetchTimeoutMs : fetchTimeoutMs / 4)
    if (!isDone) return
    if (response.kind === 'update-voter') this.#isDescribed = true
    // The old place is free: the new one is asked for as soon as that is seen.
    if (response.kind === 'remove-voter') this.#at = now
  }

  #wanted(): RaftRequest | undefined {
    const { voters, key, epoch, self, options } = this.#replica
    if (self === undefined || !this.#isCaughtUp) return undefined
    const own = voters.find(voter => this.#replica.isSelf(voter))
    if (own !== undefined) {
      const isKnown = areRecorded(voters) ? isSameVoter(own, self) : this.#isDescribed
      return isKnown ? undefined : { kind: 'update-voter', epoch, voter: self }
    }
    if (options.autoJoin !== true || !areRecorded(voters)) return undefined
    const former = voters.find(({ id }) => id === key.id)
    if (former === undefined) return { kind: 'add-voter', voter: self }
    // Two nodes with one number would put each other out of the quorum in turn: only who is gone gives way.
    const isElsewhere = !hasSameEndpoints(former, self)
    if (isElsewhere && this.#goneNamesake !== former.directoryId) return { kind: 'kraft-range', voter: former }
    return { kind: 'remove-voter', voter: { id: former.id, directoryId: former.directoryId } }
  }
}
