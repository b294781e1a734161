import { INT32_MAX, type Millis, type Offset } from '#base/units.ts'
import { type Uuid, ZERO_UUID } from '#base/uuid.ts'
import type { FetchRequest } from '#protocol/messages/fetch.ts'

/** A partition that a fetch asks for, as the request or its session has it. */
export interface FetchedPartition {
  /** Zero below version 13. */
  readonly topicId: Uuid
  /** Undefined while no topic with the id is known. */
  topic: string | undefined
  readonly index: number
  fetchOffset: Offset
  /** Bytes. */
  maxBytes: number
  currentLeaderEpoch: number
  lastFetchedEpoch: number
  /** Of a follower, -1 of a consumer. */
  followerLogStart: Offset
  /** What the session's client was told last; -1 before. */
  sentHighWatermark: Offset
  sentLogStart: Offset
}

export type FetchContext =
  /** No session: all that was asked is answered. */
  | { readonly kind: 'sessionless'; readonly partitions: readonly FetchedPartition[] }
  /** A new session: all is answered, later only what changed. */
  | { readonly kind: 'full'; readonly partitions: readonly FetchedPartition[]; readonly session: FetchSession }
  | {
      readonly kind: 'incremental'
      /** All of the session, gone over when asked for. */
      readonly partitions: readonly FetchedPartition[]
      /** Those that this request names. */
      readonly named: readonly FetchedPartition[]
      /** Those that it takes out. */
      readonly forgotten: readonly FetchedPartition[]
      readonly session: FetchSession
    }
  | {
      readonly kind: 'refused'
      readonly error: 'FETCH_SESSION_ID_NOT_FOUND' | 'INVALID_FETCH_SESSION_EPOCH' | 'FETCH_SESSION_TOPIC_ID_ERROR'
    }

/**
 * Of all sessions together: some 250 bytes each. A client names any partitions it likes, also ones that do not exist, by
 * the million in one request, and a thousand sessions of that size are more than the memory there is.
 */
const ALL_SESSIONS_PARTITIONS_MAX = 1_000_000
/** Of one session, and of a fetch without one: what is gone over at once whenever it looks for records. */
export const SESSION_PARTITIONS_MAX = 65_536

/** Neither a session nor a wish for one. */
const FINAL_EPOCH = -1
const INITIAL_EPOCH = 0

export class FetchSession {
  readonly id: number
  readonly usesTopicIds: boolean
  readonly privileged: boolean
  readonly createdAt: Millis
  lastUsedAt: Millis
  /** The epoch that the next request must carry. */
  nextEpoch = 1
  /** In the order in which they are to be served: those that gave data go to the end. */
  readonly partitions = new Map<string, FetchedPartition>()
  /** Those whose topic is not known. */
  readonly nameless = new Set<FetchedPartition>()

  constructor(id: number, usesTopicIds: boolean, privileged: boolean, now: Millis) {
    this.id = id
    this.usesTopicIds = usesTopicIds
    this.privileged = privileged
    this.createdAt = now
    this.lastUsedAt = now
  }

  /** Moves a partition behind the others, so that one with much data does not starve them. */
  serveLast(partition: FetchedPartition): void {
    const key = keyOf(partition.topicId, partition.topic, partition.index)
    if (!this.partitions.delete(key)) return
    this.partitions.set(key, partition)
  }
}

class IncrementalContext {
  readonly kind = 'incremental'
  readonly session: FetchSession
  readonly named: readonly FetchedPartition[]
  readonly forgotten: readonly FetchedPartition[]
  #partitions: readonly FetchedPartition[] | undefined

  constructor(session: FetchSession, named: readonly FetchedPartition[], forgotten: readonly FetchedPartition[]) {
    this.session = session
    this.named = named
    this.forgotten = forgotten
  }

  get partitions(): readonly FetchedPartition[] {
    this.#partitions ??= [...this.session.partitions.values()]
    return this.#partitions
  }
}

/**
 * The incremental fetch sessions of a broker (KIP-227): which partitions a client asked for, so that it need name only
 * those that change. Bounded in number and in the partitions they hold together; a session gives way to a new one when
 * it was idle for long, or when it is smaller than the new one and old enough.
 */
export class FetchSessions {
  readonly #sessions = new Map<number, FetchSession>()
  readonly #slots: number
  readonly #evictionMs: Millis
  readonly #partitionsMax: number
  /** Of all sessions. */
  #partitions = 0

  constructor(slots: number, evictionMs: Millis = 120_000, partitionsMax = ALL_SESSIONS_PARTITIONS_MAX) {
    this.#slots = slots
    this.#evictionMs = evictionMs
    this.#partitionsMax = partitionsMax
  }

  get size(): number {
    return this.#sessions.size
  }

