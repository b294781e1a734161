import type { Millis, NodeId } from '#base/units.ts'
import type { FetchedPartition, FetchSession } from '#core/session/fetch-sessions.ts'
import type { Caller } from '#network/service.ts'
import type { ErrorName } from '#protocol/errors.ts'
import type { LogRange } from '#storage/log-range.ts'
import type { Partition } from '../partitions/partition.ts'
import type { Watcher } from '../partitions/watchers.ts'

/** What one partition gives. */
export interface Look {
  readonly partition: Partition | undefined
  readonly error: ErrorName | undefined
  readonly range: LogRange | undefined
  readonly divergingEpoch: { readonly epoch: number; readonly endOffset: number } | undefined
}

/** Who waits for a place to wake. */
export interface PlacesListener {
  moved(place: Place): void
}

const NOTHING: Look = { partition: undefined, error: undefined, range: undefined, divergingEpoch: undefined }

/** One partition that a follower's session asks for, and what was found there last. */
export class Place implements Watcher {
  readonly asked: FetchedPartition
  look: Look = NOTHING
  readonly #places: ReplicaPlaces
  #watched: Partition | undefined

  constructor(asked: FetchedPartition, places: ReplicaPlaces) {
    this.asked = asked
    this.#places = places
  }

  moved(): void {
    this.#places.wake(this)
  }

  /** From now on until it is called for another, or none. */
  watch(partition: Partition | undefined): void {
    if (partition === this.#watched) return
    this.#watched?.endWatchers.delete(this)
    this.#watched = partition
    partition?.endWatchers.add(this)
  }
}

/**
 * What a follower's fetch session asks for, and where a look may find something: at a place at rest, which the follower
 * has all of and was told all of, nothing is to be found before its partition moves. So a fetch costs by what moves, not
 * by what the session holds.
 */
export class ReplicaPlaces {
  /** In the order in which they are to be served. */
  readonly awake = new Set<Place>()
  /** When the session fetched last, for all places at rest. */
  readonly contact: { at: Millis } = { at: Number.NEGATIVE_INFINITY }
  listener: PlacesListener | undefined
  readonly #places = new Map<FetchedPartition, Place>()
  #brokerEpoch: number | undefined

  get size(): number {
    return this.#places.size
  }

  /** The follower's broker as it names itself now: what was said by a life before says nothing of this one. */
  livesAs(brokerEpoch: number): void {
    if (brokerEpoch !== this.#brokerEpoch) this.wakeAll()
    this.#brokerEpoch = brokerEpoch
  }

  /** The session asks for it, from here. */
  ask(asked: FetchedPartition): void {
    let place = this.#places.get(asked)
    if (place === undefined) {
      place = new Place(asked, this)
      this.#places.set(asked, place)
    }
    // Who names it has moved there, and does not believe what was answered to where it was before.
    asked.sentLogStart = -1
    this.awake.add(place)
  }

  forget(asked: FetchedPartition): void {
    const place = this.#places.get(asked)
    if (place === undefined) return
    this.#places.delete(asked)
    this.awake.delete(place)
    place.watch(undefined)
  }

  wake(place: Place): void {
    this.awake.add(place)
    this.listener?.moved(place)
  }

  wakeAll(): void {
    for (const place of this.#places.values()) this.awake.add(place)
  }

  /** Looked at again when its partition moves. */
  rest(place: Place): void {
    this.awake.delete(place)
  }

  /** Behind the others, so that one with much to give does not starve them. */
  serveLast(place: Place): void {
    this.awake.delete(place)
    this.awake.add(place)
  }

  close(): void {
    for (const place of this.#places.values()) place.watch(undefined)
    this.#places.clear()
    this.awake.clear()
  }
}

interface Kept {
  readonly session: FetchSession
  readonly places: ReplicaPlaces
}

const kept = new WeakMap<Caller, Kept>()

/**
 * The places of a session, kept for as long as its follower's connection fetches by it and nothing else. Made anew, all of
 * the session is to be asked for.
 */
export function placesOf(
  session: FetchSession,
  caller: Caller,
): { readonly places: ReplicaPlaces; readonly isNew: boolean } {
  const before = kept.get(caller)
  if (before?.session === session) return { places: before.places, isNew: false }
  if (before === undefined) caller.whenGone(() => kept.get(caller)?.places.close())
  before?.places.close()
  const places = new ReplicaPlaces()
  kept.set(caller, { session, places })
  return { places, isNew: true }
}

/** Whether a replica's place is at rest: it has all, was told all, and is in sync. */
export function isAtRest({ asked, look }: Place, replica: NodeId): boolean {
  const { partition, error, range, divergingEpoch } = look
  if (partition === undefined || error !== undefined || range !== undefined || divergingEpoch !== undefined)
    return false
  const { log, highWatermark } = partition
  return (
    asked.fetchOffset === log.endOffset &&
    highWatermark === log.endOffset &&
    asked.sentHighWatermark === highWatermark &&
    asked.sentLogStart === log.startOffset &&
    partition.inSync.includes(replica)
  )
}
