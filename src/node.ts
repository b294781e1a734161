import { assert } from '#base/assert.ts'
import type { Uuid } from '#base/uuid.ts'
import { Broker } from '#broker/broker.ts'
import { glanceAtCluster, type Search, searchCluster } from '#broker/metadata/discovery.ts'
import { markJoining } from '#controller/beginning.ts'
import type { ClusterIdentity } from '#controller/config.ts'
import { Controller } from '#controller/controller.ts'
import { meansAnyAddress } from '#core/config/listeners.ts'
import type { ServerConfig } from '#core/config/server.ts'
import { LogFolders } from '#storage/log-folders.ts'
import { ForeignFolderError } from '#storage/meta-properties.ts'
import { MetadataFolder } from '#storage/metadata-folder.ts'
import { StorageError } from '#storage/storage-error.ts'
import type { Address, World } from '#world/world.ts'

const STOPPED = 'stopped before it was up'

/** One process of the cluster: a controller, a broker, or both, over the same folders. The same in every world. */
export interface RunningNode {
  /** Undefined while a controller alone waits for the first leader of its quorum. */
  readonly clusterId: string | undefined
  readonly listeners: readonly { readonly name: string; readonly address: Address }[]
  /** To look at, not to act on. */
  readonly broker: Broker | undefined
  readonly controller: Controller | undefined
  /** Resolves when everything is closed and the folders are marked as cleanly shut down. */
  stop(): Promise<void>
}

/**
 * Starts what `process.roles` says. Rejects with an Error whose message says what is wrong and what to do; so it does soon
 * after `abort`.
 */
export async function startNode(world: World, config: ServerConfig, abort?: AbortSignal): Promise<RunningNode> {
  const { disk, clock, random, log } = world
  for (const notice of config.notices) log.warn({}, notice)
  const { nodeId, metadataLogDir: path } = config
  const isApart = config.roles.controller && !config.logDirs.includes(path)
  const apart = isApart ? await MetadataFolder.claim({ disk, random, path, nodeId }) : undefined
  const folders = await LogFolders.open({
    disk,
    clock,
    random,
    log,
    paths: config.logDirs,
    nodeId,
    clusterId: apart?.clusterId,
    awaitsCluster: !config.quorum.founds,
    checkpointEveryMs: config.broker.number('log.flush.offset.checkpoint.interval.ms'),
  }).catch(async (error: unknown) => {
    await apart?.release()
    throw error
  })
  const identified = Promise.withResolvers<string>()
  const cluster: ClusterIdentity = {
    get id() {
      return folders.clusterId
    },
    async found(id) {
      // May be called again as long as the folders do not say it: they come last.
      await apart?.belongTo(id)
      await folders.found(id)
      identified.resolve(id)
    },
  }
  if (cluster.id !== undefined) identified.resolve(cluster.id)
  let controller: Controller | undefined
  let broker: Broker | undefined
  try {
    await apart?.settle(cluster.id, folders.folders[0]?.directoryId)
    const directoryId = apart?.directoryId ?? directoryOf(config, folders)
    const controllers = await controllersOf(world, config, cluster, abort)
    if (config.roles.controller)
      controller = await startController(world, config, { folders, directoryId, cluster, controllers })
    if (config.roles.broker) {
      const clusterId = await orAborted(identified.promise, abort)
      const ownController = controller === undefined ? undefined : dialled(controller.address)
      broker = await Broker.start({ world, config, clusterId, folders, controllers, ownController, abort })
    }
  } catch (error) {
    // What did start would keep the process alive, and its folders locked.
    await controller?.stop()
    // A controller that ran may have been given a vote, or have voted, under the identity of its folder.
    if (controller === undefined) await Promise.all([folders.closeUnused(), apart?.releaseUnused()])
    else await Promise.all([folders.close(folders.previousBrokerEpoch), apart?.release()])
    throw error
  }
  return {
    broker,
    controller,
    get clusterId() {
      return folders.clusterId
    },
    listeners: [
      ...(broker?.listeners ?? []),
      ...(controller === undefined ? [] : [{ name: controller.endpoint.name, address: controller.address }]),
    ],
    async stop() {
      await broker?.stop()
      await controller?.stop()
      await folders.close(broker?.epoch ?? -1)
      await apart?.release()
    },
  }
}

/** The directory of the metadata log in a log folder. Throws a StorageError: under another's the quorum does not know this node. */
function directoryOf({ roles, metadataLogDir }: ServerConfig, { folders }: LogFolders): Uuid | undefined {
  const directoryId = folders.find(({ path }) => path === metadataLogDir)?.directoryId
  if (directoryId === undefined && roles.controller)
    throw new StorageError('EIO', metadataLogDir, `${metadataLogDir}, which has the metadata log, cannot be used`)
  return directoryId
}