  /**
   * What a request asks for. `nameOf` resolves a topic id; `id` is a random positive number for a new session, drawn by
   * the caller until it is free.
   */
  open(
    request: FetchRequest,
    version: number,
    now: Millis,
    id: () => number,
    nameOf: (topicId: Uuid) => string | undefined,
  ): FetchContext {
    const usesTopicIds = version >= 13
    const { sessionId, sessionEpoch } = request
    if (sessionEpoch === FINAL_EPOCH || sessionEpoch === INITIAL_EPOCH) {
      if (sessionId !== 0) this.#end(sessionId)
      const partitions = namedIn(request, nameOf)
      if (sessionEpoch === FINAL_EPOCH) return { kind: 'sessionless', partitions }
      const privileged = request.replicaId >= 0 || request.replicaState.replicaId >= 0
      const session = this.#create(partitions, usesTopicIds, privileged, now, id)
      return session === undefined ? { kind: 'sessionless', partitions } : { kind: 'full', partitions, session }
    }
    const session = this.#sessions.get(sessionId)
    if (session === undefined) return { kind: 'refused', error: 'FETCH_SESSION_ID_NOT_FOUND' }
    if (session.nextEpoch !== sessionEpoch) return { kind: 'refused', error: 'INVALID_FETCH_SESSION_EPOCH' }
    if (session.usesTopicIds !== usesTopicIds) return { kind: 'refused', error: 'FETCH_SESSION_TOPIC_ID_ERROR' }
    const { named, forgotten } = this.#update(session, request, nameOf)
    if (this.#partitions > this.#partitionsMax || session.partitions.size > SESSION_PARTITIONS_MAX) {
      this.#end(session.id) // its client names all again, and is served without a session while there is no room
      return { kind: 'refused', error: 'FETCH_SESSION_ID_NOT_FOUND' }
    }
    session.lastUsedAt = now
    session.nextEpoch = session.nextEpoch === INT32_MAX ? 1 : session.nextEpoch + 1
    if (session.partitions.size === 0) {
      this.#end(session.id)
      return { kind: 'sessionless', partitions: [] }
    }
    for (const partition of session.nameless) {
      partition.topic = nameOf(partition.topicId)
      if (partition.topic !== undefined) session.nameless.delete(partition)
    }
    return new IncrementalContext(session, named, forgotten)
  }

  #create(
    partitions: readonly FetchedPartition[],
    usesTopicIds: boolean,
    privileged: boolean,
    now: Millis,
    draw: () => number,
  ): FetchSession | undefined {
    if (partitions.length > this.#partitionsMax) return undefined
    while (this.#sessions.size >= this.#slots || this.#partitions + partitions.length > this.#partitionsMax) {
      if (!this.#makeRoom(partitions.length, privileged, now)) return undefined
    }
    let id = draw()
    while (this.#sessions.has(id)) id = draw()
    const session = new FetchSession(id, usesTopicIds, privileged, now)
    for (const partition of partitions) {
      session.partitions.set(keyOf(partition.topicId, partition.topic, partition.index), partition)
      if (partition.topic === undefined) session.nameless.add(partition)
    }
    this.#sessions.set(id, session)
    this.#partitions += session.partitions.size
    return session
  }

  #end(id: number): void {
    const session = this.#sessions.get(id)
    if (session === undefined) return
    this.#sessions.delete(id)
    this.#partitions -= session.partitions.size
  }

  /** Ends one session that may end for a new one of this size, if there is any. */
  #makeRoom(size: number, privileged: boolean, now: Millis): boolean {
    let stale: FetchSession | undefined
    let smallest: FetchSession | undefined
    for (const session of this.#sessions.values()) {
      if (stale === undefined || session.lastUsedAt < stale.lastUsedAt) stale = session
      const mayGoFor =
        (privileged && !session.privileged) || (privileged === session.privileged && session.partitions.size < size)
      if (!mayGoFor || now - session.createdAt < this.#evictionMs) continue
      if (smallest === undefined || session.partitions.size < smallest.partitions.size) smallest = session
    }
    const leaves = stale !== undefined && now - stale.lastUsedAt > this.#evictionMs ? stale : smallest
    if (leaves === undefined) return false
    this.#end(leaves.id)
    return true
  }

  #update(
    session: FetchSession,
    request: FetchRequest,
    nameOf: (topicId: Uuid) => string | undefined,
  ): { readonly named: readonly FetchedPartition[]; readonly forgotten: readonly FetchedPartition[] } {
    const before = session.partitions.size
    const named: FetchedPartition[] = []
    const forgotten: FetchedPartition[] = []
    for (const topic of request.forgottenTopicsData) {
      for (const index of topic.partitions) {
        const key = keyOf(topic.topicId, topic.topic, index)
        const known = session.partitions.get(key)
        if (known === undefined) continue
        session.partitions.delete(key)
        session.nameless.delete(known)
        forgotten.push(known)
      }
    }
    for (const asked of namedIn(request, nameOf)) {
      const key = keyOf(asked.topicId, asked.topic, asked.index)
      const known = session.partitions.get(key)
      named.push(known ?? asked)
      if (known === undefined) {
        session.partitions.set(key, asked)
        if (asked.topic === undefined) session.nameless.add(asked)
        continue
      }
      known.fetchOffset = asked.fetchOffset
      known.maxBytes = asked.maxBytes
      known.currentLeaderEpoch = asked.currentLeaderEpoch
      known.lastFetchedEpoch = asked.lastFetchedEpoch
      known.followerLogStart = asked.followerLogStart
    }
    this.#partitions += session.partitions.size - before
    return { named, forgotten }
  }
}

function keyOf(topicId: Uuid, topic: string | undefined, index: number): string {
  return topicId === ZERO_UUID ? `${topic}:${index}` : `${topicId}:${index}`
}

/** The partitions that a request names, each once: a repeated one counts with its last values. */
function namedIn(request: FetchRequest, nameOf: (topicId: Uuid) => string | undefined): FetchedPartition[] {
  const partitions = new Map<string, FetchedPartition>()
  for (const { topic, topicId, partitions: asked } of request.topics) {
    const name = topicId === ZERO_UUID ? topic : nameOf(topicId)
    for (const partition of asked) {
      partitions.set(keyOf(topicId, topic, partition.partition), {
        topicId,
        topic: name,
        index: partition.partition,
        fetchOffset: partition.fetchOffset,
        maxBytes: partition.partitionMaxBytes,
        currentLeaderEpoch: partition.currentLeaderEpoch,
        lastFetchedEpoch: partition.lastFetchedEpoch,
        followerLogStart: partition.logStartOffset,
        sentHighWatermark: -1,
        sentLogStart: -1,
      })
    }
  }
  return [...partitions.values()]
}
