import type { Millis, Offset } from '#base/units.ts'
import type { ReplicaKey, ReplicaProgress } from './quorum.ts'

/** Observers that were silent for so long are forgotten. */
const OBSERVER_SESSION_MS: Millis = 300_000
/** Anybody may name any id: beyond so many, the one that is silent the longest is forgotten. */
const OBSERVERS_MAX = 1000

/** How far one replica has come, by what it fetched. */
export interface Progress extends ReplicaProgress {
  /** Where the leader's log ended at its last fetch. */
  readonly leaderEndOffset: Offset
}

/** What is known after a fetch from this offset. Caught up means: up to where the log ended at the fetch before. */
export function fetchedAt(
  { id, directoryId }: ReplicaKey,
  endOffset: Offset,
  leaderEndOffset: Offset,
  before: Progress | undefined,
  now: Millis,
): Progress {
  let lastCaughtUpAt = before?.lastCaughtUpAt
  if (endOffset >= leaderEndOffset) lastCaughtUpAt = now
  else if (before !== undefined && before.endOffset >= 0 && endOffset >= before.leaderEndOffset) {
    lastCaughtUpAt = before.lastFetchAt
  }
  return { id, directoryId, endOffset, lastFetchAt: now, lastCaughtUpAt, leaderEndOffset }
}

/** Those who follow a leader and do not vote. */
export class Observers {
  readonly #observers = new Map<string, Progress>()

  get({ id, directoryId }: ReplicaKey): Progress | undefined {
    return this.#observers.get(`${id}:${directoryId}`)
  }

  delete({ id, directoryId }: ReplicaKey): void {
    this.#observers.delete(`${id}:${directoryId}`)
  }

  note(key: ReplicaKey, endOffset: Offset, leaderEndOffset: Offset, now: Millis): void {
    const before = this.get(key)
    if (before === undefined) {
      this.#forget(now)
      if (this.#observers.size >= OBSERVERS_MAX) this.#forgetSilent()
    }
    this.#observers.set(`${key.id}:${key.directoryId}`, fetchedAt(key, endOffset, leaderEndOffset, before, now))
  }

  all(now: Millis): Progress[] {
    this.#forget(now)
    return [...this.#observers.values()]
  }

  #forgetSilent(): void {
    let silent: string | undefined
    let since = Number.POSITIVE_INFINITY
    for (const [key, { lastFetchAt = -1 }] of this.#observers) {
      if (lastFetchAt >= since) continue
      silent = key
      since = lastFetchAt
    }
    if (silent !== undefined) this.#observers.delete(silent)
  }

  #forget(now: Millis): void {
    for (const [key, { lastFetchAt }] of this.#observers) {
      if (lastFetchAt !== undefined && now - lastFetchAt > OBSERVER_SESSION_MS) this.#observers.delete(key)
    }
  }
}
