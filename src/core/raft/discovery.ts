import type { Millis } from '#base/units.ts'
import type { Replica, Sent } from './replica.ts'
import { NEVER, type Role } from './role.ts'

/** The longest pause between two questions for the leader. */
const PAUSE_MS_MAX: Millis = 500

/** Asks whoever is configured for the leader, by a Fetch, until somebody names one: what is answered is learnt by raft. */
export class Discovery {
  readonly #replica: Replica
  readonly #role: Role
  #at: Millis
  #request: number | undefined
  #failures = 0

  constructor(replica: Replica, role: Role, at: Millis) {
    this.#replica = replica
    this.#role = role
    this.#at = at
  }

  wakeAt(): Millis {
    return this.#request === undefined && this.#replica.isLogSettled ? this.#at : NEVER
  }

  tick(now: Millis): void {
    if (now < this.wakeAt()) return
    this.#request = this.#replica.send(this.#role, 'anyone', this.#replica.fetchFrom(0))
  }

  /** The question was answered without a leader's name, or not at all. */
  over(sent: Sent, now: Millis): void {
    if (sent.request !== this.#request) return
    this.#request = undefined
    this.#at = now + this.#replica.backoff(this.#failures++, PAUSE_MS_MAX)
  }
}
