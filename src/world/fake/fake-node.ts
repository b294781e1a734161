import type { HeapNode } from '#base/heap.ts'
import type { SeededRandom } from '#base/random.ts'
import type { Millis } from '#base/units.ts'
import type { Chance, Clock, Logger, Timer, World } from '../world.ts'
import { FakeDisk } from './fake-disk.ts'
import type { FakeNetwork } from './fake-network.ts'
import type { Micros } from './schedule.ts'
import type { Simulation } from './simulation.ts'

/** The wall clock when a simulation begins. */
const EPOCH_MS = 1_700_000_000_000

/**
 * A machine. Each life of its process sees a world of its own; when the process dies, nothing of that world is ever called
 * again: no timer, no answer of the disk, no byte. Its clock may be ahead or behind, fast or slow, and may be set while it
 * runs. Its process may be stopped and continued: time goes on meanwhile, and the system takes connections and bytes for it.
 */
export class FakeNode {
  readonly name: string
  readonly host: string
  readonly disk: FakeDisk
  /** What its wall clock adds to the true time. */
  clockSkewMs: Millis = 0
  /** How fast its clocks go. */
  clockRate = 1
  readonly #simulation: Simulation
  readonly #random: SeededRandom
  #life = 0
  #powered = true
  /** What would have happened in its process, while that stands still. */
  #held: (() => void)[] | undefined
  #world: World | undefined

  constructor(simulation: Simulation, name: string, host: string) {
    this.#simulation = simulation
    this.name = name
    this.host = host
    this.#random = simulation.random.fork()
    this.disk = new FakeDisk({
      random: simulation.random.fork(),
      after: (delay, run) => this.after(delay, run),
      trace: (event, first, second, detail) => this.trace(event, first, second, detail),
    })
  }

  /** The world of the process that lives now. */
  get world(): World {
    this.#powered = true
    this.#world ??= this.#makeWorld()
    return this.#world
  }

  /** Without power nobody hears, not even to refuse. Asking for its world turns it on again. */
  get powered(): boolean {
    return this.#powered
  }

  /** Counts the lives of its process. */
  get life(): number {
    return this.#life
  }

  /** The process dies in the middle of what it does; what it had written stays. */
  crash(): void {
    this.trace('crash')
    this.#end()
    this.disk.processDies()
    this.#network.processDies(this, false)
  }

  /** The machine loses power; what was not synced is as chance has it, and its peers hear nothing. */
  powerCut(): void {
    this.trace('powerCut')
    this.#end()
    this.#powered = false
    this.disk.powerCut()
    this.#network.processDies(this, true)
  }

  /** The process stands still (SIGSTOP). */
  pause(): void {
    if (this.#held !== undefined) return
    this.trace('pause')
    this.#held = []
  }

  /** It goes on, with all that has come due. */
  continue(): void {
    const held = this.#held
    if (held === undefined) return
    this.trace('continue')
    this.#held = undefined
    for (const run of held) this.after(0, run)
  }

  get paused(): boolean {
    return this.#held !== undefined
  }

  /** Runs it later in this life. */
  after(delay: Micros, run: () => void): HeapNode<() => void> {
    const life = this.#life
    return this.#simulation.schedule.after(delay, () => {
      if (life !== this.#life) return
      if (this.#held === undefined) run()
      else this.#held.push(run)
    })
  }

  trace(event: string, first = 0, second = 0, detail = ''): void {
    const { trace, schedule } = this.#simulation
    trace.add(schedule.now, this.name, event, first, second, detail)
  }

  get #network(): FakeNetwork {
    return this.#simulation.network
  }

  #end(): void {
    this.#life++
    this.#held = undefined
    this.#world = undefined
  }

  #makeWorld(): World {
    return {
      clock: this.#makeClock(),
      random: this.#makeChance(),
      network: this.#network.of(this),
      disk: this.disk.inThisLife(),
      log: this.#makeLog({}),
    }
  }

  #makeClock(): Clock {
    const { schedule } = this.#simulation
    const life = this.#life
    const after = (delay: Micros, run: () => void): HeapNode<() => void> | undefined =>
      life === this.#life ? this.after(delay, run) : undefined
    return {
      now: () => EPOCH_MS + this.clockSkewMs + Math.floor((schedule.now / 1000) * this.clockRate),
      monotonic: () => (schedule.now / 1000) * this.clockRate,
      after: (delay, run): Timer => {
        let cancelled = false
        const event = after((delay * 1000) / this.clockRate, () => {
          // It may have been held while the process stood still.
          if (cancelled) return
          this.trace('timer')
          run()
        })
        return {
          cancel: () => {
            cancelled = true
            if (event !== undefined) schedule.cancel(event)
          },
        }
      },
      soon: run => {
        after(0, run)
      },
    }
  }

  #makeChance(): Chance {
    return { fraction: () => this.#random.fraction(), fill: into => this.#random.fill(into) }
  }

  #makeLog(bound: object): Logger {
    const add =
      (level: string) =>
      (fields: object, message: string): void =>
        this.trace('log', 0, 0, `${level} ${message} ${JSON.stringify({ ...bound, ...fields })}`)
    return {
      debug: add('debug'),
      info: add('info'),
      warn: add('warn'),
      error: add('error'),
      child: fields => this.#makeLog({ ...bound, ...fields }),
    }
  }
}
