import type { EndpointImage } from '#core/metadata/node-image.ts'
import type { Address } from '#world/world.ts'

/** Where the brokers dial one of them. */
export function addressOf(
  endPoints: readonly EndpointImage[],
  interBrokerListener: string | undefined,
): Address | undefined {
  const found = endPoints.find(({ name }) => name === interBrokerListener) ?? endPoints[0]
  return found === undefined ? undefined : { host: found.host, port: found.port }
}
