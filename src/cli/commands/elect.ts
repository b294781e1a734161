import type { Command } from 'commander'
import { type Election, electLeaders } from '#client/admin/elections.ts'
import { type Client, ClientError } from '#client/client.ts'
import type { TopicPartition } from '#client/per-leader.ts'
import { existingTopic, UsageError, wantsJson, withClient } from '../context.ts'
import { counted, print, printJson, remark } from '../output.ts'

export function addElect(cluster: Command): void {
  cluster
    .command('elect [partitions...]')
    .description('elect leaders: the preferred ones, or with --unclean any that live')
    .option('-a, --all', 'for all partitions that need it; the default for preferred leaders')
    .option('--preferred', 'first replicas that are in sync; the default')
    .option('--unclean', 'for partitions without a leader any replica that lives: LOSES what only others had')
    .addHelpText(
      'after',
      `
Partitions are topic:partition, or a topic for all of its partitions.

Examples:
  tidemark cluster elect                            give leadership back to preferred replicas
  tidemark cluster elect orders payments:3
  tidemark cluster elect --unclean orders:0         when its replicas in sync are gone for good`,
    )
    .action(async (names: string[], options: ElectOptions, self: Command) => {
      if (options.preferred === true && options.unclean === true) {
        throw new UsageError('--preferred and --unclean exclude each other')
      }
      if (names.length > 0 && options.all === true) throw new UsageError('give partitions or --all, not both')
      const unclean = options.unclean === true
      if (unclean && names.length === 0 && options.all !== true) {
        throw new UsageError(
          'an unclean election loses records: name the partitions, or say --all',
          'those without a leader are shown by: tidemark cluster',
        )
      }
      const elections = await withClient(self, async client => {
        const partitions = names.length === 0 ? undefined : await partitionsOf(client, names)
        return await electLeaders(client, unclean ? 'unclean' : 'preferred', partitions)
      })
      report(elections, wantsJson(self))
    })
}

interface ElectOptions {
  readonly all?: boolean
  readonly preferred?: boolean
  readonly unclean?: boolean
}

/** `topic` or `topic:partition`: neither name can hold a colon. */
async function partitionsOf(client: Client, names: readonly string[]): Promise<TopicPartition[]> {
  const found: TopicPartition[] = []
  for (const name of names) {
    const [, topicName = '', number] = /^([^:]+)(?::(\d+))?$/.exec(name) ?? []
    if (topicName === '') throw new UsageError(`"${name}" is neither a topic nor topic:partition`)
    const topic = await existingTopic(client, topicName)
    const wanted = number === undefined ? undefined : Number(number)
    const partitions = topic.partitions.filter(({ partition }) => wanted === undefined || partition === wanted)
    if (partitions.length === 0) {
      throw new ClientError('UNKNOWN_TOPIC_OR_PARTITION', `topic "${topicName}" has no partition ${wanted}`, {
        hint: `its partitions are 0 to ${topic.partitions.length - 1}`,
      })
    }
    found.push(...partitions.map(({ partition }) => ({ topic: topicName, partition })))
  }
  return found
}

function report(elections: readonly Election[], json: boolean): void {
  const named = ({ topic, partition }: TopicPartition): string => `${topic}-${partition}`
  const elected = elections.filter(({ error }) => error === undefined)
  const notNeeded = elections.filter(({ error }) => error?.code === 'ELECTION_NOT_NEEDED')
  const failed = elections.filter(({ error }) => error !== undefined && error.code !== 'ELECTION_NOT_NEEDED')
  if (failed.length > 0) process.exitCode = 1
  if (json) {
    printJson({
      elected: elected.map(({ topic, partition }) => ({ topic, partition })),
      notNeeded: notNeeded.map(({ topic, partition }) => ({ topic, partition })),
      failed: failed.map(({ topic, partition, error }) => ({
        topic,
        partition,
        code: error?.code,
        message: error?.message,
      })),
    })
    return
  }
  for (const election of elected) print(`elected a leader of ${named(election)}`)
  if (elected.length === 0 && failed.length === 0) print('no election was needed')
  else if (notNeeded.length > 0) print(`${counted(notNeeded.length, 'partition')} did not need one`)
  for (const { error } of failed) remark(`error: ${error?.message} (${error?.code})`)
  if (failed.some(({ error }) => error?.code === 'PREFERRED_LEADER_NOT_AVAILABLE')) {
    remark('hint: their first replicas are down or not in sync yet: tidemark topics describe shows who is')
  }
  if (failed.some(({ error }) => error?.code === 'ELIGIBLE_LEADERS_NOT_AVAILABLE')) {
    remark('hint: none of their replicas lives: bring a broker back')
  }
}
