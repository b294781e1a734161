import fs from 'node:fs'
import { join } from 'node:path'
import { isLoopback, meansAnyAddress } from '#core/config/listeners.ts'
import type { ServerConfig } from '#core/config/server.ts'
import { realWorld } from '#world/real/real.ts'
import { localAddressTowards } from '#world/real/route.ts'
import type { World } from '#world/world.ts'
import { type RunningNode, startNode } from '../node.ts'
import type { LogChoice } from './flags.ts'

/** Starts a node in the real world; as `startNode`. */
export async function startOneNode(world: World, config: ServerConfig, abort: AbortSignal): Promise<RunningNode> {
  if (!config.logDirs.some(dir => fs.existsSync(join(dir, 'meta.properties')))) await tryListeners(world, config)
  return await startNode(world, await reachable(world, config), abort)
}

/** Before a new cluster is founded in a folder, which then is that of this node: a port that is taken is the common slip. */
async function tryListeners({ network }: World, { listeners }: ServerConfig): Promise<void> {
  for (const { host, port } of listeners) {
    const listener = await network.listen({ host, port }, socket => socket.destroy())
    await listener.close()
  }
}

/** A world whose log is written at once from any thread. */
export function worldOf(log: LogChoice): World {
  return realWorld({ log: { ...log, write: writeLine } })
}

function writeLine(line: string): void {
  try {
    fs.writeSync(2, line)
  } catch {
    // A pipe that is full for now, or whose reader has gone.
    process.stderr.write(line)
  }
}

/** Nodes on other machines must be told an address of this one; where nobody gave one, it is that on the way to them. */
async function reachable(world: World, config: ServerConfig): Promise<ServerConfig> {
  const { nodeId, quorum, listeners, reachableAs } = config
  const others = [...quorum.voters.filter(({ id }) => id !== nodeId), ...quorum.bootstrap]
  const far = others.find(({ host }) => !isLoopback(host))
  const isVague = listeners.some(({ host, advertised }) => meansAnyAddress(host) && advertised === undefined)
  if (reachableAs !== undefined || far === undefined || !isVague) return config
  const host = await localAddressTowards(far)
  if (host === undefined) return config
  world.log.info(
    { host },
    `other nodes are told to reach this one as ${host}; --host or advertised.listeners says otherwise`,
  )
  return { ...config, reachableAs: host }
}
