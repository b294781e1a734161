import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FetchedPartition, FetchSession } from '#core/session/fetch-sessions.ts'
import type { Caller } from '#network/service.ts'
import type { Partition } from '../partitions/partition.ts'
import { Watchers } from '../partitions/watchers.ts'
import { isAtRest, type Place, placesOf, ReplicaPlaces } from './01-replica-places.ts'

function askedFor(index: number): FetchedPartition {
  return {
    topicId: 'aaaaaaaaaaaaaaaaaaaaaA',
    topic: 'a',
    index,
    fetchOffset: 10,
    maxBytes: 100,
    currentLeaderEpoch: 1,
    lastFetchedEpoch: 1,
    followerLogStart: 0,
    sentHighWatermark: 10,
    sentLogStart: 0,
  }
}

/** As far as places look at it. */
class Led {
  readonly endWatchers = new Watchers()
  readonly log = { endOffset: 10, startOffset: 0 }
  highWatermark = 10
  inSync = [1, 2]

  get partition(): Partition {
    return this as unknown as Partition
  }

  moves(): void {
    this.endWatchers.tell()
  }
}

function only(places: ReplicaPlaces): Place {
  const [place, ...others] = places.awake
  assert.ok(place !== undefined && others.length === 0)
  return place
}

test('a place at rest wakes when its partition moves, and tells who waits', () => {
  const places = new ReplicaPlaces()
  const led = new Led()
  places.ask(askedFor(0))
  const place = only(places)
  place.watch(led.partition)
  places.rest(place)
  assert.equal(places.awake.size, 0)
  assert.equal(places.size, 1)
  const told: Place[] = []
  places.listener = { moved: moved => told.push(moved) }
  led.moves()
  assert.deepEqual([...places.awake], [place])
  assert.deepEqual(told, [place])
})

test('what is forgotten, or looked for elsewhere, is watched no longer', () => {
  const places = new ReplicaPlaces()
  const [before, after] = [new Led(), new Led()]
  const asked = askedFor(0)
  places.ask(asked)
  const place = only(places)
  place.watch(before.partition)
  place.watch(after.partition)
  assert.deepEqual([before.endWatchers.size, after.endWatchers.size], [0, 1])
  places.forget(asked)
  assert.deepEqual([after.endWatchers.size, places.size, places.awake.size], [0, 0, 0])
})

test('another life of the follower is looked at everywhere', () => {
  const places = new ReplicaPlaces()
  places.livesAs(7)
  places.ask(askedFor(0))
  places.ask(askedFor(1))
  for (const place of places.awake) places.rest(place)
  places.livesAs(7)
  assert.equal(places.awake.size, 0)
  places.livesAs(8)
  assert.equal(places.awake.size, 2)
})

test('only who has all, was told all and is in sync rests', () => {
  const led = new Led()
  const places = new ReplicaPlaces()
  places.ask(askedFor(0))
  const place = only(places)
  const rests = (): boolean => isAtRest(place, 2)
  assert.equal(rests(), false)
  place.look = { partition: led.partition, error: undefined, range: undefined, divergingEpoch: undefined }
  // Named just now: what was told before may have come to nothing.
  assert.equal(rests(), false)
  place.asked.sentLogStart = led.log.startOffset
  assert.equal(rests(), true)
  led.inSync = [1]
  assert.equal(rests(), false)
  led.inSync = [1, 2]
  // Another follower lags: the watermark will move without the end.
  led.highWatermark = 9
  place.asked.sentHighWatermark = 9
  assert.equal(rests(), false)
  led.highWatermark = 10
  assert.equal(rests(), false)
  place.asked.sentHighWatermark = 10
  led.log.startOffset = 3
  assert.equal(rests(), false)
})

test('places end with the connection, and with the session that comes after theirs on it', () => {
  let gone = (): void => {}
  const caller = {
    whenGone(run: () => void) {
      gone = run
      return () => {}
    },
  } as unknown as Caller
  const [first, second] = [{}, {}] as [FetchSession, FetchSession]
  const led = new Led()
  const watched = (session: FetchSession): ReplicaPlaces => {
    const { places, isNew } = placesOf(session, caller)
    assert.ok(isNew)
    places.ask(askedFor(0))
    only(places).watch(led.partition)
    assert.equal(led.endWatchers.size, 1)
    return places
  }
  const places = watched(first)
  assert.deepEqual(placesOf(first, caller), { places, isNew: false })
  watched(second)
  gone()
  assert.equal(led.endWatchers.size, 0)
})
