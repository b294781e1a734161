import { assert } from '#base/assert.ts'
import { Heap, type HeapNode } from '#base/heap.ts'
import { SeededRandom } from '#base/random.ts'
import type { Millis, NodeId } from '#base/units.ts'
import { type Uuid, uuidFromRandom } from '#base/uuid.ts'
import type { SnapshotId } from '../log-view.ts'
import type { RaftPeer, RaftRequest } from '../messages.ts'
import { isVoter, majorityOf, type QuorumState, type Voter } from '../quorum.ts'
import { type Reply, SimMember, voterOf } from './sim-member.ts'
import { Truth } from './sim-truth.ts'

/** Deliberate faults of the driver that the checkers must see. */
export interface DriverFaults {
  /** The vote of the last life is forgotten. */
  readonly forgetsVote?: boolean
  /** The log says that it synced and has not. */
  readonly lies?: boolean
}

const REQUEST_TIMEOUT_MS: Millis = 2000
const FAULTS_MS: Millis = 40_000
/** With a working network and every node up, a leader is there and everybody has what it has after so long. */
const LEADER_WITHIN_MS: Millis = 10_000
const AGREED_WITHIN_MS: Millis = 40_000

/** A run is long before this: the quorum asks itself in circles. */
const STEPS_MAX = 300_000

/**
 * A whole quorum of raft machines, from 1 to 7 nodes, in one heap of events: messages are lost, doubled, reordered and late,
 * connections refused though others get through, nodes crash with torn logs and states, clocks drift, disks fail, voters
 * come and go, snapshots are taken and disks replaced. Then all faults end, and the quorum has to heal.
 */
export class SimQuorum {
  readonly truth = new Truth()
  readonly lies: boolean
  readonly fetchRecordsMax: number
  readonly #faults: DriverFaults
  readonly #random: SeededRandom
  readonly #members: SimMember[] = []
  readonly #events = new Heap<() => void>()
  /** Ways on which messages vanish, and ways on which dialling is refused. */
  #cut = new Set<string>()
  #refusing = new Set<string>()
  #lossRate = 0
  #doubleRate = 0
  #latencyMs = 1
  #diskMs = 1
  #diskFailRate = 0
  #value = 0
  #isCalm = false
  now: Millis = 0
  steps = 0
  first: {
    voters: readonly Voter[]
    isStatic: boolean
    recordsVoters: boolean
    autoJoin: boolean
  }

  constructor(seed: number, faults: DriverFaults = {}) {
    this.#random = new SeededRandom(seed)
    this.#faults = faults
    this.lies = faults.lies === true
    const random = this.#random
    this.fetchRecordsMax = random.pick([1, 3, 20])
    const count = random.between(1, 7)
    for (let id = 1; id <= count; id++) this.#members.push(new SimMember(this, id, this.#freshId(), random.fork()))
    const isStatic = random.chance(0.6)
    const founders = isStatic ? this.#members.slice(0, random.between(1, count)) : this.#members.slice(0, 1)
    this.first = {
      voters: founders.map(member => voterOf(member, isStatic)),
      isStatic,
      recordsVoters: random.chance(0.7),
      autoJoin: random.chance(0.5),
    }
  }

  #freshId(): Uuid {
    return uuidFromRandom(into => this.#random.fill(into))
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

  #runUntil(until: Millis, done: () => boolean = () => false): void {
    for (let next = this.#events.peek(); next !== undefined && next.key <= until; next = this.#events.peek()) {
      if (done()) return
      this.#events.pop()
      this.now = next.key
      next.value()
      assert(this.steps < STEPS_MAX, `busy without end: ${this.describe()}`)
    }
    this.now = until
  }

