import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { formatConfigErrors, type ServerConfig, serverConfig } from '#core/config/server.ts'
import { realWorld } from '#world/real/real.ts'
import { type RunningNode, startNode } from './node.ts'

/** What `tidemark start` was given. */
export interface StartOptions {
  /** A properties file with Kafka's keys. */
  readonly config?: string | undefined
  /** `key=value` each; they win over the file and the environment. */
  readonly overrides?: readonly string[]
  /** Stands for log.dirs. */
  readonly data?: string | undefined
  /** Stands for the port of the first listener. */
  readonly port?: number | undefined
  readonly logLevel?: 'debug' | 'info' | 'warn' | 'error' | undefined
  readonly logFormat?: 'line' | 'json' | undefined
}

/** Reads the configuration, starts the node in the real world and runs it until a signal. Returns the exit code. */
export async function start(options: StartOptions): Promise<number> {
  const config = configuration(options)
  if (typeof config === 'string') {
    process.stderr.write(`${config}\n`)
    return 2
  }
  const world = realWorld({
    log: {
      level: options.logLevel ?? (process.env.TIDEMARK_LOG_LEVEL as StartOptions['logLevel']) ?? 'info',
      format: options.logFormat ?? (process.stderr.isTTY ? 'line' : 'json'),
    },
  })
  const fatal = (error: unknown) => {
    world.log.error({ err: error }, 'the node stops: something happened that must not, and going on could do harm')
    process.exit(70)
  }
  process.on('uncaughtException', fatal)
  process.on('unhandledRejection', fatal)
  let node: RunningNode
  try {
    node = await startNode(world, config)
  } catch (error) {
    process.stderr.write(`tidemark: ${error instanceof Error ? error.message : String(error)}\n`)
    return 1
  }
  process.stdout.write(welcome(node, config))
  await signal()
  world.log.info({}, 'stopping')
  await node.stop()
  world.log.info({}, 'stopped; everything is on disk')
  return 0
}

function configuration(options: StartOptions): ServerConfig | string {
  let file: { path: string; text: string } | undefined
  if (options.config !== undefined) {
    try {
      file = { path: options.config, text: readFileSync(options.config, 'utf8') }
    } catch (error) {
      return `${options.config} cannot be read: ${(error as Error).message}`
    }
  }
  const flags = []
  if (options.data !== undefined) flags.push({ key: 'log.dirs', value: options.data, source: '--data' })
  if (options.port !== undefined) {
    flags.push({ key: 'listeners', value: `PLAINTEXT://:${options.port},CONTROLLER://127.0.0.1:0`, source: '--port' })
  }
  const result = serverConfig({
    ...(file !== undefined && { file }),
    environment: process.env,
    overrides: options.overrides ?? [],
    flags,
  })
  if ('errors' in result) return formatConfigErrors(result.errors)
  const { config } = result
  // Folders are the process's affair: what is relative is so to where it was started.
  return {
    ...config,
    logDirs: config.logDirs.map(path => resolve(path)),
    metadataLogDir: resolve(config.metadataLogDir),
  }
}

function welcome(node: RunningNode, config: ServerConfig): string {
  const clients = node.listeners.filter(({ name }) => !isForControllers(config, name))
  const at = clients.map(
    ({ address: { host, port } }) =>
      `${host === '' || host === '::' || host === '0.0.0.0' ? 'localhost' : host}:${port}`,
  )
  const first = at[0] ?? ''
  const elsewhere = first === 'localhost:9092' ? '' : ` --bootstrap ${first}`
  return [
    `Tidemark is up in cluster ${node.clusterId}`,
    `  listens   ${at.join(', ')}`,
    `  data      ${config.logDirs.join(', ')}`,
    `  try       tidemark produce hello "first record"${elsewhere}`,
    `            tidemark consume hello --from beginning${elsewhere}`,
    '',
  ].join('\n')
}

function isForControllers(config: ServerConfig, name: string): boolean {
  return config.listeners.some(listener => listener.name === name && listener.forControllers)
}

/** The first SIGTERM or SIGINT; a second one ends the process at once. */
function signal(): Promise<void> {
  return new Promise(resolve => {
    const stop = () => {
      resolve()
      for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => process.exit(130))
    }
    let stopped = false
    for (const name of ['SIGTERM', 'SIGINT'] as const) {
      process.once(name, () => {
        if (!stopped) stop()
        stopped = true
      })
    }
  })
}