/**
 * Where controllers may be found, beside those that the metadata tells of. A new node learns here which cluster it is to
 * belong to; one that knows is told apart from the cluster that its configuration names, if that is another.
 */
async function controllersOf(
  world: World,
  config: ServerConfig,
  cluster: ClusterIdentity,
  abort: AbortSignal | undefined,
): Promise<readonly Address[]> {
  const { nodeId, quorum, broker: configs } = config
  const addresses: readonly Address[] = [...quorum.voters.filter(({ id }) => id !== nodeId), ...quorum.bootstrap]
  if (addresses.length === 0) return addresses
  const clientId = `node-${nodeId}`
  const search: Search = { world, addresses, listener: config.controllerListener, clientId, log: world.log, abort }
  // Fixed voters found a cluster together, so that none of them may wait for it to be there.
  const mayWait = cluster.id === undefined && !(config.roles.controller && quorum.voters.length > 0)
  const found = mayWait
    ? await searchCluster(search, configs.number('initial.broker.registration.timeout.ms'))
    : await glanceAtCluster(search)
  if (found?.clusterId === undefined) return addresses
  if (cluster.id === undefined) {
    if (config.roles.controller && quorum.voters.length === 0) await markJoining(world.disk, config.metadataLogDir)
    await cluster.found(found.clusterId)
  } else if (cluster.id !== found.clusterId) {
    const [folder] = config.logDirs
    throw new ForeignFolderError(
      `${folder} belongs to cluster ${cluster.id}, and the nodes to join are of cluster ${found.clusterId}; ` +
        'choose another folder with --data or log.dirs, or correct --join or controller.quorum.bootstrap.servers',
    )
  }
  return found.role === 'broker' ? [...found.controllers, ...addresses] : addresses
}

function startController(
  world: World,
  config: ServerConfig,
  {
    folders,
    directoryId,
    cluster,
    controllers,
  }: {
    readonly folders: LogFolders
    readonly directoryId: Uuid | undefined
    readonly cluster: ClusterIdentity
    readonly controllers: readonly Address[]
  },
): Promise<Controller> {
  const { broker: configs, nodeId, quorum } = config
  const listener = config.listeners.find(({ forControllers }) => forControllers)
  if (listener === undefined)
    throw new Error('process.roles contains controller, but no listener is one for controllers')
  assert(directoryId !== undefined, 'a controller has a directory')
  const { advertised } = listener
  const self = quorum.voters.find(({ id }) => id === nodeId)
  const host = advertised?.host ?? (meansAnyAddress(listener.host) ? (self?.host ?? config.reachableAs) : undefined)
  return Controller.start({
    world,
    folder: config.metadataLogDir,
    log: world.log.child({ controller: nodeId }),
    partitionsThere: folders.unopened.length > 0,
    foundedBefore: quorum.founds && folders.lived,
    otherFolders: config.logDirs.filter(path => path !== config.metadataLogDir),
    config: {
      nodeId,
      cluster,
      voters: quorum.voters,
      bootstrapServers: quorum.voters.length > 0 ? [] : controllers,
      autoJoin: quorum.autoJoin,
      directoryId,
      listener: { name: listener.name, address: { host: listener.host, port: listener.port } },
      ...(host !== undefined && { advertisedHost: host }),
      ...(advertised !== undefined && { advertisedPort: advertised.port }),
      configs,
      interBrokerListener: config.interBrokerListener ?? configs.string('inter.broker.listener.name') ?? undefined,
      electionTimeoutMs: configs.number('controller.quorum.election.timeout.ms'),
      fetchTimeoutMs: configs.number('controller.quorum.fetch.timeout.ms'),
      electionBackoffMaxMs: configs.number('controller.quorum.election.backoff.max.ms'),
      requestTimeoutMs: configs.number('controller.quorum.request.timeout.ms'),
      retryBackoffMs: configs.number('controller.quorum.retry.backoff.ms'),
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

/** How a node reaches its own listener. */
function dialled({ host, port }: Address): Address {
  return { host: meansAnyAddress(host) ? 'localhost' : host, port }
}

/** As the promise; rejects when it is aborted before. */
function orAborted<T>(promise: Promise<T>, abort: AbortSignal | undefined): Promise<T> {
  if (abort === undefined) return promise
  const aborted = new Promise<never>((_, reject) => {
    const stop = () => reject(new Error(STOPPED))
    if (abort.aborted) stop()
    else abort.addEventListener('abort', stop, { once: true })
  })
  return Promise.race([promise, aborted])
}
