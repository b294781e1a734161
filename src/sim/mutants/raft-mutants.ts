import { ZERO_UUID } from '#base/uuid.ts'
import { Candidacy } from '#core/raft/candidacy.ts'
import { Follower } from '#core/raft/follower.ts'
import { Leader } from '#core/raft/leader.ts'
import { Outbox } from '#core/raft/outbox.ts'
import { Replica } from '#core/raft/replica.ts'
import type { DriverFaults } from '#core/raft/testing/sim-quorum.ts'
import { VoterChange } from '#core/raft/voter-change.ts'

/** A deliberately broken build of raft: what is changed in the machine while a run lasts, or in what drives it. */
export interface RaftMutant {
  /** Breaks it, and returns what mends it again. */
  readonly patch?: () => () => void
  readonly driver?: DriverFaults
}

/** Puts another property in the place of one, and returns what puts it back. */
function replace<T extends object>(of: T, name: keyof T, by: PropertyDescriptor): () => void {
  const original = Object.getOwnPropertyDescriptor(of, name)
  Object.defineProperty(of, name, { ...by, configurable: true })
  return () => {
    if (original !== undefined) Object.defineProperty(of, name, original)
  }
}

export const RAFT_MUTANTS: Readonly<Record<string, RaftMutant>> = {
  'vote-forgotten': { driver: { forgetsVote: true } },
  /** A record counts as held before it outlives a crash. */
  'sync-lies': { driver: { lies: true } },
  /** Votes for a candidate whose log lacks what this one has. */
  'older-log-elected': { patch: () => replace(Replica.prototype, 'isAtLeastAsNew', { value: () => true }) },
  /** Counts copies of records of earlier epochs (raft, figure 8). */
  'older-epoch-committed': { patch: () => replace(Leader.prototype, 'mayCommit', { value: () => true }) },
  /** The leader counts what it has not synced. */
  'own-end-undurable': {
    patch: () =>
      replace(Leader.prototype, 'ownEnd', {
        get(this: { replica: Replica }) {
          return this.replica.log.nextOffset
        },
      }),
  },
  'two-votes': {
    patch: () =>
      replace(Replica.prototype, 'canVoteFor', {
        value(this: Replica) {
          return this.state.leaderId === -1
        },
      }),
  },
  /** Cuts off more than it should, whatever is committed. */
  'truncates-committed': {
    patch: () =>
      replace(Follower.prototype, 'truncateTo', {
        value(this: { replica: Replica }, end: number) {
          const endOffset = Math.max(this.replica.log.startOffset, end - 5)
          this.replica.logWork = { kind: 'truncate' }
          this.replica.outbox.push({ kind: 'truncate', endOffset })
        },
      }),
  },
  /** Leads by pre-votes alone. */
  'pre-vote-counts': {
    patch: () =>
      replace(Candidacy.prototype, 'win', {
        value(this: { replica: Replica; name: string; won: boolean }) {
          this.won = true
          const { state, key } = this.replica
          const leaderEpoch = this.name === 'prospective' ? state.leaderEpoch + 1 : state.leaderEpoch
          this.replica.become({ leaderEpoch, leaderId: key.id, votedId: -1, votedDirectoryId: ZERO_UUID })
        },
      }),
  },
  /** Promises leave before they are stored. */
  'promise-early': { patch: () => replace(Outbox.prototype, 'mustWait', { value: () => false }) },
  /** One vote too few. */
  'minority-elects': {
    patch: () =>
      replace(Replica.prototype, 'votesNeeded', {
        get(this: Replica) {
          return Math.max(1, Math.floor(this.voters.length / 2))
        },
      }),
  },
  /** One copy too few. */
  'minority-commits': {
    patch: () =>
      replace(Leader.prototype, 'majorityEnd', {
        value(this: Leader) {
          return this.ownEnd
        },
      }),
  },
  /** Does not wait for one change of the voters to be committed before the next. */
  'changes-overlap': {
    patch: () => replace(VoterChange.prototype, 'refusal', { value: () => undefined }),
  },
  /** Keeps what the leader says is not its own. */
  'divergence-kept': { patch: () => replace(Follower.prototype, 'truncateTo', { value: () => {} }) },
  /** Stands in the epoch that it is in. */
  'epoch-reused': {
    patch: () =>
      replace(Replica.prototype, 'become', {
        value(this: Replica, state: Replica['state']) {
          become.call(this, { ...state, leaderEpoch: Math.max(this.state.leaderEpoch, state.leaderEpoch - 1) })
        },
      }),
  },
}

const become = Replica.prototype.become
