import type { NodeId } from '#base/units.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { EpochAnswer, RaftEvent } from './messages.ts'
import type { Replica } from './replica.ts'
import { NOT_LEADING } from './voter-change.ts'

/** Calls that are answered with an error and what is known of the leader. */
export class Refusals {
  readonly #replica: Replica
  readonly #leaderId: () => NodeId

  constructor(replica: Replica, leaderId: () => NodeId) {
    this.#replica = replica
    this.#leaderId = leaderId
  }

  /** What an epoch's own calls are answered with, also where they were taken. */
  epochAnswer(errorCode: number): EpochAnswer {
    return { errorCode, leaderId: this.#leaderId(), leaderEpoch: this.#replica.epoch }
  }

  fetch(call: number, errorCode: number): void {
    const { highWatermark } = this.#replica
    const answer = { ...this.epochAnswer(errorCode), position: { kind: 'valid' }, upTo: 0, highWatermark } as const
    this.#replica.answer(call, { kind: 'fetch', answer })
  }

  voterChange(kind: 'add-voter' | 'remove-voter' | 'record-voters', call: number, errorCode: number): void {
    this.#replica.answer(call, { kind, answer: { errorCode, message: NOT_LEADING } })
  }

  /** Whatever is asked of a node that has stopped: it promises nothing any more. */
  stopped(event: RaftEvent): void {
    const errorCode = ErrorCode.BROKER_NOT_AVAILABLE
    switch (event.kind) {
      case 'fetch':
        this.fetch(event.call, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return
      case 'vote': {
        const answer = { ...this.epochAnswer(errorCode), granted: false }
        this.#replica.answer(event.call, { kind: 'vote', answer })
        return
      }
      case 'begin-epoch':
      case 'end-epoch':
      case 'update-voter':
        this.#replica.answer(event.call, { kind: event.kind, answer: this.epochAnswer(errorCode) })
        return
      case 'add-voter':
      case 'remove-voter':
      case 'record-voters':
        this.voterChange(event.kind, event.call, errorCode)
        return
      default:
    }
  }
}
