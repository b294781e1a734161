import type { Epoch, Millis, NodeId, Offset } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import type { Position, SnapshotId } from './log-view.ts'
import type { QuorumState, ReplicaKey, Voter, VoterEndpoint } from './quorum.ts'

/**
 * What goes into raft and what comes out. Raft is blind: bytes of records and snapshots never pass through it, only where
 * they lie. The driver (src/controller) owns log, files, connections and time.
 */

/** A Fetch of the metadata log, as far as raft judges it. */
export interface RaftFetch {
  readonly replicaId: NodeId
  readonly directoryId: Uuid
  readonly currentLeaderEpoch: Epoch
  readonly offset: Offset
  readonly lastFetchedEpoch: Epoch
  /** The high watermark that the fetcher knows (v18); infinite where it does not say. */
  readonly highWatermark: Offset
  readonly maxWaitMs: Millis
}

export interface FetchAnswer {
  readonly errorCode: number
  readonly position: Position
  /** What may be read: from the offset asked for up to here, both may be the same. */
  readonly upTo: Offset
  /** -1 where this leader does not know it yet. */
  readonly highWatermark: Offset
  readonly leaderId: NodeId
  readonly leaderEpoch: Epoch
}

/** Vote (52), KIP-595, 853, 996. */
export interface VoteRequest {
  readonly epoch: Epoch
  readonly candidate: ReplicaKey
  /** Whom the candidate means; the zero directory below v1. */
  readonly voter: ReplicaKey
  readonly lastEpoch: Epoch
  /** The end of the candidate's log. */
  readonly endOffset: Offset
  /** Asks only whether a vote would be given; nothing is stored (v2). */
  readonly preVote: boolean
}

export interface VoteAnswer {
  readonly errorCode: number
  readonly leaderId: NodeId
  readonly leaderEpoch: Epoch
  readonly granted: boolean
}

/** BeginQuorumEpoch (53): a leader makes itself known to voters that do not fetch from it yet. */
export interface BeginEpochRequest {
  readonly leaderId: NodeId
  readonly epoch: Epoch
  readonly voter: ReplicaKey
}

/** EndQuorumEpoch (54): a leader that goes, and who should stand first. */
export interface EndEpochRequest {
  readonly leaderId: NodeId
  readonly epoch: Epoch
  readonly successors: readonly ReplicaKey[]
}

/** What BeginQuorumEpoch, EndQuorumEpoch and UpdateRaftVoter answer. */
export interface EpochAnswer {
  readonly errorCode: number
  readonly leaderId: NodeId
  readonly leaderEpoch: Epoch
}

/** AddRaftVoter, RemoveRaftVoter. */
export interface VoterAnswer {
  readonly errorCode: number
  readonly message: string | null
}

/** What one node asks of another. `fetch` carries the end of the asker's own log, all of which is durable there. */
export type RaftRequest =
  | { readonly kind: 'vote'; readonly vote: VoteRequest }
  | { readonly kind: 'begin-epoch'; readonly begin: BeginEpochRequest }
  | { readonly kind: 'end-epoch'; readonly end: EndEpochRequest }
  | { readonly kind: 'fetch'; readonly fetch: RaftFetch }
  /** The asker's endpoints or range of kraft.version changed (a voter's own doing, KIP-853). */
  | { readonly kind: 'update-voter'; readonly epoch: Epoch; readonly voter: Voter }
  /** The asker wants to be a voter (controller.quorum.auto.join.enable). Not waited for until it is committed. */
  | { readonly kind: 'add-voter'; readonly voter: Voter }
  /** The asker was given a new data folder and takes its old place out of the quorum before it joins anew. */
  | { readonly kind: 'remove-voter'; readonly voter: ReplicaKey }
  /**
   * Which versions of kraft.version a node knows that is to become a voter, or whether the voter still lives that has the
   * asker's number: ApiVersions, at the endpoint of the voter that is meant.
   */
  | { readonly kind: 'kraft-range'; readonly voter: Voter }

export type RaftResponse =
  | { readonly kind: 'vote'; readonly answer: VoteAnswer }
  | { readonly kind: 'begin-epoch'; readonly answer: EpochAnswer }
  | { readonly kind: 'end-epoch'; readonly answer: EpochAnswer }
  /** `endOffset` is where our log would end with the records of the answer; that of the request where there are none. */
  | { readonly kind: 'fetch'; readonly answer: FetchAnswer; readonly endOffset: Offset }
  | { readonly kind: 'update-voter'; readonly answer: EpochAnswer }
  | { readonly kind: 'add-voter'; readonly answer: VoterAnswer }
  | { readonly kind: 'remove-voter'; readonly answer: VoterAnswer }
  | { readonly kind: 'kraft-range'; readonly min: number; readonly max: number }

/** Whom to ask: a node, or whoever of the configured addresses (bootstrap servers, static voters) is next. */
export type RaftPeer = NodeId | 'anyone'

