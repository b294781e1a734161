import type { Millis } from '#base/units.ts'

/** A write on the loop that takes longer has waited for something. */
const ON_LOOP_MS_MAX: Millis = 5
/** The same on the thread pool, where the trip and other work are part of it. */
const IN_POOL_MS_MAX: Millis = 50
/** After one that waited, for so many times as long as it took nothing more is written on the loop: it loses 2 % at most. */
const DISTRUST = 50
const DISTRUST_MS_MAX: Millis = 60_000

interface Trip {
  readonly since: Millis
}

/**
 * How quickly a disk takes writes, from those it has taken. A write that only fills the page cache takes some
 * microseconds and is best done on the loop; one that waits for the disk (too many dirty pages, a journal that is being
 * written, a file system that is frozen) holds up everything there. The first that waits is the last one on the loop
 * for a while, the longer the longer it took.
 */
export class DiskPace {
  #distrustedUntil: Millis = Number.NEGATIVE_INFINITY
  /** Writes under way on the pool, oldest first. */
  readonly #trips = new Set<Trip>()

  /** Whether a write may go on the loop. */
  isBrisk(now: Millis): boolean {
    if (now < this.#distrustedUntil) return false
    for (const { since } of this.#trips) return now - since <= IN_POOL_MS_MAX
    return true
  }

  wroteOnLoop(since: Millis, now: Millis): void {
    if (now - since > ON_LOOP_MS_MAX) this.#distrust(since, now)
  }

  /** A write goes to the pool; what is returned is to be given to `tripEnds`. */
  tripBegins(now: Millis): Trip {
    const trip = { since: now }
    this.#trips.add(trip)
    return trip
  }

  tripEnds(trip: Trip, now: Millis): void {
    this.#trips.delete(trip)
    if (now - trip.since > IN_POOL_MS_MAX) this.#distrust(trip.since, now)
  }

  #distrust(since: Millis, now: Millis): void {
    this.#distrustedUntil = Math.max(this.#distrustedUntil, now + Math.min(DISTRUST * (now - since), DISTRUST_MS_MAX))
  }
}

const paces = new Map<number, DiskPace>()

/** That of the file system with this device number. */
export function paceOf(device: number): DiskPace {
  let pace = paces.get(device)
  if (pace === undefined) {
    pace = new DiskPace()
    paces.set(device, pace)
  }
  return pace
}
