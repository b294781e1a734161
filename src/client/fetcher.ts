import { DecodeError } from '#base/bytes.ts'
import type { Epoch, Millis, NodeId, Offset } from '#base/units.ts'
import { type Uuid, ZERO_UUID } from '#base/uuid.ts'
import { FetchSession, type SessionRequest, type WantedPartition } from '#core/consumer/fetch-session.ts'
import { FetchedRecords } from '#core/consumer/fetched.ts'
import { ReadEpochs } from '#core/consumer/read-epochs.ts'
import { ErrorCode, errorOf } from '#protocol/errors.ts'
import { FetchRequest, FetchResponse } from '#protocol/messages/fetch.ts'
import type { Address } from '#world/world.ts'
import { listOffsets, type OffsetSpec } from './admin/offsets.ts'
import type { Client } from './client.ts'
import { brokerError, ClientError, clientError, mayRetry } from './errors.ts'
import { LeaderSearch } from './leader-search.ts'
import { askLeader, PATIENCE_MS } from './patience.ts'
import type { TopicPartition } from './per-leader.ts'
import type { ConsumedRecord } from './records.ts'

const FETCH = { request: FetchRequest, response: FetchResponse }
/** The last version that names topics by name. */
const FETCH_BY_NAME_MAX = 12
/** The first version that says in which epoch the records before the offset were read. */
const FETCH_WITH_EPOCH_MIN = 12

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
  /** Of the topic in which the position is, once its leader has answered; all zero before. */
  topicId: Uuid
  /** The offset that is handed out next; undefined until it is known. */
  position: Offset | undefined
  /** Of what lies before the position. */
  epochs: ReadEpochs
  /** Until then who is known to lead is not asked, for others led after it; undefined while nobody is known to have. */
  behindUntil: Millis | undefined
  /** How to find the position. */
  seek: OffsetSpec | 'none'
  fetched: FetchedRecords | undefined
  highWatermark: Offset
  /** Its position is being asked for. */
  seeking: boolean
  /** Nothing more of it is handed out. */
  held: boolean
  /** After an error: not before this, unless another one leads. */
  notBefore: Millis
  /** Who led when there was the error. */
  failedAt: NodeId | undefined
}

/** A leader from which nothing comes. */
interface Quiet {
  readonly lookAt: Millis
  readonly lookMs: Millis
}

/**
 * One that is cut off from the controllers goes on answering, that there is nothing new. When nothing comes for so long
 * others are asked who leads; then after twice that time, and so on.
 */
const QUIET_MS: Millis = 5000

/**
 * For so long leaders of an earlier epoch than a commit names are not asked: who says that they lead has not heard of a
 * later one, and they may lack what was read. Where all say so it is another cluster's epoch, or was lost.
 */
const BEHIND_MS_MAX: Millis = 10_000

/** Reads partitions from their leaders, one fetch per broker at a time, each only when the one before was used up. */
export class Fetcher {
  readonly #client: Client
  readonly #options: FetcherOptions
  /** Told when a topic turns out to be another one of its name. */
  readonly #madeAnew: (of: TopicPartition) => void
  readonly #partitions = new Map<string, Tracked>()
  readonly #purpose: string
  readonly #sessions = new Map<NodeId, FetchSession>()
  readonly #fetching = new Set<NodeId>()
  readonly #quiet = new Map<NodeId, Quiet>()
  readonly #leaders: LeaderSearch
  #error: unknown
  #wake: (() => void) | undefined
  #interrupted = false
  #closed = false
  /** Where the next look for records begins, so that every partition gets its turn. */
  #turn = 0

