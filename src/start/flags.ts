import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { Setting } from '#core/config/environment.ts'
import { type ConfigSources, formatConfigErrors, type ServerConfig, serverConfig } from '#core/config/server.ts'
import { plainReason } from '../start-failure.ts'

export const HELP = `Usage: tidemark start [options]

Runs a node: a broker and a controller, or what --roles says. An empty folder becomes a new cluster, or with --join a
part of one that is there.

Options:
  -c, --config <file>        a properties file with Kafka's keys
  -o, --override <key=value> one setting; wins over the file and the environment; may be repeated
      --data <folder>        where the data lies (log.dirs; default ./data)
  -p, --port <port>          the port for clients (default 9092); a controller takes the next one above
      --host <name>          how other machines reach this node; needed on the first node of a cluster of several machines
      --node-id <number>     of this node, unique in the cluster (node.id; default 1)
      --join <host:port>     a node of the cluster to join, several by commas; this one becomes a voter of its quorum
      --roles <roles>        broker, controller, or both (process.roles)
      --rack <name>          the place that this node fails together with (broker.rack)
      --brokers <number>     so many brokers in this process, each on a thread of its own, ports and numbers counting up
      --log-level <level>    debug, info, warn or error (default info)
      --log-format <format>  line or json (default line on a terminal)
  -h, --help                 this text

Examples:
  tidemark start
  tidemark start --port 9192 --data /var/lib/tidemark
  tidemark start --config server.properties -o num.partitions=6

Three nodes on one machine:
  tidemark start --node-id 1 --port 9092 --data d1
  tidemark start --node-id 2 --port 9192 --data d2 --join localhost:9092
  tidemark start --node-id 3 --port 9292 --data d3 --join localhost:9092

TIDEMARK_NUM_PARTITIONS=6 in the environment is num.partitions=6, and so on for every key.
`

const OPTIONS = {
  config: { type: 'string', short: 'c' },
  override: { type: 'string', short: 'o', multiple: true },
  data: { type: 'string' },
  port: { type: 'string', short: 'p' },
  host: { type: 'string' },
  'node-id': { type: 'string' },
  join: { type: 'string' },
  roles: { type: 'string' },
  rack: { type: 'string' },
  brokers: { type: 'string' },
  'log-level': { type: 'string' },
  'log-format': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const

type Options = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>['values']

const LEVELS = ['debug', 'info', 'warn', 'error'] as const
const FORMATS = ['line', 'json'] as const
const BROKERS_MAX = 64
const DEFAULT_CONTROLLER_PORT = 9093

/** Plain data: it is handed to the threads of several brokers. */
export interface StartPlan {
  readonly sources: ConfigSources
  readonly brokers: number
  readonly log: LogChoice
}

export interface LogChoice {
  readonly level: (typeof LEVELS)[number]
  readonly format: (typeof FORMATS)[number]
}

/** What is wrong with how the command was given. */
export interface Misuse {
  readonly problem: string
}

export type Environment = Readonly<Record<string, string | undefined>>

/** Reads the command line of `start`. `isTerminal`: people read the log. */
export function readFlags(
  args: readonly string[],
  environment: Environment,
  isTerminal: boolean,
): StartPlan | Misuse | 'help' {
  let options: Options
  try {
    options = parseArgs({ args: [...args], options: OPTIONS }).values
  } catch (error) {
    return { problem: `error: ${(error as Error).message}\n(tidemark start --help shows how)` }
  }
  if (options.help === true) return 'help'
  const level = choice('log-level', LEVELS, options, environment, 'info')
  if (typeof level === 'object') return level
  const format = choice('log-format', FORMATS, options, environment, isTerminal ? 'line' : 'json')
  if (typeof format === 'object') return format
  let file: { path: string; text: string } | undefined
  if (options.config !== undefined) {
    try {
      file = { path: options.config, text: readFileSync(options.config, 'utf8') }
    } catch (error) {
      return { problem: `--config: ${options.config} cannot be read: ${plainReason(error)}` }
    }
  }
  const port = wholeNumber(options.port, 65_535)
  if (port === null) return { problem: `--port takes a number from 0 (any free port) to 65535, not "${options.port}"` }
  const brokers = wholeNumber(options.brokers, BROKERS_MAX) ?? 0
  if (options.brokers !== undefined && brokers < 1)
    return { problem: `--brokers takes a number from 1 to ${BROKERS_MAX}, not "${options.brokers}"` }
  if (options.host !== undefined && !/^[A-Za-z0-9._:-]+$/.test(options.host))
    return { problem: `--host takes a name or an address without a port, not "${options.host}"` }
  const sources = {
    ...(file !== undefined && { file }),
    environment: { ...environment },
    overrides: options.override ?? [],
    flags: settingsOf(options),
    implied: impliedBy(options),
    ...(port !== undefined && { port }),
    ...(options.host !== undefined && { host: options.host }),
  }
  return { sources, brokers: Math.max(1, brokers), log: { level, format } }
}

/** The flags that stand for keys. */
function settingsOf(options: Options): Setting[] {
  const settings: Setting[] = []
  const set = (key: string, value: string | undefined, source: string): void => {
    if (value !== undefined) settings.push({ key, value, source })
  }
  set('log.dirs', options.data, '--data')
  set('node.id', options['node-id'], '--node-id')
  set('process.roles', options.roles, '--roles')
  set('broker.rack', options.rack, '--rack')
  if (options.join !== undefined) {
    const addresses = options.join.split(',').map(text => withPort(text.trim()))
    set('controller.quorum.bootstrap.servers', addresses.join(','), '--join')
  }
  return settings
}

/** What flags mean besides, unless the file, the environment or an override says otherwise. */
function impliedBy({ join, roles }: Options): Setting[] {
  return join === undefined || roles?.includes('controller') === false
    ? []
    : [{ key: 'controller.quorum.auto.join.enable', value: 'true', source: '--join' }]
}

function withPort(address: string): string {
  return /^[A-Za-z0-9._-]+$/.test(address) ? `${address}:${DEFAULT_CONTROLLER_PORT}` : address
}

/** Undefined where nothing was given, null where it is no such number. */
function wholeNumber(text: string | undefined, highest: number): number | undefined | null {
  if (text === undefined) return undefined
  return /^\d{1,5}$/.test(text) && Number(text) <= highest ? Number(text) : null
}

/** A flag, or the variable of the same name, that takes one of a few words. */
function choice<T extends string>(
  name: 'log-level' | 'log-format',
  allowed: readonly T[],
  options: Options,
  environment: Environment,
  otherwise: T,
): T | Misuse {
  const variable = `TIDEMARK_${name.toUpperCase().replace('-', '_')}`
  const text = options[name] ?? environment[variable]
  if (text === undefined) return otherwise
  const source = options[name] === undefined ? variable : `--${name}`
  return (
    allowed.find(each => each === text) ?? { problem: `${source} takes one of ${allowed.join(', ')}, not "${text}"` }
  )
}

/** The configuration of a node from its sources. What is relative is so to where the process was started. */
export function nodeConfig(sources: ConfigSources): ServerConfig | Misuse {
  const result = serverConfig(sources)
  if ('errors' in result) return { problem: formatConfigErrors(result.errors) }
  const { config } = result
  return {
    ...config,
    logDirs: config.logDirs.map(path => resolve(path)),
    metadataLogDir: resolve(config.metadataLogDir),
  }
}
