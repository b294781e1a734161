/** What both servers have to do. Each figure of a workload is one row of the table. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type From, peer, programOf, type Server } from './server.ts'
import type { Row } from './table.ts'
import type { Tools } from './tools.ts'
import { createTopics, deleteTopic } from './topics.ts'

const run = promisify(execFile)

export interface Setting {
  readonly tools: Tools
  readonly from: From
  /** Payload per measurement of a bulk workload, in GB of 10^9 bytes. */
  readonly gigabytes: number
  /** Payload that warms a server up before a bulk workload is measured. */
  readonly warmUpGigabytes: number
  readonly steadySeconds: number
}

type Figure = Pick<Row, 'what' | 'unit' | 'target'>

export interface Workload {
  readonly name: string
  readonly figures: Readonly<Record<string, Figure>>
  /** Once per server, not measured. */
  warmUp(server: Server, setting: Setting): Promise<void>
  measure(server: Server, setting: Setting): Promise<Record<string, number>>
}

const PARTITIONS = 4
const RECORD_BYTES = 1000
const SMALL_RECORD_BYTES = 100
const STEADY_RATE = 5_000
/** Until work that is left over from what was before has ended. */
const SETTLE_MS = 500
const CONSUME_TOPIC = 'bench-consume'

const BULK = { acks: 'all', 'batch.size': 65_536, 'linger.ms': 5 }
const SMALL = { acks: 1, 'batch.size': 16_384, 'linger.ms': 5 }
const STEADY = { acks: 'all', 'linger.ms': 0 }

/** Processor seconds that a server spends on something, with what the something gives. */
async function costOf<T>(server: Server, work: () => Promise<T>): Promise<{ cpuSeconds: number; result: T }> {
  await delay(SETTLE_MS)
  const before = server.cpuSeconds()
  const result = await work()
  return { cpuSeconds: server.cpuSeconds() - before, result }
}

let topicsMade = 0

/** A topic of its own for a piece of work, gone after it. */
async function withTopic<T>(server: Server, work: (topic: string) => Promise<T>): Promise<T> {
  const topic = `bench-${++topicsMade}`
  await createTopics(server.port, [{ name: topic, partitions: PARTITIONS }])
  const result = await work(topic)
  await deleteTopic(server.port, topic)
  return result
}

interface Load {
  readonly recordBytes: number
  readonly gigabytes: number
  readonly throughput: number
  readonly properties: Readonly<Record<string, string | number>>
}

function produced(server: Server, { tools }: Setting, load: Load) {
  const { recordBytes, throughput, properties } = load
  const records = Math.round((load.gigabytes * 1e9) / recordBytes)
  return withTopic(server, async topic => {
    const { cpuSeconds, result } = await costOf(server, () =>
      tools.produce(server.bootstrap, topic, { records, recordBytes, throughput }, properties),
    )
    return { ...result, cpuPerGigabyte: cpuSeconds / ((records * recordBytes) / 1e9) }
  })
}

const produce: Workload = {
  name: 'produce',
  figures: {
    cpu: { what: 'produce 1 KB records, 64 KB batches, acks=all', unit: 'CPU-s/GB', target: { most: 0.5 } },
    rate: { what: '  its rate', unit: 'records/s', target: { least: 1.2 } },
  },
  async warmUp(server, setting) {
    await produced(server, setting, bulk(setting.warmUpGigabytes))
  },
  async measure(server, setting) {
    const { cpuPerGigabyte, recordsPerSecond } = await produced(server, setting, bulk(setting.gigabytes))
    return { cpu: cpuPerGigabyte, rate: recordsPerSecond }
  },
}

function bulk(gigabytes: number): Load {
  return { recordBytes: RECORD_BYTES, gigabytes, throughput: -1, properties: BULK }
}

const consume: Workload = {
  name: 'consume',
  figures: {
    cpu: { what: 'consume 1 KB records from the page cache', unit: 'CPU-s/GB', target: { most: 1 } },
    rate: { what: '  its rate', unit: 'MiB/s' },
  },
  async warmUp(server, setting) {
    await createTopics(server.port, [{ name: CONSUME_TOPIC, partitions: PARTITIONS }])
    const records = Math.round((setting.gigabytes * 1e9) / RECORD_BYTES)
    await setting.tools.produce(
      server.bootstrap,
      CONSUME_TOPIC,
      { records, recordBytes: RECORD_BYTES, throughput: -1 },
      BULK,
    )
    for (let gigabytes = 0; gigabytes < setting.warmUpGigabytes; gigabytes += setting.gigabytes)
      await setting.tools.consume(server.bootstrap, CONSUME_TOPIC, records)
  },
  async measure(server, setting) {
    const records = Math.round((setting.gigabytes * 1e9) / RECORD_BYTES)
    const { cpuSeconds, result } = await costOf(server, () =>
      setting.tools.consume(server.bootstrap, CONSUME_TOPIC, records),
    )
    return { cpu: cpuSeconds / ((records * RECORD_BYTES) / 1e9), rate: result }
  },
}

