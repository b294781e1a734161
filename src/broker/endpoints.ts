import type { NodeId } from '#base/units.ts'
import { isLoopback } from '#core/config/listeners.ts'
import type { BrokerImage } from '#core/metadata/node-image.ts'
import type { Address } from '#world/world.ts'

export interface Endpoint {
  readonly nodeId: NodeId
  readonly host: string
  readonly port: number
  readonly rack: string | null
  readonly isFenced: boolean
}

/** How a client came to this broker. */
export interface Dialled {
  readonly nodeId: NodeId
  readonly listener: string
  readonly address: Address
  /** The listener has an address in advertised.listeners. */
  readonly isAdvertised: boolean
}

/**
 * All brokers of the cluster as one who dialled this broker reaches them: by their listener of the same name. Every broker
 * must name all of them alike, or clients that hold connections by address drop them with each answer of another broker.
 * So it is where they registered, with two exceptions as long as advertised.listeners says nothing:
 * - a broker alone is where the client has dialled it, whatever it thinks of its own address;
 * - brokers that are registered at a loopback address are all on this machine, and there by the host that was dialled.
 */
export function endpointsOf(brokers: Iterable<BrokerImage>, dialled: Dialled): Endpoint[] {
  const registered = [...brokers].flatMap(({ id, endPoints, rack, fenced }) => {
    const found = endPoints.find(({ name }) => name === dialled.listener)
    return found === undefined ? [] : [{ nodeId: id, host: found.host, port: found.port, rack, isFenced: fenced }]
  })
  const [only] = registered
  if (dialled.isAdvertised || only === undefined) return registered
  if (registered.length === 1) return only.nodeId === dialled.nodeId ? [{ ...only, ...dialled.address }] : registered
  const own = registered.find(({ nodeId }) => nodeId === dialled.nodeId)
  if (own === undefined || !isLoopback(own.host)) return registered
  const { host } = dialled.address
  return registered.map(each => (isLoopback(each.host) ? { ...each, host } : each))
}
