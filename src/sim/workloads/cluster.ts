import type { SeededRandom } from '#base/random.ts'
import type { Millis } from '#base/units.ts'
import { listTopics } from '#client/admin/topics.ts'
import { NO_NETWORK_FAULTS } from '#world/fake/fake-network.ts'
import type { FakeNode } from '#world/fake/fake-node.ts'
import type { Simulation } from '#world/fake/simulation.ts'
import { Administering } from '../actors/administering.ts'
import { Consuming } from '../actors/consuming.ts'
import { Member } from '../actors/member.ts'
import { Observing } from '../actors/observing.ts'
import { Producing, produceNumbered } from '../actors/producing.ts'
import { dial, eventually, type Scene, type SceneTopic, type Serving } from '../actors/scene.ts'
import type { Death } from '../actors/server.ts'
import { NodeLedger } from '../checkers/node-ledger.ts'
import { breakDisk, healDisk } from '../faults/disk.ts'
import { breakNetwork } from '../faults/network.ts'
import type { Workload } from '../kernel.ts'

/** When nothing goes wrong any more, everything that was begun ends within this. */
const CALM_MS_MAX: Millis = 240_000
/** With all nodes there and nothing wrong, every partition takes a record with acks=all again within this. */
const RECOVERED_MS_MAX: Millis = 60_000

/**
 * A whole cluster, every node through several lives, with its clients on other machines. Which faults there are, and how
 * often, is drawn by the seed. Processes die in any number at any time. Power cuts, which take what was not synced, hit
 * one node at a time, and the next only when all replicas of the one before are in sync again: with
 * min.insync.replicas=2 that is what is promised (KIP-966); where all is synced, they come as they like.
 */
export const cluster: Workload = {
  name: 'cluster',
  mutants: [],
  async run(simulation) {
    await new Play(simulation).run()
  },
}

interface Swarm {
  readonly deaths: readonly Death[]
  readonly disk: boolean
  readonly network: boolean
  readonly clock: boolean
  readonly lives: number
  readonly lifeMs: Millis
}

class Play implements Scene, Serving {
  readonly simulation: Simulation
  readonly ledger: NodeLedger
  readonly topics: readonly SceneTopic[]
  readonly groups: readonly string[]
  readonly silenced: (() => void)[] = []
  readonly unsure = false
  readonly #random: SeededRandom
  readonly #swarm: Swarm
  readonly #members: readonly Member[]
  readonly #clients: FakeNode[] = []
  readonly #observer: FakeNode
  readonly #observing: Observing
  readonly #administering: Administering
  readonly #producing: readonly Producing[]
  readonly #consuming: readonly Consuming[]
  readonly #broken = Promise.withResolvers<never>()
  readonly #allSynced: boolean
  /** Whose unsynced tail a power cut took, until all of its replicas are in sync again. */
  #lossy: Member | undefined
  calm = false
  over = false

