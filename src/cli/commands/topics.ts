import type { Command } from 'commander'
import { createPartitions, createTopic, deleteTopic, describeTopic, listTopics } from '#client/admin/topics.ts'
import { type Client, ClientError, type Topic } from '#client/client.ts'
import { collect, pair, wholeNumber } from '../arguments.ts'
import { existingTopic, UsageError, wantsJson, withClient } from '../context.ts'
import { counted, print, printJson, table } from '../output.ts'
import { addReassign } from './reassign.ts'

export function command(program: Command): void {
  const topics = program.command('topics').description('list, create, describe, alter, move and delete topics')

  topics
    .command('list')
    .alias('ls')
    .description('list topics')
    .option('-i, --internal', 'also the internal ones')
    .action(async (options: { internal?: boolean }, self: Command) => {
      const all = await withClient(self, listTopics)
      const shown = all.filter(({ internal }) => options.internal === true || !internal)
      if (wantsJson(self)) printJson(shown.map(summary))
      else if (shown.length === 0) print('no topics')
      else {
        const rows = shown.map(topic => [topic.name, topic.partitions.length, replicas(topic), health(topic)])
        print(table(['TOPIC', 'PARTITIONS', 'REPLICAS', 'STATE'], rows))
      }
    })

  topics
    .command('create <name>')
    .description('create a topic')
    .option('-p, --partitions <count>', "partitions; the broker's default without it", wholeNumber('--partitions', 1))
    .option('-r, --replicas <count>', "copies of each; the broker's default without it", wholeNumber('--replicas', 1))
    .option('-c, --config <name=value>', 'a setting; may be repeated', collect)
    .option('--if-not-exists', 'succeed if there is one')
    .option('--dry-run', 'only say whether it would work')
    .addHelpText(
      'after',
      '\nExample: tidemark topics create orders -p 12 -c retention.ms=86400000 -c compression.type=zstd',
    )
    .action(async (name: string, options: CreateOptions, self: Command) => {
      const topic = {
        name,
        ...(options.partitions === undefined ? {} : { partitions: options.partitions }),
        ...(options.replicas === undefined ? {} : { replicationFactor: options.replicas }),
        configs: Object.fromEntries((options.config ?? []).map(pair)),
      }
      const validateOnly = options.dryRun === true
      const created = await withClient(self, async client => {
        try {
          return await createTopic(client, topic, { validateOnly })
        } catch (error) {
          if (!isCode(error, 'TOPIC_ALREADY_EXISTS')) throw error
          if (options.ifNotExists === true) return undefined
          throw new ClientError('TOPIC_ALREADY_EXISTS', `there is a topic "${name}" already`, {
            errorCode: 36,
            hint: `see it with: tidemark topics describe ${name}; --if-not-exists takes it as it is`,
          })
        }
      })
      if (wantsJson(self)) printJson(created ?? { name, existed: true })
      else if (created === undefined) print(`topic "${name}" exists`)
      else {
        const counts =
          created.partitions < 0
            ? ''
            : `: ${counted(created.partitions, 'partition')}, ${counted(created.replicationFactor, 'replica')}`
        print(`${validateOnly ? 'would create' : 'created'} topic "${name}"${counts}`)
      }
    })

  topics
    .command('describe <name...>')
    .description('show partitions and settings')
    .addHelpText(
      'after',
      `
The first of the replicas is the preferred leader. Eligible are replicas that left those in sync with all that is
acknowledged, and may lead; offline those whose broker or folder is down.`,
    )
    .action(async (names: string[], _options: object, self: Command) => {
      const { describeConfigs } = await import('#client/admin/configs.ts')
      const { listOffsets } = await import('#client/admin/offsets.ts')
      const found = await withClient(self, client =>
        Promise.all(
          names.map(async name => {
            await existingTopic(client, name)
            const topic = await describeTopic(client, name)
            const configs = await describeConfigs(client, { type: 'topic', name })
            const led = Map.groupBy(
              topic.partitions.filter(({ leader }) => leader >= 0),
              ({ leader }) => leader,
            )
            const ask = async (spec: 'earliest' | 'latest') => {
              const asked = [...led.values()].map(list =>
                whereReached(
                  listOffsets(
                    client,
                    list.map(({ partition }) => ({ topic: name, partition, spec })),
                  ),
                ),
              )
              return (await Promise.all(asked)).flat()
            }
            const [first, end] = await Promise.all([ask('earliest'), ask('latest')])
            const partitions = topic.partitions.map(each => ({
              ...each,
              firstOffset: first.find(({ partition }) => partition === each.partition)?.offset ?? null,
              endOffset: end.find(({ partition }) => partition === each.partition)?.offset ?? null,
            }))
            return { ...topic, partitions, configs: configs.filter(({ source }) => source !== 'default') }
          }),
        ),
      )
      if (wantsJson(self)) {
        printJson(
          found.map(({ configs, ...topic }) => ({
            ...topic,
            configs: Object.fromEntries(configs.map(({ name, value }) => [name, value])),
          })),
        )
        return
      }
      for (const [index, topic] of found.entries()) {
        if (index > 0) print('')
        print(`${topic.name}  id ${topic.id}`)
        for (const { name, value, source } of topic.configs) print(`  ${name} = ${value} (${source})`)
        const rows = topic.partitions.map(each => [
          each.partition,
          each.leader < 0 ? 'none' : each.leader,
          each.replicas.join(','),
          each.isr.join(','),
          none(each.eligible ?? []),
          none(each.offline),
          each.firstOffset,
          each.endOffset,
        ])
        print(table(['PARTITION', 'LEADER', 'REPLICAS', 'IN SYNC', 'ELIGIBLE', 'OFFLINE', 'FIRST', 'END'], rows))
      }
    })

  topics
    .command('alter <name>')
    .description('change settings, or raise the number of partitions')
    .option('-s, --set <name=value>', 'set a setting; may be repeated', collect)
    .option('-u, --unset <name>', 'back to the default; may be repeated', collect)
    .option('-p, --partitions <count>', 'the new number of partitions', wholeNumber('--partitions', 1))
    .option('--dry-run', 'only say whether it would work')
    .action(async (name: string, options: AlterOptions, self: Command) => {
      const set = (options.set ?? []).map(pair)
      const unset = options.unset ?? []
      if (set.length + unset.length === 0 && options.partitions === undefined) {
        throw new UsageError('nothing to change: give --set, --unset or --partitions')
      }
      const { alterConfigs } = await import('#client/admin/configs.ts')
      await withClient(self, async client => {
        await existingTopic(client, name)
        const validateOnly = options.dryRun === true
        const changes = [
          ...set.map(([key, value]) => ({ name: key, op: 'set' as const, value })),
          ...unset.map(key => ({ name: key, op: 'delete' as const })),
        ]
        const alter = (only: boolean) => alterConfigs(client, { type: 'topic', name }, changes, { validateOnly: only })
        // Nothing is done when a part of it cannot be.
        if (changes.length > 0) await alter(true)
        if (options.partitions !== undefined) await createPartitions(client, name, options.partitions, { validateOnly })
        if (changes.length > 0 && !validateOnly) await alter(false)
      })
      if (wantsJson(self)) printJson({ name, altered: options.dryRun !== true })
      else print(options.dryRun === true ? `topic "${name}" could be altered so` : `altered topic "${name}"`)
    })

  topics
    .command('add-partitions <name> <total>')
    .description('raise the number of partitions to a total')
    .option('--dry-run', 'only say whether it would work')
    .action(async (name: string, total: string, options: { dryRun?: boolean }, self: Command) => {
      const count = wholeNumber('the total', 1)(total)
      await withClient(self, async client => {
        await existingTopic(client, name)
        await createPartitions(client, name, count, { validateOnly: options.dryRun === true })
      })
      if (wantsJson(self)) printJson({ name, partitions: count })
      else print(`topic "${name}" ${options.dryRun === true ? 'could have' : 'has'} ${count} partitions`)
    })

  topics
    .command('delete <name...>')
    .alias('rm')
    .description('delete topics with all their records')
    .option('--if-exists', 'succeed if there is none')
    .action(async (names: string[], options: { ifExists?: boolean }, self: Command) => {
      const deleted: string[] = []
      await withClient(self, async client => {
        for (const name of names) {
          const done = await remove(client, name, options.ifExists === true)
          if (done) deleted.push(name)
          if (!wantsJson(self)) print(done ? `deleted topic "${name}"` : `there is no topic "${name}"`)
        }
      })
      if (wantsJson(self)) printJson({ deleted })
    })

  addReassign(topics)
}

