import type { SeededRandom } from '#base/random.ts'
import type { Millis } from '#base/units.ts'
import { ZERO_UUID } from '#base/uuid.ts'
import type { RaftRequest } from '../messages.ts'
import { isVoter, majorityOf, type Voter } from '../quorum.ts'
import { type Reply, type SimMember, voterOf } from './sim-member.ts'
import type { SimQuorum } from './sim-quorum.ts'

const FAULTS_MS: Millis = 40_000
const APPENDS_MS: Millis = 45_000

/**
 * What a seed does to a quorum: messages are lost, doubled, reordered and late, connections refused though others get
 * through, nodes crash with torn logs and states, clocks drift, processes stand still, disks fail, hang and are full, voters
 * come and go, snapshots are taken, disks replaced, nonsense is said. Then all of it ends, and the quorum has to heal. Throws at what does not hold.
 */
export function simulateQuorum(quorum: SimQuorum): void {
  const chaos = new SimChaos(quorum)
  quorum.chaos = chaos
  quorum.isCalm = false
  for (const member of quorum.members) quorum.after(quorum.random.below(200), () => member.start())
  chaos.begin()
  quorum.appendUntil(APPENDS_MS)
  quorum.runUntil(FAULTS_MS)
  quorum.heal()
}

class SimChaos {
  readonly #quorum: SimQuorum
  readonly #random: SeededRandom

  constructor(quorum: SimQuorum) {
    this.#quorum = quorum
    this.#random = quorum.random
  }

  begin(): void {
    this.#schedule()
  }

