/** Machines of the simulated world: times are virtual, and without what processors take. */

import type { ClientWorld } from '../../src/client/client.ts'
import { serverConfig } from '../../src/core/config/server.ts'
import { type RunningNode, startNode } from '../../src/node.ts'
import type { FakeNode } from '../../src/world/fake/fake-node.ts'
import { Simulation } from '../../src/world/fake/simulation.ts'
import type { Machine, Machines, Settings } from './machines.ts'

const PORT = 9092
const FOLDER = '/data'
const LIMIT_MS = 600_000

class SimulatedMachine implements Machine {
  readonly id: number
  readonly node: FakeNode
  readonly #simulation: Simulation
  readonly #config: Parameters<typeof startNode>[1]
  readonly #failed: (error: unknown) => void
  #running: RunningNode | undefined
  #life = 0

  constructor(simulation: Simulation, id: number, overrides: readonly string[], failed: (error: unknown) => void) {
    this.id = id
    this.#simulation = simulation
    this.#failed = failed
    this.node = simulation.node(nameOf(id))
    const own = [
      `node.id=${id}`,
      `listeners=PLAINTEXT://${nameOf(id)}:${PORT},CONTROLLER://${nameOf(id)}:${PORT + 1}`,
      `log.dirs=${FOLDER}`,
    ]
    const result = serverConfig({ overrides: [...own, ...overrides] })
    if ('errors' in result) throw new Error(JSON.stringify(result.errors))
    this.#config = result.config
  }

  async prepare(): Promise<void> {
    const { disk } = this.node.world
    await disk.makeFolder(FOLDER)
    await disk.syncFolder('/')
  }

  start(): void {
    const life = ++this.#life
    startNode(this.node.world, this.#config).then(running => {
      if (life === this.#life) this.#running = running
    }, this.#failed)
  }

  kill(): Promise<void> {
    this.#life++
    this.#running = undefined
    this.node.crash()
    return Promise.resolve()
  }

  async stop(): Promise<void> {
    await this.#running?.stop()
    await this.kill()
  }

  pause(): void {
    this.node.pause()
  }

  goOn(): void {
    this.node.continue()
  }

  unplug(): void {
    for (const other of this.#simulation.nodes) this.#cut(this.node, other)
    for (const other of this.#simulation.nodes) this.#cut(other, this.node)
  }

  #cut(from: FakeNode, to: FakeNode): void {
    if (from !== to) this.#simulation.network.cut(from, to)
  }

  plugIn(): void {
    const { nodes, network } = this.#simulation
    for (const other of nodes) {
      network.heal(this.node, other)
      network.heal(other, this.node)
    }
  }

  mute(others: readonly SimulatedMachine[]): void {
    for (const { node } of others) this.#cut(this.node, node)
  }

  unmute(others: readonly SimulatedMachine[]): void {
    for (const { node } of others) this.#simulation.network.heal(this.node, node)
  }

  wall(): void {
    this.#simulation.network.wall(this.node)
  }

  unwall(): void {
    this.#simulation.network.unwall(this.node)
  }

  fill(): void {
    this.node.disk.faults.capacity = this.node.disk.usedBytes
  }

  drain(): void {
    this.node.disk.faults.capacity = Number.MAX_SAFE_INTEGER
  }

  hang(): void {
    this.node.disk.faults.hangs = true
  }

  unhang(): void {
    this.node.disk.unhang()
  }

  break(): void {
    this.node.disk.faults.writeFails = 1
    this.node.disk.faults.syncFails = 1
  }

  mend(): void {
    this.node.disk.faults.writeFails = 0
    this.node.disk.faults.syncFails = 0
  }

  setClock(aheadMs: number): void {
    this.node.clockSkewMs = aheadMs
  }

  log(): readonly string[] {
    return (this.#simulation.trace.lines ?? []).filter(line => line.includes(` ${nameOf(this.id).padEnd(10)} log `))
  }
}

export class SimulatedMachines implements Machines {
  readonly all: readonly SimulatedMachine[]
  readonly bootstrap: string
  readonly world: ClientWorld
  readonly #simulation: Simulation
  readonly #failed = Promise.withResolvers<never>()

  constructor(seed: number, settings: Settings) {
    this.#simulation = new Simulation(seed, { keepTrace: process.env.OUTAGES_LOGS !== undefined })
    const ids = [1, 2, 3]
    const voters = ids.map(id => `${id}@${nameOf(id)}:${PORT + 1}`).join(',')
    const all: Settings = {
      'process.roles': 'broker,controller',
      'controller.listener.names': 'CONTROLLER',
      'controller.quorum.voters': voters,
      ...settings,
    }
    const overrides = Object.entries(all).map(([key, value]) => `${key}=${value}`)
    const failed = (error: unknown): void => this.#failed.reject(error)
    this.all = ids.map(id => new SimulatedMachine(this.#simulation, id, overrides, failed))
    this.bootstrap = ids.map(id => `${nameOf(id)}:${PORT}`).join(',')
    this.world = this.#simulation.node('clients').world
  }

  wait(ms: number): Promise<void> {
    return this.#simulation.wait(ms)
  }

  run<T>(work: () => Promise<T>): Promise<T> {
    const whole = async (): Promise<T> => {
      await Promise.all(this.all.map(machine => machine.prepare()))
      return await Promise.race([work(), this.#failed.promise])
    }
    return this.#simulation.run(whole(), LIMIT_MS)
  }
}

function nameOf(id: number): string {
  return `m${id}`
}
