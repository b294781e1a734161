// npm run bench -- [scale] [OPTIONS]: Kafka and Tidemark side by side, in one run, on the same cores.
import { existsSync, mkdirSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { cluster } from './cluster.ts'
import { clusterScale } from './cluster-scale.ts'
import { Floor } from './floor.ts'
import { buildPackage } from './package.ts'
import { Profiler, summary } from './profile.ts'
import { scale } from './scale.ts'
import { type From, peer, root, Server, type ServerKind } from './server.ts'
import { type Row, table } from './table.ts'
import { Tools } from './tools.ts'
import { type Setting, WORKLOADS, type Workload } from './workloads.ts'

const USAGE = `npm run bench -- [OPTIONS]          Kafka and Tidemark side by side
npm run bench -- scale [OPTIONS]    10,000 partitions, 2,000 idle consumers
npm run bench -- cluster [OPTIONS]  three nodes of each: replicated records, deaths, rolling restarts
npm run bench -- cluster-scale      24,000 and 48,000 partitions on 18 simulated brokers; --real: 3,000 on three nodes

  --only A,B     of: start, floor, ${WORKLOADS.map(({ name }) => name).join(', ')}
  --gb N         payload per measurement in GB (default 1)
  --rounds N     measurements of each figure, of which the median counts (default 3)
  --quick        small and once: whether it runs, not how fast
  --server X     only tidemark or only kafka
  --real         of cluster-scale: three processes instead of a simulation
  --package      run Tidemark as the package that others install, not from source
  --profile      only Tidemark, with a CPU profile per workload`

const PROFILES = join(root, '.cache', 'bench')

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: 'string' },
    gb: { type: 'string' },
    rounds: { type: 'string' },
    quick: { type: 'boolean', default: false },
    real: { type: 'boolean', default: false },
    server: { type: 'string' },
    package: { type: 'boolean', default: false },
    profile: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const names = ['start', 'floor', ...WORKLOADS.map(({ name }) => name)]
const only = flags.only?.split(',') ?? names
const unknown = only.find(name => !names.includes(name))
const mode = positionals[0]
const MODES = ['scale', 'cluster', 'cluster-scale']
if (flags.help || unknown !== undefined || (mode !== undefined && !MODES.includes(mode))) {
  process.stdout.write(`${unknown === undefined ? '' : `There is no ${unknown}.\n`}${USAGE}\n`)
  process.exit(flags.help ? 0 : 2)
}
// Servers and their folders go with the process, however it ends.
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void removeAll().then(() => process.exit(130)))

const from: From = flags.package ? 'package' : 'source'
if (flags.package) await buildPackage()

const servers: Server[] = []
const floors: Floor[] = []
const tools = new Tools()
const failures: string[] = []
let missed = false
let ending = false

try {
  if (mode === 'scale')
    missed = !(await scale({
      kind: kinds()[0] ?? 'tidemark',
      from,
      quick: flags.quick,
      inspect: flags.profile,
      track,
      profiled,
    }))
  else if (mode === 'cluster') {
    const rounds = Number(flags.rounds ?? 1)
    missed = !(await cluster({ kinds: kinds(), from, quick: flags.quick, rounds, tools, track, say }))
  } else if (mode === 'cluster-scale') {
    const profiles = flags.profile ? PROFILES : undefined
    missed = !(await clusterScale({ from, real: flags.real, quick: flags.quick, profiles, track, say }))
  } else await sideBySide()
} finally {
  await removeAll()
}
process.exitCode = failures.length > 0 || missed ? 1 : 0

function kinds(): ServerKind[] {
  const all: ServerKind[] = ['tidemark', 'kafka']
  if (flags.profile || mode === 'scale') return flags.server === 'kafka' ? ['kafka'] : ['tidemark']
  return all.filter(kind => flags.server === undefined || flags.server === kind)
}

function track(server: Server): Server {
  servers.push(server)
  if (ending) void removeAll()
  return server
}

