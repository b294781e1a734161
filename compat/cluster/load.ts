/** Clients that write and read while a cluster is disturbed: Kafka's own, librdkafka, and ours. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { commitOffsets, fetchOffsets } from '../../src/client/admin/groups.ts'
import { type Client, ClientError, connect } from '../../src/client/client.ts'
import { Consumer } from '../../src/client/consumer.ts'
import { Producer } from '../../src/client/producer.ts'
import { world } from '../reliability/rig.ts'
import { peer, root } from '../server.ts'

/** A record whose writer was told that it is written. */
export interface Acknowledged {
  /** `stream.sequence`: the number of the writer, and one that it counts up. */
  readonly value: string
  readonly partition: number
  /** -1 where the client does not know it. */
  readonly offset: number
  /** Wall clock, in milliseconds. */
  readonly at: number
}

/** Writes numbered records with acks=all and idempotence, in order, and keeps what was acknowledged. */
export interface Writer {
  readonly name: string
  readonly stream: number
  readonly acknowledged: readonly Acknowledged[]
  readonly refused: number
  readonly lastRefusal: string | undefined
  /** What is under way is acknowledged or given up. */
  stop(): Promise<void>
}

/** A member of a group. */
export interface Reader {
  readonly name: string
  readonly group: string
  /** By partition, the offsets that it was handed, as spans in the order of their coming; ends included. */
  readonly spans: ReadonlyMap<number, readonly (readonly [number, number])[]>
  stop(): Promise<void>
}

export interface LoadOptions {
  readonly bootstrap: string
  readonly topic: string
  readonly perSecond: number
}

const KEYS = 16
/**
 * No client asks another leader before the one that it has asked answers, or this time is over. It is 30 s by default,
 * and would be what is measured wherever a node is stopped or out of reach without a word.
 */
const REQUEST_TIMEOUT_MS = 3_000
const STOP_LIMIT_MS = 30_000
const TOOL_JVM = '-Xms48m -Xmx160m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto'

/** A program that tells what happens in lines of JSON with Kafka's names for events. */
class Told {
  readonly #child: ChildProcess
  readonly #gone: Promise<void>
  #ended: string | undefined
  #errors = ''
  readonly #onExit = (): void => void this.#child.kill('SIGKILL')

  constructor(command: readonly string[], take: (fields: Fields) => void) {
    const [program, ...args] = command
    const env = { ...process.env, TOOL_HEAP: TOOL_JVM }
    this.#child = spawn(program as string, args, { stdio: ['ignore', 'pipe', 'pipe'], env, cwd: tmpdir() })
    process.on('exit', this.#onExit)
    createInterface({ input: this.#child.stdout as NodeJS.ReadableStream }).on('line', line => {
      const fields = parsed(line)
      if (fields !== undefined) take(fields)
    })
    this.#child.stderr?.on('data', part => {
      this.#errors = (this.#errors + part).slice(-2000)
    })
    this.#gone = new Promise(resolve =>
      this.#child.once('close', (code, signal) => {
        this.#ended = `ended with ${code ?? signal}: ${this.#errors}`
        resolve()
      }),
    )
  }

  /** Why it does not run any more. */
  get ended(): string | undefined {
    return this.#ended
  }

  async stop(): Promise<void> {
    process.off('exit', this.#onExit)
    this.#child.kill('SIGTERM')
    const limit = setTimeout(() => this.#child.kill('SIGKILL'), STOP_LIMIT_MS)
    await this.#gone
    clearTimeout(limit)
  }
}

interface Span {
  readonly partition: number
  readonly minOffset: number
  readonly maxOffset: number
}

interface Fields {
  readonly name?: string
  readonly timestamp?: number
  readonly value?: string
  readonly partition?: number
  readonly offset?: number
  readonly partitions?: readonly Span[]
}

function parsed(line: string): Fields | undefined {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

/** A writer that is a program of its own, with the output of kafka-verifiable-producer. */
class ToldWriter implements Writer {
  readonly name: string
  readonly stream: number
  readonly acknowledged: Acknowledged[] = []
  refused = 0
  lastRefusal: string | undefined
  readonly #told: Told
  readonly #remove: () => void

  constructor(name: string, stream: number, command: readonly string[], remove = () => {}) {
    this.name = name
    this.stream = stream
    this.#remove = remove
    this.#told = new Told(command, fields => {
      const { value = '', partition = -1, offset = -1, timestamp = Date.now() } = fields
      if (fields.name === 'producer_send_success')
        this.acknowledged.push({ value, partition, offset, at: Math.min(timestamp, Date.now()) })
      if (fields.name !== 'producer_send_error') return
      this.refused++
      this.lastRefusal = JSON.stringify(fields)
    })
  }

  get ended(): string | undefined {
    return this.#told.ended
  }

  async stop(): Promise<void> {
    await this.#told.stop()
    this.#remove()
  }
}

