import type { Millis } from '#base/units.ts'
import { judgePosition } from '#core/raft/log-view.ts'
import type { FetchAnswer, RaftFetch } from '#core/raft/messages.ts'
import type { Caller } from '#network/service.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Clock } from '#world/world.ts'
import type { MetadataLog } from './metadata-log.ts'
import type { Quorum } from './quorum.ts'

/** There is one broker beside a controller; whoever else takes its number waits no longer than this many do. */
const WAITING_MAX = 16

interface Waiting {
  readonly fetch: RaftFetch
  resolve(answer: FetchAnswer): void
}

/**
 * The broker of the same node reads the metadata log here, whoever leads: what this controller knows to be committed is in
 * its own log. That spares the leader one reader for each controller, and the broker the search for the leader.
 */
export class LocalReaders {
  readonly #log: MetadataLog
  readonly #quorum: Quorum
  readonly #clock: Clock
  readonly #waiting = new Set<Waiting>()

  constructor(log: MetadataLog, quorum: Quorum, clock: Clock) {
    this.#log = log
    this.#quorum = quorum
    this.#clock = clock
  }

  /** Waits as long as there is nothing new and the fetch allows. */
  fetch(fetch: RaftFetch, caller: Caller): Promise<FetchAnswer> {
    const answer = this.#answer(fetch)
    const hasNews = answer.position.kind !== 'valid' || answer.upTo > fetch.offset
    // Whoever asks with an old epoch is to learn of the new leader now.
    const isStale = fetch.currentLeaderEpoch < this.#quorum.epoch
    if (hasNews || isStale || fetch.maxWaitMs <= 0 || this.#waiting.size >= WAITING_MAX) return Promise.resolve(answer)
    return this.#wait(fetch, fetch.maxWaitMs, caller)
  }

  /** More is committed, or the leader is another one. */
  changed(): void {
    for (const { resolve, fetch } of [...this.#waiting]) resolve(this.#answer(fetch))
  }

  #wait(fetch: RaftFetch, maxWaitMs: Millis, caller: Caller): Promise<FetchAnswer> {
    return new Promise(resolve => {
      const waiting: Waiting = {
        fetch,
        resolve: answer => {
          if (!this.#waiting.delete(waiting)) return
          timer.cancel()
          forget()
          resolve(answer)
        },
      }
      this.#waiting.add(waiting)
      const end = (): void => waiting.resolve(this.#answer(fetch))
      const timer = this.#clock.after(maxWaitMs, end)
      const forget = caller.whenGone(end)
    })
  }

  #answer(fetch: RaftFetch): FetchAnswer {
    const { highWatermark, leaderId, epoch: leaderEpoch } = this.#quorum
    const position = judgePosition(this.#log, fetch.offset, fetch.lastFetchedEpoch)
    const upTo = position.kind === 'valid' ? Math.max(fetch.offset, highWatermark) : 0
    return { errorCode: ErrorCode.NONE, position, upTo, highWatermark, leaderId, leaderEpoch }
  }
}
