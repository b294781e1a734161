import type { Command } from 'commander'
import { alterConfigs, type ConfigChange, type ConfigResource, describeConfigs } from '#client/admin/configs.ts'
import { type Client, ClientError } from '#client/client.ts'
import { pair } from '../arguments.ts'
import { existingTopic, nearest, UsageError, wantsJson, withClient } from '../context.ts'
import { print, printJson, table } from '../output.ts'

const TYPES = ['topic', 'broker', 'group'] as const

export function command(program: Command): void {
  const configs = program
    .command('configs')
    .description('describe and change settings of topics, brokers and groups')
    .addHelpText(
      'after',
      `
Examples:
  tidemark configs describe topic orders                   what differs from the defaults
  tidemark configs describe topic orders --all             everything
  tidemark configs set topic orders retention.ms=3600000
  tidemark configs delete topic orders retention.ms        back to the default
  tidemark configs set broker default log.retention.ms=86400000    for all brokers`,
    )

  configs
    .command('describe <type> <name> [settings...]')
    .description('show settings: of a topic, a broker (its id), a group')
    .option('-a, --all', 'also those with their default value')
    .option('-d, --docs', 'with documentation')
    .action(
      async (
        type: string,
        name: string,
        settings: string[],
        options: { all?: boolean; docs?: boolean },
        self: Command,
      ) => {
        const entries = await withClient(self, async client => {
          const resource = await resourceOf(client, type, name)
          const documentation = options.docs === true
          const found = await describeConfigs(client, resource, {
            documentation,
            ...(settings.length > 0 ? { names: settings } : {}),
          })
          const missing = settings.find(setting => !found.some(({ name: known }) => known === setting))
          // The default of all brokers holds only what somebody set.
          if (missing !== undefined && resource.name !== '') await refuseUnknown(client, resource, [missing])
          return found
        })
        const every = options.all === true || settings.length > 0
        const shown = entries.filter(({ source }) => every || source !== 'default')
        if (wantsJson(self)) printJson(shown)
        else if (shown.length === 0) print(`${resourceName(type, name)} has only default settings (--all shows them)`)
        else if (options.docs === true) {
          for (const each of shown)
            print(`${each.name} = ${shownValue(each)}  (${each.source}, ${each.type})\n  ${each.documentation ?? ''}`)
        } else
          print(
            table(
              ['SETTING', 'VALUE', 'SOURCE'],
              shown.map(each => [each.name, shownValue(each), each.source]),
            ),
          )
      },
    )

  configs
    .command('set <type> <name> <settings...>')
    .description('set settings: name=value, or name+=value and name-=value for one element of a list')
    .option('--dry-run', 'only say whether it would work')
    .action(async (type: string, name: string, settings: string[], options: { dryRun?: boolean }, self: Command) => {
      await change(self, type, name, settings.map(toChange), options.dryRun === true)
    })

  configs
    .command('delete <type> <name> <settings...>')
    .alias('unset')
    .description('put settings back to their default')
    .option('--dry-run', 'only say whether it would work')
    .action(async (type: string, name: string, settings: string[], options: { dryRun?: boolean }, self: Command) => {
      const changes = settings.map((setting): ConfigChange => ({ name: setting, op: 'delete' }))
      await change(self, type, name, changes, options.dryRun === true)
    })
}

function shownValue({ value, sensitive }: { value: string | null; sensitive: boolean }): string {
  return sensitive ? '(secret)' : (value ?? '-')
}

function toChange(text: string): ConfigChange {
  const [name, value] = pair(text)
  if (name.endsWith('+')) return { name: name.slice(0, -1), op: 'append', value }
  if (name.endsWith('-')) return { name: name.slice(0, -1), op: 'subtract', value }
  return { name, op: 'set', value }
}

async function change(
  self: Command,
  type: string,
  name: string,
  changes: readonly ConfigChange[],
  dryRun: boolean,
): Promise<void> {
  await withClient(self, async client => {
    const resource = await resourceOf(client, type, name)
    const deleted = changes.filter(({ op }) => op === 'delete').map(each => each.name)
    if (resource.name !== '') await refuseUnknown(client, resource, deleted)
    try {
      await alterConfigs(client, resource, changes, { validateOnly: dryRun })
    } catch (error) {
      throw await withNearestSetting(client, resource, changes, error)
    }
  })
  if (wantsJson(self)) printJson({ type, name, changed: !dryRun })
  else print(dryRun ? `${resourceName(type, name)} could be changed so` : `changed ${resourceName(type, name)}`)
}

function resourceName(type: string, name: string): string {
  return type.startsWith('broker') && name === 'default' ? 'the default of all brokers' : `${type} "${name}"`
}

/** A setting that the resource does not know is most likely a typing error, which brokers let pass where none is set. */
async function refuseUnknown(client: Client, resource: ConfigResource, settings: readonly string[]): Promise<void> {
  if (settings.length === 0) return
  const known = (await describeConfigs(client, resource)).map(each => each.name)
  const unknown = settings.find(setting => !known.includes(setting))
  if (unknown === undefined) return
  const near = nearest(unknown, known)
  const hint = near === undefined ? 'see them all with --all' : `did you mean "${near}"?`
  throw new ClientError('INVALID_CONFIG', `a ${resource.type} has no setting "${unknown}"`, { errorCode: 40, hint })
}

async function withNearestSetting(
  client: Client,
  resource: ConfigResource,
  changes: readonly ConfigChange[],
  error: unknown,
): Promise<unknown> {
  if (!(error instanceof ClientError) || error.code !== 'INVALID_CONFIG') return error
  const known = (await describeConfigs(client, resource)).map(each => each.name)
  const unknown = changes.find(each => !known.includes(each.name))
  const near = unknown === undefined ? undefined : nearest(unknown.name, known)
  if (near === undefined || error.message.includes(near)) return error
  const { errorCode = 40 } = error
  return new ClientError(error.code, error.message, { errorCode, hint: `did you mean "${near}"?` })
}

async function resourceOf(client: Client, type: string, name: string): Promise<ConfigResource> {
  const known = TYPES.find(each => each === type || `${each}s` === type)
  if (known === undefined) {
    const near = nearest(type, TYPES)
    throw new UsageError(`"${type}" has no settings; ${TYPES.join(', ')} have`, near && `did you mean "${near}"?`)
  }
  if (known === 'topic') await existingTopic(client, name)
  if (known === 'broker' && name !== 'default' && !/^\d+$/.test(name)) {
    throw new UsageError(`"${name}" is no broker id; write its number, or "default" for all brokers`)
  }
  return { type: known, name: known === 'broker' && name === 'default' ? '' : name }
}
