import { assert } from '#base/assert.ts'
import { SeededRandom } from '#base/random.ts'
import type { Millis } from '#base/units.ts'
import { FakeNetwork } from './fake-network.ts'
import { FakeNode } from './fake-node.ts'
import { Schedule } from './schedule.ts'
import { Trace } from './trace.ts'

/** So many events happened, and more were not wanted. */
export class CutShort extends Error {
  override readonly name = 'CutShort'
}

/** Machines, the network between them and the time that they share. The seed decides all that happens. */
export class Simulation {
  readonly seed: number
  /** For the one who drives: what the nodes and the network draw does not change what is drawn here. */
  readonly random: SeededRandom
  readonly schedule = new Schedule()
  readonly trace: Trace
  readonly network: FakeNetwork
  /** Events of machines that a workload runs on a schedule of their own. */
  beside = 0
  readonly #nodes = new Map<string, FakeNode>()

  constructor(seed: number, { keepTrace = false }: { readonly keepTrace?: boolean } = {}) {
    this.seed = seed
    this.trace = new Trace(keepTrace)
    const source = new SeededRandom(seed)
    this.network = new FakeNetwork(this, source.fork())
    this.random = source.fork()
  }

  /** The machine of that name, made when it is first asked for. */
  node(name: string): FakeNode {
    let node = this.#nodes.get(name)
    if (node === undefined) {
      node = new FakeNode(this, name, `10.0.0.${this.#nodes.size + 1}`)
      this.#nodes.set(name, node)
    }
    return node
  }

  get nodes(): readonly FakeNode[] {
    return [...this.#nodes.values()]
  }

  /**
   * Lets time go on until the work is done. Rejects with what the work rejects with, with what any event throws, and
   * when the work is not done though nothing is left to happen, or after `limitMs` of virtual time; with {@link CutShort}
   * after `eventsMax`.
   */
  async run<T>(work: Promise<T>, limitMs: Millis = 3_600_000, eventsMax = Number.POSITIVE_INFINITY): Promise<T> {
    let outcome: { value: T } | { error: unknown } | undefined
    work.then(
      value => {
        outcome = { value }
      },
      (error: unknown) => {
        outcome = { error }
      },
    )
    const isCut = (): boolean => this.schedule.count >= eventsMax
    await this.schedule.run(() => outcome !== undefined || isCut(), this.schedule.now + limitMs * 1000)
    if (outcome === undefined && isCut()) throw new CutShort(`cut short after ${eventsMax} events`)
    assert(
      outcome !== undefined,
      `the work is stuck after ${this.schedule.now / 1e6} s, with ${this.schedule.pending} events to come`,
    )
    if ('error' in outcome) throw outcome.error
    return outcome.value
  }

  /** A span of virtual time, for the one who drives. */
  wait(ms: Millis): Promise<void> {
    return new Promise(resolve => {
      this.schedule.after(ms * 1000, resolve)
    })
  }
}
