import type { Command } from 'commander'
import { describeFeatures, type Feature, updateFeatures } from '#client/admin/features.ts'
import { pair } from '../arguments.ts'
import { nearest, UsageError, wantsJson, withClient } from '../context.ts'
import { print, printJson, remark, table } from '../output.ts'

export function addFeatures(cluster: Command): void {
  const features = cluster.command('features').description('show and change what the cluster as a whole makes use of')

  features
    .command('list', { isDefault: true })
    .alias('ls')
    .description('show the levels that are finalized, and those that all brokers that run support')
    .action(async (_options: object, self: Command) => {
      const all = await withClient(self, describeFeatures)
      if (wantsJson(self)) printJson(all)
      else show(all)
    })

  features
    .command('upgrade [levels...]')
    .description('raise features: those named as name=level, or all to the newest that all brokers support')
    .option('--dry-run', 'only say whether it would work')
    .addHelpText(
      'after',
      `
When all nodes run the new release and all is well, for then they cannot go back to the one before it:
  tidemark cluster features upgrade
  tidemark cluster features upgrade metadata.version=30`,
    )
    .action((levels: string[], options: ChangeOptions, self: Command) => change('upgrade', levels, options, self))

  features
    .command('downgrade <levels...>')
    .description('lower features to name=level, 0 to do without; metadata.version is never lowered')
    .option('--dry-run', 'only say whether it would work')
    .action((levels: string[], options: ChangeOptions, self: Command) => change('downgrade', levels, options, self))
}

interface ChangeOptions {
  readonly dryRun?: boolean
}

async function change(
  type: 'upgrade' | 'downgrade',
  texts: readonly string[],
  { dryRun = false }: ChangeOptions,
  self: Command,
): Promise<void> {
  const changes = await withClient(self, async client => {
    const all = await describeFeatures(client)
    const wanted = texts.length === 0 ? all.map(({ name, max: level }) => ({ name, level })) : levelsOf(texts, all)
    const found = wanted.flatMap(({ name, level: to }) => {
      const from = all.find(each => each.name === name)?.level ?? 0
      // The newest of all may be older than what is finalized, where a broker could not be asked for it.
      return from === to || (texts.length === 0 && to < from) ? [] : [{ name, from, to }]
    })
    const levels = found.map(({ name, to: level }) => ({ name, level }))
    if (levels.length > 0) await updateFeatures(client, levels, type, { validateOnly: dryRun })
    return found
  })
  if (wantsJson(self)) {
    printJson({ changed: changes, dryRun })
    return
  }
  if (changes.length === 0) print('nothing to do')
  for (const { name, from, to } of changes) print(`${name} ${dryRun ? 'would go' : 'went'} from ${from} to ${to}`)
}

function levelsOf(texts: readonly string[], all: readonly Feature[]): { name: string; level: number }[] {
  return texts.map(text => {
    const [name, value] = pair(text)
    const level = Number(value)
    if (!/^\d{1,5}$/.test(value) || level > 32_767) throw new UsageError(`"${value}" is no level of ${name}`)
    if (all.some(each => each.name === name)) return { name, level }
    const names = all.map(each => each.name)
    const near = nearest(name, names)
    throw new UsageError(
      `there is no feature "${name}"`,
      near === undefined ? `there are ${names.join(', ')}` : `did you mean "${near}"?`,
    )
  })
}

function show(all: readonly Feature[]): void {
  const rows = all.map(({ name, level, min, max }) => [name, level, max < min ? 'none by all' : `${min} to ${max}`])
  print(table(['FEATURE', 'LEVEL', 'SUPPORTED'], rows))
  if (all.some(({ level, max }) => level < max)) {
    remark('hint: once all nodes run this release for good, raise them: tidemark cluster features upgrade')
  }
}
