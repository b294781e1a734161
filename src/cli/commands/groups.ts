import { type Command, Option } from 'commander'
import {
  type CommittedOffset,
  commitOffsets,
  deleteGroup,
  describeGroup,
  fetchOffsets,
  type GroupDescription,
  listGroups,
} from '#client/admin/groups.ts'
import { listOffsets, type OffsetSpec } from '#client/admin/offsets.ts'
import { type Client, ClientError } from '#client/client.ts'
import { collect, parsePlace, wholeNumber } from '../arguments.ts'
import { existingTopic, nearest, UsageError, wantsJson, withClient } from '../context.ts'
import { counted, duration, print, printJson, remark, table } from '../output.ts'

interface ResetOptions {
  readonly topic?: readonly string[]
  readonly to?: string
  readonly shift?: string
  readonly dryRun?: boolean
}

interface Place {
  readonly topic: string
  readonly partition: number
}

export function command(program: Command): void {
  const groups = program.command('groups').description('list, describe, reset and delete consumer groups')

  groups
    .command('list')
    .alias('ls')
    .description('list groups')
    .option('--state <state>', 'only those in a state: Stable, Empty, ...; may be repeated', collect)
    .action(async (options: { state?: readonly string[] }, self: Command) => {
      const states = (options.state ?? []).map(stateOf)
      const found = await withClient(self, client => listGroups(client, { states }))
      if (wantsJson(self)) printJson(found)
      else if (found.length === 0) print('no groups')
      else
        print(
          table(
            ['GROUP', 'STATE', 'TYPE', 'PROTOCOL'],
            found.map(g => [g.group, g.state, g.type, g.protocolType]),
          ),
        )
    })

  groups
    .command('describe <group>')
    .description('show members, committed offsets and how far they lag')
    .action(async (group: string, _options: object, self: Command) => {
      const { description, lags } = await withClient(self, async client => {
        const found = await existingGroup(client, group)
        return { description: found, lags: await lagsOf(client, found, await fetchOffsets(client, group)) }
      })
      if (wantsJson(self)) {
        printJson({ ...description, partitions: lags })
        return
      }
      const { state, protocol, members } = description
      print(`${group}  ${state}${protocol === '' ? '' : `, ${protocol}`}, ${counted(members.length, 'member')}`)
      for (const member of members) {
        const held = member.assignment.map(({ topic, partition }) => `${topic}-${partition}`).join(' ')
        print(`  ${member.memberId}  ${member.host}  ${held === '' ? 'nothing' : held}`)
      }
      if (lags.length === 0) {
        print(members.length === 0 ? 'nothing is committed' : 'no member has partitions yet, and nothing is committed')
        return
      }
      const rows = lags.map(each => [
        each.topic,
        each.partition,
        each.committed,
        each.end,
        each.lag,
        each.lagMs === null ? null : duration(each.lagMs),
        each.member,
      ])
      print(table(['TOPIC', 'PARTITION', 'COMMITTED', 'END', 'LAG', 'LAG TIME', 'MEMBER'], rows))
    })

  groups
    .command('reset <group>')
    .description('move the committed offsets of a group without members')
    .option('-t, --topic <topic[:partitions]>', 'of these, such as orders or orders:0,2; may be repeated', collect)
    .addOption(
      new Option('--to <place>', 'beginning, end, an offset, or a time (2026-01-31T12:00Z, or how long ago: 2h)'),
    )
    .option('--shift <count>', 'forward by so many records, or back with a negative number')
    .option('--dry-run', 'only show what would be committed')
    .addHelpText(
      'after',
      `
Examples:
  tidemark groups reset readers --to beginning --dry-run      see what would happen
  tidemark groups reset readers -t orders:0 --to 1000         one partition to an offset
  tidemark groups reset readers --to 2h                       read the last two hours again
  tidemark groups reset readers --shift -10                   ten records back`,
    )
    .action(async (group: string, options: ResetOptions, self: Command) => {
      if ((options.to === undefined) === (options.shift === undefined)) {
        throw new UsageError('say where to: give --to or --shift')
      }
      const changes = await withClient(self, async client => {
        const planned = await planReset(client, group, options)
        if (options.dryRun !== true) await commitReset(client, group, planned)
        return planned
      })
      if (wantsJson(self))
        printJson({
          group,
          dryRun: options.dryRun === true,
          offsets: changes.map(({ wanted: _, ...change }) => change),
        })
      else {
        const cut = changes.filter(each => each.offset !== each.wanted).length
        if (cut > 0)
          remark(`${counted(cut, 'partition')} did not reach as far: set to the first or the end offset there`)
        const rows = changes.map(each => [each.topic, each.partition, each.before, each.offset])
        print(table(['TOPIC', 'PARTITION', 'BEFORE', options.dryRun === true ? 'WOULD BE' : 'NOW'], rows))
      }
    })

  groups
    .command('delete <group...>')
    .alias('rm')
    .description('delete groups without members, with their offsets')
    .action(async (names: string[], _options: object, self: Command) => {
      await withClient(self, async client => {
        for (const name of names) {
          try {
            await deleteGroup(client, name)
          } catch (error) {
            throw await withNearestGroup(client, name, error)
          }
        }
      })
      if (wantsJson(self)) printJson({ deleted: names })
      else for (const name of names) print(`deleted group "${name}"`)
    })
}

