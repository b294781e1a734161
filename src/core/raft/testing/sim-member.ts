import { assert, unreachable } from '#base/assert.ts'
import type { HeapNode } from '#base/heap.ts'
import type { SeededRandom } from '#base/random.ts'
import type { Epoch, Millis, NodeId, Offset } from '#base/units.ts'
import { type Uuid, ZERO_UUID } from '#base/uuid.ts'
import type { RaftAnswer, RaftEffect, RaftEvent, RaftRequest, RaftResponse } from '../messages.ts'
import { areRecorded, KRAFT_VERSIONS, NO_QUORUM_STATE, type QuorumState, type Voter } from '../quorum.ts'
import { Raft } from '../raft.ts'
import { SimLog, type SimRecord, type SimSnapshot } from './sim-log.ts'
import type { SimQuorum } from './sim-quorum.ts'

const RETRY_MS: Millis = 300

/** What a node answers, with the records that go along. */
export interface Reply {
  readonly response: RaftResponse
  readonly records: readonly SimRecord[]
}

type Call = (answer: RaftAnswer) => void

/** A node of the simulated quorum: drives raft on a disk and a clock of its own. */
export class SimMember {
  readonly id: NodeId
  readonly #quorum: SimQuorum
  readonly #random: SeededRandom
  /** Its clock against that of the world. */
  readonly #rate: number
  readonly #shift: Millis
  directoryId: Uuid
  log = new SimLog()
  /** The file `quorum-state`. */
  stored: QuorumState = NO_QUORUM_STATE
  raft: Raft | undefined
  /** The epoch that it leads. */
  term: Epoch | undefined
  endpointPort = 9093
  #life = 0
  #committedTo: Offset = -1
  #checkedTo: Offset = 0
  #lastCall = 0
  readonly #calls = new Map<number, Call>()
  readonly #records = new Map<number, readonly SimRecord[]>()
  #events: RaftEvent[] = []
  #isStepping = false
  #storing: QuorumState[] = []
  #isWriting = false
  #timer: HeapNode<() => void> | undefined

  constructor(quorum: SimQuorum, id: NodeId, directoryId: Uuid, random: SeededRandom) {
    this.#quorum = quorum
    this.id = id
    this.directoryId = directoryId
    this.#random = random
    this.#rate = 1 + (random.fraction() - 0.5) / 10
    this.#shift = random.below(100_000)
  }

  get isUp(): boolean {
    return this.raft !== undefined
  }

  get isLeader(): boolean {
    return this.term !== undefined
  }

  get #now(): Millis {
    return Math.floor(this.#shift + this.#quorum.now * this.#rate)
  }

  // -- life

