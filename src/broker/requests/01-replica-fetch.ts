import type { Millis, NodeId } from '#base/units.ts'
import { ZERO_UUID } from '#base/uuid.ts'
import { divergence } from '#core/partition/divergence.ts'
import type { FetchContext, FetchedPartition } from '#core/session/fetch-sessions.ts'
import type { Answer, Call, FileRange } from '#network/service.ts'
import { ErrorCode, type ErrorName } from '#protocol/errors.ts'
import type { FetchRequest, FetchResponse } from '#protocol/messages/fetch.ts'
import type { InputOf } from '#protocol/schema.ts'
import { StorageError } from '#storage/storage-error.ts'
import type { Broker } from '../broker.ts'
import type { Deadline } from '../deadlines.ts'
import type { Partition } from '../partitions/partition.ts'
import { isAtRest, type Look, type Place, type PlacesListener, placesOf, ReplicaPlaces } from './01-replica-places.ts'

type Response = InputOf<typeof FetchResponse>
type TopicResponse = NonNullable<Response['responses']>[number]
type PartitionResponse = NonNullable<TopicResponse['partitions']>[number]

const NO_RECORDS = Buffer.alloc(0)
/** How long a disk is waited for that holds what a follower lacks. */
const DISK_WAIT_MS: Millis = 2000

/**
 * A follower's fetch: says how far the follower is in every partition, which may move their watermarks, and takes what
 * lies behind that, to the end of the log. It looks only where something moved since the session's last fetch, and when
 * there is nothing it waits until something does: a follower of thousands of partitions fetches often.
 */
export class ReplicaFetchCall implements PlacesListener {
  readonly #broker: Broker
  readonly #request: FetchRequest
  readonly #call: Call
  readonly #context: Exclude<FetchContext, { kind: 'refused' }>
  readonly #replica: NodeId
  readonly #brokerEpoch: number
  readonly #places: ReplicaPlaces
  #bytes = 0
  #suffices = false
  /** Until a partition that is throttled may be read again. */
  #throttledMs: Millis = Number.MAX_SAFE_INTEGER
  /** Looks that wait for a disk. */
  #slow: Promise<void>[] = []
  #resolve: ((answer: Answer<Response>) => void) | undefined
  #deadline: Deadline | undefined
  #forget: (() => void) | undefined
  readonly #moved = new Set<Place>()
  #isPlanned = false

  constructor(broker: Broker, request: FetchRequest, call: Call, context: Exclude<FetchContext, { kind: 'refused' }>) {
    this.#broker = broker
    this.#request = request
    this.#call = call
    this.#context = context
    const { replicaId, replicaEpoch } = request.replicaState
    this.#replica = call.apiVersion >= 15 ? replicaId : request.replicaId
    this.#brokerEpoch = call.apiVersion >= 15 ? replicaEpoch : -1
    this.#places = this.#openPlaces()
  }

