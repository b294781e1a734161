import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ErrorCode } from '#protocol/errors.ts'
import type { RaftEffect, RaftRequest, RaftResponse } from './messages.ts'
import { KRAFT_VERSIONS, NO_QUORUM_STATE, type Voter } from './quorum.ts'
import { Raft } from './raft.ts'
import { SimLog } from './testing/sim-log.ts'

const FORMER = 'FFFFFFFFFFFFFFFFFFFFFA'
const OWN = 'OOOOOOOOOOOOOOOOOOOOOA'

function voter(id: number, directoryId: string, host: string): Voter {
  return { id, directoryId, endpoints: [{ name: 'C', host, port: 9093 }], kraftVersion: KRAFT_VERSIONS }
}

/** Node 2 with a new folder, which follows the leader 1 of a quorum that has a node 2 at `host`. */
class Joiner {
  readonly raft: Raft
  now = 0
  readonly #sent: Extract<RaftEffect, { kind: 'send' }>[] = []

  constructor(host: string) {
    const state = { ...NO_QUORUM_STATE, leaderEpoch: 1, leaderId: 1 }
    const voters = [
      voter(1, 'LLLLLLLLLLLLLLLLLLLLLA', 'n1'),
      voter(2, FORMER, host),
      voter(3, 'TTTTTTTTTTTTTTTTTTTTTA', 'n3'),
    ]
    const options = { nodeId: 2, directoryId: OWN, voters, votersOffset: 0, state, log: new SimLog(), retryMs: 1000 }
    this.raft = new Raft({ ...options, autoJoin: true })
    const endpoints = [{ name: 'C', host: 'n2', port: 9093 }]
    this.#take(this.raft.step({ kind: 'start', endpoints }, 0))
    for (let fetches = 0; fetches < 2; fetches++) this.#answerFetch()
  }

  #take(effects: readonly RaftEffect[]): void {
    for (const effect of effects) {
      if (effect.kind === 'send') this.#sent.push(effect)
      else if (effect.kind === 'store-state') {
        this.#take(this.raft.step({ kind: 'state-stored', state: effect.state }, this.now))
      }
    }
  }

  #sentOf(is: (message: RaftRequest) => boolean): Extract<RaftEffect, { kind: 'send' }> | undefined {
    const index = this.#sent.findIndex(({ message }) => is(message))
    return index < 0 ? undefined : this.#sent.splice(index, 1)[0]
  }

  /** The next question to anybody about who votes. */
  asked(): Extract<RaftEffect, { kind: 'send' }> | undefined {
    return this.#sentOf(({ kind }) => kind !== 'fetch')
  }

  answer(request: number, response: RaftResponse): void {
    this.#take(this.raft.step({ kind: 'answered', request, response }, this.now))
  }

  refuse(request: number): void {
    this.#take(this.raft.step({ kind: 'unanswered', request, refused: true }, this.now))
  }

  /** The leader has nothing new. */
  #answerFetch(): void {
    const fetch = this.#sentOf(({ kind }) => kind === 'fetch')
    if (fetch === undefined) return
    const position = { kind: 'valid' } as const
    const answer = { errorCode: ErrorCode.NONE, position, upTo: 0, highWatermark: 0, leaderId: 1, leaderEpoch: 1 }
    this.answer(fetch.request, { kind: 'fetch', answer, endOffset: 0 })
  }

  pass(ms: number): void {
    for (const until = this.now + ms; this.now < until; this.now += 10) {
      if ((this.raft.wakeAt() ?? Number.POSITIVE_INFINITY) <= this.now) {
        this.#take(this.raft.step({ kind: 'tick' }, this.now))
      }
      this.#answerFetch()
    }
  }
}

test('a node with the number of a voter that lives elsewhere leaves it in the quorum, and looks again whether it is gone', () => {
  const joiner = new Joiner('somewhere-else')
  const first = joiner.asked()
  assert.ok(first?.message.kind === 'kraft-range')
  assert.equal(first.message.voter.directoryId, FORMER)
  joiner.answer(first.request, { kind: 'kraft-range', ...KRAFT_VERSIONS })
  joiner.pass(1500)
  assert.equal(joiner.asked(), undefined)
  joiner.pass(1500)
  const second = joiner.asked()
  assert.ok(second?.message.kind === 'kraft-range')
  joiner.refuse(second.request)
  joiner.pass(10)
  const third = joiner.asked()
  assert.deepEqual(third?.message, { kind: 'remove-voter', voter: { id: 2, directoryId: FORMER } })
  assert.equal(third.to, 1)
})

test('a node with a new disk under its old address takes its old place out at once', () => {
  const asked = new Joiner('n2').asked()
  assert.deepEqual(asked?.message, { kind: 'remove-voter', voter: { id: 2, directoryId: FORMER } })
})