  constructor(client: Client, options: FetcherOptions, madeAnew: (of: TopicPartition) => void = () => {}) {
    this.#client = client
    this.#options = options
    this.#madeAnew = madeAnew
    this.#purpose = client.brokers.claim('fetch')
    this.#leaders = new LeaderSearch(client, {
      asked: topics => {
        this.#hasten(topics)
        this.#notify()
      },
      failed: error => {
        if (!mayRetry(error) && !this.#closed) this.#error = error
      },
      rested: () => this.#notify(),
    })
  }

  get partitions(): readonly TopicPartition[] {
    return [...this.#partitions.values()].map(({ topic, partition }) => ({ topic, partition }))
  }

  /** Begins to read at an offset, or at a place that is yet to be found. What lies before the offset may have a known epoch. */
  add(of: TopicPartition, from: Offset | OffsetSpec | 'none', epoch: Epoch = -1): void {
    const known = typeof from === 'number'
    this.#partitions.set(keyOf(of), {
      topicId: ZERO_UUID,
      topic: of.topic,
      partition: of.partition,
      position: known ? from : undefined,
      epochs: new ReadEpochs(known ? from : 0, known ? epoch : -1),
      behindUntil: undefined,
      seek: known ? this.#options.offsetReset : from,
      fetched: undefined,
      highWatermark: -1,
      seeking: false,
      held: false,
      notBefore: 0,
      failedAt: undefined,
    })
  }

  /** Hands nothing more out of it; where the application is stays known. */
  hold(of: TopicPartition): void {
    const tracked = this.#partitions.get(keyOf(of))
    if (tracked !== undefined) tracked.held = true
  }

  remove(of: TopicPartition): void {
    this.#partitions.delete(keyOf(of))
  }

  /** Where the application is; undefined while that is not known. */
  position(of: TopicPartition): Offset | undefined {
    return this.#partitions.get(keyOf(of))?.position
  }

  /** The epoch of the leader under which what lies before an offset was read; -1 where that is not known. */
  epochBefore(of: TopicPartition, offset: Offset): Epoch {
    return this.#partitions.get(keyOf(of))?.epochs.before(offset) ?? -1
  }

  /** As of the last fetch; -1 before. */
  highWatermark(of: TopicPartition): Offset {
    return this.#partitions.get(keyOf(of))?.highWatermark ?? -1
  }

  /** Up to `max` records that are here, or that come in time; none when it is interrupted. Rejects with what only the application can decide. */
  async poll(max: number, timeoutMs: Millis): Promise<ConsumedRecord[]> {
    const { clock } = this.#client.world
    const until = clock.monotonic() + timeoutMs
    for (;;) {
      this.#throwIfFailed()
      const records = this.#take(max)
      this.#fetchMore()
      const left = until - clock.monotonic()
      if (records.length > 0 || left <= 0 || this.#closed) return records
      if (this.#interrupted) {
        this.#interrupted = false
        return records
      }
      await this.#news(Math.min(left, this.#options.maxWaitMs))
    }
  }

  close(): void {
    this.#closed = true
    this.#leaders.close()
    this.#client.brokers.release(this.#purpose)
    this.#notify()
  }

  /** Ends a wait in `poll` early: something else than records has come. */
  interrupt(): void {
    this.#interrupted = true
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
    const { topic, partition, fetched, held } = each
    if (fetched === undefined || held) return
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
    const stale = new Set<string>()
    for (const each of this.#partitions.values()) {
      if (each.notBefore > now || each.seeking || each.held) continue
      const leader = this.#leaderOf(each)
      if (this.#isBehind(each, now)) {
        each.notBefore = now + this.#client.options.retryBackoffMs
        this.#misled([each], leader)
        continue
      }
      const list = byLeader.get(leader)
      if (leader < 0) stale.add(each.topic)
      else if (list === undefined) byLeader.set(leader, [each])
      else list.push(each)
    }
    this.#leaders.ask(stale)
    for (const [leader, list] of byLeader) {
      const lost = list.filter(({ position }) => position === undefined)
      if (lost.length > 0) void this.#find(lost)
      const wanted = list.filter(({ position }) => position !== undefined)
      if (wanted.length === 0 || this.#fetching.has(leader)) continue
      if (wanted.some(({ fetched }) => fetched !== undefined)) continue
      this.#fetching.add(leader)
      void this.#fetch(leader, wanted)
    }
  }

  /** Whether who is known to lead led before those under whom the records before the position were written. */
  #isBehind(each: Tracked, now: Millis): boolean {
    const { topic, partition, topicId, position, epochs } = each
    const known = this.#client.metadata.remembered(topic)
    const epoch = known?.partitions[partition]?.leaderEpoch ?? -1
    const isOther = topicId !== ZERO_UUID && known?.id !== topicId
    if (position === undefined || epoch < 0 || isOther || epoch >= epochs.before(position)) {
      each.behindUntil = undefined
      return false
    }
    each.behindUntil ??= now + BEHIND_MS_MAX
    return now < each.behindUntil
  }

  /** Where another one leads than when it failed, nothing waits before it is asked. */
  #hasten(topics: readonly string[]): void {
    for (const each of this.#partitions.values()) {
      if (each.failedAt === undefined || !topics.includes(each.topic)) continue
      const leader = this.#leaderOf(each)
      if (leader >= 0 && leader !== each.failedAt) each.notBefore = 0
    }
  }

  /** Finds the positions of partitions of one leader. Never rejects. */
  async #find(lost: readonly Tracked[]): Promise<void> {
    for (const each of lost) each.seeking = true
    try {
      await this.#seek(lost)
    } catch (error) {
      if (mayRetry(error)) await this.#client.pause(this.#client.options.retryBackoffMs)
      else this.#error = error
    } finally {
      for (const each of lost) each.seeking = false
      this.#notify()
    }
  }

  async #seek(lost: readonly Tracked[]): Promise<void> {
    const wanted = lost.map(({ topic, partition, seek }) => {
      if (seek !== 'none') return { topic, partition, spec: seek }
      const message = `partition ${topic}-${partition} has no position and offsetReset is "none"`
      throw new ClientError('OFFSET_OUT_OF_RANGE', message, { hint: 'seek, or choose earliest or latest' })
    })
    const committed = this.#options.isolation === 'read_committed'
    const found = await listOffsets(this.#client, wanted, { committed })
    // Nothing is at or after the time: what comes next is.
    const beyond = found.filter(({ offset }) => offset < 0).map(each => ({ ...each, spec: 'latest' as const }))
    const ends = beyond.length > 0 ? await listOffsets(this.#client, beyond, { committed }) : []
    const offsets = new Map([...found, ...ends].map(each => [keyOf(each), each]))
    for (const each of lost) {
      const { offset = -1, leaderEpoch = -1 } = offsets.get(keyOf(each)) ?? {}
      // It may have been taken away, or moved elsewhere by a seek, in the meantime.
      if (this.#partitions.get(keyOf(each)) !== each || each.position !== undefined || offset < 0) continue
      each.position = offset
      // Of the log in which it was found: an end that was cut since is not where reading goes on.
      each.epochs = new ReadEpochs(offset, leaderEpoch)
      each.seek = this.#options.offsetReset
    }
  }

  /** Never rejects. */
  async #fetch(leader: NodeId, list: readonly Tracked[]): Promise<void> {
    let session = this.#sessions.get(leader)
    if (session === undefined) {
      session = new FetchSession()
      this.#sessions.set(leader, session)
    }
    const of = list.map(each => this.#want(each))
    const patienceMs = this.#options.maxWaitMs + PATIENCE_MS
    try {
      await askLeader(this.#client, leader, this.#purpose, of, patienceMs, async channel => {
        // While it was dialled another may have become the leader, or what is known may have grown too old to be used: asked
        // without an epoch, whoever led before could not tell that it is not meant any more.
        const wanted = list.filter(each => this.#leaderOf(each) === leader).map(each => this.#want(each))
        if (wanted.length === 0) return
        const cap = wanted.some(({ topicId }) => topicId === ZERO_UUID) ? FETCH_BY_NAME_MAX : undefined
        const version = channel.versionFor(FetchRequest, cap)
        if (version === undefined) throw channel.unsupported(FetchRequest)
        const { maxWaitMs } = this.#options
        const answer = await channel.call(FETCH, version, this.#body(session.next(wanted), version), {
          timeoutMs: maxWaitMs + this.#client.options.requestTimeoutMs,
        })
        if (session.answered(answer.errorCode, answer.sessionId)) {
          this.#took(answer, wanted, version, leader, channel.address)
        } else if (answer.errorCode !== ErrorCode.FETCH_SESSION_ID_NOT_FOUND) {
          if (!errorOf(answer.errorCode).retriable) this.#error = brokerError(answer.errorCode, 'a fetch')
          this.#failed(list, leader)
        }
      })
    } catch (error) {
      session.failed()
      if (this.#closed) return
      const failure = clientError(error)
      if (!mayRetry(failure)) this.#error = failure
      this.#failed(list, leader)
    } finally {
      this.#fetching.delete(leader)
      this.#notify()
    }
  }

  /** Another one may lead; where it is the same, it is not asked again as fast as it fails. */
  #failed(list: readonly Tracked[], leader: NodeId): void {
    const { world, options } = this.#client
    const until = world.clock.monotonic() + options.retryBackoffMs
    for (const each of list) {
      each.notBefore = Math.max(each.notBefore, until)
      each.failedAt = leader
    }
    this.#misled(list, leader)
  }

  /** -1 where that is not known. */
  #leaderOf({ topic, partition }: Tracked): NodeId {
    return this.#client.metadata.remembered(topic)?.partitions[partition]?.leader ?? -1
  }

  #want({ topic, partition, position, epochs }: Tracked): WantedPartition {
    const known = this.#client.metadata.remembered(topic)
    return {
      topic,
      topicId: known?.id ?? ZERO_UUID,
      partition,
      fetchOffset: position ?? 0,
      leaderEpoch: known?.partitions[partition]?.leaderEpoch ?? -1,
      lastFetchedEpoch: position === undefined ? -1 : epochs.before(position),
      maxBytes: this.#options.partitionBytesMax,
    }
  }

  #body({ sessionId, sessionEpoch, partitions, forgotten }: SessionRequest, version: number) {
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
        partitions: list.map(({ partition, leaderEpoch, lastFetchedEpoch, fetchOffset, maxBytes }) => ({
          partition,
          currentLeaderEpoch: leaderEpoch,
          fetchOffset,
          ...(version >= FETCH_WITH_EPOCH_MIN && { lastFetchedEpoch }),
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

  #took(
    answer: FetchResponse,
    wanted: readonly WantedPartition[],
    version: number,
    leader: NodeId,
    from: Address,
  ): void {
    const names = new Map(wanted.map(({ topicId, topic }) => [topicId, topic]))
    const asked = new Map(wanted.map(each => [keyOf(each), each]))
    const failed: Tracked[] = []
    let isQuiet = true
    for (const { topic: name, topicId, partitions } of answer.responses) {
      const topic = version > FETCH_BY_NAME_MAX ? names.get(topicId) : name
      if (topic === undefined) continue
      for (const each of partitions) {
        const tracked = this.#partitions.get(keyOf({ topic, partition: each.partitionIndex }))
        if (each.errorCode !== ErrorCode.NONE || (each.records?.length ?? 0) > 0) isQuiet = false
        // It may have been taken away, or moved elsewhere by a seek, in the meantime.
        const want = tracked === undefined ? undefined : asked.get(keyOf(tracked))
        if (tracked === undefined || want === undefined || tracked.position !== want.fetchOffset) continue
        if (version > FETCH_BY_NAME_MAX && this.#isMadeAnew(tracked, want, each.errorCode)) this.#fromTheStart(tracked)
        else if (each.errorCode === ErrorCode.NONE && each.divergingEpoch.endOffset >= 0) this.#diverged(tracked, each)
        else if (each.errorCode === ErrorCode.NONE) this.#filled(tracked, each)
        else if (each.errorCode === ErrorCode.OFFSET_OUT_OF_RANGE) this.#outOfRange(tracked)
        else if (errorOf(each.errorCode).retriable) {
          const news = { ...each.currentLeader, endpoints: answer.nodeEndpoints }
          if (!this.#client.metadata.learn(topic, each.partitionIndex, news, from)) failed.push(tracked)
        } else this.#error = brokerError(each.errorCode, `partition ${keyOf(tracked)}`)
      }
    }
    if (failed.length > 0) this.#failed(failed, leader)
    if (isQuiet) this.#nothingFrom(leader, wanted)
    else this.#quiet.delete(leader)
  }

  #nothingFrom(leader: NodeId, wanted: readonly WantedPartition[]): void {
    const now = this.#client.world.clock.monotonic()
    const { lookAt, lookMs } = this.#quiet.get(leader) ?? { lookAt: now + QUIET_MS, lookMs: QUIET_MS }
    if (now < lookAt) {
      this.#quiet.set(leader, { lookAt, lookMs })
      return
    }
    this.#quiet.set(leader, { lookAt: now + 2 * lookMs, lookMs: 2 * lookMs })
    this.#misled(wanted, leader)
  }

  #misled(partitions: readonly TopicPartition[], leader: NodeId): void {
    this.#leaders.misled(
      partitions.map(({ topic }) => topic),
      leader,
    )
  }

  #filled(tracked: Tracked, answer: FetchResponse['responses'][number]['partitions'][number]): void {
    tracked.highWatermark = answer.highWatermark
    if (answer.records === null || answer.records.length === 0) return
    const committed = this.#options.isolation === 'read_committed'
    tracked.fetched = new FetchedRecords(
      answer.records,
      tracked.position ?? 0,
      committed ? answer.abortedTransactions : undefined,
      tracked.epochs,
    )
  }

  /**
   * The leader's log has another history than what was read: it lacked some of that when it was elected. Reading goes on
   * where both part, so that nothing is skipped that is there now. Without a reset the application has to decide, as in
   * Kafka.
   */
  #diverged(tracked: Tracked, { divergingEpoch }: FetchResponse['responses'][number]['partitions'][number]): void {
    const { position = 0, epochs } = tracked
    const end = epochs.cut(position, divergingEpoch.epoch, divergingEpoch.endOffset)
    if (end === position) return
    if (this.#options.offsetReset !== 'none') {
      tracked.position = end
      return
    }
    const message = `partition ${keyOf(tracked)} was cut at offset ${end}, and was read to ${position}`
    this.#error = new ClientError('OFFSET_OUT_OF_RANGE', message, {
      hint: 'a leader was elected that lacked records: seek to where both part to go on',
      errorCode: ErrorCode.OFFSET_OUT_OF_RANGE,
    })
    tracked.notBefore = Number.POSITIVE_INFINITY
  }

  /** Its leader knows the topic by another id than that in which the position is. */
  #isMadeAnew(tracked: Tracked, { topicId }: WantedPartition, errorCode: number): boolean {
    if (errorCode !== ErrorCode.NONE && errorCode !== ErrorCode.OFFSET_OUT_OF_RANGE) return false
    const isOther = tracked.topicId !== ZERO_UUID && tracked.topicId !== topicId
    tracked.topicId = topicId
    return isOther
  }

  /** Where a topic was made anew under its name, all that is in it came after what was read, and an offset of before says nothing. */
  #fromTheStart(tracked: Tracked): void {
    this.#madeAnew(tracked)
    if (this.#options.offsetReset === 'none') {
      this.#outOfRange(tracked)
      return
    }
    tracked.position = undefined
    tracked.seek = 'earliest'
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
