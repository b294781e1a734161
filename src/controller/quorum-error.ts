import { ZERO_UUID } from '#base/uuid.ts'
import { SUPPORTED_FEATURES } from '#core/metadata/features.ts'
import type { MetadataImage } from '#core/metadata/image.ts'
import { KRAFT_VERSIONS, type QuorumState, type Voter } from '#core/raft/quorum.ts'
import type { ControllerConfig } from './config.ts'
import { soleVoter } from './control-records.ts'
import type { QuorumHistory } from './quorum-history.ts'

/** The folder belongs to a quorum that this node has no way to, or to a later release; the message says which. */
export class QuorumError extends Error {
  override readonly name = 'QuorumError'
}

/**
 * The voters where no record names them: the configured list, nobody for a node that looks for its quorum, and otherwise
 * this node alone.
 */
export function staticVoters(config: ControllerConfig, history: QuorumHistory): readonly Voter[] {
  const { nodeId, directoryId, listener, voters = [], bootstrapServers = [] } = config
  if (voters.length > 0) {
    return voters.map(({ id, host, port }) => {
      const endpoints = [{ name: listener.name, host, port }]
      return { id, directoryId: ZERO_UUID, endpoints, kraftVersion: KRAFT_VERSIONS }
    })
  }
  if (bootstrapServers.length > 0) return []
  // What a quorum of records begins with is written with the first term.
  const isRecorded = history.kraftVersion > 0 || history.leaderChangeIds === undefined
  return [soleVoter(nodeId, isRecorded ? directoryId : ZERO_UUID, [])]
}

/** Refuses a log of a later release. */
export function refuseLater({ features }: ControllerConfig, image: MetadataImage): void {
  const level = image.metadataVersion
  const newest = (features ?? SUPPORTED_FEATURES).get('metadata.version')?.max ?? 0
  if (level <= newest) return
  throw new QuorumError(
    `the metadata log is at metadata.version ${level}, of a later release; this one knows up to ${newest}`,
  )
}

/**
 * A folder without a log begins a quorum only where it never belonged to one: a node that was killed while it joined, and
 * is started as if it were the first, would lead a second quorum in the name of the same cluster.
 */
export function refuseToFound(
  { nodeId, voters = [], bootstrapServers = [] }: ControllerConfig,
  { leaderId, votedId }: QuorumState,
): void {
  if (voters.length > 0 || bootstrapServers.length > 0 || leaderId === nodeId || votedId === nodeId) return
  throw new QuorumError(
    `node ${nodeId} was to join a cluster and has nothing of its metadata yet, so it cannot be started by itself: name a node of the cluster again (--join, or controller.quorum.bootstrap.servers)`,
  )
}

/** A node that knows of no other controller leads alone, and never in the place of others. */
export function refuseForeign(config: ControllerConfig, { voters, leaderChangeIds }: QuorumHistory): void {
  const { nodeId, directoryId } = config
  const ids = voters?.voters.map(({ id }) => id) ?? leaderChangeIds ?? [nodeId]
  const isOnly = ids.length === 1 && ids[0] === nodeId
  const isTold = (config.voters ?? []).length > 1 || (config.bootstrapServers ?? []).length > 0
  // One that was removed looks on, and may be added again.
  const knowsOthers = isTold || voters?.voters.some(({ endpoints }) => endpoints.length > 0) === true
  if (!ids.includes(nodeId) && !knowsOthers) {
    throw new QuorumError(
      `the metadata log belongs to a quorum of the nodes ${ids.join(', ')}, and node ${nodeId} knows of no other controller: name them in controller.quorum.bootstrap.servers`,
    )
  }
  const recorded = voters?.voters.find(({ id }) => id === nodeId)?.directoryId
  if (isOnly && recorded !== undefined && recorded !== ZERO_UUID && recorded !== directoryId) {
    throw new QuorumError(
      `the metadata log names the folder ${recorded} as this node's voter, and meta.properties says ${directoryId}; put back the meta.properties that belongs to it`,
    )
  }
}
