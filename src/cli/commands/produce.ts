import { open as openFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { type Command, Option } from 'commander'
import { type Client, ClientError } from '#client/client.ts'
import { Producer, type RecordMetadata } from '#client/producer.ts'
import type { NewRecord } from '#client/records.ts'
import { collect, pair, parseTime, wholeNumber } from '../arguments.ts'
import { existingTopic, globalOptions, missingTopic, UsageError, wantsJson, withClient } from '../context.ts'
import { counted, print, remark } from '../output.ts'

interface ProduceOptions {
  readonly key?: string
  readonly keySeparator?: string
  readonly header?: readonly string[]
  readonly partition?: number
  readonly timestamp?: string
  readonly compression: 'none' | 'gzip' | 'snappy' | 'lz4' | 'zstd'
  readonly acks: 'all' | '1' | '0'
  readonly null?: string
  readonly file?: string
  readonly whole?: boolean
  readonly create: boolean
}

/** Lines that are on their way at once. */
const WINDOW = 10_000

export function command(program: Command): void {
  program
    .command('produce <topic> [values...]')
    .description('write records: each value is one, or each line of standard input')
    .option('-k, --key <key>', 'the key of all records')
    .option('--key-separator <text>', 'what stands between key and value in a line')
    .option('-H, --header <name=value>', 'a header of all records; may be repeated', collect)
    .option('-p, --partition <number>', 'the partition; by the key without it', wholeNumber('--partition'))
    .option('--timestamp <time>', 'the time of all records; now without it')
    .addOption(
      new Option('--compression <codec>', 'how batches are compressed')
        .choices(['none', 'gzip', 'snappy', 'lz4', 'zstd'])
        .default('none'),
    )
    .addOption(
      new Option('--acks <acks>', 'who has the record before it counts').choices(['all', '1', '0']).default('all'),
    )
    .option('--null <text>', 'a key or value that is exactly this stands for none (a tombstone)')
    .option('--file <path>', 'read lines from a file')
    .option('--whole', 'one record of all input, with its line ends')
    .option('--no-create', 'fail if the topic is missing, rather than let the broker create it')
    .addHelpText(
      'after',
      `
Examples:
  tidemark produce greetings hello world              two records
  cat lines.txt | tidemark produce greetings          a record per line
  tidemark produce users 'ada=1' --key-separator =    key ada, value 1
  tidemark produce users -k ada --null - -            delete ada from a compacted topic
  tidemark produce files --whole < picture.jpg        one record of any bytes`,
    )
    .action(async (topic: string, values: string[], options: ProduceOptions, self: Command) => {
      if (values.length > 0 && (options.file !== undefined || options.whole === true)) {
        throw new UsageError('give values or input, not both')
      }
      const json = wantsJson(self)
      await withClient(self, async client => {
        if (!options.create) await existingTopic(client, topic)
        else await announceNew(client, topic)
        const written = await produce(client, topic, values, options, globalOptions(self).timeout, metadata => {
          if (json) print(JSON.stringify(metadata))
          else if (values.length > 0) {
            // With acks=0 nobody tells the offset.
            const at = metadata.offset < 0 ? 'sent' : `offset ${metadata.offset}`
            print(`${metadata.topic}-${metadata.partition} ${at}`)
          }
        })
        if (!json && values.length === 0) remark(`wrote ${counted(written, 'record')} to ${topic}`)
      })
    })
}

/** A topic that the broker makes at the first record may be a typing error. */
async function announceNew(client: Client, topic: string): Promise<void> {
  try {
    await client.topic(topic)
  } catch (error) {
    if (!(error instanceof ClientError) || error.code !== 'UNKNOWN_TOPIC_OR_PARTITION') throw error
    const { hint } = await missingTopic(client, topic)
    const meant = hint?.startsWith('did you mean') === true ? `; ${hint}` : ''
    remark(`there is no topic "${topic}" yet: the broker makes it, unless it is told not to${meant}`)
  }
}

async function produce(
  client: Client,
  topic: string,
  values: readonly string[],
  options: ProduceOptions,
  timeoutMs: number,
  report: (metadata: RecordMetadata) => void,
): Promise<number> {
  const producer = new Producer(client, {
    acks: options.acks === 'all' ? 'all' : options.acks === '1' ? 1 : 0,
    compression: options.compression,
    createTopics: options.create,
    // Values that are given one by one are few and waited for.
    lingerMs: values.length > 0 ? 0 : 5,
    batchBytes: 64 * 1024,
    deliveryTimeoutMs: timeoutMs,
  })
  let written = 0
  let failure: unknown
  const underWay = new Set<Promise<void>>()
  const send = async (records: NewRecord[]): Promise<void> => {
    const sent = producer.send(topic, records).then(
      metadata => {
        written += metadata.length
        for (const each of metadata) report(each)
      },
      error => {
        failure ??= error
      },
    )
    underWay.add(sent)
    void sent.then(() => underWay.delete(sent))
    if (underWay.size >= WINDOW) await Promise.race(underWay)
    if (failure !== undefined) throw failure
  }
  const toRecord = recordMaker(options)
  try {
    if (values.length > 0) await send(values.map(toRecord))
    else if (options.whole === true) await send([{ ...toRecord(''), value: await readAll(await open(options)) }])
    else {
      const lines = createInterface({ input: await open(options), crlfDelay: Number.POSITIVE_INFINITY })
      let number = 0
      for await (const line of lines) {
        number++
        await send([recordOfLine(toRecord, line, number)])
      }
    }
    await Promise.all(underWay)
    if (failure !== undefined) throw failure
    return written
  } catch (error) {
    await Promise.all(underWay)
    if (values.length === 0 && written > 0)
      remark(`${counted(written, 'record')} before that ${written === 1 ? 'is' : 'are'} written`)
    throw error
  } finally {
    if (failure === undefined) await producer.close()
  }
}

function recordMaker(options: ProduceOptions): (text: string) => NewRecord {
  const headers = (options.header ?? []).map(pair).map(([key, value]) => ({ key, value }))
  const unless = (text: string): string | null => (text === options.null ? null : text)
  const timestamp = options.timestamp === undefined ? undefined : parseTime(options.timestamp, Date.now())
  const fixed = { headers, partition: options.partition, timestamp }
  const { key, keySeparator } = options
  return text => {
    if (keySeparator === undefined)
      return { ...fixed, key: key === undefined ? null : unless(key), value: unless(text) }
    const at = text.indexOf(keySeparator)
    if (at < 0) {
      throw new UsageError(`"${text.slice(0, 40)}" has no key: "${keySeparator}" is not in it`)
    }
    return { ...fixed, key: unless(text.slice(0, at)), value: unless(text.slice(at + keySeparator.length)) }
  }
}

function recordOfLine(toRecord: (text: string) => NewRecord, line: string, number: number): NewRecord {
  try {
    return toRecord(line)
  } catch (error) {
    throw error instanceof UsageError ? new UsageError(`line ${number}: ${error.message}`, error.hint) : error
  }
}

/** Rejects before anything is sent when the file cannot be read. */
async function open(options: ProduceOptions): Promise<NodeJS.ReadableStream> {
  const { file } = options
  if (file === undefined) return process.stdin
  try {
    const handle = await openFile(file)
    if ((await handle.stat()).isDirectory()) throw new UsageError(`--file ${file} is a folder`)
    return handle.createReadStream()
  } catch (error) {
    if (error instanceof UsageError) throw error
    const reason =
      (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'there is no such file' : (error as Error).message
    throw new UsageError(`--file ${file} cannot be read: ${reason}`)
  }
}

async function readAll(stream: NodeJS.ReadableStream): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const part of stream) parts.push(Buffer.from(part as Buffer))
  return Buffer.concat(parts)
}
