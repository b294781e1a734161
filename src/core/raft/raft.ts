import { assert, unreachable } from '#base/assert.ts'
import { type Epoch, INT32_MAX, type Millis, type NodeId, type Offset } from '#base/units.ts'
import { ZERO_UUID } from '#base/uuid.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Machine } from '../machine.ts'
import { Candidacy } from './candidacy.ts'
import { Follower } from './follower.ts'
import { Leader } from './leader.ts'
import type { RaftEffect, RaftEvent, RaftFetch, RaftPeer, RaftResponse } from './messages.ts'
import type { RaftOptions } from './options.ts'
import { PeerRequests } from './peer-requests.ts'
import type { ReplicaKey, ReplicaProgress, Voter } from './quorum.ts'
import { Refusals } from './refusals.ts'
import { Replica } from './replica.ts'
import { Resigned } from './resigned.ts'
import { NEVER, type Role, type RoleName, STAND_SPREAD_MS, type Turns } from './role.ts'
import { Unattached } from './unattached.ts'

type Call<Kind extends RaftEvent['kind']> = Extract<RaftEvent, { kind: Kind }>

/**
 * Kafka's raft (KIP-595, 630, 853, 996, 1166) as a blind machine: elections with a vote beforehand, replication by fetching,
 * voters as a static list or as records. Any event is answered sanely in any state; what peers say is never trusted
 * beyond what it proves, and what this node promises is stored before it leaves.
 */
export class Raft implements Machine<RaftEvent, RaftEffect> {
  readonly #replica: Replica
  readonly #turns: Turns
  readonly #refusals: Refusals
  readonly #peers: PeerRequests
  #role: Role
  /** What the driver was told of the leader. */
  #told: { readonly leaderId: NodeId; readonly epoch: Epoch }
  #stopping: 'no' | 'handing-over' | 'stopped' = 'no'

