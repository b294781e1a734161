import type { Millis } from '#base/units.ts'

/** A write on the loop that takes longer has waited for something. */
const ON_LOOP_MS_MAX: Millis = 5
/** What filling the page cache may take; every write that takes longer costs the loop the rest. */
const FILL_MS: Millis = 0.2
/** So much may be lost in short waits, as a part of the time that goes by and at once. */
const LOSS_SHARE = 0.1
const LOSS_MS_MAX: Millis = 10
/** The same on the thread pool, where the trip and other work are part of it. */
const IN_POOL_MS_MAX: Millis = 50
/** A sync that is under way for longer may hold up the journal, and with it whoever writes to a file. */
const SYNC_MS_MAX: Millis = 1_000
/** After that, for so many times as long as was lost nothing more is written on the loop: it loses 2 % at most. */
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
  /** What short waits have cost the loop of late. */
  #lostMs: Millis = 0
  #wroteAt: Millis = 0
  /** Writes under way on the pool, oldest first. */
  readonly #trips = new Set<Trip>()
  readonly #syncs = new Set<Trip>()

  /** Whether a write may go on the loop. */
  isBrisk(now: Millis): boolean {
    if (now < this.#distrustedUntil) return false
    const [trip] = this.#trips
    if (trip !== undefined && now - trip.since > IN_POOL_MS_MAX) return false
    const [sync] = this.#syncs
    return sync === undefined || now - sync.since <= SYNC_MS_MAX
  }

  /** As with `tripBegins`: a sync, which takes as long as the disk needs and says nothing by that when it is over. */
  syncBegins(now: Millis): Trip {
    const trip = { since: now }
    this.#syncs.add(trip)
    return trip
  }

  syncEnds(trip: Trip): void {
    this.#syncs.delete(trip)
  }

  wroteOnLoop(since: Millis, now: Millis): void {
    const tookMs = now - since
    const regainedMs = LOSS_SHARE * (since - this.#wroteAt)
    this.#wroteAt = now
    this.#lostMs = Math.max(0, this.#lostMs - regainedMs) + Math.max(0, tookMs - FILL_MS)
    if (tookMs > ON_LOOP_MS_MAX) this.#distrust(tookMs, now)
    else if (this.#lostMs > LOSS_MS_MAX) {
      this.#distrust(this.#lostMs, now)
      this.#lostMs = 0
    }
  }

  /** A write goes to the pool; what is returned is to be given to `tripEnds`. */
  tripBegins(now: Millis): Trip {
    const trip = { since: now }
    this.#trips.add(trip)
    return trip
  }

  tripEnds(trip: Trip, now: Millis): void {
    this.#trips.delete(trip)
    if (now - trip.since > IN_POOL_MS_MAX) this.#distrust(now - trip.since, now)
  }

  #distrust(lostMs: Millis, now: Millis): void {
    this.#distrustedUntil = Math.max(this.#distrustedUntil, now + Math.min(DISTRUST * lostMs, DISTRUST_MS_MAX))
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
