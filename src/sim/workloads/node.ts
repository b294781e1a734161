import type { SeededRandom } from '#base/random.ts'
import { NO_NETWORK_FAULTS } from '#world/fake/fake-network.ts'
import type { FakeNode } from '#world/fake/fake-node.ts'
import type { Simulation } from '#world/fake/simulation.ts'
import { Administering } from '../actors/administering.ts'
import { Consuming } from '../actors/consuming.ts'
import { Observing } from '../actors/observing.ts'
import { Producing } from '../actors/producing.ts'
import { dial, eventually, PORT, type Scene, type SceneTopic, SERVER } from '../actors/scene.ts'
import { type Death, ServerLives } from '../actors/server.ts'
import { NodeLedger } from '../checkers/node-ledger.ts'
import { breakDisk, healDisk } from '../faults/disk.ts'
import { breakNetwork } from '../faults/network.ts'
import type { Workload } from '../kernel.ts'
import { NODE_MUTANTS, type NodeMutant } from '../mutants/node-mutants.ts'

/** When nothing goes wrong any more, everything that was begun ends within this. */
const CALM_MS_MAX = 180_000
const SYNC_ALL = 'log.flush.interval.messages=1'

/**
 * A whole node, through several lives, and its clients on other machines: producers, members of groups, an administrator
 * and an observer. Which faults there are, and how often, is drawn by the seed.
 */
export const node: Workload = {
  name: 'node',
  mutants: Object.keys(NODE_MUTANTS),
  patch: mutant => NODE_MUTANTS[mutant]?.patch?.() ?? (() => {}),
  async run(simulation, mutant) {
    await new Play(simulation, mutant === undefined ? {} : (NODE_MUTANTS[mutant] ?? {})).run()
  },
}

/** Which faults this seed has: a run with all of them would hide what only some of them find. */
interface Swarm {
  readonly deaths: readonly Death[]
  readonly disk: boolean
  readonly network: boolean
  readonly clock: boolean
  readonly lives: number
  readonly lifeMs: number
}

class Play implements Scene {
  readonly simulation: Simulation
  readonly ledger: NodeLedger
  readonly topics: readonly SceneTopic[]
  readonly servers = [{ host: SERVER, port: PORT }]
  readonly groups: readonly string[]
  readonly server: ServerLives
  readonly #random: SeededRandom
  readonly #swarm: Swarm
  readonly #clients: FakeNode[] = []
  readonly #observing: Observing
  readonly #administering: Administering
  readonly #producing: Producing[]
  readonly #consuming: Consuming[]
  readonly #broken = Promise.withResolvers<never>()
  /** While it is down only the observer gets through. */
  #gateDown = false
  readonly pace = 1
  calm = false
  over = false

  constructor(simulation: Simulation, wrong: NodeMutant) {
    this.simulation = simulation
    const { random } = simulation
    this.#random = random
    const allDurable = random.chance(0.5)
    this.#swarm = {
      deaths: deathsOf(random),
      disk: random.chance(0.5),
      network: random.chance(0.6),
      clock: random.chance(0.3),
      lives: random.between(2, 5),
      lifeMs: random.pick([200, 2000, 10_000]),
    }
    this.ledger = new NodeLedger(allDurable)
    this.topics = Array.from({ length: random.between(1, 3) }, (_, index) => ({
      name: `topic${index}`,
      partitions: random.between(1, 3),
      replicas: 1,
      durable: allDurable || random.chance(0.5),
    }))
    this.groups = Array.from({ length: random.between(1, 2) }, (_, index) => `group${index}`)
    const overrides = [
      'auto.create.topics.enable=false',
      'offsets.topic.num.partitions=2',
      `group.initial.rebalance.delay.ms=${random.pick([0, 100, 3000])}`,
      `metadata.log.max.record.bytes.between.snapshots=${random.pick([1, 500, 20_971_520])}`,
      `log.flush.offset.checkpoint.interval.ms=${random.pick([50, 1000, 60_000])}`,
      `log.retention.check.interval.ms=${random.pick([500, 300_000])}`,
      ...(allDurable ? [SYNC_ALL] : []),
    ]
    this.server = new ServerLives(this, overrides, random.fork(), wrong)
    this.#observing = new Observing(this, this.server, simulation.node('observer'), random.fork())
    this.#administering = new Administering(this, this.#client('admin'), random.fork(), this.#observing)
    this.#producing = Array.from(
      { length: random.between(1, 2) },
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

