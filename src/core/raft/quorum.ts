import type { Epoch, NodeId } from '#base/units.ts'
import { type Uuid, ZERO_UUID } from '#base/uuid.ts'

/** A node with its data folder (KIP-853); the zero directory where nobody said. */
export interface ReplicaKey {
  readonly id: NodeId
  readonly directoryId: Uuid
}

/** What a voter must remember over a restart, and has stored before anybody learns of it: the file `quorum-state`. */
export interface QuorumState {
  readonly leaderEpoch: Epoch
  /** -1 while none is known in this epoch. */
  readonly leaderId: NodeId
  /** Whom this node gave its vote in this epoch, -1 for nobody; forgotten once the leader is known. */
  readonly votedId: NodeId
  readonly votedDirectoryId: Uuid
}

export const NO_QUORUM_STATE: QuorumState = {
  leaderEpoch: 0,
  leaderId: -1,
  votedId: -1,
  votedDirectoryId: ZERO_UUID,
}

export interface VoterEndpoint {
  readonly name: string
  readonly host: string
  readonly port: number
}

/** A member of the quorum: a data folder of a node (KIP-853). With kraft.version 0 only the id is known. */
export interface Voter {
  readonly id: NodeId
  readonly directoryId: Uuid
  readonly endpoints: readonly VoterEndpoint[]
  readonly kraftVersion: { readonly min: number; readonly max: number }
}

/** The levels of kraft.version that this release can be at: 0 is a fixed list of voters, 1 voters as records. */
export const KRAFT_VERSIONS = { min: 0, max: 1 } as const

/** Whether voters are records of the log (kraft.version 1): a static list knows no directories. */
export function areRecorded(voters: readonly Voter[]): boolean {
  return voters.length > 0 && voters.every(({ directoryId }) => directoryId !== ZERO_UUID)
}

/** Whether a node that calls itself so is this voter; of a static list only the id is known. */
export function isVoter(voter: Voter, { id, directoryId }: ReplicaKey): boolean {
  return voter.id === id && (voter.directoryId === ZERO_UUID || voter.directoryId === directoryId)
}

/** Whether two voters are the same in all that is recorded of them. */
export function isSameVoter(a: Voter, b: Voter): boolean {
  const { id, directoryId, kraftVersion } = a
  return (
    id === b.id &&
    directoryId === b.directoryId &&
    kraftVersion.min === b.kraftVersion.min &&
    kraftVersion.max === b.kraftVersion.max &&
    hasSameEndpoints(a, b)
  )
}

export function hasSameEndpoints({ endpoints }: Voter, b: Voter): boolean {
  return (
    endpoints.length === b.endpoints.length &&
    endpoints.every(({ name, host, port }, index) => {
      const other = b.endpoints[index]
      return other?.name === name && other.host === host && other.port === port
    })
  )
}

export function majorityOf(voters: readonly Voter[]): number {
  return Math.floor(voters.length / 2) + 1
}

/** How far a replica has come, for DescribeQuorum and, of voters, for the high watermark. */
export interface ReplicaProgress {
  readonly id: NodeId
  readonly directoryId: Uuid
  readonly endOffset: number
  /** On the clock of the events; undefined is never. */
  readonly lastFetchAt: number | undefined
  readonly lastCaughtUpAt: number | undefined
}
