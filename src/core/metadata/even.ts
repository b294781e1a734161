/** Somebody who carries a load, by the place in a list. */
export type Index = number

/** A part of somebody's load, which `to` can take over. */
export interface EvenStep<Part> {
  readonly placed: Part
  readonly to: Index
  readonly cost: number
}

type Visit<Step> = (from: Index, found: (step: Step) => void) => void

/**
 * Takes from those who have most and gives to those who have least, until the difference is one or nothing
 * more can be done. Where none of what one has may go to the other, it goes by others, each of which passes on as much.
 * Each round lowers the sum of the loads' squares, so there is an end.
 */
export function even<Step extends EvenStep<unknown>>(
  loads: readonly number[],
  ties: readonly number[],
  visit: Visit<Step>,
  perform: (step: Step) => void,
): void {
  const rank = (index: Index): readonly number[] => [loads[index] ?? 0, ties[index] ?? 0]
  for (let again = true; again; ) {
    again = false
    const starts = [...loads.keys()].sort((a, b) => compare(rank(b), rank(a)) || a - b)
    // One after another, so that those who can give nothing are asked once a round.
    for (const start of starts) {
      for (;;) {
        const path = pathToLess(loads, rank, start, visit)
        if (path === undefined) break
        for (const step of path) perform(step)
        again = true
      }
    }
  }
}

/** The shortest way from one to another that has two less: the steps, first to last. */
function pathToLess<Step extends EvenStep<unknown>>(
  loads: readonly number[],
  rank: (index: Index) => readonly number[],
  start: Index,
  visit: Visit<Step>,
): Step[] | undefined {
  if ((loads[start] ?? 0) - Math.min(...loads) <= 1) return undefined
  const cameBy = new Map<Index, { readonly from: Index; readonly step: Step }>()
  const wayTo = (index: Index): Step[] => {
    const steps: Step[] = []
    for (let at = cameBy.get(index); at !== undefined; at = cameBy.get(at.from)) steps.unshift(at.step)
    return steps
  }
  for (let layer = [start]; layer.length > 0; ) {
    const next = new Set<Index>()
    for (const from of layer) {
      const before = wayTo(from)
      visit(from, step => {
        if (step.to === start || (cameBy.has(step.to) && !next.has(step.to))) return
        const known = cameBy.get(step.to)
        if (known !== undefined && known.step.cost <= step.cost) return
        // A step was judged by where all parts are now, and holds for one step of it only.
        if (before.some(({ placed }) => placed === step.placed)) return
        cameBy.set(step.to, { from, step })
        next.add(step.to)
      })
    }
    layer = [...next]
    const target = layer
      .filter(index => (loads[start] ?? 0) - (loads[index] ?? 0) > 1)
      .sort((a, b) => compare(rank(a), rank(b)) || a - b)[0]
    if (target !== undefined) return wayTo(target)
  }
  return undefined
}

/**
 * A cycle of steps that costs less than nothing, found as Bellman and Ford do. It may be closed by one who has
 * one less taking the place of one who has one more, which costs nothing.
 */
export function cheapCycle<Step extends EvenStep<unknown>>(
  loads: readonly number[],
  visit: Visit<Step>,
): Step[] | undefined {
  const edges = new Map<string, { readonly from: Index; readonly to: Index; readonly cost: number; step?: Step }>()
  for (const from of loads.keys()) {
    for (const [to, load] of loads.entries()) {
      if (load - (loads[from] ?? 0) === 1) edges.set(`${from} ${to}`, { from, to, cost: 0 })
    }
    visit(from, step => {
      const key = `${from} ${step.to}`
      const known = edges.get(key)
      if (known === undefined || step.cost < known.cost) edges.set(key, { from, to: step.to, cost: step.cost, step })
    })
  }
  const distance = loads.map(() => 0)
  const cameBy = new Map<Index, { readonly from: Index; readonly step?: Step }>()
  let changed: Index | undefined
  for (let round = 0; round < loads.length; round++) {
    changed = undefined
    for (const edge of edges.values()) {
      if ((distance[edge.from] ?? 0) + edge.cost >= (distance[edge.to] ?? 0)) continue
      distance[edge.to] = (distance[edge.from] ?? 0) + edge.cost
      cameBy.set(edge.to, edge)
      changed = edge.to
    }
    if (changed === undefined) return undefined
  }
  // Who still got cheaper in the last round is on the cycle or behind it.
  let on = changed ?? 0
  for (let back = 0; back < loads.length; back++) on = cameBy.get(on)?.from ?? on
  const steps: Step[] = []
  let at = on
  do {
    const edge = cameBy.get(at)
    if (edge?.step !== undefined) steps.unshift(edge.step)
    at = edge?.from ?? on
  } while (at !== on)
  return steps
}

export function compare(a: readonly number[], b: readonly number[]): number {
  for (const [i, value] of a.entries()) {
    const difference = value - (b[i] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}