/** kafka-verifiable-producer, with retries and idempotence as a producer has them by default. */
export function javaWriter(stream: number, { bootstrap, topic, perSecond }: LoadOptions): Writer {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-load-'))
  const file = join(folder, 'producer.properties')
  writeFileSync(
    file,
    `retries=2147483647\nenable.idempotence=true\ndelivery.timeout.ms=120000\nlinger.ms=2\nrequest.timeout.ms=${REQUEST_TIMEOUT_MS}\n`,
  )
  const to = ['--bootstrap-server', bootstrap, '--topic', topic, '--throughput', String(perSecond), '--acks', '-1']
  const what = ['--value-prefix', String(stream), '--repeating-keys', String(KEYS), '--command-config', file]
  const command = [join(peer, 'tool'), 'kafka-verifiable-producer', ...to, ...what]
  return new ToldWriter('java', stream, command, () => rmSync(folder, { recursive: true, force: true }))
}

/** @param python the command that has confluent_kafka. */
export function librdkafkaWriter(python: string, stream: number, options: LoadOptions): Writer {
  const { bootstrap, topic, perSecond } = options
  const script = join(root, 'compat', 'cluster', 'librdkafka.py')
  return new ToldWriter('librdkafka', stream, [
    python,
    script,
    'produce',
    bootstrap,
    topic,
    String(stream),
    String(perSecond),
    String(REQUEST_TIMEOUT_MS),
  ])
}

function clientOf(bootstrap: string): Promise<Client> {
  return connect({ world, bootstrap, clientId: 'load', requestTimeoutMs: REQUEST_TIMEOUT_MS })
}

/** Our own client, in this process. */
export class OwnWriter implements Writer {
  readonly name = 'tidemark'
  readonly stream: number
  readonly acknowledged: Acknowledged[] = []
  refused = 0
  lastRefusal: string | undefined
  readonly #client: Client
  readonly #producer: Producer
  readonly #running: Promise<void>
  #stopped = false

  private constructor(stream: number, client: Client, { topic, perSecond }: LoadOptions) {
    this.stream = stream
    this.#client = client
    this.#producer = new Producer(client, { lingerMs: 2, requestTimeoutMs: REQUEST_TIMEOUT_MS })
    this.#running = this.#run(topic, perSecond)
  }

  static async start(stream: number, options: LoadOptions): Promise<OwnWriter> {
    return new OwnWriter(stream, await clientOf(options.bootstrap), options)
  }

  async #run(topic: string, perSecond: number): Promise<void> {
    const began = performance.now()
    const underWay = new Set<Promise<void>>()
    for (let sequence = 0; !this.#stopped; sequence++) {
      const value = `${this.stream}.${sequence}`
      const sent = this.#producer.send(topic, [{ key: `key-${sequence % KEYS}`, value }]).then(
        ([written]) => {
          if (written !== undefined)
            this.acknowledged.push({ value, partition: written.partition, offset: written.offset, at: Date.now() })
        },
        (error: unknown) => {
          this.refused++
          this.lastRefusal = String(error)
        },
      )
      underWay.add(sent)
      void sent.then(() => underWay.delete(sent))
      // As Kafka's tool does: while the cluster is away, records wait and time goes on, but not without a bound.
      if (underWay.size > 5_000) await Promise.race(underWay)
      const ahead = began + ((sequence + 1) * 1000) / perSecond - performance.now()
      if (ahead > 1) await delay(ahead)
    }
    await Promise.all(underWay)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#running
    await this.#producer.close()
    this.#client.close()
  }
}

class Spans {
  readonly byPartition = new Map<number, [number, number][]>()

  add({ partition, minOffset, maxOffset }: Span): void {
    const spans = this.byPartition.get(partition) ?? []
    this.byPartition.set(partition, spans)
    const last = spans.at(-1)
    if (last !== undefined && last[1] + 1 === minOffset) last[1] = maxOffset
    else spans.push([minOffset, maxOffset])
  }
}

