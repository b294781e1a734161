// Everything that must hold, in stages, on two cores in eight to fourteen minutes:
//
//   npm test                         all of it
//   npm test -- --only unit,types    some of it
//
// A stage that lacks something it cannot bring itself (Java, Go, Python) is skipped and named at the end. The last line
// is always `N passed, N failed, N skipped`; the exit code is 1 when anything failed.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { basename, dirname, join, relative } from 'node:path'
import { run } from 'node:test'
import { fileURLToPath } from 'node:url'
import { runs } from '../compat/server.ts'

// A full run takes more of what chance finds than a test that is run while one works, and always the same of it, so that
// the same tree has the same colour.
process.env.FUZZ_FRAMES ??= '1100000'
process.env.FUZZ_SEED ??= '1'
process.env.RECORDS_FUZZ ??= '150000'
process.env.RECORDS_SEED ??= '1'

const root = dirname(dirname(fileURLToPath(import.meta.url)))

interface Outcome {
  passed: number
  readonly failures: string[]
  readonly skips: { readonly name: string; readonly why: string }[]
}

interface Stage {
  readonly name: string
  readonly what: string
  /** A stage that takes longer is stopped and has failed. */
  readonly limitMs: number
  readonly perform: (outcome: Outcome, limitMs: number) => Promise<void>
}

type Kind = 'unit' | 'simulation' | 'oracle' | 'cluster'

/** Test files that start servers, or ask a real Kafka, are told by where they are and what they read. */
function kindOf(path: string): Kind {
  if (relative(root, path).startsWith(join('src', 'sim'))) return 'simulation'
  if (relative(root, path).startsWith(join('compat', 'cluster'))) return 'cluster'
  if (relative(root, path).startsWith('compat')) return 'oracle'
  return /shared\/peer/.test(readFileSync(path, 'utf8')) ? 'oracle' : 'unit'
}

function testFiles(kind: Kind): string[] {
  return globSync(['src/**/*.test.ts', 'scripts/**/*.test.ts', 'compat/**/*.test.ts', 'bench/**/*.test.ts'], {
    cwd: root,
    exclude: ['**/node_modules/**', '**/testdata/**'],
  })
    .map(path => join(root, path))
    .filter(path => kindOf(path) === kind)
    .sort()
}

const STAGES: readonly Stage[] = [
  {
    name: 'types',
    what: 'TypeScript, strict, the whole tree',
    limitMs: 60_000,
    perform: (outcome, limitMs) => program(outcome, limitMs, 'types', bin('tsc'), ['-p', root]),
  },
  {
    name: 'lint',
    what: 'format, imports and lint',
    limitMs: 60_000,
    perform: (outcome, limitMs) =>
      program(outcome, limitMs, 'format and lint', bin('biome'), ['check', '--diagnostic-level=warn', root]),
  },
  {
    name: 'docs',
    what: 'pages that are made from the code are up to date',
    limitMs: 90_000,
    perform: async (outcome, limitMs) => {
      for (const page of ['configuration', 'compatibility']) {
        const script = join(root, 'scripts', `${page}.ts`)
        await program(outcome, limitMs, `docs/${page}.md`, process.execPath, [script, '--check'])
      }
    },
  },
  {
    name: 'unit',
    what: 'unit tests, properties, transcripts',
    limitMs: 300_000,
    perform: (outcome, limitMs) => tests(outcome, limitMs, testFiles('unit')),
  },
  {
    name: 'simulation',
    what: 'the simulator: determinism, mutants, seeds of every workload',
    limitMs: 600_000,
    perform: async (outcome, limitMs) => {
      await tests(outcome, limitMs, testFiles('simulation'))
      const { WORKLOADS } = await import('../src/sim/workloads/workloads.ts')
      await Promise.all([...WORKLOADS.keys()].map(workload => simulate(outcome, limitMs, workload, 1, SIMULATED_SEEDS)))
      const fresh = freshSeed()
      await Promise.all(Object.keys(FRESH_SEEDS).map(name => simulate(outcome, limitMs, name, fresh, FRESH_SEEDS)))
    },
  },
  {
    name: 'pack',
    what: 'npm pack, installed elsewhere, run on the oldest Node that we promise',
    limitMs: 180_000,
    perform: (outcome, limitMs) =>
      program(outcome, limitMs, 'package', process.execPath, [join(root, 'compat', 'package.ts')]),
  },
  {
    name: 'oracle',
    what: "our bytes, files and answers against Kafka's own code",
    limitMs: 300_000,
    perform: async (outcome, limitMs) => {
      await tests(outcome, limitMs, testFiles('oracle'))
      const differential = join(root, 'compat', 'differential', 'main.ts')
      const missing = await lacking()
      if (missing !== undefined) outcome.skips.push({ name: 'the same calls to both', why: missing })
      else await program(outcome, limitMs, 'the same calls to both', process.execPath, [differential])
    },
  },
  {
    name: 'cluster',
    what: 'nodes in processes of their own: faults, commands, and Kafka among them',
    limitMs: 600_000,
    perform: (outcome, limitMs) => tests(outcome, limitMs, testFiles('cluster')),
  },
  {
    name: 'compat',
    what: "other people's clients",
    limitMs: 300_000,
    perform: (outcome, limitMs) =>
      program(outcome, limitMs, 'compat', process.execPath, [join(root, 'compat', 'main.ts')]),
  },
]

