import type { Millis } from '#base/units.ts'
import { CutShort, Simulation } from '#world/fake/simulation.ts'

/** Something to do in a simulation, and what must hold of it. It rejects when something does not. */
export interface Workload {
  readonly name: string
  /** Deliberately broken builds that its checkers must catch, by name. */
  readonly mutants: readonly string[]
  /** Virtual time after which a run that has not come to its end is stuck; an hour where it does not say. */
  readonly limitMs?: Millis
  run(simulation: Simulation, mutant: string | undefined): Promise<void>
  /** Breaks what a mutant breaks in the product, and returns what mends it: when the run is over, however it ended. */
  readonly patch?: (mutant: string) => () => void
}

export interface SimulationOptions {
  readonly seed: number
  readonly workload: Workload
  readonly mutant?: string | undefined
  /** Keeps a line per event; the hash is there without. */
  readonly keepTrace?: boolean
  /** Virtual time after which a run that has not come to its end is stuck. */
  readonly limitMs?: Millis
  /** So many events, and the run is given up without a verdict. */
  readonly eventsMax?: number
}

export interface SimulationResult {
  readonly seed: number
  /** Of all events in order: the same for the same seed. */
  readonly hash: string
  readonly events: number
  readonly virtualMs: Millis
  readonly lines: readonly string[] | undefined
  readonly error: Error | undefined
  /** Whether it was given up before its end. */
  readonly isCut: boolean
}

/** Runs one seed to its end. */
export async function runSimulation(options: SimulationOptions): Promise<SimulationResult> {
  const { seed, workload, mutant, keepTrace = false, limitMs = workload.limitMs, eventsMax } = options
  const simulation = new Simulation(seed, { keepTrace })
  let error: Error | undefined
  let isCut = false
  // A node stops at a rejection that nobody takes, so such a run has failed as well.
  const broken = Promise.withResolvers<never>()
  const unhandled = (reason: unknown): void => broken.reject(reason)
  process.on('unhandledRejection', unhandled)
  const mend = mutant === undefined ? undefined : workload.patch?.(mutant)
  try {
    await simulation.run(Promise.race([workload.run(simulation, mutant), broken.promise]), limitMs, eventsMax)
  } catch (thrown) {
    isCut = thrown instanceof CutShort
    if (!isCut) error = thrown instanceof Error ? thrown : new Error(String(thrown))
  } finally {
    process.off('unhandledRejection', unhandled)
    mend?.()
  }
  const { trace, schedule } = simulation
  return {
    seed,
    hash: trace.hash,
    events: schedule.count + simulation.beside,
    virtualMs: schedule.now / 1000,
    lines: trace.lines,
    error,
    isCut,
  }
}
