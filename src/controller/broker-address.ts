import type { NodeId } from '#base/units.ts'
import type { MetadataImage } from '#core/metadata/image.ts'
import type { EndpointImage } from '#core/metadata/node-image.ts'
import type { Address, Logger, World } from '#world/world.ts'

/** What it takes to dial the brokers of a cluster. */
export interface Watching {
  readonly world: Pick<World, 'clock' | 'network'>
  /** This node. */
  readonly nodeId: NodeId
  readonly logger: Logger
  /** Undefined while this node is not the active controller. */
  readonly image: () => MetadataImage | undefined
  readonly interBrokerListener: string | undefined
}

/** Where the brokers dial one of them. */
export function addressOf(
  endPoints: readonly EndpointImage[],
  interBrokerListener: string | undefined,
): Address | undefined {
  const found = endPoints.find(({ name }) => name === interBrokerListener) ?? endPoints[0]
  return found === undefined ? undefined : { host: found.host, port: found.port }
}