  constructor(simulation: Simulation) {
    this.simulation = simulation
    const { random } = simulation
    this.#random = random
    this.#allSynced = random.chance(0.3)
    this.#swarm = {
      deaths: random.pick<readonly Death[]>([
        ['stop'],
        ['crash'],
        ['power-cut'],
        ['crash', 'power-cut'],
        ['stop', 'crash', 'power-cut'],
      ]),
      disk: random.chance(0.3),
      network: random.chance(0.6),
      clock: random.chance(0.3),
      lives: random.between(1, 4),
      lifeMs: random.pick([1000, 5000, 30_000]),
    }
    this.ledger = new NodeLedger(this.#allSynced)
    const count = random.pick([3, 3, 3, 4, 5])
    const voters = random.chance(0.8) ? [1, 2, 3] : [1]
    const racks = random.chance(0.3)
    this.topics = Array.from({ length: random.between(1, 3) }, (_, index) => ({
      name: `topic${index}`,
      partitions: random.between(1, 4),
      replicas: random.pick([3, 3, 3, 2].filter(replicas => replicas <= count)),
      durable: true,
    }))
    this.groups = Array.from({ length: random.between(1, 2) }, (_, index) => `group${index}`)
    const overrides = [
      'auto.create.topics.enable=false',
      'offsets.topic.num.partitions=2',
      'offsets.topic.replication.factor=3',
      'min.insync.replicas=2',
      `group.initial.rebalance.delay.ms=${random.pick([0, 100, 3000])}`,
      `metadata.log.max.record.bytes.between.snapshots=${random.pick([500, 5000, 20_971_520])}`,
      `log.flush.offset.checkpoint.interval.ms=${random.pick([50, 1000, 60_000])}`,
      `replica.high.watermark.checkpoint.interval.ms=${random.pick([100, 5000])}`,
      `replica.lag.time.max.ms=${random.pick([2000, 10_000, 30_000])}`,
      `replica.fetch.wait.max.ms=${random.pick([100, 500])}`,
      `broker.session.timeout.ms=${random.pick([2000, 9000])}`,
      `broker.heartbeat.interval.ms=${random.pick([200, 1000])}`,
      `leader.imbalance.check.interval.seconds=${random.pick([2, 300])}`,
      ...(this.#allSynced ? ['log.flush.interval.messages=1'] : []),
    ]
    this.#members = Array.from({ length: count }, (_, index) => {
      const id = index + 1
      return new Member(
        this,
        {
          id,
          roles: voters.includes(id) ? 'broker,controller' : 'broker',
          voters,
          rack: racks ? `rack${index % 3}` : undefined,
          overrides,
        },
        random.fork(),
        () => this.#silence(),
      )
    })
    this.#observer = simulation.node('observer')
    this.#observing = new Observing(this, this, this.#observer, random.fork())
    this.#administering = new Administering(this, this.#client('admin'), random.fork(), this.#observing)
    this.#producing = Array.from(
      { length: random.between(1, 3) },
      (_, index) => new Producing(this, this.#client(`producer${index}`), random.fork()),
    )
    this.#consuming = this.groups.flatMap(group =>
      Array.from(
        { length: random.between(1, 2) },
        (_, index) => new Consuming(this, this.#client(`${group}.${index}`), group, random.fork()),
      ),
    )
  }

  readonly fails = (error: unknown): void => this.#broken.reject(error)

  get servers() {
    return this.#members.map(({ address }) => address)
  }

  get up(): boolean {
    return this.#members.some(({ up }) => up)
  }

  async run(): Promise<void> {
    await Promise.race([this.#run(), this.#broken.promise])
  }

  async #run(): Promise<void> {
    const { network } = this.simulation
    if (this.#swarm.network) {
      network.faults.latencyUs = [50, this.#random.pick([1000, 5000, 50_000])]
      network.faults.resets = this.#random.pick([0, 0, 0.0005])
      network.faults.windowBytes = this.#random.pick([256 * 1024, 4096])
    }
    await Promise.all(this.#members.map(member => member.prepare()))
    await Promise.all(this.#members.map(member => member.start()))
    await this.#createTopics()
    const acting = [...this.#producing, this.#administering].map(actor => this.#guarded(actor.run()))
    for (const actor of this.#consuming) void this.#guarded(actor.run())
    void this.#guarded(this.#observing.probe())
    if (this.#swarm.disk) void this.#guarded(this.#disturbDisks())
    if (this.#swarm.network) void this.#guarded(this.#disturbNetwork())
    if (this.#swarm.clock) void this.#guarded(this.#disturbClocks())
    await Promise.all(this.#members.map(member => this.#live(member)))
    this.#calmDown()
    await Promise.all(this.#members.filter(({ up }) => !up).map(member => member.start()))
    await Promise.race([
      this.#finish(acting),
      this.simulation.wait(2 * CALM_MS_MAX).then(() => {
        throw new Error('what was begun does not come to its end')
      }),
    ])
  }

  /** A node through its lives. */
  async #live(member: Member): Promise<void> {
    const random = this.#random.fork()
    for (let life = 0; life < this.#swarm.lives; life++) {
      await this.simulation.wait(random.fraction() * this.#swarm.lifeMs)
      await this.#end(member, random.pick(this.#swarm.deaths))
      await this.simulation.wait(random.between(100, random.pick([300, 3000, 20_000])))
      await member.start()
    }
  }

  async #end(member: Member, how: Death): Promise<void> {
    if (how !== 'power-cut' || this.#allSynced) {
      await member.end(how)
      return
    }
    // One at a time: another process dies instead, which takes nothing.
    if (this.#lossy !== undefined) {
      await member.end('crash')
      return
    }
    this.#lossy = member
    await member.end('power-cut')
    void this.#guarded(this.#whenInSync(member))
  }

  /** The next power cut may come when nothing that this one took is missing anywhere. */
  async #whenInSync(member: Member): Promise<void> {
    while (!this.over && !member.isInSync) await this.simulation.wait(200)
    this.#lossy = undefined
  }

  async #createTopics(): Promise<void> {
    const client = await dial(this, this.#observer, this.#random)
    for (const topic of this.topics) {
      const configs = {
        ...(this.#random.chance(0.5) && { 'internal.segment.bytes': String(this.#random.between(10_000, 50_000)) }),
        'file.delete.delay.ms': String(this.#random.pick([0, 100, 60_000])),
      }
      await this.#administering.create(client, topic, configs)
    }
    client.close()
  }

  /** Everything that was begun is done, every partition is written to again, and the groups come to the ends. */
  async #finish(acting: readonly Promise<void>[]): Promise<void> {
    await this.#writable()
    await Promise.all(acting)
    await this.#observing.survey()
    const ends = await this.#observing.ends()
    await eventually(this, 'the groups do not come to the ends', CALM_MS_MAX, async () => {
      for (const group of this.groups) {
        const commits = await this.#observing.committed(group)
        for (const [key, end] of ends) if ((commits.get(key) ?? 0) < end) return false
      }
      return true
    })
    await this.#allInSync()
    this.over = true
    await Promise.all(this.#members.map(member => member.end('stop')))
    await Promise.all(this.#members.map(member => member.start()))
    await this.#observing.survey()
  }

  /** An acks=all write is acknowledged again within a bounded time once all are back. */
  async #writable(): Promise<void> {
    const client = await dial(this, this.#observer, this.#random)
    const { schedule } = this.simulation
    const began = schedule.now
    const origin = this.ledger.origin('calm')
    for (const topic of this.topics) {
      const one = produceNumbered(this, client, origin, [topic], topic.partitions * 3, this.#random.fork(), () => false)
      await Promise.race([
        one,
        this.simulation.wait(RECOVERED_MS_MAX).then(() => {
          throw new Error(
            `${topic.name} takes no acks=all write ${(schedule.now - began) / 1000} ms after all was well again`,
          )
        }),
      ])
    }
    client.close()
  }

  async #allInSync(): Promise<void> {
    const client = await dial(this, this.#observer, this.#random)
    await eventually(this, 'replicas stay out of sync', CALM_MS_MAX, async () => {
      const known = await listTopics(client).catch(() => [])
      return (
        known.length > 0 &&
        known.every(({ partitions }) => partitions.every(({ replicas, isr }) => isr.length === replicas.length))
      )
    })
    client.close()
  }

  #silence(): void {
    for (const run of this.silenced.splice(0)) run()
  }

  #calmDown(): void {
    this.calm = true
    const { network, nodes } = this.simulation
    network.faults = { ...NO_NETWORK_FAULTS }
    for (const a of nodes) for (const b of nodes) network.heal(a, b)
    for (const { node } of this.#members) {
      healDisk(node.disk)
      node.clockSkewMs = 0
    }
  }

  async #disturbDisks(): Promise<void> {
    const random = this.#random.fork()
    while (!this.calm) {
      await this.simulation.wait(random.between(1, 4000))
      const { node, up } = random.pick(this.#members)
      if (this.calm || !up) continue
      node.trace('disk', 0, 0, breakDisk(node.disk, random))
      await this.simulation.wait(random.between(1, 3000))
      healDisk(node.disk)
    }
  }

  async #disturbNetwork(): Promise<void> {
    const random = this.#random.fork()
    const { network } = this.simulation
    while (!this.calm) {
      await this.simulation.wait(random.between(1, 3000))
      if (this.calm) return
      const a = random.pick(this.#members).node
      const b = random.chance(0.3) ? random.pick(this.#clients) : random.pick(this.#members).node
      if (a === b) continue
      const right = breakNetwork(network, a, b, random)
      await this.simulation.wait(random.between(1, random.chance(0.1) ? 30_000 : 3000))
      right()
    }
  }

  async #disturbClocks(): Promise<void> {
    const random = this.#random.fork()
    while (!this.calm) {
      await this.simulation.wait(random.between(1, 5000))
      if (this.calm) return
      random.pick(this.#members).node.clockSkewMs = random.between(-1, 1) * random.pick([10, 1000, 600_000])
    }
  }

  #client(name: string): FakeNode {
    const machine = this.simulation.node(name)
    this.#clients.push(machine)
    return machine
  }

  async #guarded(acting: Promise<void>): Promise<void> {
    try {
      await acting
    } catch (error) {
      this.fails(error)
    }
  }
}
