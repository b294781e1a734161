import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { findSeed } from './find.ts'
import { runSimulation, type Workload } from './kernel.ts'
import { WORKLOADS } from './workloads/workloads.ts'

const USAGE = `usage: npm run sim -- [--workload NAME] [--seed N] [--seeds COUNT] [--minutes M] [--mutant NAME] [--trace]
  of the cluster unless --workload names another; without --minutes or --seeds one seed is run; without --seed it begins at a random one
usage: npm run sim -- --find [--workload NAME] [--mutant NAME] [--seed N] [--seeds COUNT]
  the cheapest of the seeds (50, from 1 on) that catches the mutant, or of all mutants, for the CAUGHT of the workload's test`

function number(text: string | undefined, name: string): number | undefined {
  if (text === undefined) return undefined
  const value = Number(text)
  if (Number.isFinite(value) && value >= 0) return value
  console.error(`--${name} ${text}: a number is wanted\n${USAGE}`)
  return process.exit(2)
}

const { values } = parseArgs({
  options: {
    workload: { type: 'string' },
    seed: { type: 'string' },
    seeds: { type: 'string' },
    minutes: { type: 'string' },
    mutant: { type: 'string' },
    trace: { type: 'boolean', default: false },
    find: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  console.log(USAGE)
  process.exit(0)
}

const name = values.workload ?? 'cluster'
const workload = WORKLOADS.get(name)
if (workload === undefined || (values.mutant !== undefined && !workload.mutants.includes(values.mutant))) {
  const known = workload === undefined ? [...WORKLOADS.keys()] : workload.mutants
  console.error(
    `${workload === undefined ? `--workload ${name}` : `--mutant ${values.mutant}`}: one of ${known.join(', ')}\n${USAGE}`,
  )
  process.exit(2)
}
const seed = number(values.seed, 'seed')
const count = number(values.seeds, 'seeds')
if (values.find) {
  const mutants = values.mutant === undefined ? workload.mutants : [values.mutant]
  process.exitCode =
    mutants.length === 1
      ? await find(workload, mutants[0] as string, seed ?? 1, count ?? 50)
      : findAll(workload, seed ?? 1, count ?? 50)
} else {
  const first = seed ?? crypto.getRandomValues(new Uint32Array(1))[0] ?? 1
  const minutes = number(values.minutes, 'minutes')
  const seeds = count ?? (minutes === undefined ? 1 : Number.POSITIVE_INFINITY)
  process.exitCode = await runSeeds(workload, first, seeds, (minutes ?? Number.POSITIVE_INFINITY) * 60)
}

/** Each mutant in a process of its own: some are caught by an assertion that stops it. */
function findAll(workload: Workload, from: number, count: number): number {
  let missed = 0
  for (const mutant of workload.mutants) {
    const of = ['--workload', workload.name, '--mutant', mutant, '--seed', String(from), '--seeds', String(count)]
    const args = [...process.execArgv, fileURLToPath(import.meta.url), '--find', ...of]
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    const last = stdout.trimEnd().split('\n').at(-1) ?? ''
    if (status !== 0 && last.startsWith('trying')) {
      const says = stderr.split('\n').find(line => /^\s*\w*(?:Error|Violation)\b/.test(line)) ?? ''
      console.log(`${mutant}: ${last.replace('trying ', '')}, which stops the process: ${says.trim()}`)
    } else {
      if (status !== 0) missed++
      console.log(last)
    }
  }
  return missed > 0 ? 1 : 0
}

async function find(workload: Workload, mutant: string, from: number, count: number): Promise<number> {
  const began = process.uptime()
  const seeds = Array.from({ length: count }, (_, index) => from + index)
  const caught = await findSeed(workload, mutant, seeds, (seed, eventsMax) => {
    console.log(`trying seed ${seed}, ${eventsMax} events`)
  })
  if (caught === undefined) {
    console.log(
      `${mutant}: ${count} seeds from ${from} on do not catch it (${(process.uptime() - began).toFixed(0)} s)`,
    )
    return 1
  }
  const { seed, events, seconds, error } = caught
  console.log(`${mutant}: seed ${seed}, ${events} events, ${seconds.toFixed(1)} s: ${error.message.split('\n')[0]}`)
  return 0
}

async function runSeeds(workload: Workload, from: number, count: number, limitSeconds: number): Promise<number> {
  const { mutant, trace } = values
  const began = process.uptime()
  let events = 0
  let virtualMs = 0
  let shown = began
  let lived = 0
  console.log(`workload ${workload.name}, first seed ${from}`)
  for (let index = 0; index < count && process.uptime() - began < limitSeconds; index++) {
    const seed = (from + index) % 0x1_0000_0000
    const result = await runSimulation({ seed, workload, mutant, keepTrace: trace })
    events += result.events
    virtualMs += result.virtualMs
    if (trace) console.log(result.lines?.join('\n'))
    if (result.error !== undefined) {
      console.error(`seed ${seed} failed after ${result.events} events, ${result.virtualMs} ms of its time:`)
      console.error(result.error.stack)
      const broken = mutant === undefined ? '' : ` --mutant ${mutant}`
      console.error(`\nreplay: npm run sim -- --workload ${workload.name} --seed ${seed}${broken}`)
      return 1
    }
    if (count === 1) console.log(`seed ${seed}: ${result.events} events, trace ${result.hash}`)
    if (process.uptime() - shown > 10) {
      shown = process.uptime()
      console.log(`${index + 1} seeds, ${events} events`)
    }
    lived++
  }
  const seconds = process.uptime() - began
  const life = `${(virtualMs / 3_600_000).toFixed(2)} h of ${workload.name} life`
  console.log(`held: ${lived} seeds, ${life}, ${events} events in ${seconds.toFixed(1)} s`)
  return 0
}