  /** Runs to the end; throws at what does not hold. */
  run(): void {
    for (const member of this.#members) this.after(this.#random.below(200), () => member.start())
    this.#scheduleChaos()
    this.#scheduleAppend()
    this.#runUntil(FAULTS_MS)
    this.#heal()
  }

  #heal(): void {
    this.#isCalm = true
    this.#cut.clear()
    this.#refusing.clear()
    this.#lossRate = 0
    this.#doubleRate = 0
    this.#diskFailRate = 0
    this.#latencyMs = 1
    this.#diskMs = 1
    for (const member of this.#members) {
      member.start()
      // Those who are on their way out are started again when they are.
      this.after(5000, () => member.start())
    }
    const began = this.now
    const leads = () => this.#members.some(member => member.isLeader)
    this.#runUntil(began + LEADER_WITHIN_MS, leads)
    assert(leads(), `nobody leads ${LEADER_WITHIN_MS} ms after all faults ended: ${this.describe()}`)
    this.#runUntil(began + AGREED_WITHIN_MS, () => this.#isAgreed)
    assert(this.#isAgreed, `the logs did not become one: ${this.describe()}`)
  }

  /** Everybody knows everything to be committed, and holds it. */
  get #isAgreed(): boolean {
    const end = this.truth.committed.length
    return this.#members.every(
      ({ raft, log }) => raft?.highWatermark === end && log.nextOffset === end && log.durable === end,
    )
  }

  describe(): string {
    return this.#members
      .map(({ id, raft, log }) =>
        raft === undefined
          ? `${id} is down`
          : `${id} ${raft.role}@${raft.epoch} leader=${raft.leaderId} hw=${raft.highWatermark} end=${log.nextOffset}@${log.lastEpoch} voters=${raft.voters.map(voter => voter.id)}`,
      )
      .concat(`${this.truth.committed.length} are committed`)
      .join('; ')
  }

  // -- disks

  diskMs(): Millis {
    return this.#random.below(this.#diskMs * 2)
  }

  diskFails(_member: SimMember): boolean {
    return this.#diskFailRate > 0 && this.#random.chance(this.#diskFailRate)
  }

  // -- network

  #way(from: NodeId, to: NodeId): string {
    return `${from}>${to}`
  }

  #latency(): Millis {
    return this.#random.chance(0.05)
      ? this.#random.below(this.#latencyMs * 50)
      : this.#random.below(this.#latencyMs * 2)
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
    const isRefused = target === undefined || !target.isUp || this.#refusing.has(this.#way(from.id, target.id))
    if (isRefused) {
      if (this.#isCalm || this.#random.chance(0.8)) this.after(this.#latency(), () => unanswered(true))
      return
    }
    const times = this.#random.chance(this.#doubleRate) ? 2 : 1
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
    if (this.#cut.has(this.#way(from, to)) || this.#random.chance(this.#lossRate)) return
    this.after(this.#latency(), run)
  }

  #targetOf(from: SimMember, to: RaftPeer): SimMember | undefined {
    if (to !== 'anyone') return this.#members[to - 1]
    const others = this.#members.filter(member => member !== from)
    return others.length === 0 ? undefined : this.#random.pick(others)
  }

  download(to: SimMember, leaderId: NodeId, id: SnapshotId): void {
    const from = this.#members[leaderId - 1]
    const raft = to.raft
    this.after(this.#latency() + this.#random.below(50), () => {
      if (to.raft !== raft) return
      const snapshot = from?.log.snapshots.find(
        each => each.id.endOffset === id.endOffset && each.id.epoch === id.epoch,
      )
      const isReachable = from?.isUp === true && !this.#cut.has(this.#way(leaderId, to.id))
      if (snapshot !== undefined && isReachable) to.snapshotLoaded(snapshot)
      else to.step({ kind: 'snapshot-failed', id })
    })
  }

  // -- what happens to it

  #scheduleAppend(): void {
    this.after(this.#random.between(1, this.#isCalm ? 500 : 150), () => {
      const leader = this.#random.pick(this.#members)
      // The end of all appends is part of what must be agreed on.
      if (leader.term !== undefined && this.now < FAULTS_MS + 5000) {
        for (let i = this.#random.between(1, 3); i > 0; i--)
          leader.append({ epoch: leader.term, value: this.nextValue() })
      }
      this.#scheduleAppend()
    })
  }

  #scheduleChaos(): void {
    this.after(this.#random.between(1, 1500), () => {
      if (this.#isCalm) return
      this.#disturb()
      this.#scheduleChaos()
    })
  }

  #disturb(): void {
    const random = this.#random
    const member = random.pick(this.#members)
    switch (random.below(17)) {
      case 0:
      case 1:
        this.#crash(member)
        return
      case 2:
        for (const each of this.#members) if (each.isLeader) this.#crash(each)
        return
      case 3:
      case 4:
        for (const each of this.#members) each.start()
        return
      case 5:
        if (member.isUp) member.step({ kind: 'stop' })
        return
      case 6:
        this.#cutSome()
        return
      case 7:
        this.#cut.clear()
        this.#refusing.clear()
        return
      case 8:
        this.#refusing.add(this.#way(member.id, random.pick(this.#members).id))
        return
      case 9:
        this.#lossRate = random.chance(0.5) ? 0 : random.fraction() / 3
        this.#doubleRate = random.chance(0.5) ? 0 : random.fraction() / 3
        return
      case 10:
        this.#latencyMs = random.pick([1, 1, 5, 50, 300])
        this.#diskMs = random.pick([1, 1, 5, 30, 300])
        return
      case 11:
        this.#diskFailRate = random.chance(0.7) ? 0 : 0.05
        return
      case 12:
        if (member.isUp) member.takeSnapshot()
        return
      case 13:
        this.#changeVoters(member)
        while (random.chance(0.4)) this.#changeVoters(random.pick(this.#members))
        return
      case 14:
        if (!member.isUp) this.#replaceDisk(member)
        return
      case 15:
        if (!member.isUp) member.endpointPort = 9093 + random.below(3)
        return
      default:
        this.#babble(member)
    }
  }

  #crash(member: SimMember): void {
    if (!member.isUp) return
    member.crash()
    for (const other of this.#members) {
      if (other === member || this.#random.chance(0.4)) continue
      const { raft } = other
      this.after(this.#latency(), () => {
        if (other.raft === raft && other.isUp && !member.isUp) other.step({ kind: 'peer-gone', id: member.id })
      })
    }
    if (this.#random.chance(0.7)) this.after(this.#random.below(5000), () => member.start())
  }

  /** A promise was given, perhaps to be broken by a restart. */
  promised(member: SimMember): void {
    if (this.#isCalm || !this.#random.chance(0.1)) return
    this.after(this.#random.below(10), () => {
      member.crash()
      this.after(this.#random.below(10), () => member.start())
    })
  }

  /** A term begins, perhaps to end before it committed anything. */
  elected(member: SimMember): void {
    if (this.#isCalm || !this.#random.chance(0.2)) return
    this.after(this.#random.below(100), () => this.#crash(member))
  }

  #cutSome(): void {
    const side = this.#members.filter(() => this.#random.chance(0.5))
    const isOneWay = this.#random.chance(0.3)
    for (const a of side) {
      for (const b of this.#members) {
        if (side.includes(b)) continue
        this.#cut.add(this.#way(a.id, b.id))
        if (!isOneWay) this.#cut.add(this.#way(b.id, a.id))
      }
    }
  }

  #changeVoters(member: SimMember): void {
    const leader = this.#members.find(each => each.isLeader)
    if (leader === undefined) return
    const voters = leader.raft?.voters ?? []
    const voter = voters.find(({ id }) => id === member.id)
    // A disk that was replaced is a voter for ever gone: it goes before others do.
    const staying = voters.filter(each => each !== voter)
    const exist = staying.filter(each => this.#members.some(one => isVoter(each, one)))
    if (voter !== undefined && exist.length < majorityOf(staying)) return
    const ackWhenCommitted = this.#random.chance(0.5)
    const timeoutMs = this.#random.between(0, 3000)
    leader.command(
      call =>
        voter === undefined
          ? { kind: 'add-voter', call, voter: voterOf(member, false), timeoutMs, ackWhenCommitted }
          : { kind: 'remove-voter', call, voter },
      () => {},
    )
    if (this.#random.chance(0.1)) leader.callGone()
  }

  /** Only where nothing that was promised lies on this disk alone: the others have all of it and stay a majority. */
  #replaceDisk(member: SimMember): void {
    const leader = this.#members.find(each => each.isLeader)
    const end = this.truth.committed.length
    if (leader?.raft === undefined || leader.raft.highWatermark !== end || leader.log.votersAt() === undefined) return
    const { voters } = leader.raft
    // Whoever founded the cluster by a static list would found it again if nobody on the list remembered it.
    const remembers = ({ id }: Voter) => id !== member.id && (this.#members[id - 1]?.log.nextOffset ?? 0) > 0
    if (this.first.isStatic && !this.first.voters.some(remembers)) return
    const whole = voters.filter(voter =>
      this.#members.some(each => each !== member && isVoter(voter, each) && each.log.durable >= end),
    )
    const isLost = voters.some(voter => !this.#members.some(each => each !== member && isVoter(voter, each)))
    if (whole.length >= majorityOf(voters) && (!isLost || whole.length >= voters.length - 1))
      member.wipe(this.#freshId())
  }

  /** Nonsense from strangers: it may cost an election, and nothing else. */
  #babble(member: SimMember): void {
    if (!member.isUp) return
    const random = this.#random
    const epoch = (member.raft?.epoch ?? 0) + random.pick([-5, -1, 0, 0, 1, 3])
    const key = { id: random.pick([-1, 0, 1, 2, 99]), directoryId: this.#freshId() }
    const end = random.pick([-1, 0, member.log.nextOffset, 1_000_000_000])
    const ignore = (_reply: Reply): void => {}
    const messages: RaftRequest[] = [
      {
        kind: 'fetch',
        fetch: {
          replicaId: key.id,
          directoryId: key.directoryId,
          currentLeaderEpoch: epoch,
          offset: random.pick([-1, 0, 3, 1_000_000]),
          lastFetchedEpoch: epoch,
          highWatermark: end,
          maxWaitMs: random.pick([-1, 0, 500, 2_000_000]),
        },
      },
      {
        kind: 'vote',
        vote: { epoch, candidate: key, voter: key, lastEpoch: epoch - 1, endOffset: end, preVote: true },
      },
      {
        kind: 'vote',
        vote: { epoch, candidate: key, voter: key, lastEpoch: epoch + 1, endOffset: end, preVote: false },
      },
      {
        kind: 'end-epoch',
        end: { leaderId: key.id, epoch: Math.min(epoch, member.raft?.epoch ?? 0), successors: [key] },
      },
      { kind: 'update-voter', epoch, voter: { ...key, endpoints: [], kraftVersion: { min: 0, max: 1 } } },
    ]
    member.asked(random.pick(messages), ignore)
  }
}