  #schedule(): void {
    this.#quorum.after(this.#random.between(1, 1500), () => {
      if (this.#quorum.isCalm) return
      this.#disturb()
      this.#schedule()
    })
  }

  #disturb(): void {
    const random = this.#random
    const member = random.pick(this.#quorum.members)
    switch (random.below(20)) {
      case 0:
      case 1:
        this.#crash(member)
        return
      case 2:
        for (const each of this.#quorum.members) if (each.isLeader) this.#crash(each)
        return
      case 3:
      case 4:
        for (const each of this.#quorum.members) each.start()
        return
      case 5:
        if (member.isUp) member.step({ kind: 'stop' })
        return
      case 6:
        this.#cutSome()
        return
      case 7:
        this.#quorum.cut.clear()
        this.#quorum.refusing.clear()
        return
      case 8:
        this.#quorum.refusing.add(this.#quorum.way(member.id, random.pick(this.#quorum.members).id))
        return
      case 9:
        this.#quorum.lossRate = random.chance(0.5) ? 0 : random.fraction() / 3
        this.#quorum.doubleRate = random.chance(0.5) ? 0 : random.fraction() / 3
        return
      case 10:
        this.#quorum.latencyMs = random.pick([1, 1, 5, 50, 300])
        this.#quorum.diskDelayMs = random.pick([1, 1, 5, 30, 300])
        return
      case 11:
        this.#quorum.diskFailRate = random.chance(0.7) ? 0 : 0.05
        return
      case 12:
        if (member.isUp) member.takeSnapshot()
        return
      case 13:
        this.#changeVoters(member)
        while (random.chance(0.4)) this.#changeVoters(random.pick(this.#quorum.members))
        return
      case 14:
        if (!member.isUp) this.#replaceDisk(member)
        return
      case 15:
        if (!member.isUp) member.endpointPort = 9093 + random.below(3)
        return
      case 16:
        this.#quorum.hangUntil.set(member.id, this.#quorum.now + random.below(10_000))
        return
      case 17:
        this.#quorum.fullUntil.set(member.id, this.#quorum.now + random.below(10_000))
        return
      case 18:
        this.#quorum.stillUntil.set(
          member.id,
          Math.min(FAULTS_MS, this.#quorum.now + random.pick([50, 1000, 5000, 20_000])),
        )
        return
      default:
        this.#babble(member)
    }
  }

  #crash(member: SimMember): void {
    if (!member.isUp) return
    this.#quorum.kill(member)
    if (this.#random.chance(0.7)) this.#quorum.after(this.#random.below(5000), () => member.start())
  }

  /** A promise was given, perhaps to be broken by a restart. */
  promised(member: SimMember): void {
    if (this.#quorum.isCalm || !this.#random.chance(0.2)) return
    this.#quorum.after(this.#random.below(10), () => {
      member.crash()
      this.#quorum.after(this.#random.below(10), () => member.start())
    })
  }

  /** A term begins, perhaps to end before it committed anything. */
  elected(member: SimMember): void {
    if (this.#quorum.isCalm || !this.#random.chance(0.2)) return
    this.#quorum.after(this.#random.below(100), () => this.#crash(member))
  }

  #cutSome(): void {
    const side = this.#quorum.members.filter(() => this.#random.chance(0.5))
    const isOneWay = this.#random.chance(0.3)
    for (const a of side) {
      for (const b of this.#quorum.members) {
        if (side.includes(b)) continue
        this.#quorum.cut.add(this.#quorum.way(a.id, b.id))
        if (!isOneWay) this.#quorum.cut.add(this.#quorum.way(b.id, a.id))
      }
    }
  }

  #changeVoters(member: SimMember): void {
    const leader = this.#quorum.members.find(each => each.isLeader)
    if (leader === undefined) return
    const voters = leader.raft?.voters ?? []
    const voter = voters.find(({ id }) => id === member.id)
    // A disk that was replaced is a voter for ever gone: it goes before others do.
    const staying = voters.filter(each => each !== voter)
    const exist = staying.filter(each => this.#quorum.members.some(one => isVoter(each, one)))
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
    const leader = this.#quorum.members.find(each => each.isLeader)
    const end = this.#quorum.truth.committed.length
    if (leader?.raft === undefined || leader.raft.highWatermark !== end) return
    // A vote that the old disk remembered is for an epoch that is over.
    if ((leader.term ?? 0) < member.stored.leaderEpoch) return
    if (leader.log.votersAt() === undefined && !this.#quorum.first.isStatic) return
    const { voters } = leader.raft
    // Whoever founded the cluster by a static list would found it again if nobody on the list remembered it.
    const remembers = ({ id }: Voter) => id !== member.id && (this.#quorum.members[id - 1]?.log.nextOffset ?? 0) > 0
    if (this.#quorum.first.isStatic && !this.#quorum.first.voters.some(remembers)) return
    const whole = voters.filter(voter =>
      this.#quorum.members.some(
        each => each !== member && isVoter(voter, each) && this.#quorum.truth.isHeldBy(each.log),
      ),
    )
    const isLost = voters.some(voter => !this.#quorum.members.some(each => each !== member && isVoter(voter, each)))
    if (whole.length >= majorityOf(voters) && (!isLost || whole.length >= voters.length - 1))
      member.wipe(this.#quorum.freshId())
  }

  /** Nonsense from strangers: it may cost an election, and nothing else. */
  #babble(member: SimMember): void {
    if (!member.isUp) return
    const random = this.#random
    const epoch = (member.raft?.epoch ?? 0) + random.pick([-5, -1, 0, 0, 1, 3])
    const key = { id: random.pick([-1, 0, 1, 2, 99]), directoryId: this.#quorum.freshId() }
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
        // To whoever reads it.
        kind: 'vote',
        vote: {
          epoch,
          candidate: key,
          voter: { id: -1, directoryId: ZERO_UUID },
          lastEpoch: epoch - 1,
          endOffset: end,
          preVote: random.chance(0.5),
        },
      },
      {
        kind: 'begin-epoch',
        begin: { leaderId: key.id, epoch, voter: { id: member.id, directoryId: member.directoryId } },
      },
      {
        kind: 'end-epoch',
        end: { leaderId: key.id, epoch: Math.min(epoch, member.raft?.epoch ?? 0), successors: [key] },
      },
      { kind: 'update-voter', epoch, voter: { ...key, endpoints: [], kraftVersion: { min: 0, max: 1 } } },
      // A voter with a directory that is none of its own, or a number that nobody has.
      { kind: 'update-voter', epoch, voter: { ...voterOf(member, false), directoryId: key.directoryId } },
      { kind: 'add-voter', voter: { ...voterOf(member, false), ...key } },
      { kind: 'remove-voter', voter: { id: member.id, directoryId: key.directoryId } },
    ]
    member.asked(random.pick(messages), ignore)
  }
}
