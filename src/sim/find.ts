import { runSimulation, type Workload } from './kernel.ts'

export interface Caught {
  readonly seed: number
  readonly events: number
  readonly seconds: number
  readonly error: Error
}

/** So many events of each seed at first. */
const EVENTS_AT_FIRST = 20_000

/**
 * The cheapest of the seeds that catch a mutant, or nearly: tries all with few events each, and those that have not ended
 * with twice as many. One that never ends by itself would cost more than all others together.
 */
export async function findSeed(
  workload: Workload,
  mutant: string,
  seeds: readonly number[],
  tells: (seed: number, eventsMax: number) => void = () => {},
): Promise<Caught | undefined> {
  let left = seeds
  for (let eventsMax = EVENTS_AT_FIRST; left.length > 0; eventsMax *= 2) {
    const cut: number[] = []
    for (const seed of left) {
      tells(seed, eventsMax)
      const start = process.uptime()
      const { error, events, isCut } = await runSimulation({ seed, workload, mutant, eventsMax })
      if (error !== undefined) return { seed, events, seconds: process.uptime() - start, error }
      if (isCut) cut.push(seed)
    }
    left = cut
  }
  return undefined
}
