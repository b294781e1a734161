import { assert } from '#base/assert.ts'
import { Heap, type HeapNode } from '#base/heap.ts'
import { SeededRandom } from '#base/random.ts'
import type { Millis, NodeId } from '#base/units.ts'
import { type Uuid, uuidFromRandom } from '#base/uuid.ts'
import type { SnapshotId } from '../log-view.ts'
import type { RaftPeer, RaftRequest } from '../messages.ts'
import type { QuorumState, Voter } from '../quorum.ts'
import { SimMember, voterOf } from './sim-member.ts'
import { Truth } from './sim-truth.ts'

/** What is drawn where it is not said. */
export interface SimShape {
  readonly members: number
  readonly isStatic: boolean
  /** How many of them are on the static list. */
  readonly founders: number
}

/** Deliberate faults of the driver that the checkers must see. */
export interface DriverFaults {
  /** The vote of the last life is forgotten. */
  readonly forgetsVote?: boolean
  /** The log says that it synced and has not. */
  readonly lies?: boolean
}

const REQUEST_TIMEOUT_MS: Millis = 2000
/** With a working network and every node up, a leader is there and everybody has what it has after so long. */
const LEADER_WITHIN_MS: Millis = 10_000
const AGREED_WITHIN_MS: Millis = 40_000

/** A run is long before this: the quorum asks itself in circles. */
const STEPS_MAX = 300_000

/** A whole quorum of raft machines, from 1 to 7 nodes, with their disks, clocks and network, in one heap of events. */
export class SimQuorum {
  readonly truth = new Truth()
  readonly lies: boolean
  readonly fetchRecordsMax: number
  readonly #faults: DriverFaults
  readonly random: SeededRandom
  readonly members: SimMember[] = []
  readonly #events = new Heap<() => void>()
  /** Ways on which messages vanish, as `from>to`, and ways on which dialling is refused. */
  readonly cut = new Set<string>()
  readonly refusing = new Set<string>()
  lossRate = 0
  doubleRate = 0
  latencyMs = 1
  diskDelayMs = 1
  diskFailRate = 0
  /** Disks that finish nothing until then. */
  readonly hangUntil = new Map<NodeId, Millis>()
  /** Disks that take nothing until then. */
  readonly fullUntil = new Map<NodeId, Millis>()
  /** Processes that stand still until then, as those of a machine that is suspended; what comes meanwhile comes late. */
  readonly stillUntil = new Map<NodeId, Millis>()
  /** Nothing is broken any more. */
  isCalm = true
  /** Who does what to it: told of moments that are worth a fault. */
  chaos: { promised(member: SimMember): void; elected(member: SimMember): void } | undefined
  #value = 0
  now: Millis = 0
  steps = 0
  first: {
    voters: readonly Voter[]
    isStatic: boolean
    recordsVoters: boolean
    autoJoin: boolean
  }

  constructor(seed: number, shape: Partial<SimShape> = {}, faults: DriverFaults = {}) {
    const random = new SeededRandom(seed)
    this.random = random
    this.#faults = faults
    this.lies = faults.lies === true
    this.fetchRecordsMax = random.pick([1, 3, 20])
    const count = shape.members ?? random.between(1, 7)
    for (let id = 1; id <= count; id++) this.members.push(new SimMember(this, id, this.freshId(), random.fork()))
    const isStatic = shape.isStatic ?? random.chance(0.6)
    const founders = isStatic
      ? this.members.slice(0, shape.founders ?? random.between(1, count))
      : this.members.slice(0, 1)
    this.first = {
      voters: founders.map(member => voterOf(member, isStatic)),
      isStatic,
      recordsVoters: random.chance(0.7),
      autoJoin: random.chance(0.5),
    }
  }

  freshId(): Uuid {
    return uuidFromRandom(into => this.random.fill(into))
  }

  nextValue(): number {
    return ++this.#value
  }

  stateOnRestart(stored: QuorumState): QuorumState {
    return this.#faults.forgetsVote === true ? { ...stored, votedId: -1 } : stored
  }

  // -- time

  after(ms: Millis, run: () => void): HeapNode<() => void> {
    return this.#events.push(this.now + ms, run)
  }

  cancel(event: HeapNode<() => void> | undefined): void {
    if (event !== undefined) this.#events.remove(event)
  }

  runUntil(until: Millis, done: () => boolean = () => false): void {
    for (let next = this.#events.peek(); next !== undefined && next.key <= until; next = this.#events.peek()) {
      if (done()) return
      this.#events.pop()
      this.now = next.key
      next.value()
      assert(this.steps < STEPS_MAX, `busy without end: ${this.describe()}`)
    }
    this.now = until
  }

  /** All faults end, every node is started, and the quorum has to become one. Throws when it does not. */
  heal(): void {
    this.isCalm = true
    this.cut.clear()
    this.refusing.clear()
    this.hangUntil.clear()
    this.fullUntil.clear()
    this.stillUntil.clear()
    this.lossRate = 0
    this.doubleRate = 0
    this.diskFailRate = 0
    this.latencyMs = 1
    this.diskDelayMs = 1
    for (const member of this.members) {
      member.start()
      // Those who are on their way out are started again when they are.
      this.after(5000, () => member.start())
    }
    const began = this.now
    const leads = () => this.members.some(member => member.isLeader)
    this.runUntil(began + LEADER_WITHIN_MS, leads)
    assert(leads(), `nobody leads ${LEADER_WITHIN_MS} ms after all faults ended: ${this.describe()}`)
    this.runUntil(began + AGREED_WITHIN_MS, () => this.isAgreed)
    assert(this.isAgreed, `the logs did not become one: ${this.describe()}`)
  }

