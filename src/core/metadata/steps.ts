import type { EvenStep, Index } from './even.ts'

/** Parts in the order in which they were found, those before `at` used up. */
interface Queue<Part> {
  at: number
  readonly parts: Part[]
}

/** What a part would give and take. */
export interface Steps<Part extends object, Step extends EvenStep<Part>> {
  /** Everybody who carries some of the part. */
  readonly from: (part: Part) => readonly Index[]
  /** The step as the part is now, undefined where there is none. Its cost never changes. */
  readonly step: (part: Part, from: Index, to: Index) => Step | undefined
  /** Whether the step may be done as things are now; what it depends on is said to `StepIndex.moved` as the part's group. */
  readonly allowed?: (part: Part, from: Index, to: Index) => boolean
  readonly group?: (part: Part) => object
}

/**
 * The cheapest step from each to each, kept while parts move. Each part waits in a queue per pair and cost; what it is
 * worth is judged again when its turn comes, so that a move costs as much as one part has steps, not as all have.
 */
export class StepIndex<Part extends object, Step extends EvenStep<Part>> {
  readonly #size: number
  readonly #parts: Iterable<Part>
  readonly #steps: Steps<Part, Step>
  /** By pair, then by cost. Made at the first question: often there is none. */
  #queues: Map<number, Queue<Part>>[] | undefined
  /** What came to its turn and was not allowed, by group. */
  readonly #parked = new Map<object, { readonly queue: Queue<Part>; readonly part: Part }[]>()

  constructor(size: number, parts: Iterable<Part>, steps: Steps<Part, Step>) {
    this.#size = size
    this.#parts = parts
    this.#steps = steps
  }

  /** The cheapest step of a part that none of `before` takes: a step is judged by where its part is now. */
  best(from: Index, to: Index, before: readonly Step[] = []): Step | undefined {
    const byCost = this.#made()[from * this.#size + to] ?? new Map<number, Queue<Part>>()
    let best: Step | undefined
    for (const [cost, queue] of byCost) {
      if (best === undefined || cost < best.cost) best = this.#next(queue, from, to, before) ?? best
    }
    return best
  }

  #next(queue: Queue<Part>, from: Index, to: Index, before: readonly Step[]): Step | undefined {
    const { parts } = queue
    let isFirst = true
    for (let at = queue.at; at < parts.length; at++) {
      const part = parts[at] as Part
      const step = this.#steps.step(part, from, to)
      const isAllowed = step !== undefined && this.#steps.allowed?.(part, from, to) !== false
      if (isAllowed && !before.some(({ placed }) => placed === part)) return step
      if (isAllowed) isFirst = false
      else if (isFirst) {
        queue.at = at + 1
        if (step !== undefined) this.#park(queue, part)
      }
    }
    return undefined
  }

  #park(queue: Queue<Part>, part: Part): void {
    const group = this.#steps.group?.(part) ?? part
    const known = this.#parked.get(group)
    if (known === undefined) this.#parked.set(group, [{ queue, part }])
    else known.push({ queue, part })
  }

  /** A part has moved: it has other steps, and those of its group may be allowed by now. */
  moved(part: Part): void {
    const queues = this.#queues
    if (queues === undefined) return
    this.#add(queues, part)
    const group = this.#steps.group?.(part) ?? part
    const parked = this.#parked.get(group) ?? []
    this.#parked.delete(group)
    for (const { queue, part: each } of parked) queue.parts.push(each)
  }

  #made(): Map<number, Queue<Part>>[] {
    if (this.#queues !== undefined) return this.#queues
    const queues = Array.from({ length: this.#size ** 2 }, () => new Map<number, Queue<Part>>())
    for (const part of this.#parts) this.#add(queues, part)
    this.#queues = queues
    return queues
  }

  #add(queues: Map<number, Queue<Part>>[], part: Part): void {
    for (const from of this.#steps.from(part)) {
      for (let to = 0; to < this.#size; to++) {
        const step = this.#steps.step(part, from, to)
        if (step === undefined) continue
        const byCost = queues[from * this.#size + to]
        const queue = byCost?.get(step.cost)
        if (queue === undefined) byCost?.set(step.cost, { at: 0, parts: [part] })
        else queue.parts.push(part)
      }
    }
  }
}
