/** Kafka's verifiable producer: what was acknowledged, and when. */
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { peer } from './server.ts'

/** Until the first acknowledgement, in milliseconds. */
const BEGIN_LIMIT_MS = 60_000

/** A stream of records with acks=all at a steady rate, each acknowledgement with its time. */
export class Acknowledgements {
  readonly #child: ChildProcess
  readonly #times: number[] = []
  #refused = 0
  #lastRefusal: string | undefined
  readonly #onExit = (): void => void this.#child.kill('SIGKILL')

  private constructor(bootstrap: string, topic: string, perSecond: number) {
    const args = ['--bootstrap-server', bootstrap, '--topic', topic, '--throughput', String(perSecond), '--acks', '-1']
    this.#child = spawn(join(peer, 'tool'), ['kafka-verifiable-producer', ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, TOOL_HEAP: '-Xms128m -Xmx256m' },
    })
    process.on('exit', this.#onExit)
    createInterface({ input: this.#child.stdout as NodeJS.ReadableStream }).on('line', line => this.#take(line))
  }

  /** Resolves with the first acknowledgement. */
  static async begin(bootstrap: string, topic: string, perSecond: number): Promise<Acknowledgements> {
    const stream = new Acknowledgements(bootstrap, topic, perSecond)
    const until = Date.now() + BEGIN_LIMIT_MS
    while (stream.#times.length === 0) {
      if (stream.#child.exitCode !== null) throw new Error('the producer ended before it had sent anything')
      if (Date.now() > until) {
        await stream.end()
        throw new Error('nothing was acknowledged')
      }
      await delay(20)
    }
    return stream
  }

  get count(): number {
    return this.#times.length
  }

  get refused(): number {
    return this.#refused
  }

  get lastRefusal(): string | undefined {
    return this.#lastRefusal
  }

  /** The longest time without an acknowledgement since `from` (wall clock, ms), until the last one. */
  longestGap(from: number): number {
    let longest = 0
    let before: number | undefined
    for (const time of this.#times) {
      if (before !== undefined && time >= from) longest = Math.max(longest, time - before)
      before = time
    }
    return longest
  }

  /** What is under way is acknowledged or given up. */
  async end(): Promise<void> {
    const child = this.#child
    process.off('exit', this.#onExit)
    if (child.exitCode !== null || child.signalCode !== null) return
    const gone = new Promise(resolve => child.once('exit', resolve))
    child.kill('SIGTERM')
    const limit = setTimeout(() => child.kill('SIGKILL'), 10_000)
    await gone
    clearTimeout(limit)
  }

  #take(line: string): void {
    // {"timestamp":1700000000000,"name":"producer_send_success",...}
    const fields = parsed(line)
    if (fields === undefined) return
    if (fields.name === 'producer_send_success') this.#times.push(fields.timestamp ?? Date.now())
    if (fields.name !== 'producer_send_error') return
    this.#refused++
    this.#lastRefusal = line
  }
}

function parsed(line: string): { readonly name?: string; readonly timestamp?: number } | undefined {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
