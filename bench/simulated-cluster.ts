// A process of its own: a cluster of 3 controllers and 18 brokers, the real ones, on the simulated world. Times are virtual,
// without the time that processors take, which is measured beside them. Arguments: partitions to go through, in order, and
// a folder for CPU profiles, if they are wanted.
import { mkdirSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { join } from 'node:path'
import { ByteWriter } from '#base/bytes.ts'
import { metadata } from '#broker/requests/03-metadata.ts'
import { serverConfig } from '#core/config/server.ts'
import { MetadataImage } from '#core/metadata/image.ts'
import { decodeMetadataRecord, encodeMetadataRecord } from '#core/metadata/record.ts'
import { Channel } from '#network/channel.ts'
import type { Call } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { encode } from '#protocol/codec.ts'
import type { FakeNode } from '#world/fake/fake-node.ts'
import { Simulation } from '#world/fake/simulation.ts'
import type { Sink, Socket, World } from '#world/world.ts'
import { type RunningNode, startNode } from '../src/node.ts'
import { type CpuProfile, summary } from './profile.ts'
import { root } from './server.ts'

const CONTROLLERS = [101, 102, 103]
const BROKERS = Array.from({ length: 18 }, (_, index) => index + 1)
const PARTITIONS_PER_TOPIC = 10
const TOPICS_PER_REQUEST = 300
const REPLICAS = 3
const PORT = 9092
const CONTROLLER_PORT = 9093
const POLL_MS = 1
const IDLE_MS = 30_000
const MB = 1e6

const stages = (process.argv[2] ?? '24000').split(',').map(Number)
const profiles = process.argv[3]

const simulation = new Simulation(1)

/** Whose code runs: the thread's processor time is charged to one node after another. What no node's code is, is the world's. */
const spent = new Map<string, number>()
let longest: { node: string; ms: number } = { node: '', ms: 0 }
let whose = 'world'
let since = threadMs()

function threadMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

function enter(next: string): void {
  const now = threadMs()
  const ms = now - since
  spent.set(whose, (spent.get(whose) ?? 0) + ms)
  if (whose !== 'world' && ms > longest.ms) longest = { node: whose, ms }
  since = now
  whose = next
}

function charged(node: FakeNode): World {
  const { after } = node
  node.after = (delay, run) =>
    after.call(node, delay, () => {
      enter(node.name)
      run()
    })
  const { world } = node
  const charge = (socket: Socket): Socket => {
    const { attach } = socket
    socket.attach = sink => {
      const charging: Sink = {
        space: () => sink.space(),
        received: size => {
          enter(node.name)
          sink.received(size)
        },
        drained: () => sink.drained(),
        closed: error => sink.closed(error),
      }
      attach.call(socket, charging)
    }
    return socket
  }
  const { network } = world
  return {
    ...world,
    network: {
      listen: (address, accept) => network.listen(address, socket => accept(charge(socket))),
      connect: async (address, timeoutMs) => charge(await network.connect(address, timeoutMs)),
    },
  }
}

const { schedule } = simulation
const { after: scheduleAfter } = schedule
schedule.after = (delay, run) =>
  scheduleAfter.call(schedule, delay, () => {
    enter('world')
    run()
  })

function nameOf(id: number): string {
  return `n${id}`
}

const running = new Map<number, RunningNode>()

async function start(id: number): Promise<void> {
  const isController = CONTROLLERS.includes(id)
  const node = simulation.node(nameOf(id))
  const listener = isController ? `CONTROLLER://${nameOf(id)}:${CONTROLLER_PORT}` : `PLAINTEXT://${nameOf(id)}:${PORT}`
  const voters = CONTROLLERS.map(voter => `${voter}@${nameOf(voter)}:${CONTROLLER_PORT}`)
  const result = serverConfig({
    overrides: [
      `node.id=${id}`,
      `process.roles=${isController ? 'controller' : 'broker'}`,
      'log.dirs=/data/tidemark',
      `listeners=${listener}`,
      'controller.listener.names=CONTROLLER',
      `controller.quorum.voters=${voters.join(',')}`,
    ],
  })
  if ('errors' in result) throw new Error(JSON.stringify(result.errors))
  const world = charged(node)
  await world.disk.makeFolder('/data')
  await world.disk.syncFolder('/')
  running.set(id, await startNode(world, result.config))
}

function brokers() {
  return BROKERS.flatMap(id => running.get(id)?.broker ?? [])
}

function activeController() {
  return CONTROLLERS.map(id => running.get(id)?.controller).find(controller => controller?.isActive)
}

async function until(what: string, holds: () => boolean, limitMs = 120_000): Promise<void> {
  const end = schedule.now / 1000 + limitMs
  while (!holds()) {
    if (schedule.now / 1000 > end) throw new Error(`not within ${limitMs} ms: ${what}`)
    await simulation.wait(POLL_MS)
  }
}

/** Every partition has a leader that lives, and every broker knows and does what it should. */
function isSettled(partitions: number): boolean {
  const live = new Set(brokers().map(({ nodeId }) => nodeId))
  for (const broker of brokers()) {
    let count = 0
    for (const topic of broker.metadata.image.topics.values()) {
      for (const [index, { leader }] of topic.partitions.entries()) {
        count++
        if (!live.has(leader)) return false
        if (leader !== broker.nodeId) continue
        const found = broker.partitions.find(undefined, topic.id, index)
        if (typeof found === 'string' || !found.leads) return false
      }
    }
    if (count !== partitions) return false
  }
  return true
}

/** Whether all replicas of all partitions are in sync, as the active controller has it. */
function isInSync(): boolean {
  const image = activeController()?.image
  if (image === undefined) return false
  for (const topic of image.topics.values()) {
    if (topic.partitions.some(({ isr, replicas }) => isr.length < replicas.length)) return false
  }
  return true
}

let inspector: Session | undefined

async function profiled<T>(name: string, work: () => Promise<T>): Promise<T> {
  if (profiles === undefined) return await work()
  inspector ??= new Session()
  inspector.connect()
  await inspector.post('Profiler.enable')
  await inspector.post('Profiler.start')
  try {
    return await work()
  } finally {
    const { profile } = (await inspector.post('Profiler.stop')) as unknown as { profile: CpuProfile }
    inspector.disconnect()
    mkdirSync(profiles, { recursive: true })
    writeFileSync(join(profiles, `${name}.cpuprofile`), JSON.stringify(profile))
    process.stdout.write(`\n${name}\n${summary(profile, root)}\n`)
  }
}

interface Phase {
  readonly virtualMs: number
  readonly cpuMs: number
}

/** Says how long it took, what processors took for it, and who most of that. */
async function phase(name: string, work: () => Promise<void>): Promise<Phase> {
  enter('world')
  spent.clear()
  longest = { node: '', ms: 0 }
  const began = schedule.now
  const events = schedule.count
  const cpu = process.cpuUsage()
  await profiled(name.replaceAll(/\W+/g, '-'), work)
  enter('world')
  const { user, system } = process.cpuUsage(cpu)
  const cpuMs = (user + system) / 1000
  const virtualMs = (schedule.now - began) / 1000
  const nodes = [...spent].filter(([node]) => node !== 'world').sort((a, b) => b[1] - a[1])
  const of = (ids: readonly number[]) =>
    ids.map(id => spent.get(nameOf(id)) ?? 0).reduce((sum, ms) => sum + ms, 0) / ids.length
  say(
    name,
    `${virtualMs.toFixed(0)} ms virtual, ${(cpuMs / 1000).toFixed(2)} s CPU in all (${schedule.count - events} events); ` +
      `a broker ${of(BROKERS).toFixed(0)} ms, a controller ${of(CONTROLLERS).toFixed(0)} ms, ` +
      `most ${nodes[0]?.[0]} ${nodes[0]?.[1].toFixed(0)} ms; longest turn ${longest.ms.toFixed(0)} ms at ${longest.node}`,
  )
  return { virtualMs, cpuMs }
}

function say(what: string, value: string): void {
  process.stdout.write(`  ${what}: ${value}\n`)
}

function heapMB(): number {
  globalThis.gc?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return (heapUsed + arrayBuffers) / MB
}

const client = simulation.node('client')

async function createTopics(from: number, count: number): Promise<void> {
  const channel = await Channel.connect(client.world, { host: nameOf(1), port: PORT })
  await channel.negotiate()
  for (let at = from; at < from + count; at += TOPICS_PER_REQUEST) {
    const some = Math.min(TOPICS_PER_REQUEST, from + count - at)
    const answer = await channel.ask(
      API.CreateTopics,
      {
        topics: Array.from({ length: some }, (_, index) => ({
          name: `topic-${at + index}`,
          numPartitions: PARTITIONS_PER_TOPIC,
          replicationFactor: REPLICAS,
        })),
        timeoutMs: 60_000,
      },
      { timeoutMs: 90_000 },
    )
    const refused = answer.topics.find(({ errorCode }) => errorCode !== 0)
    if (refused !== undefined) throw new Error(`${refused.name}: ${refused.errorCode} ${refused.errorMessage}`)
  }
  channel.close()
}

async function stage(partitions: number, before: number): Promise<void> {
  process.stdout.write(`\n${partitions} partitions, ${REPLICAS} replicas each, on ${BROKERS.length} brokers\n`)
  const heapBefore = heapMB()
  await phase(`create ${partitions - before}`, async () => {
    await createTopics(before / PARTITIONS_PER_TOPIC, (partitions - before) / PARTITIONS_PER_TOPIC)
    await until('all partitions are led', () => isSettled(partitions))
    await until('all replicas are in sync', isInSync)
  })
  await simulation.wait(2000)
  const replicas = ((partitions - before) * REPLICAS) | 0
  say(
    'heap',
    `${heapMB().toFixed(0)} MB, all nodes with their simulated disks: ` +
      `${(((heapMB() - heapBefore) * MB) / replicas / 1000).toFixed(2)} KB per replica that was added, with its share of 21 images`,
  )
  imageMemory(partitions)
  await idle(`at rest ${partitions}`)
  await metadataAnswer()
  await brokerDeath(partitions)
  await controllerDeath(partitions)
}

async function idle(name: string): Promise<void> {
  const { virtualMs } = await phase(name, () => simulation.wait(IDLE_MS))
  const share = (ids: readonly number[]): number[] =>
    ids.map(id => ((spent.get(nameOf(id)) ?? 0) / virtualMs) * 100).sort((a, b) => a - b)
  const some = share(BROKERS)
  const led = [...(brokers()[0]?.partitions.all() ?? [])]
  say(
    'a broker at rest',
    `${some[some.length >> 1]?.toFixed(2)} % of a core (${some[0]?.toFixed(2)}–${some.at(-1)?.toFixed(2)}), ` +
      `with ${led.length} replicas of which it leads ${led.filter(({ leads }) => leads).length}`,
  )
}

/** What the metadata of one node takes: folded anew from the records of a snapshot. */
function imageMemory(partitions: number): void {
  const source = activeController()?.image
  if (source === undefined) throw new Error('there is no active controller')
  const records = [...source.snapshotRecords()].map(encodeMetadataRecord)
  const bytes = records.reduce((sum, record) => sum + record.length, 0)
  const before = heapMB()
  const image = new MetadataImage()
  const cpu = threadMs()
  for (const [index, record] of records.entries()) image.apply(decodeMetadataRecord(record), index, 1)
  const cpuMs = threadMs() - cpu
  const used = heapMB() - before
  // Both are needed to here, so that only the image is new.
  say(
    'image of the metadata',
    `${((used * MB) / partitions).toFixed(0)} bytes per partition (${image.topics.size} topics, ${records.length} records), ` +
      `folded in ${cpuMs.toFixed(0)} ms CPU; a snapshot is ${(bytes / MB).toFixed(1)} MB`,
  )
  enter('world')
}

async function metadataAnswer(): Promise<void> {
  const broker = brokers()[0]
  if (broker === undefined) throw new Error('there is no broker')
  const served = metadata(broker)
  for (const version of [12, 13]) {
    const all: number[] = []
    const encoding: number[] = []
    let size = 0
    for (let round = 0; round < 15; round++) {
      const call = {
        apiVersion: version,
        caller: { listener: 'PLAINTEXT', local: { host: nameOf(1), port: PORT } },
      } as unknown as Call
      const began = threadMs()
      const answer = await served.handle(
        { topics: null, allowAutoTopicCreation: false, includeTopicAuthorizedOperations: false } as never,
        call,
      )
      const described = threadMs()
      const writer = new ByteWriter()
      encode(API.Metadata.response, version, answer as never, writer)
      const ended = threadMs()
      size = writer.written().length
      encoding.push(ended - described)
      all.push(ended - began)
    }
    const middle = (values: number[]) => [...values].sort((a, b) => a - b)[values.length >> 1]?.toFixed(1)
    say(
      `Metadata v${version} of everything`,
      `${(size / MB).toFixed(2)} MB in ${middle(all)} ms CPU, of which encoding ${middle(encoding)} ms; first time ${all[0]?.toFixed(1)} ms`,
    )
  }
  enter('world')
}

async function brokerDeath(partitions: number): Promise<void> {
  const id = BROKERS.at(-1) as number
  const offset = activeController()?.nextOffset ?? 0
  running.delete(id)
  await phase(`death of a broker ${partitions}`, async () => {
    simulation.node(nameOf(id)).crash()
    await until('all of its partitions are led by others', () => {
      const [broker] = brokers()
      return broker?.metadata.image.broker(id)?.fenced === true && isSettled(partitions)
    })
  })
  say('metadata records that it took', String((activeController()?.nextOffset ?? 0) - offset))
  await phase(`its return ${partitions}`, async () => {
    await start(id)
    await until('all replicas are in sync', isInSync)
  })
}

async function controllerDeath(partitions: number): Promise<void> {
  const active = activeController()
  if (active === undefined) throw new Error('there is no active controller')
  const id = active.nodeId
  running.delete(id)
  await phase(`death of the active controller ${partitions}`, async () => {
    simulation.node(nameOf(id)).crash()
    await until('another is active', () => activeController() !== undefined)
  })
  await phase('  and until it takes a new topic', async () => {
    await createTopics(900_000 + partitions, 1)
  })
  await deleteTopic(`topic-${900_000 + partitions}`)
  await phase('  its return', async () => {
    await start(id)
    await simulation.wait(2000)
  })
}

async function deleteTopic(name: string): Promise<void> {
  const channel = await Channel.connect(client.world, { host: nameOf(1), port: PORT })
  await channel.negotiate()
  await channel.ask(API.DeleteTopics, { topics: [{ name }], timeoutMs: 30_000 })
  channel.close()
}

async function run(): Promise<void> {
  await phase('start', async () => {
    await Promise.all([...CONTROLLERS, ...BROKERS].map(start))
  })
  let before = 0
  for (const partitions of stages) {
    await stage(partitions, before)
    before = partitions
  }
}

await simulation.run(run(), 24 * 3_600_000)
process.exit(0)
