import type { Command } from 'commander'
import { describeCluster, describeLogDirs, unregisterBroker } from '#client/admin/cluster.ts'
import { healthOf } from '#client/admin/health.ts'
import { listTopics } from '#client/admin/topics.ts'
import { type Client, ClientError } from '#client/client.ts'
import { wholeNumber } from '../arguments.ts'
import { controllerOf, nodesOf, type Overview, overview, troublesOf } from '../cluster-overview.ts'
import { reportOf } from '../cluster-report.ts'
import { whenWell } from '../cluster-wait.ts'
import { existingTopic, givenTimeout, wantsJson, withClient } from '../context.ts'
import { bytes, counted, print, printJson, remark, table } from '../output.ts'
import { addElect } from './elect.ts'
import { addFeatures } from './features.ts'
import { addVoters } from './voters.ts'

export function command(program: Command): void {
  const cluster = program
    .command('cluster')
    .description('describe nodes, quorum and the state of partitions; elect leaders, change voters')

  cluster
    .command('describe', { isDefault: true })
    .description('show nodes, quorum, and which partitions are not as they should be')
    .option('--check', 'end with 1 unless all is well: before another node is stopped')
    .option(
      '--wait',
      'until all is well, or a --timeout that is given is over, and say what is not: after a node was started',
    )
    .addHelpText(
      'after',
      `
All is well when all brokers are active, all replicas in sync, and all voters close behind the active controller.

Brokers are active or fenced. Controllers alone are active, or silent: they asked nothing of the active one for seconds.

What is counted of partitions:
  offline           have no leader, and can be neither read nor written
  under min.insync  have fewer in sync than min.insync.replicas: acks=all is refused
  under-replicated  have replicas that are not in sync
  not preferred     are led by another than their first replica: tidemark cluster elect

Examples:
  tidemark cluster
  tidemark cluster --wait && ssh b systemctl restart tidemark
  tidemark cluster --wait --timeout 600000          give up after ten minutes, and end with 1
  tidemark cluster --json | jq .health.offline`,
    )
    .action(async (options: { check?: boolean; wait?: boolean }, self: Command) => {
      const found = await withClient(self, client =>
        options.wait === true ? whenWell(client, givenTimeout(self)) : overview(client),
      )
      if (wantsJson(self)) printJson(asJson(found))
      else for (const line of reportOf(found)) print(line)
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
