/** What happens to machines, processes and networks, done to three nodes of ours in real processes. */
import { setTimeout as delay } from 'node:timers/promises'
import { SeededRandom } from '../../src/base/random.ts'
import { electLeaders } from '../../src/client/admin/elections.ts'
import { withoutKafka } from '../reliability/rig.ts'
import { SmallDisk, withoutMount } from '../reliability/small-disk.ts'
import { SUITES } from '../suites.ts'
import { MixedCluster } from './members.ts'
import { type ClientName, Trial } from './trial.ts'

export interface DisturbOptions {
  readonly seed: number
  /** Asked after each fault, of whole rounds or not. */
  readonly until: (so: { readonly elapsedMs: number; readonly faults: number }) => boolean
  /** Names of the faults of a round. */
  readonly faults: readonly string[]
  /** Whether a round has them as they stand, not as they are drawn. */
  readonly inOrder?: boolean
  readonly clients: readonly ClientName[]
  readonly python?: string | undefined
  readonly perSecond: number
  /** No fault lasts longer than this and its least, in milliseconds; without it, each as its name says. */
  readonly shortMs?: number
  readonly sessionTimeoutMs: number
  say(text: string): void
}

export interface Disturbed {
  readonly wrong: readonly string[]
  /** By fault, the longest time in which one partition had no acknowledgement, in milliseconds. */
  readonly longestGapMs: ReadonlyMap<string, number>
  readonly counts: string
}

interface Scene {
  readonly cluster: MixedCluster
  readonly trial: Trial
  readonly disk: SmallDisk | undefined
  readonly random: SeededRandom
  /** How long a fault lasts. */
  lasting(least: number, most: number): number
}

/** Of the partitions' leaders, of those that lead the fewest, and of the controllers. */
async function leaderOf({ trial, random }: Scene): Promise<number> {
  const leaders = (await trial.leaders()).filter(id => id >= 0)
  return random.pick(leaders)
}

async function activeController({ cluster }: Scene): Promise<number> {
  return (await cluster.untilLed()).leaderId
}

async function other(scene: Scene): Promise<number> {
  const active = await activeController(scene)
  const others = [1, 2, 3].filter(id => id !== active)
  return scene.random.pick(others)
}

async function crash({ cluster, lasting }: Scene, id: number): Promise<string> {
  await cluster.member(id).kill()
  const awayMs = lasting(1_000, 5_000)
  await delay(awayMs)
  cluster.start(id)
  return `node ${id} for ${awayMs} ms`
}

async function freeze({ cluster, lasting }: Scene, id: number, least: number, most: number): Promise<string> {
  cluster.member(id).signal('SIGSTOP')
  const stillMs = lasting(least, most)
  await delay(stillMs)
  cluster.member(id).signal('SIGCONT')
  return `node ${id} for ${stillMs} ms`
}

async function disconnect(scene: Scene, id: number, state: 'cut' | 'held', least: number, most: number) {
  const { links } = scene.cluster.member(id)
  for (const link of links) await link.be(state)
  const awayMs = scene.lasting(least, most)
  await delay(awayMs)
  for (const link of links) await link.be('open')
  return `node ${id} for ${awayMs} ms`
}

type Fault = (scene: Scene) => Promise<string | undefined>

/** Each does its harm, takes it back, and says what it was; undefined where it cannot be done here. */
export const FAULTS: Readonly<Record<string, Fault>> = {
  'kill -9 of a leader': async scene => crash(scene, await leaderOf(scene)),
  'kill -9 of the active controller': async scene => crash(scene, await activeController(scene)),
  'kill -9 of another node': async scene => crash(scene, await other(scene)),
  'a leader stopped (SIGSTOP) for 5 to 20 s': async scene => freeze(scene, await leaderOf(scene), 5_000, 20_000),
  'the active controller stopped for 5 to 20 s': async scene =>
    freeze(scene, await activeController(scene), 5_000, 20_000),
  'a node stopped for less than 2 s': async scene => freeze(scene, await leaderOf(scene), 200, 2_000),
  'connections to a leader cut, and refused for 2 to 10 s': async scene =>
    disconnect(scene, await leaderOf(scene), 'cut', 2_000, 10_000),
  'connections to the active controller cut, and refused for 2 to 10 s': async scene =>
    disconnect(scene, await activeController(scene), 'cut', 2_000, 10_000),
  'connections to a leader half-open for 5 to 20 s': async scene =>
    disconnect(scene, await leaderOf(scene), 'held', 5_000, 20_000),
  'connections to the active controller half-open for 5 to 20 s': async scene =>
    disconnect(scene, await activeController(scene), 'held', 5_000, 20_000),
  'all connections of all nodes reset': async ({ cluster }) => {
    for (const { links } of cluster.members) for (const link of links) link.reset()
    return 'once'
  },
  'a slow link to a node for 5 s': async scene => {
    const id = await leaderOf(scene)
    const { links } = scene.cluster.member(id)
    const ms = scene.random.between(20, 200)
    for (const link of links) link.delay(ms)
    await delay(5_000)
    for (const link of links) link.delay(0)
    return `node ${id}, each way ${ms} ms`
  },
  'a full disk for 5 to 15 s': async ({ disk, lasting }) => {
    if (disk === undefined) return undefined
    disk.leave(0)
    const fullMs = lasting(5_000, 15_000)
    await delay(fullMs)
    disk.free()
    return `node 3 for ${fullMs} ms`
  },
  'a rolling restart': async ({ cluster, trial }) => {
    for (const { id } of cluster.members) {
      const code = await cluster.member(id).stop()
      if (code !== 0) throw new Error(`node ${id} ended with ${code}\n${cluster.member(id).log()}`)
      cluster.start(id)
      await cluster.untilLive()
      await trial.untilInSync()
    }
    return 'nodes 1, 2, 3'
  },
  'kill -9 of all nodes at once': async ({ cluster }) => {
    await Promise.all(cluster.members.map(member => member.kill()))
    cluster.start()
    return 'and a start of all'
  },
}

