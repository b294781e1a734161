import type { Epoch, Millis, NodeId } from '#base/units.ts'
import type { RaftResponse } from './messages.ts'
import type { ReplicaKey } from './quorum.ts'
import type { Replica, Sent } from './replica.ts'

export type RoleName = 'unattached' | 'prospective' | 'candidate' | 'leader' | 'follower' | 'resigned'

export const NEVER = Number.POSITIVE_INFINITY
/** How far apart voters stand that learn of a leader's death in the same moment. */
export const STAND_SPREAD_MS: Millis = 50

/** From one role to another; each drops the role that asks for it. */
export interface Turns {
  /** No leader is known. Voters stand at the given time. */
  unattached(epoch: Epoch, standAt: Millis, now: Millis): void
  /** Asks whether votes would be given (KIP-996), after so many failures in a row. */
  stand(failures: number, now: Millis): void
  /** Asks for votes in the next epoch. */
  candidate(failures: number, now: Millis): void
  lead(granting: ReadonlySet<NodeId>, now: Millis): void
  follow(leaderId: NodeId, epoch: Epoch, now: Millis): void
  /** A leader goes, and says so to the voters. */
  resign(successors: readonly ReplicaKey[], standAt: Millis, now: Millis): void
  stopped(): void
}

/** What a role does not care about it leaves as it is here. */
export abstract class Role {
  abstract readonly name: RoleName
  /** -1 while no leader is known. */
  readonly leaderId: NodeId = -1
  protected readonly replica: Replica
  protected readonly turns: Turns

  constructor(replica: Replica, turns: Turns) {
    this.replica = replica
    this.turns = turns
  }

  /** The role was entered. */
  abstract begin(now: Millis): void
  /** The next moment at which it wants a tick; NEVER where none. */
  abstract wakeAt(): Millis
  abstract tick(now: Millis): void

  /** Another role follows. */
  leave(_now: Millis): void {}
  /** The quorum state that the replica is at was stored. */
  stateStored(_now: Millis): void {}
  /** The log or what is known of it changed, or work on it ended. */
  logChanged(now: Millis): void {
    this.tick(now)
  }
  logFailed(_now: Millis): void {}
  /** Another part of the leader's snapshot came. */
  snapshotProgressed(_now: Millis): void {}
  /** A snapshot of the leader took the log's place, or could not. */
  snapshotEnded(_isLoaded: boolean, _now: Millis): void {}
  votersChanged(_now: Millis): void {}
  answered(_sent: Sent, _response: RaftResponse, _now: Millis): void {}
  unanswered(_sent: Sent, _refused: boolean, _now: Millis): void {}
  peerGone(_id: NodeId, _now: Millis): void {}
  /** Whether a pre-vote may be given, as far as leaders go. */
  grantsPreVote(_now: Millis): boolean {
    return true
  }
  /** It gave a vote or a pre-vote away: whoever got it goes first. */
  postpone(_ms: Millis, _now: Millis): void {}
  /** A peer still names a leader of this epoch; true where that changes nothing here. */
  insists(_leaderId: NodeId): boolean {
    return false
  }
}
