import type { Command } from 'commander'
import { type ClusterDescription, describeCluster, describeLogDirs, unregisterBroker } from '#client/admin/cluster.ts'
import { topicSettings } from '#client/admin/configs.ts'
import { type ClusterHealth, healthOf } from '#client/admin/health.ts'
import { describeQuorum, type QuorumDescription } from '#client/admin/quorum.ts'
import { listReassignments, type Reassignment } from '#client/admin/reassignments.ts'
import { listTopics } from '#client/admin/topics.ts'
import { type Client, ClientError } from '#client/client.ts'
import { wholeNumber } from '../arguments.ts'
import { existingTopic, wantsJson, withClient } from '../context.ts'
import { bytes, type Cell, counted, print, printJson, table } from '../output.ts'
import { addElect } from './elect.ts'
import { addVoters, quorumTable } from './voters.ts'

export function command(program: Command): void {
  const cluster = program
    .command('cluster')
    .description('describe nodes, quorum and the state of partitions; elect leaders, change voters')

  cluster
    .command('describe', { isDefault: true })
    .description('show nodes, quorum, and which partitions are not as they should be')
    .addHelpText(
      'after',
      `
What is counted of partitions:
  offline           have no leader, and can be neither read nor written
  under min.insync  have fewer in sync than min.insync.replicas: acks=all is refused
  under-replicated  have replicas that are not in sync
  not preferred     are led by another than their first replica: tidemark cluster elect

Examples:
  tidemark cluster
  tidemark cluster --json | jq .health.offline`,
    )
    .action(async (_options: object, self: Command) => {
      const found = await withClient(self, overview)
      if (wantsJson(self)) printJson(asJson(found))
      else show(found)
    })

  cluster
    .command('log-dirs [topic]')
    .description('show the data folders of the brokers and how full they are')
    .action(async (topic: string | undefined, _options: object, self: Command) => {
      const dirs = await withClient(self, async client => {
        if (topic !== undefined) await existingTopic(client, topic)
        return await describeLogDirs(client, topic)
      })
      if (wantsJson(self)) {
        printJson(dirs.map(dir => ({ ...dir, error: dir.error?.code ?? null })))
        return
      }
      const rows = dirs.map(dir => [
        dir.broker,
        dir.path === '' ? null : dir.path,
        dir.error?.code ?? 'ok',
        dir.partitions.length,
        bytes(dir.partitions.reduce((sum, each) => sum + each.bytes, 0)),
        bytes(dir.usableBytes),
      ])
      print(table(['BROKER', 'FOLDER', 'STATE', 'PARTITIONS', 'SIZE', 'FREE'], rows))
    })

  addElect(cluster)
  addVoters(cluster)

  cluster
    .command('unregister <id>')
    .description('forget a broker that was stopped and will not come back')
    .option('--force', 'also while it has replicas, which are then missing until they are reassigned')
    .addHelpText(
      'after',
      `
Take its replicas away first, then stop it:
  tidemark topics reassign --brokers 1,2,3 --execute --wait
  tidemark cluster unregister 4`,
    )
    .action(async (text: string, options: { force?: boolean }, self: Command) => {
      const id = wholeNumber('the id')(text)
      await withClient(self, async client => {
        if (options.force !== true) await mustBeEmpty(client, id)
        await unregisterBroker(client, id)
      })
      if (wantsJson(self)) printJson({ unregistered: id })
      else print(`broker ${id} is forgotten`)
    })
}

/** A broker that lives registers itself again, and one with replicas leaves partitions behind that wait for it. */
async function mustBeEmpty(client: Client, id: number): Promise<void> {
  const { brokers } = await describeCluster(client)
  const known = brokers.find(broker => broker.id === id)
  if (known === undefined) {
    throw new ClientError('BROKER_ID_NOT_REGISTERED', `there is no broker ${id}`, {
      hint: `there are ${brokers.map(broker => broker.id).join(', ')}`,
    })
  }
  if (!known.fenced) {
    throw new ClientError('INVALID_REQUEST', `broker ${id} is running`, {
      hint: 'stop it first; --force forgets it all the same',
    })
  }
  const has = healthOf(await listTopics(client), new Map()).brokers.get(id)?.replicas ?? 0
  if (has > 0) {
    throw new ClientError('INVALID_REQUEST', `broker ${id} has ${counted(has, 'replica')}`, {
      hint: 'take them to others with: tidemark topics reassign --brokers ... --execute; --force forgets it all the same',
    })
  }
}

interface Overview {
  readonly description: ClusterDescription
  /** Undefined where the cluster does not tell, or nobody leads. */
  readonly quorum: QuorumDescription | undefined
  readonly isLeaderless: boolean
  readonly health: ClusterHealth
  readonly reassignments: readonly Reassignment[] | undefined
}

/** An election takes less. */
const LEADERLESS_AFTER_MS = 5000