export type RaftEvent =
  /** `endpoints`: where the others reach this node, which a voter keeps recorded; absent where nobody else needs it. */
  | { readonly kind: 'start'; readonly endpoints?: readonly VoterEndpoint[] }
  /** `wakeAt` has come. */
  | { readonly kind: 'tick' }
  // -- the driver's own log and files
  /** The effect `store-state` was performed. */
  | { readonly kind: 'state-stored'; readonly state: QuorumState }
  /**
   * It could not be, or an append or a truncation failed: what this node holds may be less than it said. `log-stored`
   * follows once all that the log view shows is durable again. Without `of` anything under way may have failed.
   */
  | { readonly kind: 'storage-failed'; readonly of?: 'state' | 'log' }
  /** Everything below is durable here. */
  | { readonly kind: 'log-stored'; readonly endOffset: Offset }
  /** `truncate` was performed; the log view shows it. Preceded by `voters-changed` where that cut off voters. */
  | { readonly kind: 'truncated' }
  /** `load-snapshot` was performed: the log begins and ends at it. Preceded by `voters-changed`. */
  | { readonly kind: 'snapshot-loaded'; readonly id: SnapshotId }
  | { readonly kind: 'snapshot-failed'; readonly id: SnapshotId }
  /** Another piece of the snapshot that is being loaded came from the leader. */
  | { readonly kind: 'snapshot-progress' }
  /** A replica reads a snapshot here (FetchSnapshot), and so lives, though it does not fetch. */
  | { readonly kind: 'snapshot-read'; readonly replica: ReplicaKey }
  /** The voters that the log names now, committed or not; the offset of their record, -1 of a static list. */
  | { readonly kind: 'voters-changed'; readonly voters: readonly Voter[]; readonly offset: Offset }
  // -- what others ask; each is answered exactly once by `answer`, unless the call is gone
  | { readonly kind: 'fetch'; readonly call: number; readonly fetch: RaftFetch }
  | { readonly kind: 'vote'; readonly call: number; readonly vote: VoteRequest }
  | { readonly kind: 'begin-epoch'; readonly call: number; readonly begin: BeginEpochRequest }
  | { readonly kind: 'end-epoch'; readonly call: number; readonly end: EndEpochRequest }
  | { readonly kind: 'update-voter'; readonly call: number; readonly epoch: Epoch; readonly voter: Voter }
  | {
      readonly kind: 'add-voter'
      readonly call: number
      readonly voter: Voter
      readonly timeoutMs: Millis
      readonly ackWhenCommitted: boolean
    }
  | { readonly kind: 'remove-voter'; readonly call: number; readonly voter: ReplicaKey }
  /**
   * UpdateFeatures wants kraft.version 1: the static list becomes records, once every voter told its directory. With
   * `validateOnly` it asks whether that could be done now.
   */
  | { readonly kind: 'record-voters'; readonly call: number; readonly validateOnly?: boolean }
  /** Who made this call does not wait for it any more. */
  | { readonly kind: 'call-gone'; readonly call: number }
  // -- what became of what this node asked
  | { readonly kind: 'answered'; readonly request: number; readonly response: RaftResponse }
  /** No answer: `refused` where nothing listens at the address, so that the process is surely gone. */
  | { readonly kind: 'unanswered'; readonly request: number; readonly refused: boolean }
  /** A connection to this node broke and dialling it again was refused, with no request under way. */
  | { readonly kind: 'peer-gone'; readonly id: NodeId }
  /** This node cannot do what the others elected it for, though its log is well: somebody else is to lead. */
  | { readonly kind: 'unfit' }
  /** The node stops: a leader hands over by EndQuorumEpoch, then `stopped` comes. */
  | { readonly kind: 'stop' }

export type RaftAnswer =
  | { readonly kind: 'fetch'; readonly answer: FetchAnswer }
  | { readonly kind: 'vote'; readonly answer: VoteAnswer }
  | { readonly kind: 'begin-epoch'; readonly answer: EpochAnswer }
  | { readonly kind: 'end-epoch'; readonly answer: EpochAnswer }
  | { readonly kind: 'update-voter'; readonly answer: EpochAnswer }
  | { readonly kind: 'add-voter'; readonly answer: VoterAnswer }
  | { readonly kind: 'remove-voter'; readonly answer: VoterAnswer }
  | { readonly kind: 'record-voters'; readonly answer: VoterAnswer }

export type RaftEffect =
  /** Store this durably, then say so by `state-stored`. What depends on it comes as effects of that event. */
  | { readonly kind: 'store-state'; readonly state: QuorumState }
  /** Ask; exactly one `answered` or `unanswered` with the same number follows. */
  | { readonly kind: 'send'; readonly request: number; readonly to: RaftPeer; readonly message: RaftRequest }
  | { readonly kind: 'answer'; readonly call: number; readonly answer: RaftAnswer }
  /** The first thing that this leader appends is the LeaderChange of this epoch, at once. */
  | {
      readonly kind: 'lead'
      readonly epoch: Epoch
      readonly voters: readonly Voter[]
      readonly grantingVoters: readonly Voter[]
    }
  /** Leadership is over; what was appended and not committed may or may not stay. */
  | { readonly kind: 'resign'; readonly epoch: Epoch }
  /** The leader of an epoch is known (-1: is not), and it is not this node. */
  | { readonly kind: 'follow'; readonly leaderId: NodeId; readonly epoch: Epoch }
  /** Append the records that came with this answer, byte for byte; then `log-stored` or `storage-failed`. */
  | { readonly kind: 'append'; readonly request: number }
  /** Cut the log back to this end; then `truncated` or `storage-failed`. Never below the high watermark. */
  | { readonly kind: 'truncate'; readonly endOffset: Offset }
  /** Download this snapshot from the leader, and begin the log anew at it; then `snapshot-loaded` or `snapshot-failed`. */
  | { readonly kind: 'load-snapshot'; readonly id: SnapshotId; readonly leaderId: NodeId; readonly epoch: Epoch }
  /** Everything below is committed. It never goes back. */
  | { readonly kind: 'commit'; readonly highWatermark: Offset }
  /**
   * The leader appends a VotersRecord now; then `voters-changed` in the same turn, and `log-stored` later. With
   * `raisesVersion` a KRaftVersionRecord of 1 goes before it in the same batch: until now the list was static.
   */
  | { readonly kind: 'append-voters'; readonly voters: readonly Voter[]; readonly raisesVersion: boolean }
  /** After `stop`: nothing more is to be done. */
  | { readonly kind: 'stopped' }
