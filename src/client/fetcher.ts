import { DecodeError } from '#base/bytes.ts'
import type { Epoch, Millis, NodeId, Offset } from '#base/units.ts'
import { ZERO_UUID } from '#base/uuid.ts'
import { FetchSession, type SessionRequest, type WantedPartition } from '#core/consumer/fetch-session.ts'
import { FetchedRecords } from '#core/consumer/fetched.ts'
import { ErrorCode, errorOf } from '#protocol/errors.ts'
import { FetchRequest, FetchResponse } from '#protocol/messages/fetch.ts'
import { listOffsets, type OffsetSpec } from './admin/offsets.ts'
import type { Client } from './client.ts'
import { brokerError, ClientError, clientError, mayRetry } from './errors.ts'
import type { TopicPartition } from './per-leader.ts'
import type { ConsumedRecord } from './records.ts'

const FETCH = { request: FetchRequest, response: FetchResponse }
/** The last version that names topics by name. */
const FETCH_BY_NAME_MAX = 12

export interface FetcherOptions {
  readonly isolation: 'read_uncommitted' | 'read_committed'
  /** Where to read on when there is no position, or none that exists; `none` makes that an error. */
  readonly offsetReset: OffsetSpec | 'none'
  readonly minBytes: number
  readonly maxWaitMs: Millis
  readonly fetchBytesMax: number
  readonly partitionBytesMax: number
}

interface Tracked extends TopicPartition {
  /** The offset that is handed out next; undefined until it is known. */
  position: Offset | undefined
  /** How to find the position. */
  seek: OffsetSpec | 'none'
  fetched: FetchedRecords | undefined
  highWatermark: Offset
  /** After an error: not before this. */
  notBefore: Millis
}

/** Reads partitions from their leaders, one fetch per broker at a time, each only when the one before was used up. */
export class Fetcher {
  readonly #client: Client
  readonly #options: FetcherOptions
  readonly #partitions = new Map<string, Tracked>()
  readonly #purpose: string
  readonly #sessions = new Map<NodeId, FetchSession>()
  readonly #fetching = new Set<NodeId>()
  #seeking = false
  #error: unknown
  #wake: (() => void) | undefined
  #closed = false
  /** Where the next look for records begins, so that every partition gets its turn. */
  #turn = 0

  constructor(client: Client, options: FetcherOptions) {
    this.#client = client
    this.#options = options
    this.#purpose = client.brokers.claim('fetch')
  }