class ToldReader implements Reader {
  readonly name: string
  readonly group: string
  readonly #spans = new Spans()
  readonly #told: Told

  constructor(name: string, group: string, command: readonly string[]) {
    this.name = name
    this.group = group
    this.#told = new Told(command, fields => {
      if (fields.name === 'records_consumed') for (const span of fields.partitions ?? []) this.#spans.add(span)
    })
  }

  get spans(): ReadonlyMap<number, readonly (readonly [number, number])[]> {
    return this.#spans.byPartition
  }

  stop(): Promise<void> {
    return this.#told.stop()
  }
}

export function javaReader(group: string, { bootstrap, topic }: Omit<LoadOptions, 'perSecond'>): Reader {
  const from = ['--bootstrap-server', bootstrap, '--topic', topic, '--group-id', group, '--reset-policy', 'earliest']
  const command = [join(peer, 'tool'), 'kafka-verifiable-consumer', ...from, '--session-timeout', '10000']
  return new ToldReader('java', group, command)
}

export function librdkafkaReader(python: string, group: string, options: Omit<LoadOptions, 'perSecond'>): Reader {
  const script = join(root, 'compat', 'cluster', 'librdkafka.py')
  return new ToldReader('librdkafka', group, [python, script, 'consume', options.bootstrap, options.topic, group])
}

/** Our own client, which commits after every poll. */
export class OwnReader implements Reader {
  readonly name = 'tidemark'
  readonly group: string
  /** What went wrong and was tried again. */
  readonly troubles: string[] = []
  readonly #spans = new Spans()
  readonly #client: Client
  readonly #running: Promise<void>
  #stopped = false

  private constructor(group: string, client: Client, topic: string) {
    this.group = group
    this.#client = client
    this.#running = this.#run(topic)
  }

  static async start(group: string, { bootstrap, topic }: Omit<LoadOptions, 'perSecond'>): Promise<OwnReader> {
    return new OwnReader(group, await clientOf(bootstrap), topic)
  }

  get spans(): ReadonlyMap<number, readonly (readonly [number, number])[]> {
    return this.#spans.byPartition
  }

  async #run(topic: string): Promise<void> {
    const options = { group: this.group, offsetReset: 'earliest', autoCommitIntervalMs: 0 } as const
    const consumer = new Consumer(this.#client, { ...options, sessionTimeoutMs: 10_000 })
    consumer.subscribe([topic])
    while (!this.#stopped)
      try {
        const records = await consumer.poll(200)
        for (const { partition, offset } of records)
          this.#spans.add({ partition, minOffset: offset, maxOffset: offset })
        if (records.length > 0) await consumer.commit()
      } catch (error) {
        // A commit that a rebalance has overtaken, or a coordinator that cannot be found: what follows is read again.
        if (!(error instanceof ClientError)) throw error
        this.troubles.push(`${error.code}: ${error.message}`)
        await delay(100)
      }
    await consumer.close().catch(() => {})
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#running
    this.#client.close()
  }
}

/** Commits an offset that counts up for a group without members, and sees that what was acknowledged is never lost. */
export class Committer {
  readonly troubles: string[] = []
  readonly losses: string[] = []
  committed = 0
  readonly #client: Client
  readonly #group: string
  readonly #topic: string
  readonly #running: Promise<void>
  #stopped = false

  private constructor(group: string, topic: string, client: Client) {
    this.#group = group
    this.#topic = topic
    this.#client = client
    this.#running = this.#run()
  }

  static async start(group: string, topic: string, bootstrap: string): Promise<Committer> {
    return new Committer(group, topic, await clientOf(bootstrap))
  }

  async #run(): Promise<void> {
    for (let next = 1; !this.#stopped; next++) {
      try {
        await commitOffsets(this.#client, this.#group, [{ topic: this.#topic, partition: 0, offset: next }])
        this.committed = next
      } catch (error) {
        this.troubles.push(String(error))
      }
      await this.check(next).catch(error => void this.troubles.push(String(error)))
      await delay(100)
    }
  }

  /** @param latest what may have been committed, though nobody was told. */
  async check(latest = this.committed): Promise<void> {
    const [told] = await fetchOffsets(this.#client, this.#group)
    const offset = told?.offset ?? -1
    if (offset < this.committed || offset > latest)
      this.losses.push(`committed ${this.committed}, tried up to ${latest}, told ${offset}`)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#running
    await this.check(Number.MAX_SAFE_INTEGER)
    this.#client.close()
  }
}
