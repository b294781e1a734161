import type { NodeId, Offset } from '#base/units.ts'
import { type Uuid, ZERO_UUID } from '#base/uuid.ts'
import { divergence } from '#core/partition/divergence.ts'
import { type FetchContext, type FetchedPartition, SESSION_PARTITIONS_MAX } from '#core/session/fetch-sessions.ts'
import { type Answer, type Call, type FileRange, type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode, type ErrorName } from '#protocol/errors.ts'
import type { FetchRequest, FetchResponse } from '#protocol/messages/fetch.ts'
import type { InputOf } from '#protocol/schema.ts'
import type { LogRange } from '#storage/log-range.ts'
import { StorageError } from '#storage/storage-error.ts'
import type { Broker } from '../broker.ts'
import type { Deadline } from '../deadlines.ts'
import type { Looking } from '../looks.ts'
import type { Partition } from '../partitions/partition.ts'
import { preferredReplica } from '../partitions/preferred-replica.ts'
import type { Watcher } from '../partitions/watchers.ts'
import { ReplicaFetchCall } from './01-replica-fetch.ts'

/**
 * Fetch (1), versions 4-18. Whole batches, straight from the files to the socket.
 * - Waits until minBytes are there or maxWaitMs is over; an error in any partition is answered at once.
 * - Sessions (KIP-227): an incremental answer names only what changed.
 * - The first batch of the first partition that has data is served even if it is larger than all limits.
 * - v10 and zstd: below, a zstd batch is UNSUPPORTED_COMPRESSION_TYPE. v12: epochs are checked and divergence is told.
 *   v13: topics by id. v16: the endpoint of a leader that is not here.
 * - v11: a consumer that says its rack may be sent to a replica there, and followers serve consumers (KIP-392). What is
 *   beyond a follower's end may be there: OFFSET_NOT_AVAILABLE. Kafka says OFFSET_OUT_OF_RANGE, by which a consumer that
 *   takes it for the leader begins anew.
 * - Fetches of followers: 01-replica-fetch.
 */
export function fetch(broker: Broker): ServedApi {
  const drawId = () => 1 + Math.floor(broker.world.random.fraction() * 0x7fff_fffe)
  const nameOf = (id: Uuid) => broker.metadata.image.topic(id)?.name
  return serve({
    api: API.Fetch,
    handle(request, call) {
      // Each look goes over all of them at once.
      if (call.elements > SESSION_PARTITIONS_MAX) {
        return { errorCode: ErrorCode.INVALID_REQUEST, sessionId: 0, responses: [] }
      }
      const now = broker.world.clock.monotonic()
      const context = broker.fetchSessions.open(request, call.apiVersion, now, drawId, nameOf)
      if (context.kind === 'refused') return { errorCode: ErrorCode[context.error], sessionId: 0, responses: [] }
      const isFollower = (call.apiVersion >= 15 ? request.replicaState.replicaId : request.replicaId) >= 0
      const fetching = new (isFollower ? ReplicaFetchCall : FetchCall)(broker, request, call, context)
      const looks = isFollower && context.kind === 'incremental' ? context.named : context.partitions
      if (looks.length <= OPENED_AND_LOOKED_AT_ONCE) return fetching.run()
      return broker.turns.next().then(() => fetching.run())
    },
  })
}

type Response = InputOf<typeof FetchResponse>
type TopicResponse = NonNullable<Response['responses']>[number]
type PartitionResponse = NonNullable<TopicResponse['partitions']>[number]

/** What one partition gives in one look. */
interface Look {
  readonly asked: FetchedPartition
  readonly partition: Partition | undefined
  readonly error: ErrorName | undefined
  readonly range: LogRange | undefined
  readonly divergingEpoch: { readonly epoch: number; readonly endOffset: Offset } | undefined
  /** The replica from which the consumer had better read; undefined where it is this one. */
  readonly preferred?: NodeId | undefined
}

const NO_RECORDS = Buffer.alloc(0)
const NO_TOPICS: TopicResponse[] = []
const NO_ENDPOINTS: NonNullable<Response['nodeEndpoints']> = []
/** How long a fetch without patience waits for a disk. */
const DISK_WAIT_MS = 100
/** A fetch of more partitions is looked at in another turn than that in which it was taken apart. */
const OPENED_AND_LOOKED_AT_ONCE = 4096
/** A fetch of no more partitions looks at once when one of them moves. */
const LOOKED_AT_ONCE = 8