  /** Everybody knows everything to be committed, and holds it. */
  get isAgreed(): boolean {
    const end = this.truth.committed.length
    return this.members.every(
      ({ raft, log }) => raft?.highWatermark === end && log.nextOffset === end && log.durable === end,
    )
  }

  describe(): string {
    return this.members
      .map(({ id, raft, log }) =>
        raft === undefined
          ? `${id} is down`
          : `${id} ${raft.role}@${raft.epoch} leader=${raft.leaderId} hw=${raft.highWatermark} end=${log.nextOffset}@${log.lastEpoch} voters=${raft.voters.map(voter => voter.id)}`,
      )
      .concat(`${this.truth.committed.length} are committed`)
      .join('; ')
  }

  /** A process dies: those who were connected to it mostly see that, and that nobody listens any more. */
  kill(member: SimMember): void {
    member.crash()
    for (const other of this.members) {
      if (other === member || (!this.isCalm && this.random.chance(0.4))) continue
      const { raft } = other
      this.after(this.latency(), () => {
        if (other.raft === raft && other.isUp && !member.isUp) other.step({ kind: 'peer-gone', id: member.id })
      })
    }
  }

  // -- disks

  diskMs(member: SimMember): Millis {
    const hangsMs = Math.max(0, (this.hangUntil.get(member.id) ?? 0) - this.now)
    return hangsMs + this.random.below(this.diskDelayMs * 2)
  }

  diskFails(member: SimMember): boolean {
    if ((this.fullUntil.get(member.id) ?? 0) > this.now) return true
    return this.diskFailRate > 0 && this.random.chance(this.diskFailRate)
  }

  /** Runs it now, or when the node's process goes on. */
  whenMoving(id: NodeId, run: () => void): void {
    const restMs = (this.stillUntil.get(id) ?? 0) - this.now
    if (restMs <= 0) run()
    else this.after(restMs + this.random.below(3), () => this.whenMoving(id, run))
  }

  // -- network

  way(from: NodeId, to: NodeId): string {
    return `${from}>${to}`
  }

  latency(): Millis {
    return this.random.chance(0.05) ? this.random.below(this.latencyMs * 50) : this.random.below(this.latencyMs * 2)
  }

  route(from: SimMember, request: number, to: RaftPeer, message: RaftRequest): void {
    const target = this.#targetOf(from, to)
    const raft = from.raft
    let isOver = false
    // A node that was started again takes no answers to what it asked in its last life.
    const over = (then: () => void): void => {
      if (isOver || from.raft !== raft) return
      isOver = true
      this.cancel(timeout)
      then()
    }
    const unanswered = (refused: boolean) => over(() => from.step({ kind: 'unanswered', request, refused }))
    const timeout = this.after(REQUEST_TIMEOUT_MS, () => unanswered(false))
    const isRefused = target === undefined || !target.isUp || this.refusing.has(this.way(from.id, target.id))
    if (isRefused) {
      if (this.isCalm || this.random.chance(0.8)) this.after(this.latency(), () => unanswered(true))
      return
    }
    const times = this.random.chance(this.doubleRate) ? 2 : 1
    for (let i = 0; i < times; i++) {
      this.#deliver(from.id, target.id, () => {
        if (!target.isUp) return
        target.asked(message, reply =>
          this.#deliver(target.id, from.id, () => over(() => from.answered(request, reply))),
        )
      })
    }
  }

  #deliver(from: NodeId, to: NodeId, run: () => void): void {
    if (this.cut.has(this.way(from, to)) || this.random.chance(this.lossRate)) return
    this.after(this.latency(), () => this.whenMoving(to, run))
  }

  #targetOf(from: SimMember, to: RaftPeer): SimMember | undefined {
    if (to !== 'anyone') return this.members[to - 1]
    const others = this.members.filter(member => member !== from)
    return others.length === 0 ? undefined : this.random.pick(others)
  }

  download(to: SimMember, leaderId: NodeId, id: SnapshotId): void {
    const from = this.members[leaderId - 1]
    const raft = to.raft
    this.after(this.latency() + this.random.below(50), () => {
      if (to.raft !== raft) return
      const snapshot = from?.log.snapshots.find(
        each => each.id.endOffset === id.endOffset && each.id.epoch === id.epoch,
      )
      const isReachable = from?.isUp === true && !this.cut.has(this.way(leaderId, to.id))
      const isRefused = this.diskFails(to)
      if (isRefused) to.storageFailed()
      if (snapshot !== undefined && isReachable && !isRefused) to.snapshotLoaded(snapshot)
      else to.step({ kind: 'snapshot-failed', id })
    })
  }

  /** A client writes to whoever leads, until then. */
  appendUntil(end: Millis): void {
    this.after(this.random.between(1, this.isCalm ? 500 : 150), () => {
      if (this.now >= end) return
      const leader = this.random.pick(this.members)
      if (leader.term !== undefined) {
        for (let i = this.random.between(1, 3); i > 0; i--)
          leader.append({ epoch: leader.term, value: this.nextValue() })
      }
      this.appendUntil(end)
    })
  }
}
