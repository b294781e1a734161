import { SessionEpoch } from './session-epoch.ts'

export interface SessionTurn<Item, Position> {
  readonly sessionId: number
  readonly sessionEpoch: number
  /** New, or at another position than the other side knows of. */
  readonly changed: readonly (readonly [Item, Position])[]
  readonly forgotten: readonly Item[]
}

/**
 * A follower's fetch session with a leader's broker (KIP-227), the asking side: after a full fetch only what changed is
 * named. Positions are compared by identity. One request at a time: every `next` is followed by `answered` or `failed`.
 */
export class ReplicaSession<Item, Position> {
  readonly #session = new SessionEpoch()
  #sent = new Map<Item, Position>()

  /** `touched` are those that may be wanted, or not, in another way than at the last call. */
  next(wanted: ReadonlyMap<Item, Position>, touched: Iterable<Item>): SessionTurn<Item, Position> {
    const isFull = this.#session.epoch === 0
    if (isFull) this.#sent.clear()
    const forgotten: Item[] = []
    const changed: [Item, Position][] = []
    for (const item of isFull ? wanted.keys() : touched) {
      const position = wanted.get(item)
      if (position === undefined) {
        if (this.#sent.delete(item)) forgotten.push(item)
      } else if (this.#sent.get(item) !== position) {
        this.#sent.set(item, position)
        changed.push([item, position])
      }
    }
    return { sessionId: this.#session.id, sessionEpoch: this.#session.epoch, changed, forgotten }
  }

  /** The whole answer's error and session id. False if nothing in it counts and the fetch is to be made again. */
  answered(errorCode: number, sessionId: number): boolean {
    return this.#session.answered(errorCode, sessionId)
  }

  /** No answer came: nobody knows which epoch the other side is in, so the next fetch opens anew. */
  failed(): void {
    this.#session.failed()
  }
}
