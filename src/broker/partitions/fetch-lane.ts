import type { Millis, NodeId, Offset } from '#base/units.ts'
import type { FetchPosition } from '#core/partition/follower.ts'
import { ReplicaSession } from '#core/session/replica-session.ts'
import { type Asker, type Channel, ChannelError } from '#network/channel.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode, errorOf } from '#protocol/errors.ts'
import type { InputOf, MessageOf } from '#protocol/schema.ts'
import type { Logger } from '#world/world.ts'
import type { Deadline, Deadlines } from '../deadlines.ts'
import type { FetchTerms } from './fetch-terms.ts'
import { LeaderChannel, type LeaderChannelOptions } from './leader-channel.ts'
import type { Partition } from './partition.ts'
import type { ReplicationThrottle } from './replication-throttle.ts'

export interface FetchLaneOptions extends LeaderChannelOptions {
  readonly deadlines: Deadlines
  readonly log: Logger
  /** Of this broker's registration. */
  readonly brokerEpoch: () => number
  readonly terms: () => FetchTerms
  /** The partition that the answer speaks of, if it is here. */
  readonly hosted: (topicId: string, index: number) => Partition | undefined
  readonly throttle: ReplicationThrottle
}

/**
 * Who is to be fetched for tells when its position changes, so that a fetch goes over those only; now and then over all, for
 * what happened to a log without anybody's telling.
 */
const LOOK_AT_ALL_MS: Millis = 60_000
/** Appends of one answer that take longer are not waited for. */
const SETTLE_MS: Millis = 10
const RECONNECT_MS: Millis = 20
/** A leader that is dead is none any more by then: this one lives, and is not where it says. */
const UNREACHABLE_AFTER_MS: Millis = 15_000

/** One connection to a leader's broker with one fetch session, and at most one fetch under way. */
export class FetchLane implements Asker<FetchAnswer> {
  readonly #partitions = new Set<Partition>()
  readonly #leaderId: NodeId
  readonly #number: number
  readonly #options: FetchLaneOptions
  /** Says whether there is anything left for this lane to fetch. */
  readonly #gather: () => boolean
  readonly #channel: LeaderChannel
  #session = new ReplicaSession<Partition, FetchPosition>()
  /** What the last fetch asks for, also while it is under way. */
  readonly #wanted = new Map<Partition, FetchPosition>()
  /** Whose position may be another than what is wanted. */
  readonly #unsure = new Set<Partition>()
  /** What of `#wanted` the session was not told yet. */
  readonly #touched = new Set<Partition>()
  #lookAtAllAt: Millis = 0
  #isFetching = false
  /** Of the last answer, those whose log is not done with it yet. */
  readonly #settling = new Set<Partition>()
  #deadline: Deadline | undefined
  #planned = false
  /** The last fetch as a whole. */
  #isRefused = false
  #failures = 0
  #failedUntil: Millis = 0
  #failingSince: Millis | undefined
  #isComplainedOf = false
  #stopped = false

  constructor(leaderId: NodeId, number: number, options: FetchLaneOptions, gather: () => boolean) {
    this.#leaderId = leaderId
    this.#number = number
    this.#options = options
    this.#gather = gather
    this.#channel = new LeaderChannel(leaderId, `broker-${options.nodeId}-fetcher-${number}`, options)
  }

  get isFetching(): boolean {
    return this.#isFetching
  }

  get partitions(): ReadonlySet<Partition> {
    return this.#partitions
  }

  join(partition: Partition): void {
    this.#partitions.add(partition)
    this.#unsure.add(partition)
  }

  part(partition: Partition): void {
    this.#partitions.delete(partition)
    this.#unsure.add(partition)
    // It settles elsewhere: waited for here, it would hold up every fetch to come.
    this.#settling.delete(partition)
  }

  /** A fetch is under way that does not ask for it. */
  isAway(partition: Partition): boolean {
    return this.#isFetching && !this.#wanted.has(partition)
  }