  get partitions(): readonly TopicPartition[] {
    return [...this.#partitions.values()].map(({ topic, partition }) => ({ topic, partition }))
  }

  /** Begins to read at an offset, or at a place that is yet to be found. */
  add(of: TopicPartition, from: Offset | OffsetSpec | 'none'): void {
    const known = typeof from === 'number'
    this.#partitions.set(keyOf(of), {
      topic: of.topic,
      partition: of.partition,
      position: known ? from : undefined,
      seek: known ? this.#options.offsetReset : from,
      fetched: undefined,
      highWatermark: -1,
      notBefore: 0,
    })
  }

  remove(of: TopicPartition): void {
    this.#partitions.delete(keyOf(of))
  }

  /** Where the application is; undefined while that is not known. */
  position(of: TopicPartition): Offset | undefined {
    return this.#partitions.get(keyOf(of))?.position
  }

  /** As of the last fetch; -1 before. */
  highWatermark(of: TopicPartition): Offset {
    return this.#partitions.get(keyOf(of))?.highWatermark ?? -1
  }

  /** Up to `max` records that are here, or that come in time. Rejects with what only the application can decide. */
  async poll(max: number, timeoutMs: Millis): Promise<ConsumedRecord[]> {
    const { clock } = this.#client.world
    const until = clock.monotonic() + timeoutMs
    for (;;) {
      this.#throwIfFailed()
      const records = this.#take(max)
      this.#fetchMore()
      const left = until - clock.monotonic()
      if (records.length > 0 || left <= 0 || this.#closed) return records
      await this.#news(Math.min(left, this.#options.maxWaitMs))
    }
  }

  close(): void {
    this.#closed = true
    this.#client.brokers.release(this.#purpose)
    this.#notify()
  }

  /** Ends a wait in `poll` early: something else than records has come. */
  interrupt(): void {
    this.#notify()
  }

  #throwIfFailed(): void {
    const error = this.#error
    this.#error = undefined
    if (error !== undefined) throw error
  }

  #take(max: number): ConsumedRecord[] {
    const records: ConsumedRecord[] = []
    const tracked = [...this.#partitions.values()]
    for (let step = 0; step < tracked.length && records.length < max; step++) {
      const each = tracked[(this.#turn + step) % tracked.length] as Tracked
      this.#takeFrom(each, records, max)
      // A partition that has more keeps its turn only until the next poll.
      if (records.length >= max) this.#turn = (this.#turn + step + 1) % tracked.length
    }
    return records
  }

  #takeFrom(each: Tracked, records: ConsumedRecord[], max: number): void {
    const { topic, partition, fetched } = each
    if (fetched === undefined) return
    try {
      while (records.length < max) {
        const record = fetched.next()
        each.position = fetched.position
        if (record === undefined) {
          each.fetched = undefined
          return
        }
        records.push({ topic, partition, ...record })
      }
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error
      each.fetched = undefined
      const message = `partition ${keyOf(each)} holds records that cannot be read: ${error.message}`
      this.#error = new ClientError('CORRUPT_MESSAGE', message, { cause: error, hint: 'seek behind them to go on' })
    }
  }

  #fetchMore(): void {
    if (this.#closed) return
    const now = this.#client.world.clock.monotonic()
    const byLeader = new Map<NodeId, Tracked[]>()
    const lost: Tracked[] = []
    const stale = new Set<string>()
    for (const each of this.#partitions.values()) {
      if (each.notBefore > now) continue
      const leader = this.#leaderOf(each)
      if (each.position === undefined) lost.push(each)
      else if (leader < 0) stale.add(each.topic)
      else {
        const list = byLeader.get(leader)
        if (list === undefined) byLeader.set(leader, [each])
        else list.push(each)
      }
    }
    if (stale.size > 0 || lost.length > 0) void this.#find([...stale], lost)
    for (const [leader, list] of byLeader) {
      if (this.#fetching.has(leader) || list.some(({ fetched }) => fetched !== undefined)) continue
      this.#fetching.add(leader)
      void this.#fetch(leader, list)
    }
  }

  /** Never rejects. */
  async #find(stale: readonly string[], lost: readonly Tracked[]): Promise<void> {
    if (this.#seeking) return
    this.#seeking = true
    try {
      if (stale.length > 0) {
        await this.#client.metadata.refresh(stale)
        this.#rest(stale)
      }
      const unset = lost.filter(({ seek }) => seek === 'none')
      if (unset[0] !== undefined) {
        const message = `partition ${keyOf(unset[0])} has no position and offsetReset is "none"`
        throw new ClientError('OFFSET_OUT_OF_RANGE', message, { hint: 'seek, or choose earliest or latest' })
      }
      const wanted = lost.map(({ topic, partition, seek }) => ({ topic, partition, spec: seek as OffsetSpec }))
      if (wanted.length > 0) await this.#seek(wanted)
    } catch (error) {
      if (mayRetry(error)) await this.#client.pause(this.#client.options.retryBackoffMs)
      else this.#error = error
    } finally {
      this.#seeking = false
      this.#notify()
    }
  }

  /** What has no leader yet is not asked for again as fast as answers come. */
  #rest(topics: readonly string[]): void {
    const { world, options } = this.#client
    const until = world.clock.monotonic() + options.retryBackoffMs
    for (const each of this.#partitions.values()) {
      if (topics.includes(each.topic) && this.#leaderOf(each) < 0) each.notBefore = Math.max(each.notBefore, until)
    }
  }

  async #seek(wanted: readonly (TopicPartition & { readonly spec: OffsetSpec })[]): Promise<void> {
    const committed = this.#options.isolation === 'read_committed'
    const found = await listOffsets(this.#client, wanted, { committed })
    // Nothing is at or after the time: what comes next is.
    const beyond = found.filter(({ offset }) => offset < 0).map(each => ({ ...each, spec: 'latest' as const }))
    const ends = beyond.length > 0 ? await listOffsets(this.#client, beyond, { committed }) : []
    for (const each of [...found, ...ends]) {
      const tracked = this.#partitions.get(keyOf(each))
      if (tracked === undefined || tracked.position !== undefined || each.offset < 0) continue
      tracked.position = each.offset
      tracked.seek = this.#options.offsetReset
    }
  }

  /** Never rejects. */
  async #fetch(leader: NodeId, list: readonly Tracked[]): Promise<void> {
    let session = this.#sessions.get(leader)
    if (session === undefined) {
      session = new FetchSession()
      this.#sessions.set(leader, session)
    }
    try {
      const channel = await this.#client.brokers.to(leader, this.#purpose)
      // While it was dialled another may have become the leader, or what is known may have grown too old to be used: asked
      // without an epoch, whoever led before could not tell that it is not meant any more.
      const wanted = list.filter(each => this.#leaderOf(each) === leader).map(each => this.#want(each))
      if (wanted.length === 0) return
      const cap = wanted.some(({ topicId }) => topicId === ZERO_UUID) ? FETCH_BY_NAME_MAX : undefined
      const version = channel.versionFor(FetchRequest, cap)
      if (version === undefined) throw channel.unsupported(FetchRequest)
      const request = session.next(wanted)
      const { maxWaitMs } = this.#options
      const answer = await channel.call(FETCH, version, this.#body(request), {
        timeoutMs: maxWaitMs + this.#client.options.requestTimeoutMs,
      })
      if (session.answered(answer.errorCode, answer.sessionId)) this.#took(answer, wanted, version)
      else if (answer.errorCode !== ErrorCode.FETCH_SESSION_ID_NOT_FOUND) await this.#stumbled(list, answer.errorCode)
    } catch (error) {
      session.failed()
      if (this.#closed) return
      const failure = clientError(error)
      if (!mayRetry(failure)) this.#error = failure
      await this.#stumbled(list, ErrorCode.NONE)
    } finally {
      this.#fetching.delete(leader)
      this.#notify()
    }
  }

  /** -1 where that is not known. */
  #leaderOf({ topic, partition }: Tracked): NodeId {
    return this.#client.metadata.remembered(topic)?.partitions[partition]?.leader ?? -1
  }

  #want({ topic, partition, position }: Tracked): WantedPartition {
    const known = this.#client.metadata.remembered(topic)
    return {
      topic,
      topicId: known?.id ?? ZERO_UUID,
      partition,
      fetchOffset: position ?? 0,
      leaderEpoch: known?.partitions[partition]?.leaderEpoch ?? -1,
      maxBytes: this.#options.partitionBytesMax,
    }
  }

  #body({ sessionId, sessionEpoch, partitions, forgotten }: SessionRequest) {
    const { maxWaitMs, minBytes, fetchBytesMax, isolation } = this.#options
    return {
      replicaId: -1,
      maxWaitMs,
      minBytes,
      maxBytes: fetchBytesMax,
      isolationLevel: isolation === 'read_committed' ? 1 : 0,
      sessionId,
      sessionEpoch,
      topics: [...Map.groupBy(partitions, ({ topic }) => topic)].map(([topic, list]) => ({
        topic,
        topicId: list[0]?.topicId ?? ZERO_UUID,
        partitions: list.map(({ partition, leaderEpoch, fetchOffset, maxBytes }) => ({
          partition,
          currentLeaderEpoch: leaderEpoch,
          fetchOffset,
          partitionMaxBytes: maxBytes,
        })),
      })),
      forgottenTopicsData: [...Map.groupBy(forgotten, ({ topicId, topic }) => `${topicId} ${topic}`).values()].map(
        list => ({
          topic: list[0]?.topic ?? '',
          topicId: list[0]?.topicId ?? ZERO_UUID,
          partitions: list.map(({ partition }) => partition),
        }),
      ),
    }
  }

  #took(answer: FetchResponse, wanted: readonly WantedPartition[], version: number): void {
    const now = this.#client.world.clock.monotonic()
    const names = new Map(wanted.map(({ topicId, topic }) => [topicId, topic]))
    const asked = new Map(wanted.map(each => [keyOf(each), each.fetchOffset]))
    const stale = new Set<string>()
    for (const { topic: name, topicId, partitions } of answer.responses) {
      const topic = version > FETCH_BY_NAME_MAX ? names.get(topicId) : name
      if (topic === undefined) continue
      for (const each of partitions) {
        const tracked = this.#partitions.get(keyOf({ topic, partition: each.partitionIndex }))
        // It may have been taken away, or moved elsewhere by a seek, in the meantime.
        if (tracked === undefined || tracked.position !== asked.get(keyOf(tracked))) continue
        if (each.errorCode === ErrorCode.NONE) this.#filled(tracked, each)
        else if (each.errorCode === ErrorCode.OFFSET_OUT_OF_RANGE) this.#outOfRange(tracked)
        else if (errorOf(each.errorCode).retriable) {
          stale.add(topic)
          tracked.notBefore = now + this.#client.options.retryBackoffMs
        } else this.#error = brokerError(each.errorCode, `partition ${keyOf(tracked)}`)
      }
    }
    if (stale.size > 0) void this.#find([...stale], [])
  }

  #filled(tracked: Tracked, answer: FetchResponse['responses'][number]['partitions'][number]): void {
    tracked.highWatermark = answer.highWatermark
    if (answer.records === null || answer.records.length === 0) return
    const committed = this.#options.isolation === 'read_committed'
    tracked.fetched = new FetchedRecords(
      answer.records,
      tracked.position ?? 0,
      committed ? answer.abortedTransactions : undefined,
    )
  }

  #outOfRange(tracked: Tracked): void {
    if (this.#options.offsetReset === 'none') {
      this.#error = brokerError(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        `partition ${keyOf(tracked)}, offset ${tracked.position}`,
      )
      tracked.notBefore = Number.POSITIVE_INFINITY
      return
    }
    tracked.position = undefined
    tracked.seek = this.#options.offsetReset
  }

  async #stumbled(list: readonly Tracked[], errorCode: Epoch): Promise<void> {
    if (errorCode !== ErrorCode.NONE && !errorOf(errorCode).retriable) this.#error = brokerError(errorCode, 'a fetch')
    await this.#client.pause(this.#client.options.retryBackoffMs)
    await this.#find([...new Set(list.map(({ topic }) => topic))], [])
  }

  #news(timeoutMs: Millis): Promise<void> {
    return new Promise(resolve => {
      const timer = this.#client.world.clock.after(timeoutMs, () => this.#notify())
      this.#wake = () => {
        timer.cancel()
        resolve()
      }
    })
  }

  #notify(): void {
    const wake = this.#wake
    this.#wake = undefined
    wake?.()
  }
}

function keyOf({ topic, partition }: TopicPartition): string {
  return `${topic}-${partition}`
}