/** One fetch: looks, waits for more if it must, looks again, answers. */
class FetchCall implements Watcher, Looking {
  readonly #broker: Broker
  readonly #request: FetchRequest
  readonly #call: Call
  readonly #context: FetchContext & { readonly partitions: readonly FetchedPartition[] }
  #resolve: ((answer: Answer<Response>) => void) | undefined
  #deadline: Deadline | undefined
  #forget: (() => void) | undefined
  #watched: Partition[] = []
  /** A look is under way; `#movedMeanwhile` asks for another one. */
  #looking = false
  #movedMeanwhile = false
  /** The last look found no records anywhere, and nothing has moved since. */
  #foundNothing = false
  #expired = false
  #gone = false

  constructor(broker: Broker, request: FetchRequest, call: Call, context: Exclude<FetchContext, { kind: 'refused' }>) {
    this.#broker = broker
    this.#request = request
    this.#call = call
    this.#context = context
  }

  run(): Answer<Response> | Promise<Answer<Response>> {
    const looks = this.#look()
    if (!(looks instanceof Promise) && this.#suffices(looks)) return this.#answer(looks)
    return new Promise(resolve => {
      this.#resolve = resolve
      // What lies only on the disk is waited for even by who does not want to wait, or he would never get it.
      const waitMs =
        looks instanceof Promise ? Math.max(this.#request.maxWaitMs, DISK_WAIT_MS) : this.#request.maxWaitMs
      this.#deadline = this.#broker.deadlines.after(waitMs, () => this.#expire())
      this.#forget = this.#call.caller.whenGone(() => this.#abandon())
      for (const asked of this.#context.partitions) {
        const found = this.#broker.partitions.find(asked.topic, asked.topicId, asked.index)
        if (typeof found === 'string') continue
        found.watermarkWatchers.add(this)
        this.#watched.push(found)
      }
      if (looks instanceof Promise) this.#await(looks)
      else this.#foundNothing = foundNothing(looks)
    })
  }

  moved(): void {
    if (this.#looking) {
      this.#movedMeanwhile = true
      return
    }
    const { looks } = this.#broker
    const count = this.#watched.length
    // A look goes over all partitions: one for all that move in this turn.
    if (count <= LOOKED_AT_ONCE && looks.mayNow(count)) this.#again()
    else looks.soon(this, count)
  }

  /** Some of the partitions have moved, or the time is over. */
  lookNow(): void {
    if (this.#resolve === undefined || this.#gone) return
    if (this.#expired) this.#end()
    else if (this.#looking) this.#movedMeanwhile = true
    else this.#again()
  }

  #again(): void {
    const looks = this.#look()
    this.#foundNothing = !(looks instanceof Promise) && foundNothing(looks)
    if (looks instanceof Promise) this.#await(looks)
    else if (this.#expired || this.#suffices(looks)) this.#finish(looks)
  }

  #await(looks: Promise<Look[]>): void {
    this.#looking = true
    looks.then(found => {
      this.#looking = false
      if (this.#gone || this.#resolve === undefined) return
      if (this.#expired || this.#suffices(found)) this.#finish(found)
      else if (this.#movedMeanwhile) {
        this.#movedMeanwhile = false
        this.#again()
      }
    })
  }

  /** The time is over: what can be had at once is answered; a disk that is slow is not waited for. */
  #expire(): void {
    this.#expired = true
    // Most long polls end here: the answer names nothing, and nobody need look again to know.
    const context = this.#context
    if (this.#foundNothing && context.kind === 'incremental' && this.#toldAll()) {
      this.#settle({
        errorCode: ErrorCode.NONE,
        sessionId: context.session.id,
        responses: NO_TOPICS,
        nodeEndpoints: NO_ENDPOINTS,
      })
      return
    }
    const count = context.partitions.length
    if (this.#broker.looks.mayNow(count)) this.#end()
    else this.#broker.looks.soon(this, count)
  }

  #end(): void {
    if (this.#looking) {
      this.#finish(this.#context.partitions.map(asked => this.#judge(asked, () => undefined) as Look))
      return
    }
    this.#again()
    // The data lies where only a slow look finds it: there was no data before, so an empty answer is the truth.
    if (this.#resolve !== undefined) this.#end()
  }

  #abandon(): void {
    this.#gone = true
    this.#stopWaiting()
  }

  #stopWaiting(): void {
    this.#broker.deadlines.cancel(this.#deadline)
    this.#forget?.()
    this.#broker.looks.cancel(this)
    for (const partition of this.#watched) partition.watermarkWatchers.delete(this)
    this.#watched = []
  }

  /** Whether the session's client knows of every partition what it would be told. */
  #toldAll(): boolean {
    const { partitions } = this.#context
    const watched = this.#watched
    if (watched.length !== partitions.length) return false
    for (let index = 0; index < watched.length; index++) {
      if (!isTold(partitions[index] as FetchedPartition, watched[index] as Partition)) return false
    }
    return true
  }

  #finish(looks: Look[]): void {
    if (this.#resolve !== undefined) this.#settle(this.#answer(looks))
  }

  #settle(answer: Response): void {
    const resolve = this.#resolve
    if (resolve === undefined) return
    this.#resolve = undefined
    this.#stopWaiting()
    resolve(answer)
  }

  #suffices(looks: readonly Look[]): boolean {
    if (this.#request.maxWaitMs <= 0 || looks.length === 0) return true
    let bytes = 0
    for (const look of looks) {
      if (look.error !== undefined || look.divergingEpoch !== undefined || look.preferred !== undefined) return true
      bytes += look.range?.size ?? 0
    }
    return bytes >= this.#request.minBytes
  }

  /** Looks at every partition once. A promise only when some position has to be read from a disk. */
  #look(): Look[] | Promise<Look[]> {
    let bytesLeft = Math.min(this.#request.maxBytes, this.#broker.configs.number('fetch.max.bytes'))
    let any = false
    const looks: (Look | Promise<Look>)[] = []
    let slow = false
    for (const asked of this.#context.partitions) {
      const look = this.#judge(asked, partition => {
        if (bytesLeft <= 0 && any) return undefined
        const upTo = this.#request.isolationLevel === 1 ? partition.lastStableOffset : partition.highWatermark
        const bytes = Math.min(asked.maxBytes, bytesLeft)
        const { log } = partition
        return any ? log.readFitting(asked.fetchOffset, bytes, upTo) : log.read(asked.fetchOffset, bytes, upTo)
      })
      looks.push(look)
      if (look instanceof Promise) {
        // What it will give is not known yet; the limits that are left count it as full.
        slow = true
        any = true
        bytesLeft -= Math.min(asked.maxBytes, bytesLeft)
      } else if (look.range !== undefined) {
        any = true
        bytesLeft -= look.range.size
      }
    }
    return slow ? Promise.all(looks) : (looks as Look[])
  }

  #judge(
    asked: FetchedPartition,
    read: (partition: Partition) => LogRange | undefined | Promise<LogRange | undefined>,
  ): Look | Promise<Look> {
    if (asked.topic === undefined || (this.#call.apiVersion >= 13 && asked.topicId === ZERO_UUID)) {
      return refused(asked, 'UNKNOWN_TOPIC_ID')
    }
    const found = this.#broker.partitions.find(asked.topic, asked.topicId, asked.index)
    if (typeof found === 'string') return refused(asked, found)
    // What this replica knows to be committed may be read here as well; old clients would not know what that means.
    const isServed = found.leads || (this.#call.apiVersion >= 11 && found.leaderId >= 0)
    if (!isServed) return refused(asked, 'NOT_LEADER_OR_FOLLOWER')
    const epochError = found.checkEpoch(Math.max(asked.currentLeaderEpoch, -1))
    if (epochError !== undefined) return refused(asked, epochError, found)
    if (this.#call.apiVersion < 10 && this.#broker.partitions.terms(found).compressionType === 'zstd') {
      return refused(asked, 'UNSUPPORTED_COMPRESSION_TYPE', found)
    }
    const { log } = found
    const { fetchOffset } = asked
    // A follower may lack what is there: only the leader knows where the log ends (KIP-392).
    if (fetchOffset > log.endOffset && !found.leads) return refused(asked, 'OFFSET_NOT_AVAILABLE', found)
    if (fetchOffset < log.startOffset) return refused(asked, 'OFFSET_OUT_OF_RANGE', found)
    const { lastFetchedEpoch } = asked
    // Of an epoch that the leader never heard of, a reader is told as much as by Kafka.
    const isStrange = lastFetchedEpoch >= 0 && log.endOffsetForEpoch(lastFetchedEpoch) === undefined
    const divergingEpoch = isStrange ? 'unknown' : divergence(log, fetchOffset, lastFetchedEpoch)
    if (divergingEpoch !== undefined) {
      // One that has yet to cut its log to the leader's knows no better.
      if (!found.leads) return refused(asked, 'OFFSET_NOT_AVAILABLE', found)
      if (divergingEpoch === 'unknown') return refused(asked, 'OFFSET_OUT_OF_RANGE', found)
      return { asked, partition: found, error: undefined, range: undefined, divergingEpoch }
    }
    if (fetchOffset > log.endOffset) return refused(asked, 'OFFSET_OUT_OF_RANGE', found)
    const { rackId } = this.#request
    const preferred = rackId === '' ? undefined : preferredReplica(this.#broker, found, fetchOffset, rackId)
    if (preferred !== undefined) return { ...looked(asked, found, undefined), preferred }
    const range = read(found)
    if (!(range instanceof Promise)) return looked(asked, found, range)
    return range.then(
      late => looked(asked, found, late),
      error => {
        if (!(error instanceof StorageError)) throw error
        return refused(asked, 'KAFKA_STORAGE_ERROR', found)
      },
    )
  }

  #answer(looks: readonly Look[]): Response {
    const context = this.#context
    const topics = new Map<string, { topic: string; topicId: string; partitions: PartitionResponse[] }>()
    for (const look of looks) {
      const { asked } = look
      if (context.kind === 'incremental' && !this.#hasNews(look)) continue
      const key = asked.topicId === ZERO_UUID ? `${asked.topic}` : asked.topicId
      let topic = topics.get(key)
      if (topic === undefined) {
        topic = { topic: asked.topic ?? '', topicId: asked.topicId, partitions: [] }
        topics.set(key, topic)
      }
      topic.partitions.push(this.#partitionResponse(look))
    }
    if (context.kind === 'incremental') {
      for (const look of looks) if (look.range !== undefined) context.session.serveLast(look.asked)
    }
    const leaders = [...topics.values()].flatMap(({ partitions }) =>
      partitions.map(partition => partition.currentLeader?.leaderId ?? -1),
    )
    return {
      errorCode: ErrorCode.NONE,
      sessionId: context.kind === 'full' || context.kind === 'incremental' ? context.session.id : 0,
      responses: [...topics.values()],
      nodeEndpoints: this.#call.apiVersion >= 16 ? this.#broker.leaderEndpoints(leaders, this.#call.caller) : [],
    }
  }

  /** Whether an incremental answer must name the partition; notes what the client is told. */
  #hasNews(look: Look): boolean {
    const { asked, partition } = look
    if (partition === undefined || look.error !== undefined || look.divergingEpoch !== undefined) return true
    if (look.preferred !== undefined) return true
    return look.range !== undefined || !isTold(asked, partition)
  }

  #partitionResponse(look: Look): PartitionResponse {
    const { asked, partition, error } = look
    if (partition === undefined || error !== undefined) {
      // An error ends what the session knows: the next answer without one tells everything again.
      asked.sentHighWatermark = -1
      const movable =
        this.#call.apiVersion >= 12 && (error === 'NOT_LEADER_OR_FOLLOWER' || error === 'FENCED_LEADER_EPOCH')
      const image = movable ? this.#broker.partitions.imageOf(asked.topic, asked.topicId, asked.index) : undefined
      return {
        partitionIndex: asked.index,
        errorCode: ErrorCode[error ?? 'UNKNOWN_TOPIC_OR_PARTITION'],
        highWatermark: -1,
        lastStableOffset: -1,
        logStartOffset: -1,
        ...(image !== undefined && { currentLeader: { leaderId: image.leader, leaderEpoch: image.leaderEpoch } }),
        // Null where a log was asked, empty where there was none to ask: as Kafka has it.
        ...(partition !== undefined && { abortedTransactions: null }),
        records: NO_RECORDS,
      }
    }
    asked.sentHighWatermark = partition.highWatermark
    asked.sentLogStart = partition.log.startOffset
    const { range } = look
    const records: FileRange | Buffer =
      range === undefined ? NO_RECORDS : { file: range.file, position: range.position, size: range.size }
    return {
      partitionIndex: asked.index,
      errorCode: ErrorCode.NONE,
      highWatermark: partition.highWatermark,
      lastStableOffset: partition.lastStableOffset,
      logStartOffset: partition.log.startOffset,
      ...(look.divergingEpoch !== undefined && { divergingEpoch: look.divergingEpoch }),
      ...(look.preferred !== undefined && { preferredReadReplica: look.preferred }),
      abortedTransactions: this.#request.isolationLevel === 1 ? [] : null,
      records,
    }
  }
}

function refused(asked: FetchedPartition, error: ErrorName, partition?: Partition): Look {
  return { asked, partition, error, range: undefined, divergingEpoch: undefined }
}

function looked(asked: FetchedPartition, partition: Partition, range: LogRange | undefined): Look {
  return { asked, partition, error: undefined, range, divergingEpoch: undefined }
}

/** A range may not be kept for as long as a fetch may wait; nothing can. */
function foundNothing(looks: readonly Look[]): boolean {
  return looks.every(look => look.range === undefined && look.error === undefined && look.divergingEpoch === undefined)
}

function isTold(asked: FetchedPartition, { highWatermark, log }: Partition): boolean {
  return asked.sentHighWatermark === highWatermark && asked.sentLogStart === log.startOffset
}
