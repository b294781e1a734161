import type { SeededRandom } from '#base/random.ts'
import type { FakeDisk } from '#world/fake/fake-disk.ts'
import { NO_NETWORK_FAULTS } from '#world/fake/fake-network.ts'
import type { FakeNode } from '#world/fake/fake-node.ts'
import type { Scene } from '../actors/scene.ts'
import { breakDisk, healDisk, loseFolder } from './disk.ts'
import { breakNetwork } from './network.ts'

/** Which kinds of faults there are. */
export interface DisturbingPlan {
  readonly disk: boolean
  readonly network: boolean
  readonly clock: boolean
  /** Processes stand still. */
  readonly pauses: boolean
}

/** A machine of the cluster. */
interface Disturbed {
  readonly node: FakeNode
  /** Whether its process lives. */
  readonly up: boolean
  /** Where its data lies; each folder of several is on a disk of its own. */
  readonly folders: readonly string[]
  wall(): void
  unwall(): void
  /** Asked before its disk fails: it may lack something from then on. Undefined: not now; else to be called when it is well. */
  fails(): (() => void) | undefined
}

/** What goes wrong around the processes of a cluster, until all is calm: disks, links, clocks, and that they stand still. */
export class Disturbing {
  readonly #scene: Scene
  readonly #plan: DisturbingPlan
  readonly #members: readonly Disturbed[]
  readonly #clients: readonly FakeNode[]

  constructor(scene: Scene, plan: DisturbingPlan, members: readonly Disturbed[], clients: readonly FakeNode[]) {
    this.#scene = scene
    this.#plan = plan
    this.#members = members
    this.#clients = clients
  }

  /** What lasts all the time. */
  setUp(random: SeededRandom): void {
    const { network } = this.#scene.simulation
    if (this.#plan.network) {
      network.faults.latencyUs = [50, random.pick([1000, 5000, 50_000])]
      network.faults.resets = random.pick([0, 0, 0.0005])
      network.faults.windowBytes = random.pick([256 * 1024, 4096])
    }
    if (this.#plan.clock) for (const { node } of this.#members) node.clockRate = 0.98 + 0.04 * random.fraction()
  }

  /** What comes and goes; each ends when the scene is calm. */
  begin(random: SeededRandom): Promise<void>[] {
    const { disk, network, clock, pauses } = this.#plan
    const begun: Promise<void>[] = []
    if (disk) begun.push(this.#disturbDisks(random.fork()))
    if (network) begun.push(this.#disturbNetwork(random.fork()))
    if (clock) begun.push(this.#disturbClocks(random.fork()))
    if (pauses) begun.push(this.#disturbProcesses(random.fork()))
    return begun
  }

  /** All is well again. */
  end(): void {
    const { network, nodes } = this.#scene.simulation
    network.faults = { ...NO_NETWORK_FAULTS }
    for (const a of nodes) {
      network.unwall(a)
      for (const b of nodes) {
        network.heal(a, b)
        network.slow(a, b, 0)
      }
    }
    for (const { node } of this.#members) {
      healDisk(node.disk)
      node.clockSkewMs = 0
      node.continue()
    }
  }

  async #disturbDisks(random: SeededRandom): Promise<void> {
    while (!this.#scene.calm) {
      await this.#scene.simulation.wait(random.between(1, 4000) * this.#scene.pace)
      const member = random.pick(this.#members)
      const { node, up, folders } = member
      if (this.#scene.calm || !up) continue
      const well = member.fails()
      node.trace('disk', 0, 0, this.#breakDisk(node.disk, folders, well !== undefined, random))
      const { hangs } = node.disk.faults
      // Who asks a disk that hangs gets no answer: for as long as a client waits for one at most.
      const longMs = hangs ? 20_000 : 30_000
      await this.#scene.simulation.wait(random.between(1, random.chance(hangs ? 0.5 : 0.2) ? longMs : 3000))
      if (hangs && random.chance(0.3)) node.disk.unhang('fail')
      healDisk(node.disk)
      well?.()
    }
  }

  #breakDisk(disk: FakeDisk, folders: readonly string[], mayFail: boolean, random: SeededRandom): string {
    if (folders.length === 1 || random.chance(0.3)) return breakDisk(disk, random, mayFail)
    const folder = random.pick(folders)
    healDisk(disk)
    if (mayFail && random.chance(0.3)) {
      loseFolder(disk, folder)
      return `${folder} is lost`
    }
    disk.faults.within = folder
    return `${folder} ${breakDisk(disk, random, mayFail)}`
  }

  async #disturbNetwork(random: SeededRandom): Promise<void> {
    while (!this.#scene.calm) {
      await this.#scene.simulation.wait(random.between(1, 3000) * this.#scene.pace)
      if (this.#scene.calm) return
      const member = random.pick(this.#members)
      const a = member.node
      const b = random.chance(0.3) ? random.pick(this.#clients) : random.pick(this.#members).node
      if (a === b) continue
      const { right, lasts } = this.#breakLinks(member, b, random)
      await this.#scene.simulation.wait(random.between(1, random.chance(lasts) ? 30_000 : 3000))
      right()
    }
  }

  #breakLinks(member: Disturbed, b: FakeNode, random: SeededRandom): { right: () => void; lasts: number } {
    const { network } = this.#scene.simulation
    const a = member.node
    const kind = random.fraction()
    if (kind < 0.15) {
      // One is alone: its clients reach it, the others do not, or do not hear it.
      const others = this.#members.map(({ node }) => node).filter(node => node !== a)
      const isDeaf = random.chance(0.7)
      for (const other of others) {
        network.cut(a, other)
        if (isDeaf) network.cut(other, a)
      }
      const right = (): void => {
        for (const other of others) {
          network.heal(a, other)
          network.heal(other, a)
        }
      }
      return { right, lasts: 0.2 }
    }
    if (kind < 0.2) {
      member.wall()
      return { right: () => member.unwall(), lasts: 0.4 }
    }
    if (kind < 0.35) {
      network.slow(a, b, random.pick([5000, 50_000, 500_000]))
      return { right: () => network.slow(a, b, 0), lasts: 0.5 }
    }
    return { right: breakNetwork(network, a, b, random), lasts: 0.1 }
  }

  async #disturbClocks(random: SeededRandom): Promise<void> {
    while (!this.#scene.calm) {
      await this.#scene.simulation.wait(random.between(1, 5000) * this.#scene.pace)
      if (this.#scene.calm) return
      random.pick(this.#members).node.clockSkewMs = random.between(-1, 1) * random.pick([10, 1000, 600_000])
    }
  }

  /** SIGSTOP and SIGCONT. */
  async #disturbProcesses(random: SeededRandom): Promise<void> {
    while (!this.#scene.calm) {
      await this.#scene.simulation.wait(random.between(1, 10_000) * this.#scene.pace)
      const { node, up } = random.pick(this.#members)
      if (this.#scene.calm || !up) continue
      node.pause()
      await this.#scene.simulation.wait(random.between(1, random.pick([100, 3000, 20_000])))
      node.continue()
    }
  }
}