const STATES = [
  'Stable',
  'Empty',
  'PreparingRebalance',
  'CompletingRebalance',
  'Assigning',
  'Reconciling',
  'NotReady',
  'Dead',
]

function stateOf(text: string): string {
  const known = STATES.find(state => state.toLowerCase() === text.toLowerCase())
  if (known !== undefined) return known
  const near = nearest(text, STATES)
  throw new UsageError(
    `groups have no state "${text}"`,
    near ? `did you mean "${near}"?` : `states: ${STATES.join(', ')}`,
  )
}

async function existingGroup(client: Client, group: string): Promise<GroupDescription> {
  try {
    return await describeGroup(client, group)
  } catch (error) {
    throw await withNearestGroup(client, group, error)
  }
}

async function withNearestGroup(client: Client, group: string, error: unknown): Promise<unknown> {
  if (!(error instanceof ClientError) || error.code !== 'GROUP_ID_NOT_FOUND') return error
  const names = (await listGroups(client)).map(each => each.group)
  const near = nearest(group, names)
  const hint = near === undefined ? 'see them all with: tidemark groups list' : `did you mean "${near}"?`
  return new ClientError(error.code, `there is no group "${group}"`, { errorCode: 69, hint })
}

interface Lag extends Place {
  /** null: nothing, so that consumers begin where their auto.offset.reset says. */
  readonly committed: number | null
  readonly end: number | null
  readonly lag: number | null
  /** How long the oldest record that was not read has been waiting; null where nothing waits or it has no time. */
  readonly lagMs: number | null
  readonly member: string | null
}

async function lagsOf(
  client: Client,
  { members }: GroupDescription,
  committed: readonly CommittedOffset[],
): Promise<Lag[]> {
  const known = new Set(committed.map(keyOf))
  const held = members.flatMap(({ assignment }) => assignment).filter(place => !known.has(keyOf(place)))
  const ends = await offsetsOf(client, [...committed, ...held], 'latest')
  const behind = committed.filter(each => (ends.get(keyOf(each)) ?? 0) > each.offset)
  const waiting = behind.length > 0 ? await firstTimes(client, behind) : new Map<string, number>()
  const now = Date.now()
  return [...committed, ...held.map(place => ({ ...place, offset: null }))]
    .map(each => {
      const { topic, partition, offset } = each
      const end = ends.get(keyOf(each)) ?? null
      const time = waiting.get(keyOf(each))
      const holder = members.find(({ assignment }) => assignment.some(place => keyOf(place) === keyOf(each)))
      return {
        topic,
        partition,
        committed: offset,
        end,
        lag: offset === null || end === null ? null : Math.max(0, end - offset),
        lagMs: time === undefined || time < 0 ? null : Math.max(0, now - time),
        member: holder?.memberId ?? null,
      }
    })
    .sort((a, b) => (a.topic === b.topic ? a.partition - b.partition : a.topic < b.topic ? -1 : 1))
}

