import type { Millis, NodeId, Offset } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import type { LogView } from './log-view.ts'
import type { QuorumState, Voter } from './quorum.ts'

/** Kafka's names and defaults (`controller.quorum.*`). */
export interface RaftTiming {
  /** A follower that could not fetch for so long stands for election; observers look for another leader. */
  readonly fetchTimeoutMs: Millis
  /** An election that is not decided within once to twice this is begun anew. */
  readonly electionTimeoutMs: Millis
  /** The longest pause after an election that was lost. */
  readonly electionBackoffMaxMs: Millis
  /** After this the driver calls a request unanswered, and a change of voters is answered at the latest. */
  readonly requestTimeoutMs: Millis
  /** The first pause after a request that failed; it doubles with each. */
  readonly retryBackoffMs: Millis
  /** How long a leader may let a fetch wait for news. */
  readonly fetchMaxWaitMs: Millis
}

export const RAFT_TIMING: RaftTiming = {
  fetchTimeoutMs: 2000,
  electionTimeoutMs: 1000,
  electionBackoffMaxMs: 1000,
  requestTimeoutMs: 2000,
  retryBackoffMs: 20,
  fetchMaxWaitMs: 500,
}

export interface RaftOptions {
  readonly nodeId: NodeId
  readonly directoryId: Uuid
  /** Who votes, at first; changes come as events. Directories of a static list (kraft.version 0) are zero. */
  readonly voters: readonly Voter[]
  /** The offset of the record that names them, -1 (the default) of a static list. */
  readonly votersOffset?: Offset
  /**
   * Who voted before that record, where the log still says it. A voter that the last record took out goes on standing
   * until the record is committed: perhaps nobody else can win (raft's dissertation, 4.2.2).
   */
  readonly formerVoters?: readonly Voter[]
  /** What was stored last. */
  readonly state: QuorumState
  /** All of it is durable at first. */
  readonly log: LogView
  /** How long after a failure of its own disk a node goes on. */
  readonly retryMs: Millis
  /**
   * The node belongs to no cluster yet and was given a static list of voters: while its log is empty it leads only when
   * every one of them voted for it, so that wiped disks never found a second cluster beside the one that still exists.
   */
  readonly founding?: boolean
  /** A leader with a static list turns it into records by itself, once every voter told its directory (update-voter). */
  readonly recordsVoters?: boolean
  /** A controller that does not vote asks the leader to become a voter (`controller.quorum.auto.join.enable`). */
  readonly autoJoin?: boolean
  readonly timing?: Partial<RaftTiming>
  /** Chance, a fraction in [0, 1): seeded, so that the same events give the same effects. */
  readonly draw?: () => number
}
