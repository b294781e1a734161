/** A server that is measured: ours or Kafka, with what the operating system says of its process. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, openSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { API } from '#protocol/apis.ts'
import { end, freePort, isFree, peer, root, type ServerKind } from '../compat/processes.ts'
import { Connection } from './connection.ts'

export { peer, root, type ServerKind } from '../compat/processes.ts'

/** How our program is run: from source, as `npm start` does, or as the package that others install. */
export type From = 'source' | 'package'

export interface ServerOptions {
  readonly kind: ServerKind
  readonly from: From
  /** With the inspector open, on a port of its choice. */
  readonly inspect?: boolean
  /** Configuration by Kafka's keys. */
  readonly settings?: Readonly<Record<string, string>>
  /** One of several nodes that form a cluster, each of them broker and controller. */
  readonly member?: Member
}

/** Node `id` of the nodes 1 to `count`, which listens at `base` + 10,000 × id, its controller one port above. */
export interface Member {
  readonly id: number
  readonly count: number
  readonly base: number
}

function portOf({ id, base }: Pick<Member, 'id' | 'base'>): number {
  return base + 10_000 * id
}

/** Until it answers, and until it has gone after SIGTERM, in milliseconds. */
const START_LIMIT_MS = { tidemark: 60_000, kafka: 120_000 }
const STOP_LIMIT_MS = { tidemark: 20_000, kafka: 60_000 }
const KILL_LIMIT_MS = 5_000

/** The kernel counts processor time in these (USER_HZ, 100 on every Linux). */
const TICKS_PER_SECOND = 100

const SETTINGS = {
  'group.initial.rebalance.delay.ms': '0',
  'num.partitions': '4',
  'offsets.topic.num.partitions': '50',
}

export class Server {
  readonly kind: ServerKind
  readonly port: number
  readonly #dir: string
  readonly #options: ServerOptions
  #child: ChildProcess | undefined
  #ended: string | undefined
  /** Whether it is meant to run. */
  #wanted = false
  readonly #onExit = (): void => void this.#child?.kill('SIGKILL')