  start(): void {
    if (this.isUp) return
    const { voters, offset, former } = this.log.votersAt() ?? { ...this.#quorum.first, offset: -1, former: [] }
    this.raft = new Raft({
      nodeId: this.id,
      directoryId: this.directoryId,
      voters,
      votersOffset: offset,
      formerVoters: former,
      state: this.#quorum.stateOnRestart(this.stored),
      log: this.log,
      retryMs: RETRY_MS,
      founding: this.#quorum.first.isStatic,
      recordsVoters: this.#quorum.first.recordsVoters,
      autoJoin: this.#quorum.first.autoJoin,
      draw: () => this.#random.fraction(),
    })
    this.#committedTo = -1
    this.#checkedTo = 0
    this.step({ kind: 'start', endpoints: [{ name: 'CONTROLLER', host: `n${this.id}`, port: this.endpointPort }] })
  }

  /** The process or its machine dies: what was being written may be there or not. */
  crash(): void {
    if (!this.isUp) return
    if (this.#storing.length > 0 && this.#random.chance(0.5)) this.stored = this.#storing[0] as QuorumState
    this.log.tear(this.#random.chance(0.5) ? 0 : this.#random.below(4))
    this.#end()
  }

  #end(): void {
    this.raft = undefined
    this.term = undefined
    this.#storing = []
    this.#isWriting = false
    this.#life++
    this.#events = []
    this.#calls.clear()
    this.#records.clear()
    this.#quorum.cancel(this.#timer)
    this.#timer = undefined
  }

  /** A new disk under an old name. */
  wipe(directoryId: Uuid): void {
    assert(!this.isUp, 'disks are changed when the node is down')
    this.directoryId = directoryId
    this.log = new SimLog()
    this.stored = NO_QUORUM_STATE
  }

  #later(ms: Millis, run: () => void): void {
    const life = this.#life
    this.#quorum.after(ms, () => {
      this.#quorum.whenMoving(this.id, () => {
        if (life === this.#life && this.isUp) run()
      })
    })
  }

  // -- the shell rule

  step(event: RaftEvent): void {
    this.#events.push(event)
    if (this.#isStepping) return
    this.#isStepping = true
    try {
      for (let next = this.#events.shift(); next !== undefined; next = this.#events.shift()) {
        if (this.raft === undefined) return
        this.#quorum.steps++
        const effects = this.raft.step(next, this.#now)
        for (const effect of effects) this.#perform(effect)
      }
    } finally {
      this.#isStepping = false
    }
    this.#arm()
  }

  #arm(): void {
    this.#quorum.cancel(this.#timer)
    this.#timer = undefined
    const wakeAt = this.raft?.wakeAt()
    if (wakeAt === undefined) return
    const at = Math.ceil((wakeAt - this.#shift) / this.#rate)
    const { stillUntil, now } = this.#quorum
    const restMs = (stillUntil.get(this.id) ?? 0) - now
    this.#timer = this.#quorum.after(Math.max(at - now, restMs, 0), () => {
      this.#timer = undefined
      if (this.#now >= wakeAt) this.step({ kind: 'tick' })
      // Rounding made it a moment early.
      else this.#timer = this.#quorum.after(1, () => this.step({ kind: 'tick' }))
    })
  }

  #perform(effect: RaftEffect): void {
    const { truth } = this.#quorum
    switch (effect.kind) {
      case 'store-state':
        this.#storing.push(effect.state)
        if (this.#storing.length === 1) this.#store()
        return
      case 'send':
        this.#checkSend(effect.message)
        this.#quorum.route(this, effect.request, effect.to, effect.message)
        return
      case 'answer': {
        const call = this.#calls.get(effect.call)
        // Who asked may have gone meanwhile; nobody is answered twice.
        this.#calls.delete(effect.call)
        call?.(effect.answer)
        return
      }
      case 'lead':
        this.#lead(effect.epoch, effect.voters)
        return
      case 'resign':
        assert(this.term === effect.epoch, 'who resigns has led')
        this.term = undefined
        return
      case 'append':
        this.#appendFetched(effect.request)
        return
      case 'truncate':
        assert(effect.endOffset >= this.#committedTo, `${this.id} cuts off what is committed`)
        this.#later(this.#random.below(5), () => this.#truncate(effect.endOffset))
        return
      case 'load-snapshot':
        this.#quorum.download(this, effect.leaderId, effect.id)
        return
      case 'commit':
        assert(effect.highWatermark > this.#committedTo, `${this.id}: the high watermark goes back`)
        this.#committedTo = effect.highWatermark
        if (this.term !== undefined) {
          const last = this.log.at(effect.highWatermark - 1)?.epoch
          assert(last === this.term, `${this.id} commits by counting copies of epoch ${last} in epoch ${this.term}`)
        }
        truth.commits(this.id, this.#checkedTo, effect.highWatermark, this.log)
        this.#checkedTo = effect.highWatermark
        return
      case 'append-voters':
        assert(this.term !== undefined, 'only a leader appends voters')
        assert(
          (this.log.votersAt()?.offset ?? -1) < this.#committedTo,
          `${this.id} changes voters before the last change is committed`,
        )
        this.append({ epoch: this.term, value: this.#quorum.nextValue(), voters: effect.voters })
        return
      case 'follow':
        assert(effect.leaderId !== this.id, 'nobody follows itself')
        return
      case 'stopped':
        this.log.durable = this.log.nextOffset
        this.#end()
        return
      default:
        unreachable(effect)
    }
  }

  // -- promises

  /** What leaves must be true after a crash. */
  #checkSend(message: RaftRequest): void {
    const self = { id: this.id, directoryId: this.directoryId }
    if (message.kind === 'vote' && !message.vote.preVote) {
      const { epoch } = message.vote
      assert(
        this.stored.leaderEpoch === epoch && this.stored.votedId === this.id,
        `${this.id} stands with no vote of its own`,
      )
      this.#quorum.truth.voted(self, epoch, self)
      this.#quorum.chaos?.promised(this)
    }
    if (message.kind !== 'fetch') return
    assert(message.fetch.offset === this.log.nextOffset, `${this.id} fetches from elsewhere than its end`)
    assert(this.#quorum.lies || message.fetch.offset <= this.log.durable, `${this.id} fetches beyond what is durable`)
  }

  #checkVote(request: RaftRequest, answer: RaftAnswer): void {
    if (request.kind !== 'vote' || answer.kind !== 'vote' || !answer.answer.granted || request.vote.preVote) return
    const { candidate, epoch } = request.vote
    const { leaderEpoch, leaderId, votedId } = this.stored
    const isStored =
      leaderEpoch > epoch || (leaderEpoch === epoch && (votedId === candidate.id || leaderId === candidate.id))
    assert(isStored, `${this.id} gives a vote that is not stored`)
    this.#quorum.truth.voted({ id: this.id, directoryId: this.directoryId }, epoch, candidate)
    this.#quorum.chaos?.promised(this)
  }

  // -- the file `quorum-state`

  #store(): void {
    this.#later(this.#quorum.diskMs(this), () => {
      const state = this.#storing.shift() as QuorumState
      const fails = this.#quorum.diskFails(this)
      if (!fails || this.#random.chance(0.5)) this.stored = state
      this.step(fails ? { kind: 'storage-failed', of: 'state' } : { kind: 'state-stored', state })
      if (this.#storing.length > 0) this.#store()
    })
  }

  // -- the log

  #lead(epoch: Epoch, voters: readonly Voter[]): void {
    const { truth } = this.#quorum
    assert(
      this.stored.leaderEpoch === epoch && this.stored.leaderId === this.id,
      `${this.id} leads before that is stored`,
    )
    truth.leads(this.id, epoch, this.log)
    if (voters.length === 1) {
      const self = { id: this.id, directoryId: this.directoryId }
      truth.voted(self, epoch, self)
    }
    this.term = epoch
    this.#quorum.chaos?.elected(this)
    this.append({ epoch, value: this.#quorum.nextValue() })
    if (areRecorded(voters) && this.log.votersAt() === undefined) {
      this.append({ epoch, value: this.#quorum.nextValue(), voters })
    }
  }

  append(record: SimRecord): void {
    this.#quorum.truth.appended(this.id, this.log.nextOffset, record)
    this.log.append(record)
    if (record.voters !== undefined) {
      this.step({ kind: 'voters-changed', voters: record.voters, offset: this.log.nextOffset - 1 })
    }
    this.#write()
  }

  #write(): void {
    if (this.#isWriting) return
    this.#isWriting = true
    if (this.#quorum.lies) this.step({ kind: 'log-stored', endOffset: this.log.nextOffset })
    this.#later(this.#quorum.diskMs(this), () => {
      this.#isWriting = false
      if (this.#quorum.diskFails(this)) {
        this.#truncateTo(this.log.durable)
        this.step({ kind: 'storage-failed', of: 'log' })
        this.step({ kind: 'log-stored', endOffset: this.log.durable })
        return
      }
      // What was appended since the write began is in the next one.
      const isMore = this.#random.chance(0.3) && this.log.durable + 1 < this.log.nextOffset
      this.log.durable = isMore ? this.log.durable + 1 : this.log.nextOffset
      this.step({ kind: 'log-stored', endOffset: this.log.durable })
      if (this.log.durable < this.log.nextOffset) this.#write()
    })
  }

  #appendFetched(request: number): void {
    const records = this.#records.get(request) ?? []
    assert(records.length > 0, 'there is something to append')
    for (const record of records) this.append(record)
  }

  #truncate(endOffset: Offset): void {
    const fails = this.#quorum.diskFails(this)
    if (!fails || this.#random.chance(0.5)) this.#truncateTo(endOffset)
    if (fails) this.storageFailed()
    else this.step({ kind: 'truncated' })
  }

  /** Something was refused that is no append; what is there is durable when it was looked at. */
  storageFailed(): void {
    this.step({ kind: 'storage-failed', of: 'log' })
    this.#later(RETRY_MS, () => {
      if (!this.#isWriting) this.step({ kind: 'log-stored', endOffset: this.log.durable })
    })
  }

  #truncateTo(endOffset: Offset): void {
    const before = this.log.votersAt()
    this.log.truncate(endOffset)
    const after = this.log.votersAt()
    if (after?.offset === before?.offset) return
    this.step({
      kind: 'voters-changed',
      voters: after?.voters ?? this.#quorum.first.voters,
      offset: after?.offset ?? -1,
    })
  }

  snapshotLoaded(snapshot: SimSnapshot): void {
    this.log.beginAt(snapshot)
    const { votersAt } = snapshot
    if (votersAt !== undefined) {
      this.step({ kind: 'voters-changed', voters: votersAt.voters, offset: votersAt.offset })
    }
    this.step({ kind: 'snapshot-loaded', id: snapshot.id })
  }

  takeSnapshot(): void {
    const end = Math.min(this.#committedTo, this.log.durable)
    if (end > this.log.startOffset) this.log.takeSnapshot(end)
  }

  // -- the network

  /** Somebody asks; `reply` comes once, or never. */
  asked(message: RaftRequest, reply: (reply: Reply) => void): void {
    if (message.kind === 'kraft-range') {
      reply({ response: { kind: 'kraft-range', ...KRAFT_VERSIONS }, records: [] })
      return
    }
    const call = ++this.#lastCall
    this.#calls.set(call, answer => {
      this.#checkVote(message, answer)
      reply(this.#replyOf(message, answer))
    })
    this.step(eventOf(call, message))
  }

  /** Calls of the simulation itself. */
  command(event: (call: number) => RaftEvent, done: (answer: RaftAnswer) => void): void {
    const call = ++this.#lastCall
    this.#calls.set(call, done)
    this.step(event(call))
  }

  callGone(): void {
    const call = [...this.#calls.keys()].at(-1)
    if (call === undefined) return
    this.#calls.delete(call)
    this.step({ kind: 'call-gone', call })
  }

  #replyOf(message: RaftRequest, answer: RaftAnswer): Reply {
    if (message.kind !== 'fetch' || answer.kind !== 'fetch') {
      assert(answer.kind === message.kind && answer.kind !== 'fetch', 'answers fit')
      return { response: answer as RaftResponse, records: [] }
    }
    const { offset } = message.fetch
    const records: SimRecord[] = []
    const { upTo, errorCode, position } = answer.answer
    if (errorCode === 0 && position.kind === 'valid') {
      assert(upTo <= this.log.durable, 'what is not durable cannot be read')
      const end = Math.min(upTo, offset + this.#random.between(1, this.#quorum.fetchRecordsMax))
      for (let at = offset; at < end; at++) {
        const record = this.log.at(at)
        assert(record !== undefined, 'what may be read is there')
        records.push(record)
      }
    }
    return { response: { kind: 'fetch', answer: answer.answer, endOffset: offset + records.length }, records }
  }

  answered(request: number, { response, records }: Reply): void {
    this.#records.set(request, records)
    this.step({ kind: 'answered', request, response })
    this.#records.delete(request)
  }
}

function eventOf(call: number, message: Exclude<RaftRequest, { kind: 'kraft-range' }>): RaftEvent {
  switch (message.kind) {
    case 'add-voter':
      return { ...message, call, timeoutMs: 1000, ackWhenCommitted: false }
    default:
      return { ...message, call }
  }
}

export function voterOf({ id, directoryId, endpointPort }: SimMember, isStatic: boolean): Voter {
  const endpoints = isStatic ? [] : [{ name: 'CONTROLLER', host: `n${id}`, port: endpointPort }]
  return { id, directoryId: isStatic ? ZERO_UUID : directoryId, endpoints, kraftVersion: KRAFT_VERSIONS }
}