async function removeAll(): Promise<void> {
  ending = true
  tools.stop()
  await Promise.all([...servers.splice(0), ...floors.splice(0)].map(one => one.remove()))
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

async function sideBySide(): Promise<void> {
  if (!existsSync(join(peer, 'fetch'))) throw new Error(`Kafka and its tools are needed, and ${peer} is not there`)
  const setting: Setting = {
    tools,
    from,
    gigabytes: Number(flags.gb ?? (flags.quick ? 0.1 : 1)),
    warmUpGigabytes: flags.quick ? 0.1 : 3 * Number(flags.gb ?? 1),
    steadySeconds: flags.quick ? 4 : 20,
  }
  const rounds = Number(flags.rounds ?? (flags.quick ? 1 : 3))
  const load = loadavg()[0]?.toFixed(1)
  say(
    `${cpus().length} × ${cpus()[0]?.model}, load ${load} before; ${setting.gigabytes} GB, ${rounds} rounds, Tidemark from ${from}`,
  )
  const rows = new Map<string, Row>()
  if (only.includes('start')) await attempt('start', () => starts(rows, rounds))
  const wanted = WORKLOADS.filter(({ name }) => only.includes(name))
  if (only.includes('floor')) await attempt('floor', () => floor(rows, rounds, setting))
  if (wanted.length > 0) {
    const running: Server[] = []
    for (const kind of kinds())
      await attempt(`${kind} start`, async () => {
        const server = track(await Server.create({ kind, from, inspect: flags.profile }))
        await server.start()
        running.push(server)
      })
    for (const workload of wanted) await perform(workload, running, rows, rounds, setting)
  }
  compareWithFloor(rows)
  say(`\n${table([...rows.values()].filter(({ ours, theirs }) => ours.length + theirs.length > 0))}`)
  say(`\nMedian (least–most). Load ${loadavg()[0]?.toFixed(1)} after: what else ran on these cores is in the figures.`)
  for (const failure of failures) say(`FAILED ${failure}`)
}

function rowOf(rows: Map<string, Row>, key: string, figure: Omit<Row, 'ours' | 'theirs'>): Row {
  const row = rows.get(key) ?? { ...figure, ours: [], theirs: [] }
  rows.set(key, row)
  return row
}

function add(row: Row, kind: ServerKind, value: number): void {
  const values = kind === 'tidemark' ? row.ours : row.theirs
  values.push(value)
}

/** A figure that cannot be taken is said, and the others are taken. */
async function attempt(what: string, work: () => Promise<void>): Promise<boolean> {
  try {
    await work()
    return true
  } catch (error) {
    const dead = servers.filter(server => server.ended !== undefined)
    const lasts = dead.map(server => `\n${server.kind} ${server.ended}:\n${server.lastLog(8)}`)
    const why = `${(error as Error).message}${lasts.join('')}`
    failures.push(`${what}: ${why}`)
    say(`  ${what}: ${why}`)
    return false
  }
}

async function perform(
  workload: Workload,
  running: readonly Server[],
  rows: Map<string, Row>,
  rounds: number,
  setting: Setting,
): Promise<void> {
  const { name, figures } = workload
  for (const [key, figure] of Object.entries(figures)) rowOf(rows, `${name} ${key}`, figure)
  const able: Server[] = []
  for (const server of running)
    if (await attempt(`${name}, warm-up of ${server.kind}`, () => workload.warmUp(server, setting))) able.push(server)
  for (let round = 1; round <= (name === 'memory' ? 1 : rounds); round++)
    for (const server of able)
      await attempt(`${name} of ${server.kind}`, async () => {
        const values = await profiled(`${name}-${round}`, server, () => workload.measure(server, setting))
        for (const [key, value] of Object.entries(values)) {
          const row = rows.get(`${name} ${key}`)
          if (row !== undefined) add(row, server.kind, value)
        }
        const said = Object.entries(values).map(([key, value]) => `${key} ${value.toFixed(2)}`)
        say(`  ${name} ${round}/${rounds} ${server.kind.padEnd(8)} ${said.join(', ')}`)
      })
}

async function profiled<T>(name: string, server: Server, work: () => Promise<T>): Promise<T> {
  if (!flags.profile || server.kind === 'kafka') return work()
  mkdirSync(PROFILES, { recursive: true })
  const profiler = await Profiler.open(server.inspectorUrl())
  try {
    await profiler.start()
    const result = await work()
    const file = join(PROFILES, `${name}.cpuprofile`)
    const profile = await profiler.stop(file)
    say(`\n${file}\n${summary(profile, root)}\n`)
    return result
  } finally {
    profiler.close()
  }
}

/** From nothing: how soon it answers, what it holds when nobody asks. */
async function starts(rows: Map<string, Row>, rounds: number): Promise<void> {
  const empty = rowOf(rows, 'start empty', {
    what: 'first metadata answer, empty folder',
    unit: 'ms',
    target: { most: 0.1 },
  })
  const again = rowOf(rows, 'start again', {
    what: 'first metadata answer, folder in use before',
    unit: 'ms',
    target: { most: 0.1 },
  })
  const idle = rowOf(rows, 'start idle', { what: 'resident memory, idle', unit: 'MiB', target: { most: 0.25 } })
  for (let round = 1; round <= rounds; round++)
    for (const kind of kinds())
      await attempt(`start of ${kind}`, async () => {
        const server = track(await Server.create({ kind, from }))
        const firstMs = await server.start()
        await delay(flags.quick ? 2_000 : 8_000)
        const residentMiB = server.residentMiB()
        await server.stop()
        const againMs = await server.start()
        await server.remove()
        add(empty, kind, firstMs)
        add(again, kind, againMs)
        add(idle, kind, residentMiB)
        const figures = [`${firstMs.toFixed(0)} ms, then ${againMs.toFixed(0)} ms`, `${residentMiB.toFixed(0)} MiB`]
        say(`  start ${round}/${rounds} ${kind.padEnd(8)} ${figures.join(', ')}`)
      })
}

async function floor(rows: Map<string, Row>, rounds: number, setting: Setting): Promise<void> {
  const built = await Floor.build()
  if (typeof built === 'string') {
    say(`  no floor: ${built}`)
    return
  }
  floors.push(built)
  const ingest = rowOf(rows, 'floor ingest', {
    what: 'produce, against socket to file in C',
    unit: 'CPU-s/GB',
    target: { most: 1.3 },
    with: 'floor',
  })
  const egress = rowOf(rows, 'floor egress', {
    what: 'consume, against cached file to socket in C',
    unit: 'CPU-s/GB',
    with: 'floor',
  })
  for (let round = 1; round <= rounds; round++) {
    const cost = await built.measure(setting.gigabytes)
    ingest.theirs.push(cost.ingest)
    egress.theirs.push(cost.egress)
    say(`  floor ${round}/${rounds}          ingest ${cost.ingest}, egress ${cost.egress}`)
  }
}

/** The floor's rows hold the same figures of ours as those that stand beside Kafka's. */
function compareWithFloor(rows: Map<string, Row>): void {
  rows.get('floor ingest')?.ours.push(...(rows.get('produce cpu')?.ours ?? []))
  rows.get('floor egress')?.ours.push(...(rows.get('consume cpu')?.ours ?? []))
}
