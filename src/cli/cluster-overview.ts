import { type ClusterDescription, describeCluster } from '#client/admin/cluster.ts'
import { topicSettings } from '#client/admin/configs.ts'
import { type ClusterHealth, healthOf } from '#client/admin/health.ts'
import { describeQuorum, type QuorumDescription, type QuorumReplica } from '#client/admin/quorum.ts'
import { listReassignments, type Reassignment } from '#client/admin/reassignments.ts'
import { listTopics } from '#client/admin/topics.ts'
import { type Client, ClientError } from '#client/client.ts'
import { counted } from './output.ts'

/** What one look at a cluster finds. */
export interface Overview {
  readonly description: ClusterDescription
  /** Undefined where the cluster does not tell, or nobody leads. */
  readonly quorum: QuorumDescription | undefined
  readonly isLeaderless: boolean
  /** The quorum should tell of itself and did not: who leads it may hang. */
  readonly isSilent: boolean
  readonly health: ClusterHealth
  readonly reassignments: readonly Reassignment[] | undefined
}

/** An election takes less. Half of the time that there is must do, so that some is left to say what was found. */
const LEADERLESS_AFTER_MS = 5000

export async function overview(client: Client): Promise<Overview> {
  const description = await describeCluster(client)
  const quorumTimeoutMs = Math.min(LEADERLESS_AFTER_MS, client.options.callTimeoutMs / 2)
  let isLeaderless = false
  let isSilent = false
  const [quorum, topics] = await Promise.all([
    describeQuorum(client, { timeoutMs: quorumTimeoutMs }).catch((error: unknown) => {
      isLeaderless = error instanceof ClientError && error.code === 'NOT_CONTROLLER'
      isSilent = !isLeaderless && error instanceof ClientError && error.code !== 'UNSUPPORTED_VERSION'
      return untold(error)
    }),
    listTopics(client),
  ])
  const reassignments = isLeaderless || isSilent ? undefined : await listReassignments(client).catch(untold)
  const names = topics.map(({ name }) => name)
  const settings = await topicSettings(client, names, ['min.insync.replicas'])
  const minInSync = new Map<string, number>()
  for (const [name, values] of settings) minInSync.set(name, Number(values.get('min.insync.replicas') ?? 1))
  return {
    description,
    quorum,
    isLeaderless,
    isSilent,
    health: healthOf(topics, minInSync, reassignments),
    reassignments,
  }
}

/** An older cluster, or one that is in trouble, is described without it. */
function untold(error: unknown): undefined {
  if (!(error instanceof ClientError)) throw error
  return undefined
}

export interface ClusterNode {
  readonly id: number
  readonly host: string | null
  readonly port: number | null
  readonly rack: string | null
  readonly roles: readonly ('broker' | 'controller')[]
  /**
   * Brokers are active or fenced. Controllers alone are active while they ask the active one for the metadata log, and
   * silent when they did not lately; unknown where the cluster is too old to tell (DescribeQuorum before v1).
   */
  readonly state: 'active' | 'fenced' | 'silent' | 'unknown'
  readonly leads: number
  readonly replicas: number
  readonly behind: number
}

export function nodesOf({ description, quorum, health }: Overview): ClusterNode[] {
  const voters = new Set((quorum?.voters ?? []).map(({ id }) => id))
  const nodes = new Map<number, ClusterNode>()
  for (const { id, host, port, rack, fenced } of description.brokers) {
    const { leads = 0, replicas = 0, behind = 0 } = health.brokers.get(id) ?? {}
    const roles = voters.has(id) ? (['broker', 'controller'] as const) : (['broker'] as const)
    nodes.set(id, { id, host, port, rack, roles, state: fenced ? 'fenced' : 'active', leads, replicas, behind })
  }
  if (quorum === undefined) return [...nodes.values()]
  // Controllers that do not vote follow the log, and have an address as such. One that is gone keeps its address alone.
  const following = quorum.observers.filter(({ id }) => quorum.nodes.some(node => node.id === id))
  for (const id of new Set([...voters, ...following.map(each => each.id)])) {
    if (nodes.has(id)) continue
    const { host = null, port = null } = quorum.nodes.find(node => node.id === id)?.listeners[0] ?? {}
    const state = controllerState(quorum, id)
    nodes.set(id, { id, host, port, rack: null, roles: ['controller'], state, leads: 0, replicas: 0, behind: 0 })
  }
  return [...nodes.values()].sort((a, b) => a.id - b.id)
}

/** Who asks for the metadata log lives; the active controller, which answers, does anyway. */
function controllerState({ leaderId, voters, observers }: QuorumDescription, id: number): ClusterNode['state'] {
  if (id === leaderId) return 'active'
  const last = (node: number, when: (replica: QuorumReplica) => number): number =>
    Math.max(-1, ...[...voters, ...observers].filter(each => each.id === node).map(when))
  const now = last(leaderId, ({ lastCaughtUpTimestamp }) => lastCaughtUpTimestamp)
  if (now < 0) return 'unknown'
  return now - last(id, ({ lastFetchTimestamp }) => lastFetchTimestamp) > BEHIND_MS ? 'silent' : 'active'
}

/** The active controller; what a broker names as such may be any broker. */
export function controllerOf({ description, quorum, isLeaderless }: Overview): number {
  return isLeaderless ? -1 : (quorum?.leaderId ?? description.controllerId)
}

/** A follower of the metadata asks twice a second; the leader says in the same clock when each had all of it. */
const BEHIND_MS = 5000

/**
 * What has to be waited for, or repaired, before the next node may be stopped: nothing where all brokers are active, all
 * replicas in sync, and all voters close behind the active controller. Who leads is no matter, nor what is copied, nor a
 * topic that asks for more in sync than it has replicas: no wait changes that.
 */
export function troublesOf(found: Overview): string[] {
  const { quorum, health } = found
  const troubles: string[] = []
  // First what keeps the rest from being mended.
  if (found.isLeaderless) troubles.push('no active controller')
  if (found.isSilent) troubles.push('the active controller does not answer')
  const fenced = nodesOf(found).filter(({ state }) => state === 'fenced')
  if (fenced.length > 0) troubles.push(`${counted(fenced.length, 'fenced broker')} (${named(fenced)})`)
  const states = [
    ['offline', health.offline],
    ['under-replicated', health.underReplicated],
  ] as const
  for (const [state, list] of states) {
    if (list.length > 0) troubles.push(`${counted(list.length, 'partition')} ${state}`)
  }
  const leader = quorum?.voters.find(({ id }) => id === quorum.leaderId)
  if (leader !== undefined && quorum !== undefined) {
    const heard = leader.lastCaughtUpTimestamp
    const behind = quorum.voters.filter(({ lastCaughtUpTimestamp }) => heard - lastCaughtUpTimestamp > BEHIND_MS)
    if (behind.length > 0) troubles.push(`${counted(behind.length, 'voter')} behind (${named(behind)})`)
  }
  return troubles
}

function named(nodes: readonly { readonly id: number }[]): string {
  return nodes.map(({ id }) => id).join(', ')
}
