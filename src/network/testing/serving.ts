import type { World } from '#world/world.ts'
import { apiVersions } from '../api-versions.ts'
import { DEFAULT_CONNECTION_LIMITS } from '../connection.ts'
import { MemoryBudget } from '../memory-budget.ts'
import { Server } from '../server.ts'
import { type ServedApi, type Service, service } from '../service.ts'

export interface Served {
  readonly machine: { readonly world: World; readonly host: string }
  /** The listener's. */
  readonly name: string
  readonly port: number
}

/** A node's double listens: it serves these APIs, and says so to who asks what it serves. */
export async function serving({ machine, name, port }: Served, apis: readonly ServedApi[]): Promise<Server> {
  const { world, host } = machine
  const all: Service = service([
    ...apis,
    apiVersions(
      () => all,
      () => ({ supported: new Map(), finalized: new Map(), epoch: 0 }),
    ),
  ])
  const options = {
    name,
    address: { host, port },
    service: all,
    limits: DEFAULT_CONNECTION_LIMITS,
    budget: new MemoryBudget(-1, world.clock),
    idleMs: 600_000,
  }
  return await Server.listen(options, world.network, world.clock, world.log)
}
