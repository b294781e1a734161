import type { Command } from 'commander'
import { describeCluster, describeLogDirs, describeQuorum, type QuorumDescription } from '#client/admin/cluster.ts'
import { ClientError } from '#client/client.ts'
import { existingTopic, wantsJson, withClient } from '../context.ts'
import { bytes, duration, print, printJson, table } from '../output.ts'

export function command(program: Command): void {
  const cluster = program.command('cluster').description('describe brokers, controller and quorum')

  cluster
    .command('describe', { isDefault: true })
    .description('show brokers, controller and quorum')
    .action(async (_options: object, self: Command) => {
      const { description, quorum } = await withClient(self, async client => {
        const found = await describeCluster(client)
        return { description: found, quorum: await describeQuorum(client).catch(withoutQuorum) }
      })
      if (wantsJson(self)) {
        printJson({ ...description, quorum: quorum ?? null })
        return
      }
      const { clusterId, controllerId, brokers } = description
      print(`cluster ${clusterId}, controller ${controllerId < 0 ? 'unknown' : controllerId}`)
      const rows = brokers.map(each => [
        each.id,
        `${each.host}:${each.port}`,
        each.rack,
        [each.fenced ? 'fenced' : 'active', ...(each.id === controllerId ? ['controller'] : [])].join(', '),
      ])
      print(table(['BROKER', 'ADDRESS', 'RACK', 'STATE'], rows))
      if (quorum !== undefined) {
        print('')
        print(`quorum: leader ${quorum.leaderId}, epoch ${quorum.leaderEpoch}, committed to ${quorum.highWatermark}`)
        print(table(['NODE', 'ROLE', 'END', 'LAG', 'CAUGHT UP'], quorumRows(quorum)))
      }
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
        dir.path,
        dir.error?.code ?? 'ok',
        dir.partitions.length,
        bytes(dir.partitions.reduce((sum, each) => sum + each.bytes, 0)),
        bytes(dir.usableBytes),
      ])
      print(table(['BROKER', 'FOLDER', 'STATE', 'PARTITIONS', 'SIZE', 'FREE'], rows))
    })
}

/** A cluster that has no such quorum, or does not tell, is described without it. */
function withoutQuorum(error: unknown): undefined {
  if (!(error instanceof ClientError)) throw error
  return undefined
}

function quorumRows({ leaderId, voters, observers }: QuorumDescription): (string | number | null)[][] {
  const end = Math.max(...voters.map(({ logEndOffset }) => logEndOffset), 0)
  const row = (role: string) => (each: QuorumDescription['voters'][number]) => [
    each.id,
    each.id === leaderId ? 'leader' : role,
    each.logEndOffset,
    each.logEndOffset < 0 ? null : end - each.logEndOffset,
    each.lastCaughtUpTimestamp < 0 ? null : `${duration(Math.max(0, Date.now() - each.lastCaughtUpTimestamp))} ago`,
  ]
  return [...voters.map(row('voter')), ...observers.map(row('observer'))]
}
