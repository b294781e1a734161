import { connectionCounts } from '#core/config/connection-counts.ts'
import { meansAnyAddress } from '#core/config/listeners.ts'
import type { VoterEndpoint } from '#core/raft/quorum.ts'
import { DEFAULT_CONNECTION_LIMITS } from '#network/connection.ts'
import { ConnectionQuota } from '#network/connection-quota.ts'
import { MemoryBudget } from '#network/memory-budget.ts'
import { Server } from '#network/server.ts'
import type { Service } from '#network/service.ts'
import type { Address, Logger, World } from '#world/world.ts'
import type { ControllerConfig } from './config.ts'
import { QuorumError } from './quorum-error.ts'

const IDLE_MS = 600_000

/** Where a controller listens, and how brokers and other controllers reach it. */
export class ControllerListener {
  readonly #config: ControllerConfig
  #server: Server | undefined

  constructor(config: ControllerConfig) {
    this.#config = config
  }

  /** Rejects with a WorldError when the address cannot be had. */
  async open(service: Service, { network, clock }: World, logger: Logger): Promise<void> {
    const { listener, limits, idleMs, configs } = this.#config
    this.#server = await Server.listen(
      {
        name: listener.name,
        address: listener.address,
        service,
        limits: limits ?? DEFAULT_CONNECTION_LIMITS,
        budget: new MemoryBudget(configs.number('queued.max.request.bytes'), clock),
        idleMs: idleMs ?? IDLE_MS,
        // Its own limit alone: what is set for clients would keep out the brokers of a node, which come by many connections.
        quota: new ConnectionQuota({ ofListener: connectionCounts(configs, [listener.name]).ofListener }),
      },
      network,
      clock,
      logger,
    )
  }

  async close(): Promise<void> {
    await this.#server?.close()
  }

  get name(): string {
    return this.#config.listener.name
  }

  /** With the port that was given for port 0. */
  get address(): Address {
    const address = this.#server?.address
    if (address === undefined) throw new QuorumError('the controller does not listen')
    return address
  }

  /** What others are told. */
  get endpoint(): VoterEndpoint {
    const { listener, advertisedHost, advertisedPort } = this.#config
    const { host, port } = this.address
    const own = meansAnyAddress(listener.address.host) || meansAnyAddress(host) ? 'localhost' : listener.address.host
    return { name: listener.name, host: advertisedHost ?? own, port: advertisedPort ?? port }
  }
}
