import { hostPort } from '#base/host-port.ts'
import type { Millis, NodeId } from '#base/units.ts'
import { CLUSTER_METADATA_TOPIC } from '#core/metadata/topic-name.ts'
import { Channel, ChannelError } from '#network/channel.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Address, Logger, World } from '#world/world.ts'

export interface ControllerAddress extends Address {
  readonly id: NodeId
}

/** What an address turned out to be: a controller, or a broker, which knows the controllers of its cluster. */
export interface Discovered {
  readonly role: 'controller' | 'broker'
  /** Undefined while the quorum has no cluster yet. */
  readonly clusterId: string | undefined
  readonly controllers: readonly ControllerAddress[]
}

const CONTROLLERS = 2
const ASK_MS = 2000
const ROUND_PAUSE_MS = 250

/** Whether what answers here is a controller, by what it offers. */
export function isController(channel: Channel): boolean {
  return channel.versionFor(API.BrokerHeartbeat.request) !== undefined
}

/**
 * Asks who somebody is, after `negotiate`. `listener` is the name by which controllers are reached. Rejects with a
 * ChannelError, also where what answers is no node of a cluster.
 */
export async function discover(channel: Channel, listener: string): Promise<Discovered> {
  const timeoutMs = ASK_MS
  if (isController(channel)) {
    const answer = await channel.ask(API.DescribeCluster, { endpointType: CONTROLLERS }, { timeoutMs })
    const controllers = answer.brokers.map(({ brokerId: id, host, port }) => ({ id, host, port }))
    return { role: 'controller', clusterId: answer.clusterId === '' ? undefined : answer.clusterId, controllers }
  }
  const { clusterId } = await channel.ask(API.DescribeCluster, {}, { timeoutMs })
  const topics = [{ topicName: CLUSTER_METADATA_TOPIC, partitions: [{ partitionIndex: 0 }] }]
  const quorum = await channel.ask(API.DescribeQuorum, { topics }, { timeoutMs })
  const voters = new Set(quorum.topics[0]?.partitions[0]?.currentVoters.map(({ replicaId }) => replicaId))
  const controllers = quorum.nodes
    .filter(({ nodeId }) => voters.has(nodeId))
    .flatMap(({ nodeId: id, listeners }) => {
      const found = listeners.find(({ name }) => name === listener) ?? listeners[0]
      return found === undefined ? [] : [{ id, host: found.host, port: found.port }]
    })
  if (quorum.errorCode !== ErrorCode.NONE || controllers.length === 0) {
    const { address } = channel
    throw new ChannelError('protocol', address, `${hostPort(address)} is a broker that reaches no controller now`)
  }
  return { role: 'broker', clusterId, controllers }
}

export interface Search {
  readonly world: Pick<World, 'clock' | 'network'>
  readonly addresses: readonly Address[]
  /** Name of the listener by which controllers are reached. */
  readonly listener: string
  readonly clientId: string
  readonly log: Logger
  readonly abort?: AbortSignal | undefined
}

/** Nobody told a new node which cluster it is to belong to. The message says whom it asked and what to do. */
export class ClusterNotFoundError extends Error {
  override readonly name = 'ClusterNotFoundError'
}

/** Asks all at once and takes the first that knows its cluster. Undefined with the reasons when nobody does. */
async function searchOnce(search: Search): Promise<Discovered | readonly string[]> {
  const reasons: string[] = []
  const asked = search.addresses.map(async address => {
    const found = await ask(search, address)
    if (typeof found === 'string') throw reasons.push(found)
    return found
  })
  return await Promise.any(asked).catch(() => reasons)
}

async function ask({ world, listener, clientId }: Search, address: Address): Promise<Discovered | string> {
  let channel: Channel | undefined
  try {
    channel = await Channel.connect(world, address, { clientId, connectTimeoutMs: ASK_MS, requestTimeoutMs: ASK_MS })
    await channel.negotiate()
    const found = await discover(channel, listener)
    return found.clusterId === undefined ? `${hostPort(address)} is a controller without a cluster yet` : found
  } catch (error) {
    if (!(error instanceof ChannelError)) throw error
    return error.message
  } finally {
    channel?.close()
  }
}

/** The cluster that these addresses are of, asked once and for a bounded time; undefined when nobody says. */
export async function glanceAtCluster(search: Search): Promise<Discovered | undefined> {
  const found = await searchOnce(search)
  return 'role' in found ? found : undefined
}

/**
 * The cluster that these addresses are of. Asks again and again for `timeoutMs`; rejects with a ClusterNotFoundError after
 * that, or when it is aborted.
 */
export async function searchCluster(search: Search, timeoutMs: Millis): Promise<Discovered> {
  const { world, addresses, log, abort } = search
  const { clock } = world
  const names = addresses.map(hostPort).join(', ')
  const deadline = clock.monotonic() + timeoutMs
  let complained = false
  for (;;) {
    const found = await searchOnce(search)
    if ('role' in found) return found
    if (abort?.aborted === true) throw new ClusterNotFoundError('stopped while looking for the cluster')
    if (clock.monotonic() >= deadline)
      throw new ClusterNotFoundError(
        `cannot join a cluster: ${found.join('; ')}. Name a node of the cluster that runs and is reachable from here ` +
          '(one that was started without --host takes controllers from its own machine only), or start without --join and controller.quorum.bootstrap.servers to found a new cluster',
      )
    if (!complained)
      log.info({ reason: found.join('; ') }, `looking for the cluster at ${names}; asking again until it answers`)
    complained = true
    await new Promise<void>(resolve => clock.after(ROUND_PAUSE_MS, resolve))
  }
}
