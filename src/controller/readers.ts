import type { Millis, NodeId } from '#base/units.ts'
import { ZERO_UUID } from '#base/uuid.ts'
import { judgePosition } from '#core/raft/log-view.ts'
import type { FetchAnswer, RaftFetch } from '#core/raft/messages.ts'
import type { Caller } from '#network/service.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { LogRange } from '#storage/log-range.ts'
import { StorageError } from '#storage/storage-error.ts'
import type { Clock } from '#world/world.ts'
import type { MetadataLog } from './metadata-log.ts'
import type { Quorum } from './quorum.ts'

/** There is one broker beside a controller; whoever else takes its number waits no longer than this many do. */
const WAITING_MAX = 16

export interface FetchedLog {
  readonly answer: FetchAnswer
  /** From the offset that was asked for; undefined when there is nothing. */
  readonly range: LogRange | undefined
}

interface Waiting {
  readonly fetch: RaftFetch
  resolve(answer: FetchAnswer): void
}

/**
 * Who reads the metadata log here: the other members of the quorum and brokers as raft lets them, and the broker of the
 * same node whoever leads, since what this controller knows to be committed is in its own log, as long as its disk takes it.
 * That spares the leader one reader for each controller, and the broker the search for the leader.
 */
export class Readers {
  readonly #nodeId: NodeId
  readonly #log: MetadataLog
  readonly #quorum: Quorum
  readonly #clock: Clock
  /** Of the own broker. */
  readonly #waiting = new Set<Waiting>()

  constructor(nodeId: NodeId, log: MetadataLog, quorum: Quorum, clock: Clock) {
    this.#nodeId = nodeId
    this.#log = log
    this.#quorum = quorum
    this.#clock = clock
  }

  /** Waits as long as there is nothing new and the fetch allows; undefined when this node stops before, or the caller goes. */
  async fetch(fetch: RaftFetch, maxBytes: number, caller: Caller): Promise<FetchedLog | undefined> {
    // The ids of brokers are their own: this one is the broker of the same node, which tells no directory.
    const isOwn = fetch.replicaId === this.#nodeId && fetch.directoryId === ZERO_UUID
    const read = (answer: FetchAnswer) => this.#read(fetch, maxBytes, answer)
    if (isOwn) return await this.#fetchOwn(fetch, caller).then(read)
    return await this.#quorum.ask<'fetch', Promise<FetchedLog>>({ kind: 'fetch', fetch }, caller, read)
  }

  async #read(fetch: RaftFetch, maxBytes: number, answer: FetchAnswer): Promise<FetchedLog> {
    if (answer.errorCode !== ErrorCode.NONE || answer.position.kind !== 'valid' || answer.upTo <= fetch.offset) {
      return { answer, range: undefined }
    }
    try {
      return { answer, range: await this.#log.read(fetch.offset, maxBytes, answer.upTo) }
    } catch (error) {
      if (!(error instanceof StorageError)) throw error
      return { answer: { ...answer, errorCode: ErrorCode.KAFKA_STORAGE_ERROR }, range: undefined }
    }
  }

  #fetchOwn(fetch: RaftFetch, caller: Caller): Promise<FetchAnswer> {
    const answer = this.#answer(fetch)
    const hasNews = answer.position.kind !== 'valid' || answer.upTo > fetch.offset
    // Whoever asks with an old epoch is to learn of the new leader now.
    const isStale = fetch.currentLeaderEpoch < this.#quorum.epoch
    const isRefused = answer.errorCode !== ErrorCode.NONE
    if (isRefused || hasNews || isStale || fetch.maxWaitMs <= 0 || this.#waiting.size >= WAITING_MAX)
      return Promise.resolve(answer)
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
    // A disk that takes no more metadata would keep the broker in a time in which it still leads: it is sent to the leader,
    // and has read further there than this log goes when it comes back. Not before this log has anything: partitions made by
    // what was read elsewhere would lie beside an empty one, with which no node starts again.
    const { isFailing, isHung, durableOffset, nextOffset } = this.#log
    const isBehind = ((isFailing || isHung) && durableOffset > 0) || fetch.offset > nextOffset
    if (isBehind) {
      const errorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER
      return { errorCode, position: { kind: 'valid' }, upTo: 0, highWatermark, leaderId, leaderEpoch }
    }
    const position = judgePosition(this.#log, fetch.offset, fetch.lastFetchedEpoch)
    const upTo = position.kind === 'valid' ? Math.max(fetch.offset, highWatermark) : 0
    return { errorCode: ErrorCode.NONE, position, upTo, highWatermark, leaderId, leaderEpoch }
  }
}
