/** Somebody who carries a load, by the place in a list. */
export type Index = number

/** A part of somebody's load, which `to` can take over. */
export interface EvenStep<Part> {
  readonly placed: Part
  readonly to: Index
  readonly cost: number
}

/** The cheapest step from one to another of a part that no step of `before` takes. */
type Best<Step> = (from: Index, to: Index, before: readonly Step[]) => Step | undefined

/**
 * Takes from those who have most and gives to those who have least, until the difference is one or nothing
 * more can be done. Where none of what one has may go to the other, it goes by others, each of which passes on as much.
 * Each round lowers the sum of the loads' squares, so there is an end.
 */
export function even<Step extends EvenStep<unknown>>(
  loads: readonly number[],
  ties: readonly number[],
  best: Best<Step>,
  perform: (step: Step) => void,
): void {
  const rank = (index: Index): readonly number[] => [loads[index] ?? 0, ties[index] ?? 0]
  for (let again = true; again; ) {
    again = false
    const starts = [...loads.keys()].sort((a, b) => compare(rank(b), rank(a)) || a - b)
    // One after another, so that those who can give nothing are asked once a round.
    for (const start of starts) {
      for (;;) {
        const path = pathToLess(loads, rank, start, best)
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
  best: Best<Step>,
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
      for (const to of loads.keys()) {
        if (to === start || to === from || (cameBy.has(to) && !next.has(to))) continue
        // A step was judged by where all parts are now, and holds for one step of it only.
        const step = best(from, to, before)
        const known = cameBy.get(to)
        if (step === undefined || (known !== undefined && known.step.cost <= step.cost)) continue
        cameBy.set(to, { from, step })
        next.add(to)
      }
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
  best: Best<Step>,
): Step[] | undefined {
  const edges: { readonly from: Index; readonly to: Index; readonly cost: number; readonly step?: Step }[] = []
  for (const from of loads.keys()) {
    for (const [to, load] of loads.entries()) {
      if (to === from) continue
      const step = best(from, to, [])
      if (load - (loads[from] ?? 0) === 1 && (step === undefined || step.cost >= 0)) edges.push({ from, to, cost: 0 })
      else if (step !== undefined) edges.push({ from, to, cost: step.cost, step })
    }
  }
  const distance = loads.map(() => 0)
  const cameBy = new Map<Index, { readonly from: Index; readonly step?: Step }>()
  let changed: Index | undefined
  for (let round = 0; round < loads.length; round++) {
    changed = undefined
    for (const edge of edges) {
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
