import type { Epoch, Offset } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import { SessionEpoch } from '../session/session-epoch.ts'
import { partitionKey } from './assignment.ts'

/** What a consumer wants of one partition in its next fetch. */
export interface WantedPartition {
  readonly topic: string
  readonly topicId: Uuid
  readonly partition: number
  readonly fetchOffset: Offset
  readonly leaderEpoch: Epoch
  /** Of what was read last before the offset; -1 where that is not known. */
  readonly lastFetchedEpoch: Epoch
  readonly maxBytes: number
}

export interface SessionRequest {
  readonly sessionId: number
  readonly sessionEpoch: number
  readonly partitions: readonly WantedPartition[]
  readonly forgotten: readonly WantedPartition[]
}

/**
 * A fetch session with one broker (KIP-227), the asking side: after a full fetch only what changed is named. One
 * request at a time: every `next` is followed by `answered` or `failed`.
 */
export class FetchSession {
  readonly #session = new SessionEpoch()
  #sent = new Map<string, WantedPartition>()

  next(wanted: readonly WantedPartition[]): SessionRequest {
    const before = this.#session.epoch === 0 ? new Map<string, WantedPartition>() : this.#sent
    const now = new Map(wanted.map(partition => [partitionKey(partition), partition]))
    const forgotten: WantedPartition[] = []
    const partitions: WantedPartition[] = []
    for (const [key, old] of before) {
      // A topic made anew under its name is another topic: its old partitions leave the session.
      if (now.get(key)?.topicId !== old.topicId) forgotten.push(old)
    }
    for (const [key, partition] of now) {
      const old = before.get(key)
      const same =
        old !== undefined &&
        old.topicId === partition.topicId &&
        old.fetchOffset === partition.fetchOffset &&
        old.leaderEpoch === partition.leaderEpoch &&
        old.lastFetchedEpoch === partition.lastFetchedEpoch &&
        old.maxBytes === partition.maxBytes
      if (!same) partitions.push(partition)
    }
    this.#sent = now
    return { sessionId: this.#session.id, sessionEpoch: this.#session.epoch, partitions, forgotten }
  }

  /** The whole answer's error and session id. False if nothing in it counts and the fetch is to be made again. */
  answered(errorCode: number, sessionId: number): boolean {
    return this.#session.answered(errorCode, sessionId)
  }

  /** No answer came: nobody knows which epoch the broker is in, so the next fetch opens anew. */
  failed(): void {
    this.#session.failed()
  }
}