  async run(): Promise<void> {
    await Promise.race([this.#run(), this.#broken.promise])
  }

  async #run(): Promise<void> {
    const { node: machine } = this.server
    // The operator's folder; what is made inside of it is the product's to keep.
    await machine.world.disk.makeFolder('/data')
    await machine.world.disk.syncFolder('/')
    const { network } = this.simulation
    if (this.#swarm.network) {
      network.faults.latencyUs = [50, this.#random.pick([1000, 5000, 50_000])]
      network.faults.resets = this.#random.pick([0, 0, 0.0005])
      network.faults.windowBytes = this.#random.pick([256 * 1024, 4096])
    }
    const acting: Promise<void>[] = []
    for (let life = 0; life < this.#swarm.lives; life++) {
      await this.#rise()
      if (life === 0) {
        await this.#createTopics()
        acting.push(...[...this.#producing, this.#administering].map(actor => this.#guarded(actor.run())))
        for (const actor of this.#consuming) void this.#guarded(actor.run())
        void this.#guarded(this.#observing.probe())
        if (this.#swarm.disk) void this.#guarded(this.#disturbDisk())
        if (this.#swarm.network) void this.#guarded(this.#disturbNetwork())
        if (this.#swarm.clock) void this.#guarded(this.#disturbClock())
      }
      const lives = this.simulation.wait(this.#random.fraction() * this.#swarm.lifeMs)
      if (this.#random.chance(0.7)) await Promise.all([lives, this.#surveyInLife()])
      else await lives
      await this.server.end(this.#random.pick(this.#swarm.deaths))
      await this.simulation.wait(this.#random.between(100, 3000))
    }
    this.#calmDown()
    await this.#rise()
    await Promise.race([
      this.#finish(acting),
      this.simulation.wait(2 * CALM_MS_MAX).then(() => {
        throw new Error('what was begun does not come to its end')
      }),
    ])
  }

  /** A survey ends early when the life does not: it goes on in the next. */
  async #surveyInLife(): Promise<void> {
    await Promise.race([this.#observing.survey(), this.simulation.wait(this.#swarm.lifeMs)])
  }

  async #rise(): Promise<void> {
    const { server } = this
    await server.start(() => this.#lowerGate())
    if (server.unsure) {
      await this.#observing.assess()
      server.unsure = false
    }
    this.#raiseGate()
  }

  async #createTopics(): Promise<void> {
    const client = await dial(this, this.simulation.node('observer'), this.#random)
    for (const topic of this.topics) {
      const configs = {
        ...(topic.durable && { 'flush.messages': '1' }),
        ...(this.#random.chance(0.5) && { 'internal.segment.bytes': String(this.#random.between(10_000, 50_000)) }),
        'file.delete.delay.ms': String(this.#random.pick([0, 100, 60_000])),
      }
      await this.#administering.create(client, topic, configs)
    }
    client.close()
  }

  /** Everything that was begun is done, and the groups come to the ends. */
  async #finish(acting: readonly Promise<void>[]): Promise<void> {
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
    this.over = true
    await this.server.end('stop')
    await this.server.start()
    await this.#observing.survey()
  }

  #calmDown(): void {
    this.calm = true
    const { network, nodes } = this.simulation
    network.faults = { ...NO_NETWORK_FAULTS }
    for (const a of nodes) for (const b of nodes) network.heal(a, b)
  }

  /** What is under way from a life before arrives nowhere any more. */
  #lowerGate(): void {
    if (!this.server.unsure) return
    this.#gateDown = true
    const { network } = this.simulation
    const { node: machine } = this.server
    for (const client of this.#clients) {
      network.reset(client, machine)
      network.cut(client, machine)
      network.cut(machine, client)
    }
  }

  #raiseGate(): void {
    if (!this.#gateDown) return
    this.#gateDown = false
    for (const client of this.#clients) {
      this.simulation.network.heal(client, this.server.node)
      this.simulation.network.heal(this.server.node, client)
    }
  }

  async #disturbDisk(): Promise<void> {
    const random = this.#random.fork()
    const { disk } = this.server.node
    while (!this.calm) {
      await this.simulation.wait(random.between(1, 2000))
      if (this.calm || !this.server.up) continue
      this.server.node.trace('disk', 0, 0, breakDisk(disk, random))
      await this.simulation.wait(random.between(1, 3000))
      healDisk(disk)
    }
  }

  async #disturbNetwork(): Promise<void> {
    const random = this.#random.fork()
    const { network } = this.simulation
    while (!this.calm) {
      await this.simulation.wait(random.between(1, 2000))
      if (this.calm || this.#gateDown) continue
      const right = breakNetwork(network, random.pick(this.#clients), this.server.node, random)
      await this.simulation.wait(random.between(1, random.chance(0.1) ? 30_000 : 2000))
      while (this.#gateDown) await this.simulation.wait(10)
      right()
    }
  }

  async #disturbClock(): Promise<void> {
    const random = this.#random.fork()
    while (!this.calm) {
      await this.simulation.wait(random.between(1, 5000))
      this.server.node.clockSkewMs = random.between(-1, 1) * random.pick([10, 1000, 600_000])
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

function deathsOf(random: SeededRandom): readonly Death[] {
  return random.pick<readonly Death[]>([
    ['stop'],
    ['crash'],
    ['power-cut'],
    ['crash', 'power-cut'],
    ['stop', 'crash', 'power-cut'],
  ])
}