  run(): Answer<Response> | Promise<Answer<Response>> {
    const places = this.#places
    // A life of the follower's broker that the cluster has seen the end of says nothing of what its successor has.
    const known = this.#broker.metadata.image.broker(this.#replica)
    const isStale = this.#brokerEpoch !== -1 && known !== undefined && known.epoch > this.#brokerEpoch
    if (isStale) places.wakeAll()
    places.livesAs(this.#brokerEpoch)
    if (!isStale) places.contact.at = this.#broker.world.clock.monotonic()
    for (const place of places.awake) this.#look(place, isStale ? 'NOT_LEADER_OR_FOLLOWER' : undefined, true)
    if (this.#slow.length > 0) return this.#patiently()
    const { maxWaitMs } = this.#request
    if (this.#suffices || maxWaitMs <= 0 || this.#bytes >= this.#request.minBytes) return this.#answer()
    return new Promise(resolve => {
      this.#resolve = resolve
      this.#deadline = this.#broker.deadlines.after(Math.min(maxWaitMs, this.#throttledMs), () => this.#expire())
      this.#forget = this.#call.caller.whenGone(() => this.#stopWaiting())
      places.listener = this
    })
  }

  #openPlaces(): ReplicaPlaces {
    const context = this.#context
    const { places, isNew } =
      context.kind === 'sessionless'
        ? { places: new ReplicaPlaces(), isNew: true }
        : placesOf(context.session, this.#call.caller)
    if (context.kind === 'incremental') for (const asked of context.forgotten) places.forget(asked)
    const asks = context.kind === 'incremental' && !isNew ? context.named : context.partitions
    for (const asked of asks) places.ask(asked)
    return places
  }

  moved(place: Place): void {
    if (this.#resolve === undefined) return
    this.#moved.add(place)
    if (this.#isPlanned) return
    this.#isPlanned = true
    // Behind what runs now, which may move others: one request has batches of several partitions.
    queueMicrotask(() => {
      this.#isPlanned = false
      this.#again()
    })
  }

  /** Looks where something moved. */
  #again(): void {
    if (this.#resolve === undefined) return
    // With a minimum the ranges that were found already may be longer by now.
    if (this.#request.minBytes > 1) this.#lookEverywhere()
    else for (const place of this.#moved) this.#look(place, undefined, false)
    this.#moved.clear()
    if (this.#suffices || this.#slow.length > 0 || this.#bytes >= this.#request.minBytes) this.#finish()
  }

  #lookEverywhere(): void {
    this.#bytes = 0
    for (const place of this.#places.awake) this.#look(place, undefined, false)
  }

  #expire(): void {
    if (this.#throttledMs < this.#request.maxWaitMs || this.#bytes > 0) this.#lookEverywhere()
    this.#finish()
  }

  #finish(): void {
    const resolve = this.#resolve
    if (resolve === undefined) return
    this.#stopWaiting()
    resolve(this.#slow.length > 0 ? (this.#patiently() as unknown as Answer<Response>) : this.#answer())
  }

  #stopWaiting(): void {
    this.#resolve = undefined
    this.#broker.deadlines.cancel(this.#deadline)
    this.#forget?.()
    if (this.#places.listener === this) this.#places.listener = undefined
    if (this.#context.kind === 'sessionless') for (const place of this.#places.awake) place.watch(undefined)
  }

  /** What a disk has not given by then is had with the next fetch. */
  async #patiently(): Promise<Answer<Response>> {
    const slow = this.#slow
    this.#slow = []
    let deadline: Deadline | undefined
    const patience = new Promise<void>(resolve => {
      deadline = this.#broker.deadlines.after(DISK_WAIT_MS, resolve)
    })
    await Promise.race([Promise.all(slow), patience])
    this.#broker.deadlines.cancel(deadline)
    return this.#answer()
  }

  #look(place: Place, refusal: ErrorName | undefined, isFirst: boolean): void {
    const { asked } = place
    const found = refusal ?? this.#find(asked)
    if (typeof found === 'string') {
      place.look = { ...NOTHING, error: found }
      this.#suffices = true
      return
    }
    place.watch(found)
    const look = this.#read(place, found, isFirst)
    place.look = look
    if (look.error !== undefined || look.divergingEpoch !== undefined) this.#suffices = true
    else if (this.#hasUrgentNews(asked, found)) this.#suffices = true
    this.#bytes += look.range?.size ?? 0
  }

  #find(asked: FetchedPartition): Partition | ErrorName {
    if (asked.topic === undefined || (this.#call.apiVersion >= 13 && asked.topicId === ZERO_UUID)) {
      return 'UNKNOWN_TOPIC_ID'
    }
    const found = this.#broker.partitions.find(asked.topic, asked.topicId, asked.index)
    if (typeof found === 'string') return found
    if (!found.leads) return 'NOT_LEADER_OR_FOLLOWER'
    return found.checkEpoch(Math.max(asked.currentLeaderEpoch, -1)) ?? found
  }

  #read(place: Place, partition: Partition, isFirst: boolean): Look {
    const { asked } = place
    const { log } = partition
    const { fetchOffset, lastFetchedEpoch } = asked
    if (fetchOffset < log.startOffset || fetchOffset > log.endOffset) {
      // Where another history is the reason, the follower is told which, so that it cuts no more than it has to.
      const diverging = fetchOffset < log.startOffset ? undefined : divergence(log, fetchOffset, lastFetchedEpoch)
      if (typeof diverging === 'object') return { ...NOTHING, partition, divergingEpoch: diverging }
      return { ...NOTHING, partition, error: 'OFFSET_OUT_OF_RANGE' }
    }
    if (isFirst && lastFetchedEpoch >= 0) {
      const diverging = divergence(log, fetchOffset, lastFetchedEpoch)
      if (diverging === 'unknown') return { ...NOTHING, partition, error: 'OFFSET_OUT_OF_RANGE' }
      if (diverging !== undefined) return { ...NOTHING, partition, divergingEpoch: diverging }
    }
    if (isFirst && !this.#isReplica(partition, asked)) {
      // A replica that the metadata here does not know yet, if ever: it asks again.
      const error = asked.currentLeaderEpoch >= 0 ? 'UNKNOWN_LEADER_EPOCH' : 'NOT_LEADER_OR_FOLLOWER'
      return { ...NOTHING, partition, error }
    }
    if (fetchOffset === log.endOffset) return { ...NOTHING, partition }
    const { throttle } = this.#broker.partitions
    const waitMs = throttle.leaderWaitMs(partition, this.#replica, this.#broker.world.clock.monotonic())
    if (waitMs > 0) {
      this.#throttledMs = Math.min(this.#throttledMs, waitMs)
      return { ...NOTHING, partition }
    }
    const bytesLeft = this.#request.maxBytes - this.#bytes
    if (bytesLeft <= 0 && this.#bytes > 0) return { ...NOTHING, partition }
    const bytes = Math.min(asked.maxBytes, bytesLeft)
    const range =
      this.#bytes === 0
        ? log.read(fetchOffset, bytes, log.endOffset)
        : log.readFitting(fetchOffset, bytes, log.endOffset)
    if (!(range instanceof Promise)) return { ...NOTHING, partition, range }
    // What it will give is not known yet; the limits that are left count it as full.
    this.#bytes += bytes
    const look: Look = { ...NOTHING, partition }
    // Nobody waited for it where the place was looked at again since: that may be from another offset, and of a log that was cut.
    const found = (late: Look): void => {
      if (place.look === look) place.look = late
    }
    this.#slow.push(
      range.then(
        late => found({ ...look, range: late }),
        error => {
          if (!(error instanceof StorageError)) throw error
          found({ ...look, error: 'KAFKA_STORAGE_ERROR' })
        },
      ),
    )
    return look
  }

  #isReplica(partition: Partition, { fetchOffset, followerLogStart }: FetchedPartition): boolean {
    const contact = this.#context.kind === 'sessionless' ? undefined : this.#places.contact
    return partition.followerFetched(this.#replica, fetchOffset, followerLogStart, this.#brokerEpoch, contact)
  }

  /**
   * A start that has moved is waited for by who deletes, a watermark by consumers where they read from followers. Else the
   * watermark travels with the next records.
   */
  #hasUrgentNews(asked: FetchedPartition, partition: Partition): boolean {
    const { startOffset } = partition.log
    // One that still has what is deleted here is let in once it has heard of that.
    const isBehind = asked.followerLogStart >= 0 && asked.followerLogStart < startOffset
    if (asked.sentLogStart < 0 ? isBehind : asked.sentLogStart !== startOffset) return true
    if (asked.sentHighWatermark < 0) return false
    return asked.sentHighWatermark !== partition.highWatermark && this.#broker.followersServeConsumers
  }

  #answer(): Response {
    const context = this.#context
    const topics = new Map<string, { topic: string; topicId: string; partitions: PartitionResponse[] }>()
    const served: Place[] = []
    for (const place of this.#places.awake) {
      const { asked, look } = place
      if (context.kind === 'incremental' && !hasNews(asked, look)) {
        if (isAtRest(place, this.#replica)) this.#places.rest(place)
        continue
      }
      const key = asked.topicId === ZERO_UUID ? `${asked.topic}` : asked.topicId
      let topic = topics.get(key)
      if (topic === undefined) {
        topic = { topic: asked.topic ?? '', topicId: asked.topicId, partitions: [] }
        topics.set(key, topic)
      }
      topic.partitions.push(this.#partitionResponse(asked, look))
      if (look.range !== undefined) served.push(place)
      else if (context.kind !== 'sessionless' && isAtRest(place, this.#replica)) this.#places.rest(place)
    }
    if (context.kind === 'sessionless') this.#places.close()
    else for (const place of served) this.#places.serveLast(place)
    return {
      errorCode: ErrorCode.NONE,
      sessionId: context.kind === 'sessionless' ? 0 : context.session.id,
      responses: [...topics.values()],
    }
  }

  #partitionResponse(asked: FetchedPartition, { partition, error, range, divergingEpoch }: Look): PartitionResponse {
    if (partition === undefined || error !== undefined) {
      // An error ends what the session knows: the next answer without one tells everything again.
      asked.sentHighWatermark = -1
      return {
        partitionIndex: asked.index,
        errorCode: ErrorCode[error ?? 'UNKNOWN_TOPIC_OR_PARTITION'],
        highWatermark: -1,
        records: NO_RECORDS,
      }
    }
    asked.sentHighWatermark = partition.highWatermark
    asked.sentLogStart = partition.log.startOffset
    if (range !== undefined) this.#broker.partitions.throttle.led(partition, this.#replica, range.size)
    const records: FileRange | Buffer =
      range === undefined ? NO_RECORDS : { file: range.file, position: range.position, size: range.size }
    return {
      partitionIndex: asked.index,
      errorCode: ErrorCode.NONE,
      highWatermark: partition.highWatermark,
      lastStableOffset: partition.lastStableOffset,
      logStartOffset: partition.log.startOffset,
      ...(divergingEpoch !== undefined && { divergingEpoch }),
      abortedTransactions: null,
      records,
    }
  }
}

const NOTHING: Look = { partition: undefined, error: undefined, range: undefined, divergingEpoch: undefined }

function hasNews(asked: FetchedPartition, { partition, error, range, divergingEpoch }: Look): boolean {
  if (partition === undefined || error !== undefined || range !== undefined || divergingEpoch !== undefined) return true
  return asked.sentHighWatermark !== partition.highWatermark || asked.sentLogStart !== partition.log.startOffset
}
