/** The suites, and what each needs besides Node: brought into a cache folder, or named when it cannot be had. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { peer, root, runs } from './server.ts'

export interface Suite {
  readonly name: string
  /** The command to which the server's address is appended, or what is missing. */
  prepare(): Promise<{ readonly command: readonly string[] } | { readonly missing: string }>
}

const CONFLUENT_KAFKA = '2.16.1'

const here = join(root, 'compat')

function cacheFolder(name: string): string {
  const folder = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'tidemark-compat', name)
  mkdirSync(folder, { recursive: true })
  return folder
}

/** @returns undefined when it ended well, else the end of what it said. */
function attempt(program: string, args: readonly string[], cwd = root): string | undefined {
  const result = spawnSync(program, args, { cwd, encoding: 'utf8', timeout: 180_000 })
  if (result.status === 0) return undefined
  return `${program}: ${(result.error?.message ?? result.stderr).trim().split('\n').slice(-3).join(' ⏎ ')}`
}

const inNode = (file: string): Suite['prepare'] => {
  return async () => ({ command: [process.execPath, '--no-warnings', join(here, file)] })
}

async function librdkafka(): ReturnType<Suite['prepare']> {
  const python = ['python3', 'python'].find(name => spawnSync(name, ['--version']).status === 0)
  if (python === undefined) return { missing: 'python3 is not there' }
  const version = spawnSync(python, ['--version'], { encoding: 'utf8' }).stdout.trim().replaceAll(/\W+/g, '-')
  const venv = cacheFolder(`confluent-kafka-${CONFLUENT_KAFKA}-${version}`)
  const inVenv = join(venv, 'bin', 'python')
  if (!(await runs(inVenv, ['-c', 'import confluent_kafka']))) {
    const failure =
      attempt(python, ['-m', 'venv', venv]) ??
      attempt(inVenv, ['-m', 'pip', 'install', '--quiet', `confluent-kafka==${CONFLUENT_KAFKA}`])
    if (failure !== undefined)
      return { missing: `confluent-kafka ${CONFLUENT_KAFKA} for Python cannot be had (${failure})` }
  }
  return { command: [inVenv, join(here, 'librdkafka.py')] }
}

async function franzGo(): ReturnType<Suite['prepare']> {
  if (!(await runs('go', ['version']))) return { missing: 'go is not there' }
  const program = join(cacheFolder('franz-go'), 'franz-go')
  const failure = attempt('go', ['build', '-o', program, '.'], join(here, 'franz-go'))
  if (failure !== undefined) return { missing: `the Go program cannot be built (${failure})` }
  return { command: [program] }
}

async function java(): ReturnType<Suite['prepare']> {
  if (!existsSync(peer)) return { missing: "Kafka's own tools (../shared/peer) are not there" }
  if (!(await runs('javac', ['-version']))) return { missing: 'a JDK (javac) is not there' }
  const fetched = spawnSync(join(peer, 'fetch'), [], { encoding: 'utf8', timeout: 300_000 })
  if (fetched.status !== 0) return { missing: "Kafka's own tools cannot be brought (../shared/peer/fetch)" }
  const lib = join(fetched.stdout.trim(), 'lib', '*')
  const classes = cacheFolder('java')
  const sources = readdirSync(join(here, 'java'))
    .filter(file => file.endsWith('.java'))
    .map(file => join(here, 'java', file))
  const newest = Math.max(...sources.map(file => statSync(file).mtimeMs))
  const compiled = join(classes, 'Compat.class')
  if (!existsSync(compiled) || statSync(compiled).mtimeMs < newest) {
    const failure = attempt('javac', ['-nowarn', '-d', classes, '-cp', lib, ...sources])
    if (failure !== undefined) throw new Error(failure)
  }
  const flags = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-Xshare:auto', '-Xmx768m']
  const log = `-Dlog4j2.configurationFile=${join(here, 'java', 'log4j2.properties')}`
  return { command: ['java', ...flags, log, '-cp', `${classes}:${lib}`, 'Compat'] }
}

export const SUITES: readonly Suite[] = [
  { name: 'kafkajs', prepare: inNode('kafkajs.ts') },
  { name: 'platformatic', prepare: inNode('platformatic.ts') },
  { name: 'librdkafka', prepare: librdkafka },
  { name: 'franz-go', prepare: franzGo },
  { name: 'java', prepare: java },
]
