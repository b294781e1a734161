import type { SeededRandom } from '#base/random.ts'
import type { Millis } from '#base/units.ts'
import { type ServerConfig, serverConfig } from '#core/config/server.ts'
import type { FakeNode } from '#world/fake/fake-node.ts'
import type { Address } from '#world/world.ts'
import { type RunningNode, startNode } from '../../node.ts'
import { Violation } from '../checkers/partition-log.ts'
import { healDisk, loseFolder } from '../faults/disk.ts'
import { PORT, type Scene } from './scene.ts'
import type { Death } from './server.ts'

/** The first one, where the log of the metadata lies. */
export const FOLDER = '/data/tidemark'
const CONTROLLER_PORT = 9093
/** In calm, with all its peers there or coming. */
const START_MS_MAX: Millis = 120_000
const STOP_MS_MAX: Millis = 120_000

export interface MemberPlan {
  readonly id: number
  readonly roles: string
  /** The ids of those that vote, where they are listed. */
  readonly voters: readonly number[]
  /** Elsewhere the ids of those that it joins; whoever joins nobody founds the cluster. */
  readonly join: readonly number[]
  /** `log.dirs`. */
  readonly folders: readonly string[]
  readonly rack: string | undefined
  readonly overrides: readonly string[]
}

/** A node of a cluster: one machine and its lives. */
export class Member {
  readonly id: number
  readonly node: FakeNode
  readonly isController: boolean
  readonly isBroker: boolean
  readonly folders: readonly string[]
  readonly #scene: Scene
  readonly #random: SeededRandom
  readonly #config: ServerConfig
  #running: RunningNode | undefined
  #silenced: () => void
  /** Asked before a start in which folders may fail: without one of them it may lack what it is believed to have (KIP-966). */
  readonly #mayLack: () => boolean
  /** How much of its disk fails. */
  failing = 0
  /** It did in this life: where only the process dies, what a sync failed to write may be gone all the same. */
  hasFailed = false
  /** A folder that this life has to do without. */
  #lost: string | undefined

  constructor(scene: Scene, plan: MemberPlan, random: SeededRandom, silenced: () => void, mayLack: () => boolean) {
    const { id, roles, voters, join, folders, rack, overrides } = plan
    this.#scene = scene
    this.#random = random
    this.#silenced = silenced
    this.#mayLack = mayLack
    this.id = id
    this.folders = folders
    this.isController = roles.includes('controller')
    this.isBroker = roles.includes('broker')
    this.node = scene.simulation.node(nameOf(id))
    const listeners = [
      ...(this.isBroker ? [`PLAINTEXT://${nameOf(id)}:${PORT}`] : []),
      ...(this.isController ? [`CONTROLLER://${nameOf(id)}:${CONTROLLER_PORT}`] : []),
    ]
    const result = serverConfig({
      overrides: [
        `node.id=${id}`,
        `process.roles=${roles}`,
        `log.dirs=${folders.join(',')}`,
        `listeners=${listeners.join(',')}`,
        'controller.listener.names=CONTROLLER',
        ...(voters.length > 0 ? [`controller.quorum.voters=${voters.map(voterText).join(',')}`] : []),
        ...(join.length > 0 ? [`controller.quorum.bootstrap.servers=${join.map(addressText).join(',')}`] : []),
        ...(join.length > 0 && this.isController ? ['controller.quorum.auto.join.enable=true'] : []),
        ...(rack === undefined ? [] : [`broker.rack=${rack}`]),
        ...overrides,
      ],
    })
    if ('errors' in result) throw new Error(`the simulation's configuration: ${JSON.stringify(result.errors)}`)
    this.#config = result.config
  }

  get up(): boolean {
    return this.#running !== undefined
  }

  get running(): RunningNode | undefined {
    return this.#running
  }

  /** All that it hosts is in sync again since it registered, which took it out of everything that it might lack. */
  get isInSync(): boolean {
    const broker = this.#running?.broker
    if (broker === undefined) return this.#running !== undefined
    const { image } = broker.metadata
    if (image.broker(this.id)?.epoch !== broker.epoch) return false
    for (const { partitions } of image.topics.values()) {
      if (partitions.some(({ replicas, isr }) => replicas.includes(this.id) && !isr.includes(this.id))) return false
    }
    return true
  }

  /** It does without a folder in this life: where that is there again, or another in its place, the next start is unclean. */
  get lacksFolder(): boolean {
    const broker = this.#running?.broker
    const { logDirs = [] } = broker?.metadata.image.broker(this.id) ?? {}
    return logDirs.length > 0 && logDirs.length < this.folders.length
  }

  get address(): Address {
    return { host: nameOf(this.id), port: PORT }
  }