  private constructor(options: ServerOptions, port: number, dir: string) {
    this.kind = options.kind
    this.port = port
    this.#options = options
    this.#dir = dir
    process.on('exit', this.#onExit)
  }

  static async create(options: ServerOptions): Promise<Server> {
    const dir = await mkdtemp(join(tmpdir(), `tidemark-bench-${options.kind}-`))
    const { member } = options
    return new Server(options, member === undefined ? await freePort() : portOf(member), dir)
  }

  get bootstrap(): string {
    return `127.0.0.1:${this.port}`
  }

  /** How it ended, when nobody asked it to. */
  get ended(): string | undefined {
    return this.#ended
  }

  get #running(): ChildProcess {
    if (this.#child?.pid === undefined) throw new Error(`${this.kind} does not run`)
    return this.#child
  }

  /** @returns milliseconds until the first answer to Metadata that names a broker. */
  async start(): Promise<number> {
    const log = openSync(this.#logFile, 'a')
    const [program, ...args] = this.#command()
    const compiled = join(root, 'node_modules', '.cache', 'compile')
    // The peer's script adds 10,000 to the base for its first node; our cache is where `npm start` has it.
    const env =
      this.kind === 'kafka'
        ? { ...process.env, KAFKA_PORT_BASE: String(this.#options.member?.base ?? this.port - 10_000) }
        : { ...process.env, NODE_COMPILE_CACHE: compiled }
    if (this.kind === 'tidemark') mkdirSync(compiled, { recursive: true })
    const began = performance.now()
    const child = spawn(program as string, args, { stdio: ['ignore', log, log], env, cwd: this.#dir })
    this.#child = child
    child.on('error', error => {
      this.#ended = error.message
    })
    this.#wanted = true
    child.on('exit', (code, signal) => {
      if (this.#wanted) this.#ended = `ended with ${code ?? signal}`
    })
    while (!(await answersMetadata(this.port))) {
      if (this.#ended !== undefined) throw new Error(`${this.kind} did not start, it ${this.#ended}\n${this.lastLog()}`)
      if (performance.now() - began > START_LIMIT_MS[this.kind])
        throw new Error(`${this.kind} does not answer\n${this.lastLog()}`)
      await delay(2)
    }
    return performance.now() - began
  }

  /** As a service manager does. @returns milliseconds until it has gone. */
  async stop(): Promise<number> {
    const child = this.#child
    if (child === undefined) return 0
    this.#wanted = false
    const began = performance.now()
    await end(child, 'SIGTERM', STOP_LIMIT_MS[this.kind])
    this.#child = undefined
    return performance.now() - began
  }

  /** As a crash of the process does. */
  async kill(): Promise<void> {
    const child = this.#running
    this.#child = undefined
    this.#wanted = false
    await end(child, 'SIGKILL', KILL_LIMIT_MS)
  }

  /** Ends it, whatever it does, and removes its data. */
  async remove(): Promise<void> {
    const child = this.#child
    this.#child = undefined
    this.#wanted = false
    if (child !== undefined) await end(child, 'SIGKILL', KILL_LIMIT_MS)
    process.off('exit', this.#onExit)
    await rm(this.#dir, { recursive: true, force: true, maxRetries: 3 })
  }

  /** Processor time of all threads since the start, user and system, in seconds; in steps of 10 ms. */
  cpuSeconds(): number {
    const stat = readFileSync(`/proc/${this.#running.pid}/stat`, 'utf8')
    // The name stands in parentheses and may hold anything; utime and stime are fields 14 and 15.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
  }

  residentMiB(): number {
    const status = readFileSync(`/proc/${this.#running.pid}/status`, 'utf8')
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024
  }

  lastLog(lines = 20): string {
    return readFileSync(this.#logFile, 'utf8').split('\n').slice(-lines).join('\n')
  }

  /** Where its inspector listens, with `inspect`. */
  inspectorUrl(): string {
    // The last one: it may have been started before.
    const url = [...readFileSync(this.#logFile, 'utf8').matchAll(/Debugger listening on (ws:\S+)/g)].at(-1)?.[1]
    if (url === undefined) throw new Error(`no inspector:\n${this.lastLog()}`)
    return url
  }

  get #logFile(): string {
    return join(this.#dir, 'server.log')
  }

  #command(): string[] {
    const settings = Object.entries({ ...SETTINGS, ...this.#options.settings })
    const { member } = this.#options
    if (this.kind === 'kafka') {
      const { id, count } = member ?? { id: 1, count: 1 }
      const given = settings.map(([key, value]) => `${key}=${value}`)
      return [join(peer, 'broker'), this.#dir, String(id), String(count), ...given]
    }
    settings.push(['log.dirs', join(this.#dir, 'data')])
    const listeners = [`PLAINTEXT://127.0.0.1:${this.port}`]
    if (member !== undefined) {
      const { id, count, base } = member
      const ids = Array.from({ length: count }, (_, index) => index + 1)
      const voters = ids.map(each => `${each}@127.0.0.1:${portOf({ id: each, base }) + 1}`)
      listeners.push(`CONTROLLER://127.0.0.1:${this.port + 1}`)
      settings.push(['node.id', String(id)], ['controller.quorum.voters', voters.join(',')])
    }
    settings.push(['listeners', listeners.join(',')])
    const inspect = this.#options.inspect === true ? ['--inspect=127.0.0.1:0'] : []
    const overrides = settings.flatMap(([key, value]) => ['--override', `${key}=${value}`])
    return [process.execPath, ...inspect, programOf(this.#options.from), 'start', ...overrides]
  }
}

export function programOf(from: From): string {
  return from === 'source' ? join(root, 'src', 'main.ts') : join(root, 'bin', 'tidemark.js')
}

async function answersMetadata(port: number): Promise<boolean> {
  let connection: Connection | undefined
  try {
    connection = await Connection.open(port)
    const { brokers } = await connection.ask(API.Metadata, 12, { topics: [] }, 5_000)
    return brokers.length > 0
  } catch {
    return false
  } finally {
    connection?.close()
  }
}

/**
 * A base for a cluster of so many nodes. All of its ports lie below those that the system gives to clients, which begin
 * at 32,768.
 */
export async function freeBase(count: number): Promise<number> {
  for (;;) {
    const base = 1_100 + Math.floor(Math.random() * 1_600)
    const ports = Array.from({ length: count }, (_, index) => portOf({ id: index + 1, base }))
    const free = await Promise.all(ports.flatMap(port => [isFree(port), isFree(port + 1)]))
    if (free.every(Boolean)) return base
  }
}
