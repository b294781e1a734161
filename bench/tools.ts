/** Kafka's own performance tools, run one after another in one warm JVM (Tools.java). */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { peer, root } from './server.ts'

const CLASS = {
  'kafka-producer-perf-test': 'org.apache.kafka.tools.ProducerPerformance',
  'kafka-consumer-perf-test': 'org.apache.kafka.tools.ConsumerPerformance',
  'kafka-e2e-latency': 'org.apache.kafka.tools.EndToEndLatency',
  'steady-latency': 'SteadyLatency',
}

/** One tool may take this long, in milliseconds. A tool that hangs ends the JVM, as its threads cannot be stopped. */
const LIMIT_MS = 300_000

export interface ProducePerformance {
  readonly records: number
  readonly recordsPerSecond: number
  /** Milliseconds, as whole numbers: the tool rounds down. */
  readonly p50: number
  readonly p99: number
  readonly p999: number
}

export class Tools {
  #child: ChildProcess | undefined
  #answer: { lines: string[]; resolve(answer: { status: number; lines: string[] }): void } | undefined
  readonly #onExit = (): void => void this.#child?.kill('SIGKILL')

  constructor() {
    process.on('exit', this.#onExit)
  }

  async #start(): Promise<ChildProcess> {
    const { stdout } = await promisify(execFile)(join(peer, 'fetch'))
    const classPath = join(stdout.trim(), 'lib', '*')
    const log = `-Dlog4j2.configurationFile=${join(peer, 'log4j2.properties')}`
    const args = ['-Xms512m', '-Xmx512m', log, '-cp', classPath, join(root, 'bench', 'Tools.java')]
    const child = spawn('java', args, { stdio: ['pipe', 'pipe', 'inherit'] })
    createInterface({ input: child.stdout }).on('line', line => {
      const status = /^exit (-?\d+)$/.exec(line)?.[1]
      if (status === undefined) this.#answer?.lines.push(line.replace(/^\| /, ''))
      else this.#answer?.resolve({ status: Number(status), lines: this.#answer.lines })
    })
    const gone = (why: string) => (): void => {
      this.#child = undefined
      this.#answer?.resolve({ status: 1, lines: [...this.#answer.lines, why] })
    }
    child.on('error', error => gone(error.message)())
    child.on('exit', gone('the JVM of the tools ended'))
    return child
  }

  /** What the tool printed. Rejects when it ends with another status than 0, with the end of its output. */
  async run(tool: keyof typeof CLASS, args: readonly (string | number)[]): Promise<string[]> {
    this.#child ??= await this.#start()
    const child = this.#child
    const limit = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS)
    const { status, lines } = await new Promise<{ status: number; lines: string[] }>(resolve => {
      this.#answer = { lines: [], resolve }
      child.stdin?.write(`${[CLASS[tool], ...args].join('\t')}\n`)
    })
    clearTimeout(limit)
    this.#answer = undefined
    if (status !== 0) throw new Error(`${tool} ended with ${status}: ${lines.slice(-3).join(' ⏎ ')}`)
    return lines
  }

  /** `throughput` is in records per second, -1 for as fast as it goes. */
  async produce(
    bootstrap: string,
    topic: string,
    load: { readonly records: number; readonly recordBytes: number; readonly throughput: number },
    properties: Readonly<Record<string, string | number>>,
  ): Promise<ProducePerformance> {
    const lines = await this.run('kafka-producer-perf-test', [
      ...['--bootstrap-server', bootstrap, '--topic', topic, '--num-records', load.records],
      ...['--record-size', load.recordBytes, '--throughput', load.throughput],
      ...['--command-property', ...Object.entries(properties).map(([key, value]) => `${key}=${value}`)],
    ])
    const last = lines.findLast(line => line.includes('99.9th')) ?? ''
    const number = (pattern: RegExp): number => numberIn(pattern, last)
    const sent = number(/(\d+) records sent/)
    if (sent !== load.records)
      throw new Error(`${sent} of ${load.records} records were sent: ${lines.slice(0, 2).join(' ⏎ ')}`)
    return {
      records: sent,
      recordsPerSecond: number(/([\d.]+) records\/sec/),
      p50: number(/(\d+) ms 50th/),
      p99: number(/(\d+) ms 99th/),
      p999: number(/(\d+) ms 99.9th/),
    }
  }

  /** @returns MiB per second, without the time until the group has formed. */
  async consume(bootstrap: string, topic: string, records: number): Promise<number> {
    const lines = await this.run('kafka-consumer-perf-test', [
      ...['--bootstrap-server', bootstrap, '--topic', topic, '--num-records', records, '--timeout', 20_000],
    ])
    const header = (lines.find(line => line.startsWith('start.time')) ?? '').split(/,\s*/)
    const fields = (lines.findLast(line => /^\d{4}-/.test(line)) ?? '').split(/,\s*/)
    const value = (name: string): number => Number(fields[header.indexOf(name)])
    // A fetch brings more than was asked for, never less.
    if (!(value('data.consumed.in.nMsg') >= records)) throw new Error(`not all was consumed: ${lines.join(' ⏎ ')}`)
    return value('fetch.MB.sec')
  }

  /** Milliseconds from before the send until the record is there, record after record. */
  async endToEnd(
    bootstrap: string,
    topic: string,
    records: number,
  ): Promise<{ mean: number; p50: number; p99: number }> {
    const lines = await this.run('kafka-e2e-latency', [
      ...['--bootstrap-server', bootstrap, '--topic', topic, '--num-records', records],
      ...['--producer-acks', 'all', '--record-size', 100],
    ])
    const text = lines.join('\n')
    return {
      mean: numberIn(/Avg latency: ([\d.]+)/, text),
      p50: numberIn(/50th = (\d+)/, text),
      p99: numberIn(/99th = (\d+)/, text),
    }
  }

  /** Microseconds, acks=all without linger: of all records, and of the second that is in the middle by its p99. */
  async steadyLatency(
    bootstrap: string,
    topic: string,
    load: { readonly seconds: number; readonly recordsPerSecond: number; readonly recordBytes: number },
  ): Promise<{ p50: number; p99: number; p99OfMedianSecond: number }> {
    const { seconds, recordsPerSecond, recordBytes } = load
    const lines = await this.run('steady-latency', [bootstrap, topic, seconds, recordsPerSecond, recordBytes])
    const text = lines.join('\n')
    const perSecond = (/per second, us: ([\d ]+)/.exec(text)?.[1] ?? '').split(' ').map(Number)
    const sorted = perSecond.sort((a, b) => a - b)
    return {
      p50: numberIn(/p50 us: (\d+)/, text),
      p99: numberIn(/p99 us: (\d+)/, text),
      p99OfMedianSecond: sorted[sorted.length >> 1] ?? Number.NaN,
    }
  }

  stop(): void {
    this.#onExit()
    process.off('exit', this.#onExit)
  }
}

function numberIn(pattern: RegExp, text: string): number {
  const found = pattern.exec(text)?.[1]
  if (found === undefined) throw new Error(`no ${pattern} in what the tool printed: ${text.slice(0, 300)}`)
  return Number(found)
}
