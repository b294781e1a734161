import { ErrorCode } from '#protocol/errors.ts'
import type { RaftAnswer, RaftEffect } from './messages.ts'
import type { QuorumState } from './quorum.ts'

/** More answers than this do not wait for a disk that hangs; those beyond are told that it does. */
const HELD_MAX = 10_000

interface Held {
  readonly behind: QuorumState
  readonly effect: RaftEffect
}

function isSame(a: QuorumState, b: QuorumState): boolean {
  return (
    a.leaderEpoch === b.leaderEpoch &&
    a.leaderId === b.leaderId &&
    a.votedId === b.votedId &&
    a.votedDirectoryId === b.votedDirectoryId
  )
}

/**
 * The answer to a call whose promise could not be stored. It names no epoch that this node may not know after a restart:
 * whoever believed it would take its leader of then for an old one.
 */
function failed(answer: RaftAnswer, { leaderEpoch }: QuorumState): RaftAnswer {
  const refused = { errorCode: ErrorCode.KAFKA_STORAGE_ERROR, leaderId: -1, leaderEpoch }
  switch (answer.kind) {
    case 'vote':
      return { kind: 'vote', answer: { ...answer.answer, ...refused, granted: false } }
    case 'fetch':
      return { kind: 'fetch', answer: { ...answer.answer, ...refused } }
    case 'begin-epoch':
    case 'end-epoch':
    case 'update-voter':
      return { kind: answer.kind, answer: { ...answer.answer, ...refused } }
    default:
      return {
        kind: answer.kind,
        answer: { errorCode: refused.errorCode, message: 'the disk of this controller fails' },
      }
  }
}

/**
 * The effects of a step. The quorum state that they rest on is stored first: what leaves the node is held until then, in
 * order.
 */
export class Outbox {
  #effects: RaftEffect[] = []
  #released: RaftEffect[] = []
  #held: Held[] = []
  /** Being stored, the oldest first. */
  #storing: QuorumState[] = []
  /** What the file holds or will hold; undefined when that is not known. */
  #asked: QuorumState | undefined
  #touched = false
  /** What the file holds for certain, or something later. */
  #stored: QuorumState

  constructor(stored: QuorumState) {
    this.#asked = stored
    this.#stored = stored
  }

  push(effect: RaftEffect): void {
    this.#effects.push(effect)
  }

  /** The state changed: it is stored at the end of the step, whether or not something waits for it. */
  touch(): void {
    this.#touched = true
  }

  /** What leaves the node must not be undone by a restart. */
  mustWait({ kind }: RaftEffect): boolean {
    return kind === 'send' || kind === 'answer'
  }

  get isStoring(): boolean {
    return this.#storing.length > 0
  }

  stored(state: QuorumState): void {
    const index = this.#storing.indexOf(state)
    if (index < 0) return
    this.#stored = state
    const done = new Set(this.#storing.splice(0, index + 1))
    const held = this.#held
    this.#held = []
    for (const each of held) {
      if (done.has(each.behind)) this.#released.push(each.effect)
      else this.#held.push(each)
    }
  }

  /** The requests that were held will never be sent; `drop` learns of them. */
  failed(drop: (request: number) => void): void {
    if (!this.isStoring) return
    this.#storing = []
    this.#asked = undefined
    this.#touched = false
    for (const { effect } of this.#held) {
      if (effect.kind === 'send') drop(effect.request)
      else if (effect.kind === 'answer') this.#released.push({ ...effect, answer: failed(effect.answer, this.#stored) })
    }
    this.#held = []
  }

  /** What is to be done now, at the end of a step that left the quorum at this state. */
  flush(state: QuorumState): readonly RaftEffect[] {
    const effects = this.#effects
    const out = this.#released
    this.#effects = []
    this.#released = []
    const isStale = this.#asked === undefined || !isSame(this.#asked, state)
    if (isStale && (this.#touched || effects.some(each => this.mustWait(each)))) {
      this.#storing.push(state)
      this.#asked = state
      out.push({ kind: 'store-state', state })
    }
    this.#touched = false
    const behind = this.#storing.at(-1)
    for (const effect of effects) {
      if (behind === undefined || !this.mustWait(effect)) out.push(effect)
      else if (effect.kind === 'answer' && this.#held.length >= HELD_MAX) {
        out.push({ ...effect, answer: failed(effect.answer, this.#stored) })
      } else this.#held.push({ behind, effect })
    }
    return out
  }
}
