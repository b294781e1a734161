import { ZERO_UUID } from '#base/uuid.ts'
import { SUPPORTED_FEATURES } from '#core/metadata/features.ts'
import type { Voter } from '#core/raft/quorum.ts'
import type { ControllerConfig } from './config.ts'
import { soleVoter } from './control-records.ts'
import type { Folded } from './metadata-log.ts'

/** The folder belongs to a quorum that this node cannot lead alone; the message says which. */
export class QuorumError extends Error {
  override readonly name = 'QuorumError'
}

export function votersOf(config: ControllerConfig, folded: Folded): readonly Voter[] {
  const { nodeId, directoryId } = config
  return folded.voters ?? [soleVoter(nodeId, folded.kraftVersion > 0 ? directoryId : ZERO_UUID, [])]
}

/** Several voters come with the next release: this one leads alone, and never in the place of others. */
export function refuseForeign(
  { nodeId, directoryId, features }: ControllerConfig,
  { voters, voterIds, image }: Folded,
): void {
  const level = image.metadataVersion
  const newest = (features ?? SUPPORTED_FEATURES).get('metadata.version')?.max ?? 0
  if (level > newest) {
    throw new QuorumError(
      `the metadata log is at metadata.version ${level}, of a later release; this one knows up to ${newest}`,
    )
  }
  const ids = voters?.map(({ id }) => id) ?? voterIds ?? [nodeId]
  if (ids.length !== 1 || ids[0] !== nodeId) {
    throw new QuorumError(
      `the metadata log belongs to a quorum of the nodes ${ids.join(', ')}; node ${nodeId} can only lead a quorum of itself alone`,
    )
  }
  const recorded = voters?.[0]?.directoryId
  if (recorded !== undefined && recorded !== ZERO_UUID && recorded !== directoryId) {
    throw new QuorumError(
      `the metadata log names the folder ${recorded} as this node's voter, and meta.properties says ${directoryId}; put back the meta.properties that belongs to it`,
    )
  }
}