/** How many seeds of each workload, always the same ones. Those of a cluster live ten hours of its time. */
const SIMULATED_SEEDS: Readonly<Record<string, number>> = { echo: 1000, storage: 300, node: 80, cluster: 21 }
/** And how many that no tree before this one has lived through. */
const FRESH_SEEDS: Readonly<Record<string, number>> = { storage: 100, node: 30, raft: 100, cluster: 12 }

/** Drawn by what is simulated: new with every change, and the same for the same tree, which keeps its colour. */
function freshSeed(): number {
  const hash = createHash('sha256')
  for (const path of globSync('src/**/*.ts', { cwd: root }).sort()) hash.update(readFileSync(join(root, path)))
  return hash.digest().readUInt32BE(0)
}

function simulate(
  outcome: Outcome,
  limitMs: number,
  workload: string,
  first: number,
  counts: Readonly<Record<string, number>>,
): Promise<void> {
  const seeds = String(counts[workload] ?? 100)
  const args = [join(root, 'src', 'sim', 'main.ts'), '--workload', workload, '--seed', String(first), '--seeds', seeds]
  return program(outcome, limitMs, `${seeds} seeds of ${workload} from ${first}`, process.execPath, args)
}

/** What a real Kafka needs and this machine does not have. */
async function lacking(): Promise<string | undefined> {
  if (!existsSync(join(root, '..', 'shared', 'peer'))) return 'a real Kafka (../shared/peer) is not there'
  return (await runs('java', ['-version'])) ? undefined : 'java is not there'
}

function bin(name: string): string {
  return join(root, 'node_modules', '.bin', process.platform === 'win32' ? `${name}.cmd` : name)
}

const firstLines = (text: string, count: number): string => text.trimEnd().split('\n').slice(0, count).join('\n')
const indent = (text: string): string => text.replaceAll(/^/gm, '    ')

/** Runs node's test runner over files, a process each so that no test can disturb another; prints only failures. */
async function tests(outcome: Outcome, limitMs: number, files: string[]): Promise<void> {
  if (files.length === 0) {
    outcome.skips.push({ name: 'tests', why: 'there are no test files' })
    return
  }
  const stop = AbortSignal.timeout(limitMs)
  const events = run({
    files,
    execArgv: ['--import', join(root, 'scripts', 'fixed-chance.ts')],
    isolation: 'process',
    concurrency: Math.max(2, availableParallelism()),
    timeout: limitMs,
    signal: stop,
  })
  events.on('test:pass', ({ name, file, skip, todo, details }) => {
    if (details.type === 'suite') return
    if (skip === undefined && todo === undefined) outcome.passed++
    else {
      const why = [skip, todo].find(reason => typeof reason === 'string' && reason !== '')
      outcome.skips.push({ name: `${where(file)} › ${name}`, why: String(why ?? 'no reason given') })
    }
  })
  events.on('test:fail', ({ name, file, line, details }) => {
    const error = details.error
    // A suite that fails because of its tests says nothing new: they have been told already.
    if ('failureType' in error && error.failureType === 'subtestsFailed') return
    const title = `${where(file)}${line === undefined ? '' : `:${line}`} › ${name}`
    const cause =
      error.cause instanceof Error ? (error.cause.stack ?? error.cause.message) : String(error.cause ?? error)
    outcome.failures.push(title)
    process.stdout.write(`  failed ${title}\n${indent(firstLines(cause, 40))}\n`)
  })
  const tick = setInterval(() => process.stdout.write(`  … ${outcome.passed} tests so far\n`), 15_000)
  for await (const _ of events.resume());
  clearInterval(tick)
  if (stop.aborted) outcome.failures.push(`stopped after ${limitMs / 1000} s`)
}

