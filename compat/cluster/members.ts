/** A cluster on this machine whose nodes are ours or Kafka's, each of which may become the other on the same folder. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomFillSync } from 'node:crypto'
import { copyFileSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { uuidFromRandom } from '../../src/base/uuid.ts'
import { type Client, connect } from '../../src/client/client.ts'
import { type ApiPair, Channel } from '../../src/network/channel.ts'
import { API } from '../../src/protocol/apis.ts'
import type { InputOf, MessageOf, Schema } from '../../src/protocol/schema.ts'
import { end, eventually, freePort, peer, root, type ServerKind } from '../processes.ts'
import { world } from '../reliability/rig.ts'
import { Link } from './link.ts'

export type Roles = 'broker' | 'controller' | 'broker,controller'

export interface MemberOptions {
  readonly kind: ServerKind
  readonly roles: Roles
  /** Configuration by Kafka's keys, besides what all have. */
  readonly settings?: Readonly<Record<string, string>>
  /** Where its data lies; by default in a folder of the cluster's. */
  readonly folder?: string
}

export interface ClusterOptions {
  /** Their numbers are 1, 2 and so on. */
  readonly members: readonly MemberOptions[]
  /** static: the controllers among the members are a fixed list. Otherwise the first founds the quorum alone. */
  readonly quorum?: 'static' | 'dynamic'
  /** Whether all connections go through proxies, which can be disturbed. */
  readonly linked?: boolean
  readonly settings?: Readonly<Record<string, string>>
  /** What a folder of Kafka's is formatted with: what both have, or all that Kafka has. */
  readonly features?: 'ours' | 'kafka'
}

/** Small and quick to start: three of them share two cores with what is tested. */
const JVM = '-Xms96m -Xmx320m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto'

/** What Kafka finalizes in a new cluster and we do not have yet: a cluster that has it refuses our brokers. */
export const FEATURES_OF_KAFKA: readonly string[] = [
  'group.version',
  'share.version',
  'streams.version',
  'transaction.version',
]

/** Until it answers or is in the cluster, and until it has gone after SIGTERM, in milliseconds. */
const START_LIMIT_MS = 120_000
const STOP_LIMIT_MS = 60_000

export class Member {
  readonly id: number
  readonly roles: Roles
  readonly folder: string
  /** Where it listens; the controller one port above. */
  readonly port: number
  /** Where others reach it: the proxies' ports, or its own. */
  readonly reachedAt: { readonly broker: number; readonly controller: number }
  readonly links: readonly Link[]
  kind: ServerKind
  readonly #dir: string
  readonly #settings: Readonly<Record<string, string>>
  #child: ChildProcess | undefined

  constructor(id: number, options: MemberOptions, dir: string, port: number, links: readonly Link[]) {
    this.id = id
    this.kind = options.kind
    this.roles = options.roles
    this.#dir = dir
    this.#settings = options.settings ?? {}
    this.folder = options.folder ?? join(dir, `data-${id}`)
    this.port = port
    this.links = links
    const [broker, controller] = links
    this.reachedAt = { broker: broker?.port ?? port, controller: controller?.port ?? port + 1 }
  }

  get isBroker(): boolean {
    return this.roles !== 'controller'
  }