/** The times of the records at these offsets: the oldest that wait. */
async function firstTimes(client: Client, places: readonly CommittedOffset[]): Promise<Map<string, number>> {
  const { Consumer } = await import('#client/consumer.ts')
  const consumer = new Consumer(client, { offsetReset: 'earliest', partitionBytesMax: 1, maxWaitMs: 100 })
  const times = new Map<string, number>()
  const until = performance.now() + 3000
  let left = [...places]
  while (left.length > 0 && performance.now() < until) {
    consumer.assign(left.map(({ topic, partition, offset }) => ({ topic, partition, from: offset })))
    for (const record of await consumer.poll(500)) {
      if (!times.has(keyOf(record))) times.set(keyOf(record), record.timestamp)
    }
    left = left.filter(each => !times.has(keyOf(each)))
  }
  await consumer.close()
  return times
}

interface Change extends Place {
  readonly before: number | null
  readonly offset: number
  /** What was asked for, which may lie outside of the log. */
  readonly wanted: number
}

async function planReset(client: Client, group: string, options: ResetOptions): Promise<Change[]> {
  const committed = await fetchOffsets(client, group)
  const before = new Map(committed.map(each => [keyOf(each), each.offset]))
  const places = options.topic === undefined ? committed : await placesOf(client, options.topic)
  if (places.length === 0) {
    throw new ClientError('GROUP_ID_NOT_FOUND', `group "${group}" has no committed offsets`, {
      hint: 'name what it is to read with --topic',
    })
  }
  const [first, end] = await Promise.all([offsetsOf(client, places, 'earliest'), offsetsOf(client, places, 'latest')])
  const target = await targetOf(client, places, options, before, first, end)
  return places.map(({ topic, partition }) => {
    const key = keyOf({ topic, partition })
    const wanted = target.get(key) ?? -1
    // Offsets that do not exist would be reset by the consumers in their own way.
    const offset = Math.min(Math.max(wanted, first.get(key) ?? 0), end.get(key) ?? 0)
    return { topic, partition, before: before.get(key) ?? null, offset, wanted }
  })
}

async function targetOf(
  client: Client,
  places: readonly Place[],
  { to, shift }: ResetOptions,
  before: ReadonlyMap<string, number>,
  first: ReadonlyMap<string, number>,
  end: ReadonlyMap<string, number>,
): Promise<ReadonlyMap<string, number>> {
  if (shift !== undefined) {
    const by = Number(shift)
    if (!Number.isSafeInteger(by)) throw new UsageError(`"${shift}" is no number of records`)
    return new Map(places.map(each => [keyOf(each), (before.get(keyOf(each)) ?? first.get(keyOf(each)) ?? 0) + by]))
  }
  const place = parsePlace(to ?? '', Date.now())
  if (place === 'earliest') return first
  if (place === 'latest') return end
  if ('offset' in place) return new Map(places.map(each => [keyOf(each), place.offset]))
  const found = await offsetsOf(client, places, place)
  // Nothing is at or after the time: the end.
  return new Map([...found].map(([key, offset]) => [key, offset < 0 ? (end.get(key) ?? 0) : offset]))
}

async function commitReset(client: Client, group: string, changes: readonly Change[]): Promise<void> {
  try {
    await commitOffsets(client, group, changes)
  } catch (error) {
    if (!(error instanceof ClientError) || error.code !== 'UNKNOWN_MEMBER_ID') throw error
    throw new ClientError('NON_EMPTY_GROUP', `group "${group}" has members`, {
      hint: 'stop its consumers first; a running group would go on where it is',
    })
  }
}

async function placesOf(client: Client, texts: readonly string[]): Promise<Place[]> {
  const places: Place[] = []
  for (const text of texts) {
    const [name = '', list] = text.split(':')
    const { partitions } = await existingTopic(client, name)
    const wanted =
      list === undefined
        ? partitions.map(({ partition }) => partition)
        : list.split(',').map(wholeNumber(`a partition of "${name}"`))
    for (const partition of wanted) {
      if (!partitions.some(each => each.partition === partition)) {
        throw new UsageError(`topic "${name}" has no partition ${partition}; it has ${partitions.length}`)
      }
      places.push({ topic: name, partition })
    }
  }
  return places
}

async function offsetsOf(client: Client, places: readonly Place[], spec: OffsetSpec): Promise<Map<string, number>> {
  const wanted = places.map(({ topic, partition }) => ({ topic, partition, spec }))
  return new Map((await listOffsets(client, wanted)).map(each => [keyOf(each), each.offset]))
}

function keyOf({ topic, partition }: Place): string {
  return `${topic}-${partition}`
}