function where(file: string | undefined): string {
  if (file === undefined) return ''
  return file.startsWith(root) ? relative(root, file) : basename(file)
}

/**
 * Runs a program and passes its output on. One that reports by lines (`ok NAME`, `failed NAME: why`, `skipped NAME: why`)
 * is counted by them; of any other the exit code is one result.
 */
async function program(
  outcome: Outcome,
  limitMs: number,
  name: string,
  command: string,
  args: string[],
): Promise<void> {
  const child = spawn(command, args, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'], detached: true })
  let late = false
  const limit = setTimeout(() => {
    late = true
    stopGroup(child.pid)
  }, limitMs)
  const onExit = (): void => stopGroup(child.pid)
  process.once('exit', onExit)
  let reported = 0
  let told = 0
  let rest = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    process.stdout.write(text)
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const [, what, which, why] = /^\s*(ok|failed|skipped) ([^:]+)(?:: (.*))?$/.exec(line) ?? []
      if (which === undefined) continue
      reported++
      if (what === 'failed') told++
      if (what === 'ok') outcome.passed++
      else if (what === 'failed') outcome.failures.push(why === undefined ? which : `${which}: ${why}`)
      else outcome.skips.push({ name: which, why: why ?? 'no reason given' })
    }
  })
  const status = await new Promise<number | string>(resolve => {
    child.on('error', error => resolve(error.message))
    child.on('close', (code, signal) => resolve(code ?? signal ?? 'no exit code'))
  })
  clearTimeout(limit)
  process.off('exit', onExit)
  if (late) outcome.failures.push(`${name}: stopped after ${limitMs / 1000} s`)
  else if (status !== 0 && told === 0) outcome.failures.push(`${name}: ended with ${status}`)
  else if (status === 0 && reported === 0) outcome.passed++
}

/** The program and all that it started: it leads a process group of its own. */
function stopGroup(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended already.
  }
}

function selected(): readonly Stage[] {
  const args = process.argv.slice(2)
  if (args.length === 0) return STAGES
  const [flag, inline] = (args[0] ?? '').split('=')
  const names = (inline ?? args[1] ?? '').split(',')
  const unknown = names.filter(name => !STAGES.some(stage => stage.name === name))
  if (flag !== '--only' || unknown.length > 0) {
    process.stderr.write('usage: npm test -- [--only STAGE,STAGE]\n')
    for (const { name, what } of STAGES) process.stderr.write(`  ${name.padEnd(11)} ${what}\n`)
    process.exit(2)
  }
  return STAGES.filter(stage => names.includes(stage.name))
}

// The stages' own children must not believe that they run inside a test runner.
delete process.env.NODE_TEST_CONTEXT

const started = performance.now()
const results: { stage: Stage; outcome: Outcome; seconds: number }[] = []
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))

for (const stage of selected()) {
  process.stdout.write(`\n== ${stage.name}: ${stage.what}\n`)
  const begun = performance.now()
  const outcome: Outcome = { passed: 0, failures: [], skips: [] }
  try {
    await stage.perform(outcome, stage.limitMs)
  } catch (error) {
    outcome.failures.push(error instanceof Error ? error.message : String(error))
  }
  const seconds = (performance.now() - begun) / 1000
  results.push({ stage, outcome, seconds })
  process.stdout.write(`== ${stage.name}: ${counts(outcome)} in ${seconds.toFixed(1)} s\n`)
}

function counts({ passed, failures, skips }: Outcome): string {
  return `${passed} passed, ${failures.length} failed, ${skips.length} skipped`
}

process.stdout.write(`\n== summary, ${((performance.now() - started) / 1000).toFixed(0)} s\n`)
const total: Outcome = { passed: 0, failures: [], skips: [] }
for (const { stage, outcome, seconds } of results) {
  process.stdout.write(`${stage.name.padEnd(11)} ${seconds.toFixed(1).padStart(6)} s  ${counts(outcome)}\n`)
  total.passed += outcome.passed
  total.failures.push(...outcome.failures.map(failure => `${stage.name}: ${failure}`))
  total.skips.push(...outcome.skips.map(({ name, why }) => ({ name: `${stage.name}: ${name}`, why })))
}
for (const { name, why } of total.skips) process.stdout.write(`skipped ${name}: ${why}\n`)
for (const failure of total.failures) process.stdout.write(`FAILED ${failure}\n`)
process.stdout.write(`${counts(total)}\n`)
process.exitCode = total.failures.length === 0 ? 0 : 1