  async prepare(): Promise<void> {
    await this.node.world.disk.makeFolder('/data')
    await this.node.world.disk.syncFolder('/')
  }

  /** Starts, again where a fault ended the start. Now and then it dies in the middle. */
  async start(): Promise<void> {
    const random = this.#random
    const { simulation } = this.#scene
    for (;;) {
      const { calm } = this.#scene
      this.#lost = undefined
      this.hasFailed = false
      healDisk(this.node.disk)
      const { faults } = this.node.disk
      const hasSeveral = this.folders.length > 1
      if (!calm && random.chance(0.25) && this.#knowsFolders && this.#mayLack()) {
        this.hasFailed = true
        if (hasSeveral && random.chance(0.5)) this.#lost = random.pick(this.folders)
        else faults[random.pick(['readFails', 'writeFails'] as const)] = random.pick([0.01, 0.1])
      }
      this.#loseAgain()
      const faulty = this.node.disk.faults.readFails + this.node.disk.faults.writeFails > 0
      const starting = startNode(this.node.world, this.#config)
      starting.catch(() => {})
      // Without a majority nobody comes up: whoever waits for one may die of it, as an impatient operator would have it.
      const limitMs = calm ? START_MS_MAX : random.chance(0.2) ? random.fraction() * 200 : random.between(5000, 60_000)
      try {
        const running = await Promise.race([starting, simulation.wait(limitMs).then(() => undefined)])
        if (running !== undefined) {
          this.#heal()
          this.#running = running
          return
        }
        if (calm) throw new Violation(`${this.node.name} did not start in ${START_MS_MAX} ms`)
      } catch (error) {
        if (!faulty || error instanceof Violation) {
          throw new Violation(`the start of ${this.node.name} was refused: ${(error as Error).stack}`)
        }
      }
      this.#die('crash')
      await simulation.wait(random.between(100, 2000))
    }
  }

  /** Between two lives: the disk is replaced by an empty one, or that of a folder which has not the log of the metadata. */
  async wipe(): Promise<void> {
    const { disk } = this.node
    const others = this.folders.slice(1)
    if (others.length > 0 && (this.isController || this.#random.chance(0.7))) {
      const folder = this.#random.pick(others)
      this.node.trace('wipe', 0, 0, folder)
      disk.replace(folder)
    } else disk.replace()
    healDisk(disk)
    await this.prepare()
  }

  fails(): (() => void) | undefined {
    if (!this.#mayLack()) return undefined
    this.failing++
    this.hasFailed = true
    return () => void this.failing--
  }

  /** Nobody gets through to it any more; who waits for an answer is not told. */
  wall(): void {
    this.#scene.simulation.network.wall(this.node)
    this.#silenced()
  }

  unwall(): void {
    this.#scene.simulation.network.unwall(this.node)
  }

  /** One that is new to a node makes its start unclean as well, whenever it comes. */
  get #knowsFolders(): boolean {
    return this.folders.every(folder => this.node.disk.peek(`${folder}/meta.properties`) !== undefined)
  }

  get mayBeWiped(): boolean {
    return !this.isController || this.folders.length > 1
  }

  /** All is well with the disk, but for a folder that is lost for this life. */
  #heal(): void {
    healDisk(this.node.disk)
    this.#loseAgain()
  }

  #loseAgain(): void {
    if (this.#lost !== undefined) loseFolder(this.node.disk, this.#lost)
  }

  async end(how: Death): Promise<void> {
    if (how === 'stop') this.node.continue()
    const running = this.#running
    this.#running = undefined
    if (how !== 'stop' || running === undefined) {
      this.#die(how)
      return
    }
    this.#heal()
    const stopping = running.stop().then(() => true)
    stopping.catch(() => {})
    // A second signal may end it before it is done.
    const hurried = !this.#scene.calm && !this.hasFailed && this.#random.chance(0.2)
    const limitMs = hurried ? this.#random.fraction() * 500 : STOP_MS_MAX
    const stopped = await Promise.race([stopping, this.#scene.simulation.wait(limitMs).then(() => false)])
    if (!stopped && !hurried) throw new Violation(`${this.node.name} did not stop in ${STOP_MS_MAX} ms`)
    this.#die('crash')
  }

  #die(how: Death): void {
    this.#scene.ledger.died()
    if (how === 'power-cut') {
      this.node.powerCut()
      this.#silenced()
    } else this.node.crash()
  }
}

const addressText = (id: number): string => `${nameOf(id)}:${CONTROLLER_PORT}`
const voterText = (id: number): string => `${id}@${addressText(id)}`

export function nameOf(id: number): string {
  return `n${id}`
}
