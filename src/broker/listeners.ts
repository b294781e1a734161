import type { BrokerConfigs } from '#core/config/broker-configs.ts'
import { connectionCounts } from '#core/config/connection-counts.ts'
import { meansAnyAddress } from '#core/config/listeners.ts'
import type { ServerConfig } from '#core/config/server.ts'
import { DEFAULT_CONNECTION_LIMITS } from '#network/connection.ts'
import { ConnectionQuota } from '#network/connection-quota.ts'
import { MemoryBudget } from '#network/memory-budget.ts'
import { Server } from '#network/server.ts'
import type { Service } from '#network/service.ts'
import type { Turns } from '#network/turns.ts'
import type { Address, Logger, World } from '#world/world.ts'

/** Where a broker is reached by clients and by other brokers, and what the connections of all listeners share. */
export class Listeners {
  readonly #config: ServerConfig
  readonly #servers: Server[] = []
  readonly #quota: ConnectionQuota

  constructor(config: ServerConfig) {
    this.#config = config
    this.#quota = new ConnectionQuota(this.#connectionCounts(config.broker), config.interBrokerListener)
  }

  /** Rejects with a WorldError when an address cannot be had; those before it are open by then. */
  async open(service: Service, turns: Turns, { network, clock }: World, log: Logger): Promise<void> {
    const { broker, listeners } = this.#config
    const limits = { ...DEFAULT_CONNECTION_LIMITS, frameBytesMax: broker.number('socket.request.max.bytes') }
    const budget = new MemoryBudget(broker.number('queued.max.request.bytes'), clock)
    const idleMs = broker.number('connections.max.idle.ms')
    for (const { name, host, port, forControllers } of listeners) {
      if (forControllers) continue
      const options = { name, address: { host, port }, service, limits, budget, turns, idleMs, quota: this.#quota }
      this.#servers.push(await Server.listen(options, network, clock, log))
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#servers.map(server => server.close()))
  }

  /** The broker's configuration as it holds now. */
  configure(configs: BrokerConfigs): void {
    this.#quota.limits = this.#connectionCounts(configs)
  }

  /** Of those that are open, with the ports that were given for port 0. */
  get addresses(): readonly { readonly name: string; readonly address: Address }[] {
    return this.#servers.map(({ name, address }) => ({ name, address }))
  }

  /** What other nodes are told of those that are open. An address that says "any interface" is no place to dial. */
  get advertised(): { name: string; host: string; port: number; securityProtocol: number }[] {
    return this.#servers.map(({ name, address }) => {
      const advertised = this.#configured(name)?.advertised
      const host = advertised?.host ?? address.host
      const reached = meansAnyAddress(host) ? (this.#config.reachableAs ?? 'localhost') : host
      return { name, host: reached, port: advertised?.port ?? address.port, securityProtocol: 0 }
    })
  }

  /** The listener has an address in advertised.listeners. */
  isAdvertised(name: string): boolean {
    return this.#configured(name)?.advertised !== undefined
  }

  #configured(name: string) {
    return this.#config.listeners.find(listener => listener.name === name)
  }

  #connectionCounts(configs: BrokerConfigs) {
    const names = this.#config.listeners.map(({ name }) => name)
    return connectionCounts(configs, names)
  }
}