  settled(partition: Partition): void {
    this.#unsure.add(partition)
    this.#settling.delete(partition)
    if (this.#settling.size === 0) this.fetchSoon()
    else this.#deadline ??= this.#options.deadlines.after(SETTLE_MS, () => this.#fetchNow())
  }

  leave(partition: Partition): void {
    this.part(partition)
    if (this.#settling.size === 0) this.fetchSoon()
  }

  retry(): void {
    this.#failedUntil = 0
    this.#failures = 0
    this.fetchSoon()
  }

  /** All that becomes fetchable in this turn goes in one fetch. */
  fetchSoon(): void {
    if (this.#planned || this.#isFetching || this.#partitions.size === 0) return
    this.#planned = true
    this.#options.world.clock.soon(() => {
      this.#planned = false
      this.#fetchNow()
    })
  }

  stop(): void {
    this.#stopped = true
    this.#options.deadlines.cancel(this.#deadline)
    this.#partitions.clear()
    this.#channel.close()
  }

  offsetsOf(partition: Partition): Promise<{ startOffset: Offset; endOffset: Offset } | undefined> {
    return this.#channel.offsetsOf(partition)
  }

  #fetchNow(): void {
    const { deadlines, world } = this.#options
    deadlines.cancel(this.#deadline)
    this.#deadline = undefined
    if (this.#stopped || this.#isFetching || this.#partitions.size === 0) return
    const now = world.clock.monotonic()
    if (now < this.#failedUntil) {
      this.#deadline = deadlines.after(this.#failedUntil - now, () => this.#fetchNow())
      return
    }
    if (!this.#gather()) return
    if (now >= this.#lookAtAllAt) {
      this.#lookAtAllAt = now + LOOK_AT_ALL_MS
      for (const partition of this.#partitions) this.#unsure.add(partition)
    }
    const throttledMs = this.#look(now)
    if (throttledMs > 0 && this.#wanted.size === 0) {
      this.#deadline = deadlines.after(throttledMs, () => this.#fetchNow())
    }
    if (this.#wanted.size === 0) return
    this.#isFetching = true
    const channel = this.#channel.open
    if (channel !== undefined) {
      this.#ask(channel, throttledMs)
      return
    }
    this.#channel.connected().then(
      connected => this.#ask(connected, throttledMs),
      error => {
        if (!(error instanceof ChannelError)) throw error
        this.failed(error)
      },
    )
  }

  /** Brings what is wanted to where the partitions are. How long those have to wait that are throttled; 0 if none is. */
  #look(now: Millis): Millis {
    const { throttle } = this.#options
    let throttledMs = 0
    for (const partition of this.#unsure) {
      const position = this.#partitions.has(partition) ? partition.fetchPosition : undefined
      const waitMs = position === undefined ? 0 : throttle.followerWaitMs(partition, now)
      if (waitMs === 0) this.#unsure.delete(partition)
      else throttledMs = throttledMs === 0 ? waitMs : Math.min(waitMs, throttledMs)
      this.#want(partition, waitMs === 0 ? position : undefined)
    }
    return throttledMs
  }

  #want(partition: Partition, position: FetchPosition | undefined): void {
    if (this.#wanted.get(partition) === position) return
    if (position === undefined) this.#wanted.delete(partition)
    else this.#wanted.set(partition, position)
    this.#touched.add(partition)
  }

  #next(): void {
    if (this.#settling.size === 0) this.#fetchNow()
    else this.#deadline ??= this.#options.deadlines.after(SETTLE_MS, () => this.#fetchNow())
  }

  /** Once, by the lane that is always there. */
  #complain(reason: string): void {
    if (this.#isComplainedOf || this.#number > 0) return
    this.#isComplainedOf = true
    const leader = this.#leaderId
    this.#options.log.warn(
      { leader, reason },
      `broker ${leader} leads partitions that this broker follows, and cannot be fetched from (${reason}), so they are not replicated here. Check that broker ${leader} runs, its advertised.listeners, and the network between the two`,
    )
  }

  #reached(): void {
    this.#failures = 0
    this.#failingSince = undefined
    if (!this.#isComplainedOf) return
    this.#isComplainedOf = false
    this.#options.log.info({ leader: this.#leaderId }, `broker ${this.#leaderId} can be fetched from again`)
  }

  failed({ message }: ChannelError): void {
    this.#isFetching = false
    if (this.#stopped) return
    this.#session.failed()
    this.#rest(message)
    this.fetchSoon()
  }

  #rest(reason: string): void {
    const { log, world, terms } = this.#options
    const now = world.clock.monotonic()
    log.debug({ leader: this.#leaderId, reason }, 'a leader cannot be fetched from; trying again')
    this.#failingSince ??= now
    if (now - this.#failingSince >= UNREACHABLE_AFTER_MS) this.#complain(reason)
    const pauseMs = Math.min(RECONNECT_MS * 2 ** Math.min(this.#failures, 10), terms().backoffMs)
    this.#failures++
    this.#failedUntil = now + pauseMs
  }

  #ask(channel: Channel, throttledMs: Millis): void {
    const { nodeId, brokerEpoch, terms } = this.#options
    const { waitMs, minBytes, partitionBytes, answerBytes, timeoutMs } = terms()
    const version = channel.versionFor(API.Fetch.request)
    if (version === undefined) {
      this.failed(channel.unsupported(API.Fetch.request))
      return
    }
    const { sessionId, sessionEpoch, changed, forgotten } = this.#session.next(this.#wanted, this.#touched)
    this.#touched.clear()
    const request: InputOf<typeof API.Fetch.request> = {
      replicaState: { replicaId: nodeId, replicaEpoch: brokerEpoch() },
      maxWaitMs: throttledMs > 0 ? Math.min(waitMs, throttledMs) : waitMs,
      minBytes,
      maxBytes: answerBytes,
      isolationLevel: 0,
      sessionId,
      sessionEpoch,
      topics: byTopic(changed, ([partition]) => partition).map(([topicId, partitions]) => ({
        topicId,
        partitions: partitions.map(([{ index }, position]) => ({
          partition: index,
          currentLeaderEpoch: position.leaderEpoch,
          fetchOffset: position.offset,
          lastFetchedEpoch: position.lastFetchedEpoch,
          logStartOffset: position.startOffset,
          partitionMaxBytes: partitionBytes,
        })),
      })),
      forgottenTopicsData: byTopic(forgotten, partition => partition).map(([topicId, partitions]) => ({
        topicId,
        partitions: partitions.map(({ index }) => index),
      })),
    }
    channel.send(API.Fetch, version, request, timeoutMs + waitMs, this)
  }

  /** In the turn in which the answer arrives: what is appended within it is said to be held by a fetch within it. */
  answered(answer: FetchAnswer, frame: Buffer): void {
    const isOfSession = this.#session.answered(answer.errorCode, answer.sessionId)
    const writes = new Set<Promise<void>>()
    for (const topic of isOfSession ? answer.responses : []) {
      for (const response of topic.partitions) {
        const written = this.#answered(topic.topicId, response)?.written
        if (written !== undefined) writes.add(written)
      }
    }
    this.#giveBack(frame, writes)
    this.#isFetching = false
    if (this.#stopped) return
    if (isOfSession) this.#reached()
    // A session that the leader forgot is opened anew at once; a leader that refuses that as well is not asked as fast as it can.
    else if (this.#isRefused) this.#rest(`it answers ${errorOf(answer.errorCode).name}`)
    this.#isRefused = !isOfSession
    this.#next()
  }

  /** The memory of an answer, once the logs have ended all that they write, well or not. */
  #giveBack(frame: Buffer, writes: ReadonlySet<Promise<void>>): void {
    const { memory } = this.#options
    if (writes.size === 0) memory.give(frame)
    else void Promise.allSettled(writes).then(() => memory.give(frame))
  }

  /** Hands a partition what was fetched for it; returns which it was. */
  #answered(topicId: string, response: FetchedPartition): Partition | undefined {
    const partition = this.#options.hosted(topicId, response.partitionIndex)
    const position = partition === undefined ? undefined : this.#wanted.get(partition)
    if (partition === undefined || position === undefined) return undefined
    this.#unsure.add(partition)
    const { errorCode, divergingEpoch, highWatermark, logStartOffset: startOffset, records } = response
    // Before it is handed over: the log may be done with it at once.
    if (this.#partitions.has(partition)) this.#settling.add(partition)
    if (errorCode !== ErrorCode.NONE) {
      partition.fetched({ kind: 'refused', position, error: errorOf(errorCode).name })
    } else if (divergingEpoch.endOffset >= 0 || divergingEpoch.epoch >= 0) {
      partition.fetched({ kind: 'diverged', position, ...divergingEpoch })
    } else {
      if (records !== null) this.#options.throttle.followed(partition, records.length)
      partition.fetched({ kind: 'fetched', position, highWatermark, startOffset, records })
    }
    // One that waits for time to pass comes back by itself, and nobody waits for it.
    if (partition.fetchPosition === undefined && !partition.isSettling) this.#settling.delete(partition)
    return partition
  }
}

type FetchAnswer = MessageOf<typeof API.Fetch.response>
type FetchedPartition = FetchAnswer['responses'][number]['partitions'][number]

function byTopic<T>(items: readonly T[], partitionOf: (item: T) => Partition): [string, T[]][] {
  const [first] = items
  if (first === undefined) return []
  if (items.length === 1) return [[partitionOf(first).topicId, [first]]]
  const topics = new Map<string, T[]>()
  for (const item of items) {
    const { topicId } = partitionOf(item)
    const of = topics.get(topicId)
    if (of === undefined) topics.set(topicId, [item])
    else of.push(item)
  }
  return [...topics]
}
