import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { hostPort } from '#base/host-port.ts'
import type { Setting } from '#core/config/environment.ts'
import type { ConfigSources, ServerConfig } from '#core/config/server.ts'
import type { Address } from '#world/world.ts'
import { type Misuse, nodeConfig, type StartPlan } from './flags.ts'
import type { WorkerOrder, WorkerReport } from './worker.ts'

/** Several brokers of one process, each with a thread, folders and listeners of its own. */
export interface RunningBrokers {
  readonly clusterId: string | undefined
  readonly nodeIds: readonly number[]
  /** Of all brokers, in their order; not those for controllers. */
  readonly clientAddresses: readonly Address[]
  /** Resolves with a line that says which failed and why, should one. */
  readonly failed: Promise<string>
  stop(): Promise<void>
}

/** Room between the ports of two brokers: the first one's controller has one, and every other could have. */
const PORT_STEP = 2

type Up = Extract<WorkerReport, { kind: 'up' }>

/** Starts the brokers of `--brokers`. Rejects with an Error whose message says what is wrong. */
export async function startBrokers(plan: StartPlan, first: ServerConfig, abort: AbortSignal): Promise<RunningBrokers> {
  refuseOtherLayout(plan, first)
  const failure = Promise.withResolvers<string>()
  const threads: Thread[] = []
  const stop = async () => {
    // The first holds the controller, of which the others take their leave.
    await Promise.all(threads.slice(1).map(thread => thread.stop()))
    await threads[0]?.stop()
  }
  const onAbort = () => void stop()
  abort.addEventListener('abort', onAbort)
  const start = async (index: number, sources: ConfigSources): Promise<Up> => {
    if (abort.aborted) throw new Error('stopped before they were up')
    const thread = new Thread({ sources, log: plan.log }, first.nodeId + index)
    threads.push(thread)
    void thread.failed.then(failure.resolve)
    return await thread.up
  }
  try {
    const leading = await start(0, sourcesOfFirst(plan.sources, first))
    const others: Promise<Up>[] = []
    for (let index = 1; index < plan.brokers; index++)
      others.push(start(index, sourcesOfOther(plan.sources, first, index, leading)))
    const all = [leading, ...(await Promise.all(others))]
    return {
      clusterId: leading.clusterId,
      nodeIds: threads.map(({ nodeId }) => nodeId),
      clientAddresses: all.flatMap(({ clients }) => clients),
      failed: failure.promise,
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  } finally {
    abort.removeEventListener('abort', onAbort)
  }
}

/** The folder of a broker below the one that was given, or the folder itself where there is one broker. */
function folderOf(dir: string, nodeId: number): string {
  return join(dir, String(nodeId))
}

/**
 * One broker keeps its files in the folder itself, several in folders below it, and a start in the other way would begin
 * an empty cluster beside a full one. Throws an Error that says what to do.
 */
export function refuseOtherLayout({ brokers }: Pick<StartPlan, 'brokers'>, { logDirs, nodeId }: ServerConfig): void {
  for (const dir of logDirs) {
    const isOne = existsSync(join(dir, 'meta.properties'))
    const below = folderOf(dir, nodeId)
    const isSeveral = existsSync(join(below, 'meta.properties'))
    if (brokers > 1 && isOne && !isSeveral)
      throw new Error(
        `${dir} is the folder of a single broker, and --brokers has a folder for each below it; choose another folder, or move what is in it to ${below}`,
      )
    if (brokers === 1 && isSeveral && !isOne)
      throw new Error(
        `${dir} holds the folders of several brokers (${below}); start with --brokers, or choose another folder`,
      )
  }
}

function sourcesOfFirst(sources: ConfigSources, first: ServerConfig): ConfigSources {
  return { ...sources, flags: [...(sources.flags ?? []), ...foldersOf(first, first.nodeId)] }
}

/** The others are brokers only: with the first they live and die, so that their votes would make no quorum safer. */
function sourcesOfOther(
  sources: ConfigSources,
  first: ServerConfig,
  index: number,
  { controllers }: Up,
): ConfigSources {
  const { port: _, ...rest } = sources
  const nodeId = first.nodeId + index
  const { voters } = first.quorum
  const known = [...controllers, ...first.quorum.bootstrap].map(hostPort)
  const flags = [
    ...(sources.flags ?? []),
    ...foldersOf(first, nodeId),
    setting('node.id', String(nodeId)),
    setting('broker.id', String(nodeId)),
    setting('process.roles', 'broker'),
    setting('controller.quorum.auto.join.enable', 'false'),
    setting('listeners', listenersOf(first, index)),
    ...advertisedOf(first, index),
    ...(voters.length > 0 ? [] : [setting('controller.quorum.bootstrap.servers', known.join(','))]),
  ]
  return { ...rest, flags }
}

function foldersOf({ logDirs }: ServerConfig, nodeId: number): Setting[] {
  const dirs = logDirs.map(dir => folderOf(dir, nodeId))
  return [setting('log.dirs', dirs.join(',')), setting('metadata.log.dir', dirs[0] ?? '')]
}

function listenersOf({ listeners }: ServerConfig, index: number): string {
  return listeners
    .filter(({ forControllers }) => !forControllers)
    .map(({ name, host, port }) => `${name}://${hostPort({ host, port: portOf(port, index) })}`)
    .join(',')
}

function advertisedOf({ listeners }: ServerConfig, index: number): Setting[] {
  const told = listeners.flatMap(({ name, advertised, forControllers }) =>
    advertised === undefined || forControllers
      ? []
      : [`${name}://${hostPort({ ...advertised, port: portOf(advertised.port, index) })}`],
  )
  return told.length === 0 ? [] : [setting('advertised.listeners', told.join(','))]
}

function portOf(port: number, index: number): number {
  return port === 0 ? 0 : port + PORT_STEP * index
}

function setting(key: string, value: string): Setting {
  return { key, value, source: '--brokers' }
}

/** A worker thread with one broker, as the main thread sees it. */
class Thread {
  readonly nodeId: number
  readonly #worker: Worker
  readonly #up = Promise.withResolvers<Up>()
  readonly #failed = Promise.withResolvers<string>()
  readonly #gone = Promise.withResolvers<void>()
  #hasStopped = false

  constructor(order: WorkerOrder, nodeId: number) {
    this.nodeId = nodeId
    this.#worker = new Worker(new URL('./worker.ts', import.meta.url), { workerData: order })
    // Whoever waits is told; nobody may wait any more.
    this.#up.promise.catch(() => {})
    this.#worker.on('message', (report: WorkerReport) => {
      if (report.kind === 'up') this.#up.resolve(report)
      else if (report.kind === 'refused') this.#up.reject(new Error(`broker ${nodeId}: ${report.reason}`))
      else this.#hasStopped = true
    })
    this.#worker.on('error', error => {
      const reason = error instanceof Error ? (error.stack ?? error.message) : String(error)
      this.#failed.resolve(`broker ${nodeId} failed: ${reason}`)
    })
    this.#worker.on('exit', () => {
      this.#up.reject(new Error(`broker ${nodeId} ended before it was up`))
      if (!this.#hasStopped) this.#failed.resolve(`the thread of broker ${nodeId} ended by itself`)
      this.#gone.resolve()
    })
  }

  get up(): Promise<Up> {
    return this.#up.promise
  }

  /** Resolves should it end otherwise than by `stop`. */
  get failed(): Promise<string> {
    return this.#failed.promise
  }

  async stop(): Promise<void> {
    this.#worker.postMessage('stop')
    await this.#gone.promise
  }
}

/** Misuse of the whole is found before any thread begins. */
export function otherProblem(plan: StartPlan, first: ServerConfig): Misuse | undefined {
  if (plan.brokers === 1) return undefined
  if (!first.roles.broker)
    return { problem: '--brokers needs the role broker; --roles or process.roles says controller only' }
  const ports = first.listeners.map(({ port }) => port)
  const highest = Math.max(...ports) + PORT_STEP * (plan.brokers - 1)
  if (highest > 65_535)
    return {
      problem: `--brokers ${plan.brokers} needs ports up to ${highest}; choose a lower one with --port or listeners`,
    }
  const stand: Up = { kind: 'up', clusterId: undefined, clients: [], controllers: [{ host: 'localhost', port: 1 }] }
  const other = nodeConfig(sourcesOfOther(plan.sources, first, 1, stand))
  return 'problem' in other ? other : undefined
}
