import type { Command } from 'commander'
import { describeCluster, describeLogDirs, unregisterBroker } from '#client/admin/cluster.ts'
import { healthOf } from '#client/admin/health.ts'
import { listTopics } from '#client/admin/topics.ts'
import { type Client, ClientError } from '#client/client.ts'
import { wholeNumber } from '../arguments.ts'
import { controllerOf, nodesOf, type Overview, overview, troublesOf } from '../cluster-overview.ts'
import { existingTopic, wantsJson, withClient } from '../context.ts'
import { bytes, type Cell, counted, print, printJson, remark, table } from '../output.ts'
import { addElect } from './elect.ts'
import { addFeatures } from './features.ts'
import { addVoters, quorumTable } from './voters.ts'

export function command(program: Command): void {
  const cluster = program
    .command('cluster')
    .description('describe nodes, quorum and the state of partitions; elect leaders, change voters')

  cluster
    .command('describe', { isDefault: true })
    .description('show nodes, quorum, and which partitions are not as they should be')
    .option('--check', 'end with 1 unless all is well: before another node is stopped')
    .option('--wait', 'until all is well, and say what is not: after a node was started')
    .addHelpText(
      'after',
      `
All is well when all brokers are active, all replicas in sync, and all voters close behind the active controller.

What is counted of partitions:
  offline           have no leader, and can be neither read nor written
  under min.insync  have fewer in sync than min.insync.replicas: acks=all is refused
  under-replicated  have replicas that are not in sync
  not preferred     are led by another than their first replica: tidemark cluster elect

Examples:
  tidemark cluster
  tidemark cluster --wait && ssh b systemctl restart tidemark
  tidemark cluster --json | jq .health.offline`,
    )
    .action(async (options: { check?: boolean; wait?: boolean }, self: Command) => {
      const found = await withClient(self, options.wait === true ? whenWell : overview)
      if (wantsJson(self)) printJson(asJson(found))
      else show(found)
      const troubles = troublesOf(found)
      if (options.check !== true || troubles.length === 0) return
      process.exitCode = 1
      remark(`not well: ${troubles.join('; ')}`)
    })

  cluster
    .command('log-dirs [topic]')
    .description('show the data folders of the brokers and how full they are')
    .action(async (topic: string | undefined, _options: object, self: Command) => {
      const dirs = await withClient(self, async client => {
        if (topic !== undefined) await existingTopic(client, topic)
        const found = await describeLogDirs(client, topic)
        return found.toSorted((a, b) => a.broker - b.broker)
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
  addFeatures(cluster)

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

const LOOK_MS = 1000

/** Looks until nothing is wrong. That nobody answers passes too, where the only node that is dialled is the one restarted. */
async function whenWell(client: Client): Promise<Overview> {
  let said = ''
  for (;;) {
    const found = await overview(client).catch((error: unknown) => {
      if (!(error instanceof ClientError) || !error.retriable) throw error
      return error
    })
    const troubles = found instanceof ClientError ? [found.message] : troublesOf(found)
    if (troubles.length === 0 && !(found instanceof ClientError)) return found
    const saying = `waiting: ${troubles.join('; ')}`
    if (saying !== said) remark(saying)
    said = saying
    await client.pause(LOOK_MS)
  }
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
    troubles: troublesOf(found),
  }
}

/** Those without a rack count as one that has no name where replicas are placed, which is seldom meant. */
function racksOf(brokers: readonly { readonly rack: string | null }[]): string {
  const racks = new Set(brokers.flatMap(({ rack }) => rack ?? [])).size
  const without = brokers.filter(({ rack }) => rack === null).length
  if (racks === 0) return ''
  return ` in ${counted(racks, 'rack')}${without === 0 ? '' : ` (${without} without one)`}`
}

/** How many partitions are named in a line. */
const NAMED_MAX = 5

function show(found: Overview): void {
  const { description, quorum, health, reassignments } = found
  const controller = controllerOf(found)
  print(`cluster ${description.clusterId}, controller ${controller < 0 ? 'unknown' : controller}`)
  const nodes = nodesOf(found)
  print(
    `${counted(nodes.length, 'node')}${racksOf(description.brokers)}, ${counted(health.topics, 'topic')}, ${counted(health.partitions, 'partition')}, ${counted(health.replicas, 'replica')}`,
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
  if (found.isSilent) {
    print('')
    print('quorum: the active controller does not answer, so this is what a broker was told last')
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
    print(
      `partitions${found.isLeaderless || found.isSilent ? ' as they were then' : ''}: all led by their preferred replicas, all replicas in sync`,
    )
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
