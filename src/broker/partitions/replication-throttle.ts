import type { Millis, NodeId } from '#base/units.ts'
import type { TopicConfig } from '#core/config/topic.ts'
import type { Partition } from './partition.ts'

/** Bytes that may go at once after a rest: so many seconds of the rate. */
const BURST_SECONDS = 1
/** Nobody waits for longer before asking again: by then the rate may be another, or none. */
const WAIT_MS_MAX: Millis = 1000

/** A rate that may be overdrawn by the last who took from it; who comes after waits until it is even again. */
export class ByteRate {
  #left = 0
  #at: Millis = Number.NEGATIVE_INFINITY

  /** How long until something may be taken, or to ask again; 0 is now. `rate` is in bytes per second. */
  waitMs(rate: number, now: Millis): Millis {
    this.#refill(rate, now)
    if (this.#left > 0) return 0
    return rate <= 0 ? WAIT_MS_MAX : Math.min(WAIT_MS_MAX, Math.ceil(((1 - this.#left) / rate) * 1000))
  }

  take(bytes: number): void {
    this.#left -= bytes
  }

  #refill(rate: number, now: Millis): void {
    const most = rate * BURST_SECONDS
    const more = this.#at === Number.NEGATIVE_INFINITY ? most : ((now - this.#at) / 1000) * rate
    this.#left = Math.min(most, this.#left + more)
    this.#at = now
  }
}

export interface ThrottleOptions {
  readonly nodeId: NodeId
  readonly topic: (partition: Partition) => TopicConfig
  /** `leader.replication.throttled.rate` and `follower.replication.throttled.rate`; undefined is no limit. */
  readonly leaderRate: () => number | undefined
  readonly followerRate: () => number | undefined
}

/**
 * How fast replicas are copied (KIP-73): the topics say which replicas are throttled, the broker how much all of them may
 * take together. Who is in sync is not held back.
 */
export class ReplicationThrottle {
  readonly #options: ThrottleOptions
  readonly #led = new ByteRate()
  readonly #followed = new ByteRate()

  constructor(options: ThrottleOptions) {
    this.#options = options
  }

  /** How long a follower here has to wait before it fetches the partition. */
  followerWaitMs(partition: Partition, now: Millis): Millis {
    const rate = this.#options.followerRate()
    if (rate === undefined || partition.isCaughtUp || !this.#isThrottled(partition, 'follower')) return 0
    return this.#followed.waitMs(rate, now)
  }

  followed(partition: Partition, bytes: number): void {
    if (bytes === 0 || this.#options.followerRate() === undefined) return
    if (this.#isThrottled(partition, 'follower')) this.#followed.take(bytes)
  }

  /** How long a follower elsewhere gets nothing of the partition that is led here. */
  leaderWaitMs(partition: Partition, replica: NodeId, now: Millis): Millis {
    const rate = this.#options.leaderRate()
    if (rate === undefined || partition.inSync.includes(replica) || !this.#isThrottled(partition, 'leader')) return 0
    return this.#led.waitMs(rate, now)
  }

  led(partition: Partition, replica: NodeId, bytes: number): void {
    if (this.#options.leaderRate() === undefined || partition.inSync.includes(replica)) return
    if (this.#isThrottled(partition, 'leader')) this.#led.take(bytes)
  }

  #isThrottled(partition: Partition, as: 'leader' | 'follower'): boolean {
    const topic = this.#options.topic(partition)
    const replicas = as === 'leader' ? topic.leaderThrottledReplicas : topic.followerThrottledReplicas
    if (replicas.length === 0) return false
    const { nodeId } = this.#options
    return replicas[0] === '*' || replicas.includes(`${partition.index}:${nodeId}`)
  }
}
