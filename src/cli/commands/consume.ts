import { type Command, Option } from 'commander'
import { listOffsets } from '#client/admin/offsets.ts'
import type { Client, Topic } from '#client/client.ts'
import { type ConsumedRecord, Consumer, type OffsetSpec } from '#client/consumer.ts'
import { onStopSignal } from '#world/real/stop-signals.ts'
import { type PlaceText, parsePlace, wholeNumber } from '../arguments.ts'
import { existingTopic, UsageError, wantsJson, withClient } from '../context.ts'
import { print, remark } from '../output.ts'

interface ConsumeOptions {
  readonly fromBeginning?: boolean
  readonly from?: string
  readonly partition?: number
  readonly group?: string
  readonly follow?: boolean
  readonly max?: number
  readonly format: 'text' | 'json' | 'hex'
  readonly keys?: boolean
  readonly metadata?: boolean
  readonly headers?: boolean
  readonly committed?: boolean
}

/** How long a group is waited for to hand out something before what is there counts as read. */
const GROUP_QUIET_MS = 5000

export function command(program: Command): void {
  program
    .command('consume <topic>')
    .description('read records: what is there now, or with --follow what comes')
    .option(
      '--from <place>',
      'beginning, end, an offset (a negative one counts from the end), or a time (2h, 2026-01-31)',
    )
    .option('--from-beginning', 'the same as --from beginning, which is the default without --follow')
    .option('-p, --partition <number>', 'of one partition', wholeNumber('--partition'))
    .option('-g, --group <name>', 'as a member of a group, from where it was, committing what was read')
    .option('-f, --follow', 'wait for what comes; from the end unless --from says otherwise')
    .option('-n, --max <count>', 'stop after so many records', wholeNumber('--max', 1))
    .addOption(
      new Option('--format <format>', 'how records are printed').choices(['text', 'json', 'hex']).default('text'),
    )
    .option('-k, --keys', 'print keys too')
    .option('-H, --headers', 'print headers too')
    .option('-m, --metadata', 'print time, partition and offset too')
    .option('--committed', 'leave out records of transactions that are open or aborted')
    .addHelpText(
      'after',
      `
Examples:
  tidemark consume greetings                          all that is there
  tidemark consume greetings -f                       what comes
  tidemark consume greetings --from -10               the last ten of each partition
  tidemark consume greetings --from 10m --json        of the last ten minutes, a JSON object per line
  tidemark consume greetings -g readers -f            share the work with other readers`,
    )
    .action(async (topic: string, options: ConsumeOptions, self: Command) => {
      if (options.from !== undefined && options.fromBeginning === true) {
        throw new UsageError('give one of --from and --from-beginning')
      }
      const from = placeOf(options)
      if (options.group !== undefined && (options.partition !== undefined || typeof from === 'object')) {
        throw new UsageError('a group decides by itself where it reads', 'move it with: tidemark groups reset')
      }
      const show = printer(wantsJson(self) ? { ...options, format: 'json' } : options)
      await withClient(self, async client => {
        const found = await existingTopic(client, topic)
        const consumer =
          options.group === undefined
            ? await assigned(client, found, from, options)
            : subscribed(client, found, from, options)
        // Stop where we are when asked to, so that a group learns how far we came.
        const stop = new AbortController()
        const giveBack = onStopSignal(() => stop.abort())
        try {
          await read(client, consumer, found, options, show, stop.signal)
        } finally {
          await consumer.close()
          giveBack()
        }
      })
    })
}

async function read(
  client: Client,
  consumer: Consumer,
  topic: Topic,
  options: ConsumeOptions,
  show: (record: ConsumedRecord) => void,
  stop: AbortSignal,
): Promise<void> {
  const ends = options.follow === true ? undefined : await endOffsets(client, topic)
  let left = options.max ?? Number.POSITIVE_INFINITY
  let quietSince = performance.now()
  while (left > 0 && !stop.aborted) {
    const records = await consumer.poll(250)
    for (const record of records) {
      if (left <= 0) {
        // What was fetched beyond the limit stays unread.
        consumer.seek(record, record.offset)
        continue
      }
      show(record)
      left--
    }
    if (records.length > 0) quietSince = performance.now()
    if (ends !== undefined && caughtUp(consumer, ends, options, performance.now() - quietSince)) return
  }
}

function caughtUp(
  consumer: Consumer,
  ends: ReadonlyMap<number, number>,
  options: ConsumeOptions,
  quietMs: number,
): boolean {
  const assignment = consumer.assignment
  if (assignment.length === 0) return options.group === undefined || quietMs > GROUP_QUIET_MS
  return assignment.every(of => (consumer.position(of) ?? -1) >= (ends.get(of.partition) ?? 0))
}

