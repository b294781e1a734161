import type { Millis } from '#base/units.ts'
import type { RaftFetch } from './messages.ts'
import { NEVER } from './role.ts'

/** More long polls than this are answered at once: their memory is the fetchers' to ask for, and so needs a limit. */
const WAITING_MAX = 10_000

/** Fetches that wait for news, each until its deadline. */
export class WaitingFetches {
  readonly #waiting = new Map<number, { readonly fetch: RaftFetch; readonly deadline: Millis }>()
  /** Not above the earliest deadline of those that wait. */
  #nextDeadline = NEVER

  get size(): number {
    return this.#waiting.size
  }

  /** False where too many wait already. */
  add(call: number, fetch: RaftFetch, now: Millis): boolean {
    if (this.#waiting.size >= WAITING_MAX) return false
    const deadline = now + fetch.maxWaitMs
    this.#waiting.set(call, { fetch, deadline })
    if (deadline < this.#nextDeadline) this.#nextDeadline = deadline
    return true
  }

  delete(call: number): void {
    this.#waiting.delete(call)
  }

  wakeAt(): Millis {
    return this.#nextDeadline
  }

  /** Takes out those whose time is over. */
  expired(now: Millis): (readonly [number, RaftFetch])[] {
    if (now < this.#nextDeadline) return []
    this.#nextDeadline = NEVER
    const expired: [number, RaftFetch][] = []
    for (const [call, { fetch, deadline }] of this.#waiting) {
      if (deadline <= now) {
        this.#waiting.delete(call)
        expired.push([call, fetch])
      } else if (deadline < this.#nextDeadline) this.#nextDeadline = deadline
    }
    return expired
  }

  /** Takes out those that it holds for. */
  take(holds: (fetch: RaftFetch) => boolean): (readonly [number, RaftFetch])[] {
    const taken: [number, RaftFetch][] = []
    for (const [call, { fetch }] of this.#waiting) {
      if (!holds(fetch)) continue
      this.#waiting.delete(call)
      taken.push([call, fetch])
    }
    return taken
  }
}
