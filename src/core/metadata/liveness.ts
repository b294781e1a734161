import type { Millis, NodeId, Offset } from '#base/units.ts'

interface Session {
  lastContactMs: Millis
  /** How far the broker has followed the metadata log. */
  metadataOffset: Offset
  /** Not heard of in this term, only given a session by the change of controllers. */
  presumed: boolean
  /** Where its shutdown was written: it may go once the others know. -1 unless it is shutting down. */
  shutdownOffset: Offset
  /** Others can dial it, as far as this controller sees. */
  reached: boolean
}

const NEW_SESSION = { metadataOffset: -1, presumed: false, shutdownOffset: -1, reached: true } as const

/**
 * Who was heard of, and when. Soft state: it is lost with leadership, and a new active controller gives every broker a
 * whole session before it fences it.
 */
export class Liveness {
  readonly #sessionTimeoutMs: Millis
  readonly #sessions = new Map<NodeId, Session>()

  constructor(sessionTimeoutMs: Millis) {
    this.#sessionTimeoutMs = sessionTimeoutMs
  }

  heard(id: NodeId, metadataOffset: Offset, now: Millis): void {
    const session = this.#sessions.get(id)
    if (session === undefined) {
      this.#sessions.set(id, { ...NEW_SESSION, lastContactMs: now, metadataOffset })
    } else {
      session.lastContactMs = now
      session.metadataOffset = metadataOffset
      session.presumed = false
    }
  }

  /** At the beginning of a term: the controller before may have heard from it a moment ago. */
  presume(id: NodeId, now: Millis): void {
    this.#sessions.set(id, { ...NEW_SESSION, lastContactMs: now, presumed: true })
  }

  isPresumed(id: NodeId): boolean {
    return this.#sessions.get(id)?.presumed ?? true
  }

  forget(id: NodeId): void {
    this.#sessions.delete(id)
  }

  shuttingDown(id: NodeId, offset: Offset): void {
    const session = this.#sessions.get(id)
    if (session !== undefined) session.shutdownOffset = offset
  }

  /** Whether it could be dialled when that was tried last. */
  reached(id: NodeId, isReached: boolean): void {
    const session = this.#sessions.get(id)
    if (session !== undefined) session.reached = isReached
  }

  /** Who was never dialled counts as one who can be. */
  isReached(id: NodeId): boolean {
    return this.#sessions.get(id)?.reached ?? true
  }

  isLive(id: NodeId, now: Millis): boolean {
    const session = this.#sessions.get(id)
    return session !== undefined && now <= session.lastContactMs + this.#sessionTimeoutMs
  }

  /** Whether all of these brokers know that it is leaving. */
  shutdownIsKnown(id: NodeId, toBrokers: Iterable<NodeId>): boolean {
    const offset = this.#sessions.get(id)?.shutdownOffset ?? -1
    for (const other of toBrokers) {
      if (other !== id && (this.#sessions.get(other)?.metadataOffset ?? -1) < offset) return false
    }
    return true
  }

  /** When the first of these brokers must have been heard of again. */
  nextDeadline(ids: Iterable<NodeId>): Millis | undefined {
    let earliest: Millis | undefined
    for (const id of ids) {
      const session = this.#sessions.get(id)
      const deadline = (session?.lastContactMs ?? 0) + this.#sessionTimeoutMs + 1
      if (earliest === undefined || deadline < earliest) earliest = deadline
    }
    return earliest
  }
}