  constructor(options: RaftOptions) {
    this.#replica = new Replica(options)
    this.#turns = {
      unattached: (epoch, standAt, now) => this.#unattached(epoch, standAt, now),
      stand: (failures, now) => this.#stand(failures, now),
      candidate: (failures, now) => this.#candidate(failures, now),
      lead: (granting, now) => this.#enter(new Leader(this.#replica, this.#turns, granting), now),
      follow: (leaderId, epoch, now) => this.#follow(leaderId, epoch, now),
      resign: (successors, standAt, now) => this.#resign(successors, standAt, now),
      stopped: () => this.#stopped(),
    }
    const role = () => this.#role
    this.#refusals = new Refusals(this.#replica, () => this.leaderId)
    this.#peers = new PeerRequests(this.#replica, this.#refusals, {
      get role() {
        return role()
      },
      unattached: (epoch, standAt, now) => this.#unattached(epoch, standAt, now),
      learn: (leaderId, epoch, from, now) => this.#learn(leaderId, epoch, from, now),
    })
    this.#role = new Unattached(this.#replica, this.#turns, NEVER, 0)
    this.#told = { leaderId: -1, epoch: this.epoch }
  }

  get role(): RoleName {
    return this.#role.name
  }

  get epoch(): Epoch {
    return this.#replica.epoch
  }

  /** -1 while no leader is known. */
  get leaderId(): NodeId {
    return this.#role.leaderId
  }

  /** -1 until one is known. */
  get highWatermark(): Offset {
    return this.#replica.highWatermark
  }

  get voters(): readonly Voter[] {
    return this.#replica.voters
  }

  get waitingCount(): number {
    return this.#role instanceof Leader ? this.#role.waiting.size : 0
  }

  /** The voters' progress as the leader sees it; a node that does not lead knows only its own. */
  voterProgress(now: Millis): ReplicaProgress[] {
    if (this.#role instanceof Leader) return this.#role.voterProgress(now)
    const { voters, log } = this.#replica
    return voters.map(voter => {
      const { id, directoryId } = voter
      const endOffset = this.#replica.isSelf(voter) ? log.endOffset : -1
      const at = this.#replica.isSelf(voter) ? now : undefined
      return { id, directoryId, endOffset, lastFetchAt: at, lastCaughtUpAt: at }
    })
  }

  observerProgress(now: Millis): ReplicaProgress[] {
    return this.#role instanceof Leader ? this.#role.observers.all(now) : []
  }

  wakeAt(): Millis | undefined {
    const at = this.#stopping === 'stopped' ? NEVER : this.#role.wakeAt()
    return at === NEVER ? undefined : at
  }

  step(event: RaftEvent, now: Millis): readonly RaftEffect[] {
    if (this.#stopping === 'stopped') this.#turnAway(event)
    else this.#handle(event, now)
    this.#tell()
    return this.#replica.outbox.flush(this.#replica.state)
  }

  #handle(event: RaftEvent, now: Millis): void {
    switch (event.kind) {
      case 'start':
        this.#replica.endpoints = event.endpoints
        this.#start(now)
        return
      case 'tick':
        this.#role.tick(now)
        return
      case 'state-stored':
        this.#replica.outbox.stored(event.state)
        if (!this.#replica.outbox.isStoring) this.#role.stateStored(now)
        return
      case 'storage-failed':
        this.#storageFailed(event.of, now)
        return
      case 'log-stored':
      case 'truncated':
      case 'snapshot-loaded':
      case 'snapshot-failed':
        this.#logEvent(event, now)
        return
      case 'snapshot-progress':
        this.#role.snapshotProgressed(now)
        return
      case 'snapshot-read':
        if (this.#role instanceof Leader) this.#role.snapshotRead(event.replica, now)
        return
      case 'voters-changed':
        this.#replica.changeVoters(event.voters, event.offset)
        this.#role.votersChanged(now)
        return
      case 'answered':
        this.#answered(event.request, event.response, now)
        return
      case 'unanswered':
        this.#unanswered(event.request, event.refused, now)
        return
      case 'peer-gone':
        this.#role.peerGone(event.id, now)
        return
      case 'call-gone':
        if (this.#role instanceof Leader) {
          this.#role.waiting.delete(event.call)
          this.#role.changes.gone(event.call)
        }
        return
      case 'unfit':
        this.#unfit(now)
        return
      case 'stop':
        this.#stop(now)
        return
      case 'fetch':
        this.#fetch(event.call, event.fetch, now)
        return
      case 'vote':
        this.#peers.vote(event.call, event.vote, now)
        return
      case 'begin-epoch':
        this.#peers.beginEpoch(event.call, event.begin, now)
        return
      case 'end-epoch':
        this.#peers.endEpoch(event.call, event.end, now)
        return
      default:
        this.#changeVoters(event, now)
    }
  }

  #turnAway(event: RaftEvent): void {
    if (event.kind === 'state-stored') this.#replica.outbox.stored(event.state)
    else if (event.kind === 'storage-failed') this.#replica.outbox.failed(() => {})
    else this.#refusals.stopped(event)
  }

  // -- turns

  #enter(role: Role, now: Millis): void {
    const before = this.#role
    before.leave(now)
    this.#role = role
    if (before instanceof Leader) {
      this.#told = { leaderId: -1, epoch: before.epoch }
      before.dismiss(call => this.#refusals.fetch(call, ErrorCode.NOT_LEADER_OR_FOLLOWER))
    }
    // A node that hands over has nothing to do once another epoch has come.
    if (this.#stopping === 'handing-over' && !(role instanceof Resigned)) this.#stopped()
    else role.begin(now)
  }

  #start(now: Millis): void {
    // Those who start together meet in the first round; who is late finds a leader by it.
    const { others, mayStand } = this.#replica
    const standAt = now + (mayStand && others.length > 0 ? this.#replica.draw(STAND_SPREAD_MS) : 0)
    this.#enter(new Unattached(this.#replica, this.#turns, standAt, now), now)
  }

  #unattached(epoch: Epoch, standAt: Millis, now: Millis): void {
    if (epoch > this.epoch) {
      this.#replica.become({ leaderEpoch: epoch, leaderId: -1, votedId: -1, votedDirectoryId: ZERO_UUID })
      this.#replica.doubts = 0
    }
    this.#enter(new Unattached(this.#replica, this.#turns, standAt, now), now)
  }

  #stand(failures: number, now: Millis): void {
    const { mayStand, logWork, timing } = this.#replica
    if (!mayStand || logWork !== undefined || this.epoch >= INT32_MAX - 1) {
      this.#unattached(this.epoch, now + timing.electionTimeoutMs, now)
      return
    }
    this.#enter(new Candidacy(this.#replica, this.#turns, 'prospective', failures, now), now)
  }

  #candidate(failures: number, now: Millis): void {
    const { id: votedId, directoryId: votedDirectoryId } = this.#replica.key
    this.#replica.become({ leaderEpoch: this.epoch + 1, leaderId: -1, votedId, votedDirectoryId })
    this.#replica.doubts = 0
    this.#enter(new Candidacy(this.#replica, this.#turns, 'candidate', failures, now), now)
  }

  #follow(leaderId: NodeId, epoch: Epoch, now: Millis): void {
    assert(leaderId !== this.#replica.key.id, 'nobody follows itself')
    const { state } = this.#replica
    if (epoch > state.leaderEpoch || state.leaderId !== leaderId) {
      this.#replica.become({ leaderEpoch: epoch, leaderId, votedId: -1, votedDirectoryId: ZERO_UUID })
      this.#replica.doubts = 0
    }
    this.#enter(new Follower(this.#replica, this.#turns, leaderId, now), now)
  }

  #resign(successors: readonly ReplicaKey[], standAt: Millis, now: Millis): void {
    const { electionTimeoutMs } = this.#replica.timing
    const stopAt = this.#stopping === 'no' ? NEVER : now + electionTimeoutMs
    this.#enter(new Resigned(this.#replica, this.#turns, successors, standAt, stopAt), now)
  }

  /** Where there is nobody else, or nobody else can win, this node leads again after a while, and may have become fit. */
  #unfit(now: Millis): void {
    const { others, timing } = this.#replica
    if (!(this.#role instanceof Leader) || others.length === 0) return
    this.#resign(this.#role.successors, now + 2 * timing.electionTimeoutMs, now)
  }

  #stop(now: Millis): void {
    if (this.#stopping !== 'no') return
    this.#stopping = 'handing-over'
    if (this.#role instanceof Leader && this.#replica.others.length > 0) this.#resign(this.#role.successors, NEVER, now)
    else this.#stopped()
  }

  #stopped(): void {
    this.#stopping = 'stopped'
    this.#enter(new Unattached(this.#replica, this.#turns, NEVER, 0), 0)
    this.#replica.outbox.push({ kind: 'stopped' })
  }

  /** The driver learns of a leader that is not this node, and of its loss. */
  #tell(): void {
    const { leaderId, epoch } = this
    if (leaderId === this.#replica.key.id) return
    const { leaderId: toldId, epoch: toldEpoch } = this.#told
    if (leaderId === toldId && (epoch === toldEpoch || leaderId === -1)) return
    this.#told = { leaderId, epoch }
    this.#replica.outbox.push({ kind: 'follow', leaderId, epoch })
  }

  // -- the own disk

  #storageFailed(of: 'state' | 'log' | undefined, now: Millis): void {
    const replica = this.#replica
    const dropped: number[] = []
    if (of !== 'log') replica.outbox.failed(request => dropped.push(request))
    if (of !== 'state' && replica.logWork?.kind !== 'snapshot') replica.logWork = undefined
    replica.durableEnd = Math.min(replica.durableEnd, replica.log.nextOffset)
    // What was held for the state was never sent.
    for (const request of dropped) this.#unanswered(request, false, now)
    const { retryMs } = replica.options
    const role = this.#role
    if (role instanceof Follower) role.logFailed(now)
    else if (role instanceof Leader && replica.others.length > 0) this.#resign(role.successors, now + retryMs, now)
    else if (role instanceof Leader || role instanceof Candidacy) this.#unattached(this.epoch, now + retryMs, now)
  }

  #logEvent(event: Call<'log-stored' | 'truncated' | 'snapshot-loaded' | 'snapshot-failed'>, now: Millis): void {
    const replica = this.#replica
    const { logWork } = replica
    switch (event.kind) {
      case 'log-stored':
        replica.durableEnd = Math.max(replica.durableEnd, event.endOffset)
        if (logWork?.kind === 'append' && replica.durableEnd >= logWork.endOffset) replica.logWork = undefined
        break
      case 'truncated':
        replica.durableEnd = Math.min(replica.durableEnd, replica.log.nextOffset)
        if (logWork?.kind === 'truncate') replica.logWork = undefined
        break
      case 'snapshot-loaded':
        replica.durableEnd = replica.log.nextOffset
        if (logWork?.kind === 'snapshot') replica.logWork = undefined
        replica.commit(event.id.endOffset)
        this.#role.snapshotEnded(true, now)
        break
      case 'snapshot-failed':
        if (logWork?.kind === 'snapshot') replica.logWork = undefined
        this.#role.snapshotEnded(false, now)
        break
      default:
        unreachable(event)
    }
    this.#role.logChanged(now)
  }

  // -- what peers answer

  #answered(request: number, response: RaftResponse, now: Millis): void {
    const sent = this.#replica.take(request)
    if (sent === undefined) return
    assert(sent.message.kind === response.kind, 'an answer is of the kind of its request')
    const leader = leaderIn(response)
    // Whoever is asked by another name than its own, and has something to give, is the leader itself.
    const isLeader = response.kind === 'fetch' && response.answer.errorCode === ErrorCode.NONE
    const from = isLeader ? response.answer.leaderId : sent.to
    if (leader !== undefined) this.#learn(leader.leaderId, leader.leaderEpoch, from, now)
    if (sent.role === this.#role) this.#role.answered(sent, response, now)
  }

  #unanswered(request: number, refused: boolean, now: Millis): void {
    const sent = this.#replica.take(request)
    if (sent?.role === this.#role) this.#role.unanswered(sent, refused, now)
    else if (sent !== undefined && refused && sent.to !== 'anyone') this.#role.peerGone(sent.to, now)
  }

  /** What somebody says of the leader and its epoch. */
  #learn(leaderId: NodeId, epoch: Epoch, from: RaftPeer | undefined, now: Millis): void {
    const { state, key, timing, hasPast } = this.#replica
    if (epoch < this.epoch || (epoch > this.epoch && !this.#peers.isNextEpoch(epoch))) return
    if (epoch > this.epoch) {
      if (leaderId < 0 && !hasPast) return
      if (leaderId >= 0 && leaderId !== key.id && this.#stopping === 'no') this.#follow(leaderId, epoch, now)
      else this.#unattached(epoch, now + timing.electionTimeoutMs + this.#replica.draw(timing.electionTimeoutMs), now)
      // An epoch that this node led and forgot: its vote in it is spent.
      if (leaderId === key.id) this.#spendVote()
      return
    }
    if (leaderId < 0 || leaderId === key.id || this.leaderId !== -1 || this.#stopping !== 'no') return
    // Only one node leads an epoch. Who was fetched from is the one; a name that was only heard may have been wrong.
    const isCertain = state.leaderId === key.id || this.#replica.followedEpoch === epoch
    if (state.leaderId !== -1 && state.leaderId !== leaderId && isCertain) return
    if (from !== leaderId && this.#role.insists(leaderId)) return
    this.#follow(leaderId, epoch, now)
  }

  #spendVote(): void {
    const { id: votedId, directoryId: votedDirectoryId } = this.#replica.key
    this.#replica.become({ leaderEpoch: this.epoch, leaderId: -1, votedId, votedDirectoryId })
  }

  // -- what peers ask

  #fetch(call: number, fetch: RaftFetch, now: Millis): void {
    const { currentLeaderEpoch, directoryId } = fetch
    // A replica that voted in a later epoch would never follow this one: the next epoch takes both along. A client's word
    // is not enough.
    if (this.#role instanceof Leader && directoryId !== ZERO_UUID && this.#peers.isNextEpoch(currentLeaderEpoch)) {
      this.#unattached(currentLeaderEpoch, now + this.#replica.draw(STAND_SPREAD_MS), now)
    }
    const errorCode = this.#fetchError(fetch)
    if (errorCode === ErrorCode.NONE && this.#role instanceof Leader) this.#role.fetch(call, fetch, now)
    else this.#refusals.fetch(call, errorCode)
  }

  #fetchError(fetch: RaftFetch): number {
    if (fetch.currentLeaderEpoch < this.epoch) return ErrorCode.FENCED_LEADER_EPOCH
    if (fetch.currentLeaderEpoch > this.epoch) return ErrorCode.UNKNOWN_LEADER_EPOCH
    if (this.#role.name !== 'leader') return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return fetch.offset < 0 || fetch.lastFetchedEpoch < 0 ? ErrorCode.INVALID_REQUEST : ErrorCode.NONE
  }

  #changeVoters(event: Call<'add-voter' | 'remove-voter' | 'update-voter' | 'record-voters'>, now: Millis): void {
    const { call } = event
    if (event.kind === 'update-voter') {
      this.#replica.answer(call, { kind: 'update-voter', answer: this.#refusals.epochAnswer(this.#updateVoter(event)) })
      return
    }
    const role = this.#role
    if (!(role instanceof Leader)) this.#refusals.voterChange(event.kind, call, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    else if (event.kind === 'add-voter')
      role.changes.add(call, event.voter, event.timeoutMs, event.ackWhenCommitted, now)
    else if (event.kind === 'remove-voter') role.changes.remove(call, event.voter, now)
    else role.changes.record(call, event.validateOnly ?? false, now)
  }

  #updateVoter({ epoch, voter }: Call<'update-voter'>): number {
    if (epoch < this.epoch) return ErrorCode.FENCED_LEADER_EPOCH
    if (epoch > this.epoch) return ErrorCode.UNKNOWN_LEADER_EPOCH
    const role = this.#role
    return role instanceof Leader ? role.changes.update(voter) : ErrorCode.NOT_LEADER_OR_FOLLOWER
  }
}

/** What an answer says of the leader; undefined where it says nothing. */
function leaderIn(response: RaftResponse): { readonly leaderId: NodeId; readonly leaderEpoch: Epoch } | undefined {
  switch (response.kind) {
    case 'vote':
    case 'fetch':
    case 'begin-epoch':
    case 'end-epoch':
    case 'update-voter':
      return response.answer
    default:
      return undefined
  }
}
