import type { SeededRandom } from '#base/random.ts'
import type { Millis } from '#base/units.ts'
import { type ServerConfig, serverConfig } from '#core/config/server.ts'
import type { FakeNode } from '#world/fake/fake-node.ts'
import { type RunningNode, startNode } from '../../node.ts'
import { Violation } from '../checkers/partition-log.ts'
import { healDisk } from '../faults/disk.ts'
import type { NodeMutant } from '../mutants/node-mutants.ts'
import { PORT, type Scene, SERVER } from './scene.ts'

const FOLDER = '/data/tidemark'
const START_MS_MAX: Millis = 60_000
const STOP_MS_MAX: Millis = 60_000

export type Death = 'stop' | 'crash' | 'power-cut'

/** The node and its lives. */
export class ServerLives {
  readonly node: FakeNode
  readonly #scene: Scene
  readonly #config: ServerConfig
  readonly #random: SeededRandom
  readonly #crashesLose: boolean
  #running: RunningNode | undefined
  /** A power cut may have taken what was not to be synced, and nobody has looked yet. */
  unsure = false
  /** Told when the machine falls silent: who waits for it on an open connection would wait forever. */
  readonly silenced: (() => void)[] = []

  constructor(scene: Scene, overrides: readonly string[], random: SeededRandom, wrong: NodeMutant) {
    this.#scene = scene
    this.#random = random
    this.#crashesLose = wrong.crashesLose ?? false
    this.node = scene.simulation.node(SERVER)
    this.node.disk.faults.syncLies = wrong.syncLies ?? false
    const result = serverConfig({
      overrides: [`log.dirs=${FOLDER}`, `listeners=PLAINTEXT://:${PORT},CONTROLLER://127.0.0.1:0`, ...overrides],
    })
    if ('errors' in result) throw new Error(`the simulation's configuration: ${JSON.stringify(result.errors)}`)
    this.#config = result.config
  }

  get up(): boolean {
    return this.#running !== undefined
  }

  /** Starts, again where a fault ended the start. Now and then it dies in the middle. `before` runs before every attempt. */
  async start(before: () => void = () => {}): Promise<void> {
    const random = this.#random
    const { simulation, calm } = this.#scene
    for (;;) {
      before()
      healDisk(this.node.disk)
      if (!calm && random.chance(0.15)) this.node.disk.faults.readFails = random.pick([0.01, 0.1])
      if (!calm && random.chance(0.1)) this.node.disk.faults.writeFails = random.pick([0.01, 0.1])
      const faulty = this.node.disk.faults.readFails + this.node.disk.faults.writeFails > 0
      const starting = startNode(this.node.world, this.#config)
      starting.catch(() => {})
      const dies = !calm && random.chance(0.2)
      const limitMs = dies ? random.fraction() * 100 : faulty ? 5000 : START_MS_MAX
      try {
        const running = await Promise.race([starting, simulation.wait(limitMs).then(() => undefined)])
        if (running !== undefined) {
          healDisk(this.node.disk)
          this.#running = running
          return
        }
        if (!dies && !faulty) throw new Violation(`a start did not come to its end in ${START_MS_MAX} ms`)
      } catch (error) {
        // Without a fault an empty or an own folder is never refused.
        if (!faulty || error instanceof Violation) throw new Violation(`a start was refused: ${(error as Error).stack}`)
      }
      this.#die(random.chance(0.5) ? 'crash' : 'power-cut')
      await simulation.wait(random.between(100, 2000))
    }
  }

  async end(how: Death): Promise<void> {
    const running = this.#running
    this.#running = undefined
    if (how === 'stop' && running !== undefined) {
      healDisk(this.node.disk)
      const stopping = running.stop().then(() => true)
      stopping.catch(() => {})
      // A second signal may end it before it is done.
      const limitMs = !this.#scene.calm && this.#random.chance(0.2) ? this.#random.fraction() * 20 : STOP_MS_MAX
      const stopped = await Promise.race([stopping, this.#scene.simulation.wait(limitMs).then(() => false)])
      // A log that still refuses writes makes a stop unclean; that it came to its end says nothing.
      const mark = stopped ? await this.node.world.disk.readFile(`${FOLDER}/.kafka_cleanshutdown`) : undefined
      if (mark !== undefined) this.#scene.ledger.stoppedCleanly()
      else if (stopped) this.#scene.ledger.died()
      else if (limitMs === STOP_MS_MAX) throw new Violation(`a stop did not come to its end in ${STOP_MS_MAX} ms`)
      this.#die('crash', stopped)
    } else this.#die(how)
  }

  #die(how: Death, stopped = false): void {
    if (!stopped) this.#scene.ledger.died()
    if (how === 'power-cut') {
      this.unsure = true
      this.node.powerCut()
      for (const run of this.silenced.splice(0)) run()
    } else if (this.#crashesLose) {
      this.node.powerCut()
      for (const run of this.silenced.splice(0)) run()
    } else this.node.crash()
  }
}
