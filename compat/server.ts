/** A server under test: ours, or the real Kafka beside us against which every suite must pass as well. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, openSync, readFileSync, rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { end, freePort, peer, root, type ServerKind } from './processes.ts'

export { peer, root, type ServerKind } from './processes.ts'

export type Settings = Readonly<Record<string, string>>

/** Settings that both understand; short waits, so that a run does not consist of waiting. */
const SETTINGS: Settings = {
  'group.initial.rebalance.delay.ms': '0',
  'num.partitions': '3',
}

/** How long a server may take until it answers, and until it has gone after SIGTERM, in milliseconds. */
const START_LIMIT_MS = { tidemark: 15_000, kafka: 60_000 }
const STOP_LIMIT_MS = { tidemark: 10_000, kafka: 30_000 }

export class Server {
  readonly kind: ServerKind
  readonly port: number
  readonly #dir: string
  readonly #command: readonly string[]
  readonly #env: NodeJS.ProcessEnv
  #child: ChildProcess | undefined
  readonly #onExit = (): void => {
    this.#child?.kill('SIGKILL')
    rmSync(this.#dir, { recursive: true, force: true })
  }

  private constructor(kind: ServerKind, port: number, dir: string, tidemark: readonly string[], settings: Settings) {
    this.kind = kind
    this.port = port
    this.#dir = dir
    this.#command = kind === 'kafka' ? kafkaCommand(dir, settings) : tidemarkCommand(tidemark, port, dir, settings)
    // The peer's script adds 10,000 to the base for its first node.
    const forPeer = { KAFKA_PORT_BASE: String(port - 10_000), KAFKA_HEAP: '-Xms512m -Xmx512m' }
    this.#env = { ...process.env, ...(kind === 'kafka' ? forPeer : {}) }
    process.on('exit', this.#onExit)
  }

  /**
   * @param tidemark the command that runs our program; by default, from source.
   * @param settings configuration besides what every suite has.
   */
  static async create(
    kind: ServerKind,
    tidemark = [process.execPath, join(root, 'src', 'main.ts')],
    settings: Settings = {},
  ): Promise<Server> {
    const dir = await mkdtemp(join(tmpdir(), `tidemark-compat-${kind}-`))
    return new Server(kind, await freePort(), dir, tidemark, settings)
  }

  get address(): string {
    return `127.0.0.1:${this.port}`
  }

  /** Where its files are: what it says, and below `data` what it stores unless its settings say otherwise. */
  get folder(): string {
    return this.#dir
  }

  /** Of the process that runs now. */
  get pid(): number | undefined {
    return this.#child?.pid
  }

  get logFile(): string {
    return join(this.#dir, 'server.log')
  }

  /** Resolves when the server answers requests. */
  async start(): Promise<void> {
    const [program, ...args] = this.#command as [string, ...string[]]
    const log = openSync(this.logFile, 'a')
    const child = spawn(program, args, { stdio: ['ignore', log, log], env: this.#env, cwd: this.#dir })
    this.#child = child
    let ended: string | undefined
    child.on('error', error => {
      ended = error.message
    })
    child.on('exit', (code, signal) => {
      ended = `ended with ${code ?? signal}`
    })
    const until = performance.now() + START_LIMIT_MS[this.kind]
    while (!(await answers(this.port))) {
      if (ended !== undefined) throw new Error(`${this.kind} did not start, it ${ended}\n${this.lastLog()}`)
      if (performance.now() > until) throw new Error(`${this.kind} does not answer\n${this.lastLog()}`)
      await delay(50)
    }
  }

  /** As a crash would: no time to say goodbye. What the operating system holds stays. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL', 5_000)
  }

  /** @returns the exit code, or the signal when it had to be killed. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | string> {
    return this.#end(signal, STOP_LIMIT_MS[this.kind])
  }

  /** Kills and starts again on the same data. */
  async restart(): Promise<void> {
    await this.kill()
    await this.start()
  }

  /** Stops whatever runs and removes the data. */
  async remove(): Promise<void> {
    await this.kill()
    process.off('exit', this.#onExit)
    await rm(this.#dir, { recursive: true, force: true })
  }

  lastLog(lines = 30): string {
    return existsSync(this.logFile) ? readFileSync(this.logFile, 'utf8').split('\n').slice(-lines).join('\n') : ''
  }

  async #end(signal: NodeJS.Signals, limitMs: number): Promise<number | string> {
    const child = this.#child
    this.#child = undefined
    return child === undefined ? 0 : await end(child, signal, limitMs)
  }
}

function tidemarkCommand(command: readonly string[], port: number, dir: string, more: Settings): string[] {
  const settings = { ...SETTINGS, listeners: `PLAINTEXT://127.0.0.1:${port}`, 'log.dirs': join(dir, 'data'), ...more }
  const overrides = Object.entries(settings).flatMap(([key, value]) => ['--override', `${key}=${value}`])
  return [...command, 'start', ...overrides]
}

function kafkaCommand(dir: string, more: Settings): string[] {
  // A killed broker is known again by the next one only after its session: the default would be nine seconds of waiting.
  const settings = { ...SETTINGS, 'broker.session.timeout.ms': '4000', 'broker.heartbeat.interval.ms': '500', ...more }
  const properties = Object.entries(settings).map(([key, value]) => `${key}=${value}`)
  return [join(peer, 'broker'), dir, '1', '1', ...properties]
}

/** ApiVersions v0, correlation id 1, no client id: the question that every server answers first. */
const API_VERSIONS = Buffer.from('0000000a0012000000000001ffff', 'hex')

function answers(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => socket.write(API_VERSIONS))
    const end = (answer: boolean): void => {
      socket.destroy()
      resolve(answer)
    }
    socket.setTimeout(2_000, () => end(false))
    socket.on('data', () => end(true))
    socket.on('error', () => end(false))
    socket.on('close', () => end(false))
  })
}

/** Whether a program is there to be run, by running it. */
export function runs(program: string, args: readonly string[]): Promise<boolean> {
  return new Promise(resolve => {
    const child = spawn(program, args, { stdio: 'ignore' })
    child.on('error', () => resolve(false))
    child.on('exit', code => resolve(code === 0))
  })
}