interface CreateOptions {
  readonly partitions?: number
  readonly replicas?: number
  readonly config?: readonly string[]
  readonly ifNotExists?: boolean
  readonly dryRun?: boolean
}

const LEADER_WAIT_MS = 3000

/** What a leader says; nothing where it is down, which is when one looks: all the rest is told. */
function whereReached<T>(asked: Promise<readonly T[]>): Promise<readonly T[]> {
  const nothing: readonly T[] = []
  const known = asked.catch((error: unknown) => {
    if (!(error instanceof ClientError)) throw error
    return nothing
  })
  const late = new Promise<readonly T[]>(resolve => setTimeout(resolve, LEADER_WAIT_MS, nothing).unref())
  return Promise.race([known, late])
}

interface AlterOptions {
  readonly set?: readonly string[]
  readonly unset?: readonly string[]
  readonly partitions?: number
  readonly dryRun?: boolean
}

/** False where there was none. Asked for first, as a topic that is missing may only be late and is tried again for. */
async function remove(client: Client, name: string, ifExists: boolean): Promise<boolean> {
  try {
    await existingTopic(client, name)
    await deleteTopic(client, name)
    return true
  } catch (error) {
    if (!ifExists || !isCode(error, 'UNKNOWN_TOPIC_OR_PARTITION')) throw error
    return false
  }
}

function none(ids: readonly number[]): string | null {
  return ids.length === 0 ? null : ids.join(',')
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof ClientError && error.code === code
}

function replicas(topic: Topic): number {
  return topic.partitions[0]?.replicas.length ?? 0
}

function health({ partitions }: Topic): string {
  const leaderless = partitions.filter(({ leader }) => leader < 0).length
  if (leaderless > 0) return `${leaderless} without leader`
  const behind = partitions.filter(({ isr, replicas }) => isr.length < replicas.length).length
  return behind > 0 ? `${behind} under-replicated` : 'ok'
}

function summary(topic: Topic): object {
  const { name, id, internal, partitions } = topic
  return { name, id, internal, partitions: partitions.length, replicas: replicas(topic), state: health(topic) }
}