const small: Workload = {
  name: 'small',
  figures: {
    cpu: { what: 'produce 100 B records, 16 KB batches, acks=1', unit: 'CPU-s/GB', target: { most: 0.4 } },
    rate: { what: '  its rate', unit: 'records/s' },
  },
  async warmUp(server, setting) {
    await produced(server, setting, smallBulk(setting.warmUpGigabytes / 4))
  },
  async measure(server, setting) {
    const { cpuPerGigabyte, recordsPerSecond } = await produced(server, setting, smallBulk(setting.gigabytes / 2))
    return { cpu: cpuPerGigabyte, rate: recordsPerSecond }
  },
}

function smallBulk(gigabytes: number): Load {
  return { recordBytes: SMALL_RECORD_BYTES, gigabytes, throughput: -1, properties: SMALL }
}

const steady: Workload = {
  name: 'steady',
  figures: {
    p99: { what: 'produce 1 KB at 5,000/s, acks=all, linger 0: p99', unit: 'ms', target: { most: 0.7 } },
    p50: { what: '  its p50 (the tool counts whole ms)', unit: 'ms' },
    cpu: { what: '  its cost', unit: 'CPU-s/GB' },
  },
  async warmUp(server, setting) {
    await produced(server, setting, steadily(setting.steadySeconds / 2))
  },
  async measure(server, setting) {
    const { cpuPerGigabyte, p50, p99 } = await produced(server, setting, steadily(setting.steadySeconds))
    return { p99, p50, cpu: cpuPerGigabyte }
  },
}

function steadily(seconds: number): Load {
  const gigabytes = (STEADY_RATE * seconds * RECORD_BYTES) / 1e9
  return { recordBytes: RECORD_BYTES, gigabytes, throughput: STEADY_RATE, properties: STEADY }
}

/** The same load in microseconds: Kafka's tool counts whole milliseconds, of which the p99 is one or two. */
const latency: Workload = {
  name: 'latency',
  figures: {
    p50: { what: 'the same load, measured by us: p50', unit: 'µs' },
    p99: { what: '  its p99', unit: 'µs', target: { most: 0.7 } },
    second: { what: '  the p99 of its median second', unit: 'µs' },
  },
  async warmUp(server, setting) {
    await steadyLatency(server, setting, setting.steadySeconds / 2)
  },
  async measure(server, setting) {
    const { p50, p99, p99OfMedianSecond } = await steadyLatency(server, setting, setting.steadySeconds)
    return { p50, p99, second: p99OfMedianSecond }
  },
}

function steadyLatency(server: Server, { tools }: Setting, seconds: number) {
  const load = { seconds, recordsPerSecond: STEADY_RATE, recordBytes: RECORD_BYTES }
  return withTopic(server, topic => tools.steadyLatency(server.bootstrap, topic, load))
}

const endToEnd: Workload = {
  name: 'e2e',
  figures: {
    mean: { what: 'end to end, 100 B records one by one, acks=all: mean', unit: 'ms' },
    p99: { what: '  its p99 (the tool counts whole ms)', unit: 'ms' },
  },
  async warmUp(server, { tools, steadySeconds }) {
    await withTopic(server, topic => tools.endToEnd(server.bootstrap, topic, 100 * steadySeconds))
  },
  async measure(server, { tools, steadySeconds }) {
    const { mean, p99 } = await withTopic(server, topic => tools.endToEnd(server.bootstrap, topic, 500 * steadySeconds))
    return { mean, p99 }
  },
}

const topicsList: Workload = {
  name: 'cli',
  figures: {
    wall: { what: '`topics list` and kafka-topics --list, wall time', unit: 'ms', target: { most: 0.3 } },
  },
  async warmUp(server, setting) {
    const topics = Array.from({ length: 10 }, (_, i) => ({ name: `bench-list-${i}`, partitions: 1 }))
    await createTopics(server.port, topics)
    await topicsList.measure(server, setting)
  },
  async measure(server, { from }) {
    const [program, ...args] =
      server.kind === 'kafka'
        ? [join(peer, 'tool'), 'kafka-topics', '--bootstrap-server', server.bootstrap, '--list']
        : [process.execPath, programOf(from), 'topics', 'list', '--bootstrap', server.bootstrap]
    const began = performance.now()
    const { stdout } = await run(program as string, args, { timeout: 60_000 })
    const wall = performance.now() - began
    if (!stdout.includes('bench-list-9')) throw new Error(`it does not list the topics: ${stdout.slice(0, 200)}`)
    return { wall }
  },
}

const memory: Workload = {
  name: 'memory',
  figures: { resident: { what: 'resident memory after all this', unit: 'MiB' } },
  async warmUp() {},
  async measure(server) {
    return { resident: server.residentMiB() }
  },
}

/** In the order in which they run, on two servers that run all the time. */
export const WORKLOADS: readonly Workload[] = [produce, consume, small, steady, latency, endToEnd, topicsList, memory]