const DISK_BYTES = 256 << 20
const PARTITIONS = 6

/** Whoever can write and read here besides our own client, and why the others cannot. */
export async function clientsHere(): Promise<{ clients: ClientName[]; python: string | undefined; missing: string[] }> {
  const clients: ClientName[] = ['tidemark']
  const missing: string[] = []
  const withoutJava = await withoutKafka()
  if (withoutJava === false) clients.push('java')
  else missing.push(`Kafka's clients: ${withoutJava}`)
  const prepared = await SUITES.find(({ name }) => name === 'librdkafka')?.prepare()
  if (prepared !== undefined && 'command' in prepared) {
    clients.push('librdkafka')
    return { clients, python: prepared.command[0], missing }
  }
  missing.push(`librdkafka: ${prepared?.missing ?? 'there is no such suite'}`)
  return { clients, python: undefined, missing }
}

export async function disturb(options: DisturbOptions): Promise<Disturbed> {
  const { seed, clients, python, perSecond, shortMs, sessionTimeoutMs, say } = options
  const random = new SeededRandom(seed)
  const disk = withoutMount() === false ? new SmallDisk(DISK_BYTES) : undefined
  const onExit = (): void => disk?.remove()
  process.on('exit', onExit)
  const member = { kind: 'tidemark', roles: 'broker,controller' } as const
  const cluster = await MixedCluster.create({
    members: [member, member, disk === undefined ? member : { ...member, folder: disk.data }],
    linked: true,
    settings: { 'broker.session.timeout.ms': String(sessionTimeoutMs) },
  })
  const longestGapMs = new Map<string, number>()
  const times = new Map<string, number>()
  let trial: Trial | undefined
  try {
    cluster.start()
    await cluster.untilLive()
    const placement = Array.from({ length: PARTITIONS }, (_, index) => [0, 1, 2].map(next => ((index + next) % 3) + 1))
    const load = { writers: clients, readers: clients, perSecond, python }
    trial = await Trial.begin(cluster, { topic: 'disturbed', placement, minIsr: 2, ...load })
    await trial.untilInSync()
    const lasting = (least: number, most: number) => random.between(least, Math.min(most, least + (shortMs ?? most)))
    const scene: Scene = { cluster, trial, disk, random, lasting }
    const began = performance.now()
    let round: string[] = []
    for (let faults = 0; !options.until({ elapsedMs: performance.now() - began, faults }); faults++) {
      if (round.length === 0)
        round = options.inOrder === true ? [...options.faults] : shuffled([...options.faults], random)
      const name = round.shift() ?? ''
      const fault = FAULTS[name]
      if (fault === undefined) throw new Error(`there is no fault "${name}"`)
      const from = Date.now()
      const what = await cluster.during(fault(scene))
      if (what === undefined) {
        say(`skipped ${name}: it cannot be done here`)
        continue
      }
      await cluster.untilLive()
      await trial.untilInSync()
      await trial.untilWritten(2)
      const gaps = trial.gaps(from)
      const worst = Math.max(...Object.values(gaps))
      longestGapMs.set(name, Math.max(longestGapMs.get(name) ?? 0, worst))
      times.set(name, (times.get(name) ?? 0) + 1)
      const felt = Object.entries(gaps).map(([client, ms]) => `${client} ${ms}`)
      const at = ((performance.now() - began) / 1000).toFixed(0).padStart(5)
      say(`${at} s  ${name}: ${what}; felt for (ms) ${felt.join(', ')}; all well after ${Date.now() - from} ms`)
      // So that there are leaders everywhere again.
      await electLeaders(trial.client, 'preferred')
      await delay(1_000)
    }
    return await summary(trial, longestGapMs, times, say)
  } finally {
    await trial?.abandon()
    if (process.env.FAULTS_KEEP === undefined) await cluster.remove()
    else say(`kept: ${await cluster.leave()}`)
    process.off('exit', onExit)
    disk?.remove()
  }
}

async function summary(
  trial: Trial,
  longestGapMs: ReadonlyMap<string, number>,
  times: ReadonlyMap<string, number>,
  say: (text: string) => void,
): Promise<Disturbed> {
  const verdict = await trial.verdict()
  say('\nlongest time without an acknowledgement for a partition, by fault:')
  for (const [name, ms] of longestGapMs) say(`  ${String(ms).padStart(6)} ms  ${name} (${times.get(name)} times)`)
  const counts = [
    `${verdict.records} records are there`,
    ...verdict.writers.map(
      ({ name, acknowledged, refused, unconfirmed }) =>
        `${name}: ${acknowledged} acknowledged, ${refused} given up, ${unconfirmed} there without an answer`,
    ),
    `${verdict.commits} commits of offsets`,
    ...verdict.read,
  ]
  say(`\n${counts.join('\n')}`)
  say(verdict.wrong.length === 0 ? 'all is there once and in order' : `WRONG\n${verdict.wrong.join('\n')}`)
  return { wrong: verdict.wrong, longestGapMs, counts: counts.join('; ') }
}

function shuffled(names: string[], random: SeededRandom): string[] {
  for (let at = names.length - 1; at > 0; at--) {
    const from = random.between(0, at)
    const [a, b] = [names[at], names[from]]
    if (a !== undefined && b !== undefined) [names[at], names[from]] = [b, a]
  }
  return names
}
