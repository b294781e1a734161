import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { VERSION } from '#base/version.ts'
import { formatConfigErrors, type ServerConfig, serverConfig } from '#core/config/server.ts'
import { realWorld } from '#world/real/real.ts'
import { type RunningNode, startNode } from './node.ts'
import { plainReason, startFailure } from './start-failure.ts'

const HELP = `Usage: tidemark start [options]

Runs a node: a broker and a controller, or what process.roles says. An empty folder becomes a new cluster.

Options:
  -c, --config <file>        a properties file with Kafka's keys
  -o, --override <key=value> one setting; wins over the file and the environment; may be repeated
      --data <folder>        where the data lies (log.dirs; default ./data)
  -p, --port <port>          the port for clients (default 9092)
      --log-level <level>    debug, info, warn or error (default info)
      --log-format <format>  line or json (default line on a terminal)
  -h, --help                 this text

Examples:
  tidemark start
  tidemark start --port 9192 --data /var/lib/tidemark
  tidemark start --config server.properties -o num.partitions=6

TIDEMARK_NUM_PARTITIONS=6 in the environment is num.partitions=6, and so on for every key.
`

const OPTIONS = {
  config: { type: 'string', short: 'c' },
  override: { type: 'string', short: 'o', multiple: true },
  data: { type: 'string' },
  port: { type: 'string', short: 'p' },
  'log-level': { type: 'string' },
  'log-format': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const

const LEVELS = ['debug', 'info', 'warn', 'error'] as const
const FORMATS = ['line', 'json'] as const

type StartOptions = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>['values']

/** Runs `tidemark start` with these arguments until a signal. Returns the exit code: 0 stopped, 1 failed, 2 misused. */
export async function start(args: readonly string[]): Promise<number> {
  let options: StartOptions
  try {
    options = parseArgs({ args: [...args], options: OPTIONS }).values
  } catch (error) {
    process.stderr.write(`error: ${(error as Error).message}\n(tidemark start --help shows how)\n`)
    return 2
  }
  if (options.help === true) {
    process.stdout.write(HELP)
    return 0
  }
  return await run(options)
}

async function run(options: StartOptions): Promise<number> {
  const level = choice('log-level', LEVELS, options, 'info')
  const format = choice('log-format', FORMATS, options, process.stderr.isTTY ? 'line' : 'json')
  const config = typeof level === 'object' ? level : typeof format === 'object' ? format : configuration(options)
  if (typeof level === 'object' || typeof format === 'object' || 'problem' in config) {
    process.stderr.write(`${(config as Misuse).problem}\nerror: the node was not started\n`)
    return 2
  }
  const world = realWorld({ log: { level, format } })
  const fatal = (error: unknown) => {
    world.log.error({ err: error }, 'the node stops: something happened that must not, and going on could do harm')
    process.exit(70)
  }
  process.on('uncaughtException', fatal)
  process.on('unhandledRejection', fatal)
  // Heard from now on: whoever asks for the stop of a node that is starting gets a clean one, a moment later.
  const asked = signal()
  let node: RunningNode
  try {
    node = await startNode(world, config)
  } catch (error) {
    process.stderr.write(`error: ${startFailure(error)}\n`)
    return 1
  }
  // Programs that read the log are told in the log.
  if (format === 'line') process.stdout.write(welcome(node, config))
  else {
    world.log.info(
      {
        version: VERSION,
        clusterId: node.clusterId,
        nodeId: config.nodeId,
        listeners: node.listeners.map(({ name, address: { host, port } }) => `${name}://${host}:${port}`),
        logDirs: config.logDirs,
        tookMs: Math.round(process.uptime() * 1000),
      },
      'the node is up',
    )
  }
  await asked
  world.log.info({}, 'stopping')
  await node.stop()
  world.log.info({}, 'stopped; everything is on disk')
  return 0
}

/** What is wrong with how the command was given. */
interface Misuse {
  readonly problem: string
}

/** A flag, or the variable of the same name, that takes one of a few words. */
function choice<T extends string>(
  name: 'log-level' | 'log-format',
  allowed: readonly T[],
  options: StartOptions,
  otherwise: T,
): T | Misuse {
  const variable = `TIDEMARK_${name.toUpperCase().replace('-', '_')}`
  const text = options[name] ?? process.env[variable]
  if (text === undefined) return otherwise
  const source = options[name] === undefined ? variable : `--${name}`
  return (
    allowed.find(each => each === text) ?? { problem: `${source} takes one of ${allowed.join(', ')}, not "${text}"` }
  )
}

function configuration(options: StartOptions): ServerConfig | Misuse {
  let file: { path: string; text: string } | undefined
  if (options.config !== undefined) {
    try {
      file = { path: options.config, text: readFileSync(options.config, 'utf8') }
    } catch (error) {
      return { problem: `--config: ${options.config} cannot be read: ${plainReason(error)}` }
    }
  }
  if (options.port !== undefined && !(/^\d{1,5}$/.test(options.port) && Number(options.port) <= 65_535)) {
    return { problem: `--port takes a number from 0 (any free port) to 65535, not "${options.port}"` }
  }
  const flags = []
  if (options.data !== undefined) flags.push({ key: 'log.dirs', value: options.data, source: '--data' })
  if (options.port !== undefined) {
    flags.push({ key: 'listeners', value: `PLAINTEXT://:${options.port},CONTROLLER://127.0.0.1:0`, source: '--port' })
  }
  const result = serverConfig({
    ...(file !== undefined && { file }),
    environment: process.env,
    overrides: options.override ?? [],
    flags,
  })
  if ('errors' in result) return { problem: formatConfigErrors(result.errors) }
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
  // Who runs a checkout has no `tidemark` to call.
  const tidemark = process.env.npm_lifecycle_event === undefined ? 'tidemark' : 'npm run -s tidemark --'
  return [
    `Tidemark ${VERSION} is up: node ${config.nodeId} of cluster ${node.clusterId}`,
    `  listens   ${at.join(', ')}`,
    `  data      ${config.logDirs.join(', ')}`,
    `  try       ${tidemark} produce hello "first record"${elsewhere}`,
    `            ${tidemark} consume hello${elsewhere}`,
    '  stop      Ctrl-C',
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