async function endOffsets(client: Client, { name, partitions }: Topic): Promise<Map<number, number>> {
  const wanted = partitions.map(({ partition }) => ({ topic: name, partition, spec: 'latest' as const }))
  return new Map((await listOffsets(client, wanted)).map(({ partition, offset }) => [partition, offset]))
}

function subscribed(client: Client, topic: Topic, from: PlaceText, options: ConsumeOptions): Consumer {
  const consumer = new Consumer(client, {
    group: options.group ?? '',
    offsetReset: from === 'latest' ? 'latest' : 'earliest',
    isolation: options.committed === true ? 'read_committed' : 'read_uncommitted',
    sessionTimeoutMs: 10_000,
    pollRecordsMax: Math.min(options.max ?? 500, 500),
  })
  consumer.subscribe([topic.name])
  return consumer
}

async function assigned(
  client: Client,
  { name, partitions }: Topic,
  place: PlaceText,
  options: ConsumeOptions,
): Promise<Consumer> {
  const chosen = partitions.filter(
    ({ partition }) => options.partition === undefined || partition === options.partition,
  )
  if (chosen.length === 0) {
    throw new UsageError(`topic "${name}" has no partition ${options.partition}; it has ${partitions.length}`)
  }
  const from = await startOffsets(client, name, chosen, place)
  const consumer = new Consumer(client, {
    offsetReset: 'earliest',
    isolation: options.committed === true ? 'read_committed' : 'read_uncommitted',
    pollRecordsMax: Math.min(options.max ?? 500, 500),
  })
  consumer.assign(chosen.map(({ partition }) => ({ topic: name, partition, from: from(partition) })))
  return consumer
}

async function startOffsets(
  client: Client,
  name: string,
  chosen: Topic['partitions'],
  place: PlaceText,
): Promise<(partition: number) => number | OffsetSpec> {
  if (typeof place === 'string' || 'timestamp' in place) return () => place
  const { offset } = place
  const ask = async (spec: OffsetSpec): Promise<Map<number, number>> => {
    const wanted = chosen.map(({ partition }) => ({ topic: name, partition, spec }))
    return new Map((await listOffsets(client, wanted)).map(each => [each.partition, each.offset]))
  }
  const [first, end] = await Promise.all([ask('earliest'), ask('latest')])
  const wanted = (partition: number): number => (offset < 0 ? (end.get(partition) ?? 0) + offset : offset)
  const within = (partition: number): number =>
    Math.min(Math.max(first.get(partition) ?? 0, wanted(partition)), end.get(partition) ?? 0)
  if (offset > 0 && chosen.every(({ partition }) => (end.get(partition) ?? 0) < offset)) {
    const last = Math.max(...end.values())
    remark(`nothing is at offset ${offset} yet: the log ends at ${last}`)
  }
  return within
}

function placeOf({ from, fromBeginning, follow }: ConsumeOptions): PlaceText {
  if (from !== undefined) return parsePlace(from, Date.now())
  return follow === true && fromBeginning !== true ? 'latest' : 'earliest'
}

function printer(options: ConsumeOptions): (record: ConsumedRecord) => void {
  if (options.format === 'json') return record => print(JSON.stringify(toJson(record)))
  const show = (bytes: Buffer | null): string =>
    bytes === null ? 'null' : options.format === 'hex' ? bytes.toString('hex') : bytes.toString()
  return record => {
    const parts: string[] = []
    if (options.metadata === true) {
      const time = record.timestamp < 0 ? '-' : new Date(record.timestamp).toISOString()
      parts.push(time, `${record.topic}-${record.partition}`, String(record.offset))
    }
    if (options.headers === true) parts.push(record.headers.map(({ key, value }) => `${key}=${show(value)}`).join(','))
    if (options.keys === true) parts.push(show(record.key))
    parts.push(show(record.value))
    print(parts.join('\t'))
  }
}

/** Bytes that are text stand as text; others as base64, under a name that says so. */
function toJson(record: ConsumedRecord): object {
  const { topic, partition, offset, timestamp, headers } = record
  return {
    topic,
    partition,
    offset,
    timestamp,
    ...field('key', record.key),
    ...field('value', record.value),
    headers: headers.map(({ key, value }) => ({ key, ...field('value', value) })),
  }
}

function field(name: string, bytes: Buffer | null): Record<string, string | null> {
  if (bytes === null) return { [name]: null }
  const text = bytes.toString()
  return Buffer.from(text).equals(bytes) ? { [name]: text } : { [`${name}Base64`]: bytes.toString('base64') }
}