async function overview(client: Client): Promise<Overview> {
  const description = await describeCluster(client)
  let isLeaderless = false
  const [quorum, topics] = await Promise.all([
    describeQuorum(client, { timeoutMs: LEADERLESS_AFTER_MS }).catch((error: unknown) => {
      isLeaderless = error instanceof ClientError && error.code === 'NOT_CONTROLLER'
      return untold(error)
    }),
    listTopics(client),
  ])
  const reassignments = isLeaderless ? undefined : await listReassignments(client).catch(untold)
  const names = topics.map(({ name }) => name)
  const settings = await topicSettings(client, names, ['min.insync.replicas'])
  const minInSync = new Map<string, number>()
  for (const [name, values] of settings) minInSync.set(name, Number(values.get('min.insync.replicas') ?? 1))
  return { description, quorum, isLeaderless, health: healthOf(topics, minInSync, reassignments), reassignments }
}

/** An older cluster, or one that is in trouble, is described without it. */
function untold(error: unknown): undefined {
  if (!(error instanceof ClientError)) throw error
  return undefined
}

interface ClusterNode {
  readonly id: number
  readonly host: string | null
  readonly port: number | null
  readonly rack: string | null
  readonly roles: readonly ('broker' | 'controller')[]
  /** Brokers are active or fenced; of controllers only the active one is known to live. */
  readonly state: 'active' | 'fenced' | 'unknown'
  readonly leads: number
  readonly replicas: number
  readonly behind: number
}

function nodesOf({ description, quorum, health }: Overview): ClusterNode[] {
  const voters = new Set((quorum?.voters ?? []).map(({ id }) => id))
  const nodes = new Map<number, ClusterNode>()
  for (const { id, host, port, rack, fenced } of description.brokers) {
    const { leads = 0, replicas = 0, behind = 0 } = health.brokers.get(id) ?? {}
    const roles = voters.has(id) ? (['broker', 'controller'] as const) : (['broker'] as const)
    nodes.set(id, { id, host, port, rack, roles, state: fenced ? 'fenced' : 'active', leads, replicas, behind })
  }
  for (const id of voters) {
    if (nodes.has(id)) continue
    const { host = null, port = null } = quorum?.nodes.find(node => node.id === id)?.listeners[0] ?? {}
    const state = id === quorum?.leaderId ? 'active' : 'unknown'
    nodes.set(id, { id, host, port, rack: null, roles: ['controller'], state, leads: 0, replicas: 0, behind: 0 })
  }
  return [...nodes.values()].sort((a, b) => a.id - b.id)
}

/** The active controller; what a broker names as such may be any broker. */
function controllerOf({ description, quorum, isLeaderless }: Overview): number {
  return isLeaderless ? -1 : (quorum?.leaderId ?? description.controllerId)
}

function asJson(found: Overview): object {
  const { description, quorum, health, reassignments } = found
  const { brokers: _, ...partitions } = health
  return {
    ...description,
    controllerId: controllerOf(found),
    nodes: nodesOf(found),
    quorum: quorum ?? null,
    health: { ...partitions, reassigning: reassignments ?? null },
  }
}

/** How many partitions are named in a line. */
const NAMED_MAX = 5

function show(found: Overview): void {
  const { description, quorum, health, reassignments } = found
  const controller = controllerOf(found)
  print(`cluster ${description.clusterId}, controller ${controller < 0 ? 'unknown' : controller}`)
  const nodes = nodesOf(found)
  const racks = new Set(nodes.flatMap(({ rack }) => rack ?? [])).size
  print(
    `${counted(nodes.length, 'node')}${racks === 0 ? '' : ` in ${counted(racks, 'rack')}`}, ${counted(health.topics, 'topic')}, ${counted(health.partitions, 'partition')}, ${counted(health.replicas, 'replica')}`,
  )
  print('')
  const rows = nodes.map((each): Cell[] => [
    each.id,
    each.host === null ? null : `${each.host}:${each.port}`,
    each.rack,
    each.roles.map(role => (role === 'controller' && each.id === controller ? 'active controller' : role)).join(', '),
    each.state,
    each.leads,
    each.replicas,
    each.behind,
  ])
  print(table(['NODE', 'ADDRESS', 'RACK', 'ROLES', 'STATE', 'LEADS', 'REPLICAS', 'BEHIND'], rows))
  if (quorum !== undefined) {
    print('')
    print(`quorum: leader ${quorum.leaderId}, epoch ${quorum.leaderEpoch}, committed to ${quorum.highWatermark}`)
    print(quorumTable(quorum))
  }
  if (found.isLeaderless) {
    print('')
    print(
      'quorum: no controller leads, so this is what was known last; a majority of the voters must run and reach each other',
    )
  }
  print('')
  const states = [
    ['offline', health.offline],
    ['under min.insync', health.underMinIsr],
    ['under-replicated', health.underReplicated],
    ['not preferred', health.notPreferred],
    ['reassigning', reassignments ?? []],
  ] as const
  const wrong = states.filter(([, list]) => list.length > 0)
  if (wrong.length === 0) {
    print('partitions: all led by their preferred replicas, all replicas in sync')
    return
  }
  const named = wrong.map(([state, list]): Cell[] => {
    const names = list.slice(0, NAMED_MAX).map(({ topic, partition }) => `${topic}-${partition}`)
    return [state, list.length, `${names.join(', ')}${list.length > NAMED_MAX ? ', …' : ''}`]
  })
  print(table(['PARTITIONS', 'COUNT', 'WHICH'], named))
  if (health.notPreferred.some(({ electable }) => electable)) print('give leadership back with: tidemark cluster elect')
  if ((reassignments ?? []).length > 0) print('see how far they are with: tidemark topics reassign --status')
}
