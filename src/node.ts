import { Broker } from '#broker/broker.ts'
import { Controller } from '#controller/controller.ts'
import type { ServerConfig } from '#core/config/server.ts'
import { LogFolders } from '#storage/log-folders.ts'
import type { Address, World } from '#world/world.ts'

/** One process of the cluster: a controller, a broker, or both, over the same folders. The same in every world. */
export interface RunningNode {
  readonly clusterId: string
  readonly listeners: readonly { readonly name: string; readonly address: Address }[]
  /** Resolves when everything is closed and the folders are marked as cleanly shut down. */
  stop(): Promise<void>
}

/** Starts what `process.roles` says. Rejects with an Error whose message says what is wrong and what to do. */
export async function startNode(world: World, config: ServerConfig): Promise<RunningNode> {
  const { disk, clock, random, log } = world
  for (const notice of config.notices) log.warn({}, notice)
  const folders = await LogFolders.open({
    disk,
    clock,
    random,
    log,
    paths: config.logDirs,
    nodeId: config.nodeId,
    checkpointEveryMs: config.broker.number('log.flush.offset.checkpoint.interval.ms'),
  })
  let controller: Controller | undefined
  let broker: Broker | undefined
  try {
    if (config.roles.controller) controller = await startController(world, config, folders)
    if (config.roles.broker) {
      const controllers = () => (controller === undefined ? config.voters : [controller.address])
      broker = await Broker.start({ world, config, clusterId: folders.clusterId, folders, controllers })
    }
  } catch (error) {
    // What did start would keep the process alive, and its folders locked.
    await controller?.stop()
    await folders.close(folders.previousBrokerEpoch)
    throw error
  }
  return {
    clusterId: folders.clusterId,
    listeners: [
      ...(broker?.listeners ?? []),
      ...(controller === undefined ? [] : [{ name: controller.endpoint.name, address: controller.address }]),
    ],
    async stop() {
      await broker?.stop()
      await controller?.stop()
      await folders.close(broker?.epoch ?? -1)
    },
  }
}

function startController(world: World, config: ServerConfig, folders: LogFolders): Promise<Controller> {
  const { broker: configs } = config
  const listener = config.listeners.find(({ forControllers }) => forControllers)
  if (listener === undefined)
    throw new Error('process.roles contains controller, but no listener is one for controllers')
  const place = folders.folders.find(({ path }) => path === config.metadataLogDir)
  return Controller.start({
    world,
    folder: config.metadataLogDir,
    log: world.log.child({ controller: config.nodeId }),
    partitionsThere: folders.unopened.length > 0,
    config: {
      nodeId: config.nodeId,
      cluster: { id: folders.clusterId, found: () => Promise.resolve() },
      directoryId: place?.directoryId ?? (folders.directoryIds[0] as string),
      listener: { name: listener.name, address: { host: listener.host, port: listener.port } },
      configs,
      sessionTimeoutMs: configs.number('broker.session.timeout.ms'),
      leaderBalanceIntervalMs: configs.boolean('auto.leader.rebalance.enable')
        ? configs.number('leader.imbalance.check.interval.seconds') * 1000
        : undefined,
      snapshotBytes: configs.number('metadata.log.max.record.bytes.between.snapshots'),
      snapshotIntervalMs: configs.number('metadata.log.max.snapshot.interval.ms'),
      segmentBytes: configs.number('metadata.log.segment.bytes'),
      idleMs: configs.number('connections.max.idle.ms'),
    },
  })
}
