import { assert } from '#base/assert.ts'
import type { FakeNode } from '#world/fake/fake-node.ts'
import { Simulation } from '#world/fake/simulation.ts'
import type { ClusterIdentity, ControllerConfig } from '../config.ts'
import type { Controller } from '../controller.ts'
import { Client, clusterOf, startController } from './rig.ts'

const PORT = 9093
const DIRECTORIES = [
  'Jwk4kZqYQ2uPqSxq8bT7Zg',
  '08v4ulRaR2-bGxgk_Ot-AA',
  'sVEaYcjmSxWKHqYVBFlA0A',
  'Zk0hIgUxQzKOhJrA3TpVcQ',
]

export interface Member {
  readonly id: number
  readonly machine: FakeNode
  readonly cluster: ClusterIdentity
  config: Partial<ControllerConfig>
  /** Undefined while it is down. */
  controller: Controller | undefined
}

/** Controllers on machines of one simulation; what a member is given stays with its machine over restarts. */
export class QuorumRig {
  readonly simulation: Simulation
  readonly members: Member[] = []

  constructor(simulation: Simulation) {
    this.simulation = simulation
  }

  /** A machine that has never run. */
  add(config: Partial<ControllerConfig> = {}): Member {
    const id = this.members.length + 1
    const machine = this.simulation.node(`controller-${id}`)
    const member: Member = { id, machine, cluster: clusterOf(undefined), config, controller: undefined }
    this.members.push(member)
    return member
  }

  /** So many of a fixed list, all of them new; not started. */
  addStatic(count: number, config: Partial<ControllerConfig> = {}): void {
    for (let index = 0; index < count; index++) this.add()
    const voters = this.members.map(({ id, machine }) => ({ id, host: machine.host, port: PORT }))
    for (const member of this.members) member.config = { ...config, voters }
  }

  async start(member: Member): Promise<Controller> {
    const { id, machine, cluster, config } = member
    const directoryId = DIRECTORIES[id - 1] as string
    const listener = { name: 'CONTROLLER', address: { host: machine.host, port: PORT } }
    const whole = { ...config, nodeId: id, cluster, directoryId, listener }
    member.controller = await startController(machine.world, '/data', whole, machine.host)
    return member.controller
  }

  async startAll(): Promise<void> {
    await Promise.all(this.members.map(member => this.start(member)))
  }

  crash(member: Member, how: 'crash' | 'powerCut' = 'crash'): void {
    member.machine[how]()
    member.controller = undefined
  }

  /** Nothing passes between it and the others, in either direction. */
  cutOff(member: Member): void {
    const { network } = this.simulation
    for (const { machine } of this.members.filter(each => each !== member)) {
      network.cut(member.machine, machine)
      network.cut(machine, member.machine)
    }
  }

  rejoin(member: Member): void {
    const { network } = this.simulation
    for (const { machine } of this.members.filter(each => each !== member)) {
      network.heal(member.machine, machine)
      network.heal(machine, member.machine)
    }
  }

  async stop(member: Member): Promise<void> {
    await member.controller?.stop()
    member.controller = undefined
  }

  async stopAll(): Promise<void> {
    await Promise.all(this.members.map(member => this.stop(member)))
  }

  get running(): Controller[] {
    return this.members.flatMap(({ controller }) => controller ?? [])
  }

  /** The active controller, waited for. */
  async active(limitMs = 20_000): Promise<Controller> {
    await this.until(() => this.running.some(({ isActive }) => isActive), 'a controller becomes active', limitMs)
    return this.running.find(({ isActive }) => isActive) as Controller
  }

  memberOf(controller: Controller): Member {
    return this.members[controller.nodeId - 1] as Member
  }

  /** All that run know all that the active one has committed. */
  async caughtUp(limitMs = 20_000): Promise<void> {
    await this.until(
      () => {
        const { running } = this
        const active = running.find(({ isActive }) => isActive)
        if (active === undefined) return false
        const isSame = (each: Controller) => each.image?.offset === active.image?.offset
        return running.every(each => each.highWatermark >= active.nextOffset && isSame(each))
      },
      'all controllers have caught up',
      limitMs,
    )
  }

  /** For messages. */
  get state(): string {
    return JSON.stringify(
      this.running.map(({ nodeId, isActive, leaderId, epoch, highWatermark, nextOffset, image }) => {
        return { nodeId, isActive, leaderId, epoch, highWatermark, nextOffset, image: image?.offset }
      }),
    )
  }

  async until(condition: () => boolean, what: string, limitMs = 20_000): Promise<void> {
    const { simulation } = this
    const before = simulation.schedule.now
    while (!condition()) {
      assert(simulation.schedule.now - before < limitMs * 1000, `it takes too long until ${what}: ${this.state}`)
      await simulation.wait(1)
    }
  }
}

/** What `run` does happens in a world of its own. */
export function simulated(
  seed: number,
  run: (rig: QuorumRig, simulation: Simulation) => Promise<void>,
  limitMs?: number,
): Promise<void> {
  const simulation = new Simulation(seed)
  return simulation.run(run(new QuorumRig(simulation), simulation), limitMs)
}

/** Who talks with a controller as one of its cluster. */
export async function clientOf(world: FakeNode['world'], controller: Controller): Promise<Client> {
  const client = await Client.connect(world, controller.address)
  client.clusterId = controller.clusterId ?? ''
  return client
}

/** A broker that is registered and unfenced. */
export async function brokerOf(world: FakeNode['world'], controller: Controller): Promise<Client> {
  const broker = await clientOf(world, controller)
  const { errorCode } = await broker.register()
  assert(errorCode === 0, `the broker is refused with error ${errorCode}`)
  await broker.heartbeat()
  return broker
}

/** What a controller knows, as records. */
export function recordsOf(controller: Controller): unknown[] {
  return [...(controller.image?.snapshotRecords() ?? [])]
}
