import type { Millis } from '#base/units.ts'
import type { Address } from '#world/world.ts'

/** How many connections there may be; what is not given has no limit. */
export interface ConnectionCounts {
  /** max.connections */
  readonly all?: number
  /** listener.name.x.max.connections, by the listener's name */
  readonly ofListener?: ReadonlyMap<string, number>
  /** max.connections.per.ip */
  readonly perHost?: number
  /** max.connections.per.ip.overrides */
  readonly ofHost?: ReadonlyMap<string, number>
}

/** A connection, as far as it counts. */
export interface Counted {
  readonly listener: string
  readonly remote: Address
  readonly lastActive: Millis
  close(): void
}

/**
 * The connections of a node, over all of its listeners (KIP-402). The limits may change at any time; those that are there
 * stay. The listener by which brokers reach each other is let in also when all are taken: the longest idle connection of
 * another listener makes room. Elsewhere one too many is closed, where Kafka lets it wait in the backlog: a client that
 * waits does not know why.
 */
export class ConnectionQuota {
  limits: ConnectionCounts
  readonly #protectedListener: string | undefined
  readonly #connections = new Set<Counted>()
  readonly #ofListener = new Map<string, number>()
  readonly #ofHost = new Map<string, number>()

  constructor(limits: ConnectionCounts, protectedListener?: string) {
    this.limits = limits
    this.#protectedListener = protectedListener
  }

  get count(): number {
    return this.#connections.size
  }

  /** The key of the limit that keeps one more out, if any does. */
  refuses(listener: string, host: string): string | undefined {
    const { all = Number.POSITIVE_INFINITY, ofListener, ofHost, perHost = Number.POSITIVE_INFINITY } = this.limits
    if ((this.#ofHost.get(host) ?? 0) >= (ofHost?.get(host) ?? perHost)) {
      return ofHost?.has(host) ? 'max.connections.per.ip.overrides' : 'max.connections.per.ip'
    }
    if ((this.#ofListener.get(listener) ?? 0) >= (ofListener?.get(listener) ?? Number.POSITIVE_INFINITY)) {
      return `listener.name.${listener.toLowerCase()}.max.connections`
    }
    if (this.#connections.size < all) return undefined
    return listener === this.#protectedListener && this.#makeRoom() ? undefined : 'max.connections'
  }

  join(connection: Counted): void {
    this.#connections.add(connection)
    change(this.#ofListener, connection.listener, 1)
    change(this.#ofHost, connection.remote.host, 1)
  }

  leave(connection: Counted): void {
    if (!this.#connections.delete(connection)) return
    change(this.#ofListener, connection.listener, -1)
    change(this.#ofHost, connection.remote.host, -1)
  }

  #makeRoom(): boolean {
    let idlest: Counted | undefined
    for (const connection of this.#connections) {
      if (connection.listener === this.#protectedListener) continue
      if (idlest === undefined || connection.lastActive < idlest.lastActive) idlest = connection
    }
    if (idlest === undefined) return false
    // Its end is told later, and by then the one that comes is counted.
    this.leave(idlest)
    idlest.close()
    return true
  }
}

function change(counts: Map<string, number>, key: string, by: number): void {
  const count = (counts.get(key) ?? 0) + by
  if (count === 0) counts.delete(key)
  else counts.set(key, count)
}