  get isController(): boolean {
    return this.roles !== 'broker'
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  get properties(): string {
    return join(this.#dir, `node-${this.id}.properties`)
  }

  get logFile(): string {
    return join(this.#dir, `node-${this.id}-${this.kind}.log`)
  }

  log(lines = 30): string {
    return existsSync(this.logFile) ? readFileSync(this.logFile, 'utf8').split('\n').slice(-lines).join('\n') : ''
  }

  /** The same file for both kinds. */
  configure(common: Readonly<Record<string, string>>): void {
    const { port, reachedAt } = this
    const names = [...(this.isBroker ? ['PLAINTEXT'] : []), ...(this.isController ? ['CONTROLLER'] : [])]
    const at = (of: { broker: number; controller: number }) =>
      names.map(name => `${name}://127.0.0.1:${name === 'PLAINTEXT' ? of.broker : of.controller}`).join(',')
    const settings: Record<string, string> = {
      'process.roles': this.roles,
      'node.id': String(this.id),
      listeners: at({ broker: port, controller: port + 1 }),
      'advertised.listeners': at(reachedAt),
      'controller.listener.names': 'CONTROLLER',
      'listener.security.protocol.map': 'CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT',
      ...(this.isBroker && { 'inter.broker.listener.name': 'PLAINTEXT' }),
      'log.dirs': this.folder,
      ...common,
      ...this.#settings,
    }
    writeFileSync(
      this.properties,
      Object.entries(settings)
        .map(([key, value]) => `${key}=${value}\n`)
        .join(''),
    )
  }

  start(): void {
    const log = openSync(this.logFile, 'a')
    const [program, ...args] =
      this.kind === 'kafka'
        ? [join(peer, 'tool'), 'kafka.Kafka', this.properties]
        : [process.execPath, join(root, 'src', 'main.ts'), 'start', '--config', this.properties, '--log-format', 'json']
    const env = { ...process.env, TOOL_HEAP: JVM }
    this.#child = spawn(program as string, args as string[], { stdio: ['ignore', log, log], cwd: this.#dir, env })
    for (const link of this.links) void link.openWithTarget()
  }

  kill(): Promise<number | string> {
    return this.#end('SIGKILL', 5_000)
  }

  /** @returns the exit code, or the signal when it had to be killed. */
  stop(): Promise<number | string> {
    return this.#end('SIGTERM', STOP_LIMIT_MS)
  }

  /** Stands still, and goes on. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child?.kill(signal)
  }

  async #end(signal: NodeJS.Signals, limitMs: number): Promise<number | string> {
    const child = this.#child
    const { isRunning } = this
    this.#child = undefined
    if (child === undefined || !isRunning) return child?.exitCode ?? child?.signalCode ?? 0
    // A port of a process that is gone refuses at once: whoever looks whether it lives must not find the proxy.
    if (signal === 'SIGKILL') await Promise.all(this.links.map(link => link.refuse()))
    const result = await end(child, signal, limitMs)
    await Promise.all(this.links.map(link => link.be('cut')))
    return result
  }
}

export class MixedCluster {
  readonly members: readonly Member[]
  readonly #dir: string
  #clusterId: string
  readonly #quorum: 'static' | 'dynamic'
  readonly #features: 'ours' | 'kafka'
  #formatted: string | undefined
  readonly #onExit = (): void => {
    for (const member of this.members) if (member.pid !== undefined) process.kill(member.pid, 'SIGKILL')
    rmSync(this.#dir, { recursive: true, force: true })
  }

  private constructor(dir: string, members: readonly Member[], options: ClusterOptions) {
    this.#dir = dir
    this.members = members
    this.#quorum = options.quorum ?? 'static'
    this.#features = options.features ?? 'ours'
    this.#clusterId = drawnId()
    process.on('exit', this.#onExit)
  }

  /** Configured; nothing runs yet. */
  static async create(options: ClusterOptions): Promise<MixedCluster> {
    const dir = await mkdtemp(join(tmpdir(), 'tidemark-mixed-'))
    const members: Member[] = []
    for (const [index, member] of options.members.entries()) {
      const port = await freePairOfPorts()
      const links: Link[] = []
      if (options.linked === true) {
        const near = await freePairOfPorts()
        links.push(await Link.create(near, port), await Link.create(near + 1, port + 1))
      }
      members.push(new Member(index + 1, member, dir, port, links))
    }
    const controllers = members.filter(({ isController }) => isController)
    const quorum = options.quorum ?? 'static'
    const at = ({ reachedAt }: Member) => `127.0.0.1:${reachedAt.controller}`
    const brokers = Math.min(3, members.filter(({ isBroker }) => isBroker).length)
    for (const member of members)
      member.configure({
        ...(quorum === 'static'
          ? { 'controller.quorum.voters': controllers.map(each => `${each.id}@${at(each)}`).join(',') }
          : // Ours founds a cluster where it is told of no other node; Kafka's where it was formatted to.
            (member.id > 1 || member.kind === 'kafka') && {
              'controller.quorum.bootstrap.servers': controllers.map(at).join(','),
            }),
        'broker.rack': `rack-${member.id}`,
        'offsets.topic.num.partitions': '4',
        'offsets.topic.replication.factor': String(brokers),
        'default.replication.factor': String(brokers),
        'min.insync.replicas': String(Math.max(1, brokers - 1)),
        'num.partitions': '4',
        'group.initial.rebalance.delay.ms': '0',
        ...options.settings,
      })
    return new MixedCluster(dir, members, options)
  }

  member(id: number): Member {
    const member = this.members.find(each => each.id === id)
    if (member === undefined) throw new Error(`there is no member ${id}`)
    return member
  }

  get bootstrap(): string {
    const brokers = this.members.filter(({ isBroker }) => isBroker)
    return brokers.map(({ reachedAt }) => `127.0.0.1:${reachedAt.broker}`).join(',')
  }

  /** Waits until our controllers have founded a cluster: folders of Kafka's are to be formatted with its id. */
  async untilFounded(): Promise<void> {
    const controllers = this.members.filter(({ isController, isRunning }) => isController && isRunning)
    const founded = async () => {
      const [first] = controllers
      if (first === undefined) return false
      const { clusterId } = await ask(first.reachedAt.controller, API.DescribeCluster, { endpointType: 2 })
      this.#clusterId = clusterId
      return clusterId !== ''
    }
    await this.during(eventually('the cluster is founded', founded, START_LIMIT_MS))
  }

  /** Folders of Kafka's nodes are formatted where they are not there; ours need none. */
  start(...ids: readonly number[]): void {
    const members = ids.length === 0 ? this.members : ids.map(id => this.member(id))
    for (const member of members) {
      if (member.kind === 'kafka' && !existsSync(join(member.folder, 'meta.properties'))) this.#format(member)
      member.start()
    }
  }

  /**
   * As `kafka-storage format` does. It is run once, and what it wrote is copied: a JVM takes seconds. What differs between
   * nodes are their number and the folder's own id.
   */
  #format(member: Member): void {
    mkdirSync(member.folder, { recursive: true })
    const source = this.#formatted
    if (source === undefined || this.#quorum === 'dynamic') {
      const standalone = this.#quorum === 'dynamic' && member.isController
      const first = standalone && member.id === 1
      const how = first ? ['--standalone'] : standalone ? ['--no-initial-controllers'] : []
      const features = this.#features === 'ours' ? FEATURES_OF_KAFKA.flatMap(name => ['--feature', `${name}=0`]) : []
      const args = ['kafka-storage', 'format', '-t', this.#clusterId, '-c', member.properties, ...how, ...features]
      execFileSync(join(peer, 'tool'), args, { env: { ...process.env, TOOL_HEAP: JVM }, stdio: 'pipe' })
      this.#formatted ??= member.folder
      return
    }
    const checkpoint = join(source, 'bootstrap.checkpoint')
    if (existsSync(checkpoint)) copyFileSync(checkpoint, join(member.folder, 'bootstrap.checkpoint'))
    const of = readFileSync(join(source, 'meta.properties'), 'utf8')
    const own = of
      .replace(/^node\.id=.*$/m, `node.id=${member.id}`)
      .replace(/^directory\.id=.*$/m, `directory.id=${drawnId()}`)
    writeFileSync(join(member.folder, 'meta.properties'), own)
  }

  client(options: { readonly callTimeoutMs?: number } = {}): Promise<Client> {
    return connect({ world, bootstrap: this.bootstrap, retryBackoffMs: 50, retryBackoffMaxMs: 500, ...options })
  }

  /** Brokers that some broker names as live. */
  async live(): Promise<number[]> {
    for (const member of this.members.filter(({ isBroker, isRunning }) => isBroker && isRunning))
      try {
        const { brokers } = await ask(member.reachedAt.broker, API.Metadata, { topics: [] })
        return brokers.map(({ nodeId }) => nodeId).sort((a, b) => a - b)
      } catch {
        // Another one is asked.
      }
    return []
  }

  async untilLive(...ids: readonly number[]): Promise<void> {
    const wanted = ids.length > 0 ? ids : this.members.filter(({ isBroker }) => isBroker).map(({ id }) => id)
    await this.during(
      eventually(
        `brokers ${wanted.join(', ')} are live`,
        async () => {
          for (const id of wanted) {
            const member = this.member(id)
            if (!member.isRunning) throw new Error(`node ${id} has ended`)
            const { brokers } = await ask(member.reachedAt.broker, API.Metadata, { topics: [] })
            if (!wanted.every(each => brokers.some(({ nodeId }) => nodeId === each))) return false
          }
          return true
        },
        START_LIMIT_MS,
      ),
    )
  }

  /** What the controllers say of themselves, by whichever of them answers as the leader. */
  async quorum(): Promise<QuorumSeen | undefined> {
    const topics = [{ topicName: '__cluster_metadata', partitions: [{ partitionIndex: 0 }] }]
    for (const member of this.members.filter(({ isController, isRunning }) => isController && isRunning))
      try {
        const { topics: told } = await ask(member.reachedAt.controller, API.DescribeQuorum, { topics })
        const [quorum] = told[0]?.partitions ?? []
        if (quorum === undefined || quorum.errorCode !== 0 || quorum.leaderId < 0) continue
        const { leaderId, leaderEpoch, highWatermark, currentVoters } = quorum
        return { leaderId, leaderEpoch, highWatermark, voters: currentVoters }
      } catch {
        // Another one is asked.
      }
    return undefined
  }

  async untilLed(holds: (quorum: QuorumSeen) => boolean = () => true): Promise<QuorumSeen> {
    let seen: QuorumSeen | undefined
    const led = async () => {
      seen = await this.quorum()
      return seen !== undefined && holds(seen)
    }
    await this.during(eventually('the quorum is led as wanted', led, START_LIMIT_MS))
    return seen as QuorumSeen
  }

  /** Adds the ends of the logs to what is thrown. */
  async during<T>(work: Promise<T>): Promise<T> {
    try {
      return await work
    } catch (error) {
      const logs = this.members.map(member => `--- node ${member.id} (${member.kind})\n${member.log(15)}`)
      const cause = error instanceof Error ? (error.cause ?? '') : ''
      throw new Error(`${error instanceof Error ? error.message : error} ${cause}\n${logs.join('\n')}`, {
        cause: error,
      })
    }
  }

  async remove(): Promise<void> {
    await rm(await this.leave(), { recursive: true, force: true, maxRetries: 3 })
  }

  /** Ends all, and leaves the folder with their logs where it is. */
  async leave(): Promise<string> {
    for (const member of this.members) member.signal('SIGCONT')
    await Promise.all(this.members.map(member => member.kill()))
    await Promise.all(this.members.flatMap(({ links }) => links.map(link => link.close())))
    process.off('exit', this.#onExit)
    return this.#dir
  }
}

export interface QuorumSeen {
  readonly leaderId: number
  readonly leaderEpoch: number
  readonly highWatermark: number
  readonly voters: readonly { readonly replicaId: number; readonly logEndOffset: number }[]
}

/** One question on a connection of its own. */
async function ask<Q extends Schema, R extends Schema>(
  port: number,
  pair: ApiPair<Q, R>,
  body: InputOf<Q>,
): Promise<MessageOf<R>> {
  const limits = { connectTimeoutMs: 2_000, requestTimeoutMs: 3_000 }
  const channel = await Channel.connect(world, { host: '127.0.0.1', port }, limits)
  try {
    await channel.negotiate()
    return await channel.ask(pair, body)
  } finally {
    channel.close()
  }
}

/** A port of its own and the one above: while nodes are made none of them listens yet. */
const given = new Set<number>()
async function freePairOfPorts(): Promise<number> {
  for (;;) {
    const port = await freePort()
    if ([port - 1, port, port + 1].some(each => given.has(each))) continue
    given.add(port)
    return port
  }
}

/** As both products draw them: with a dash in front Kafka's tools would take it for an option. */
function drawnId(): string {
  return uuidFromRandom(into => randomFillSync(into))
}
