import type { NodeId } from '#base/units.ts'
import { cheapCycle, compare, type EvenStep, even, type Index } from './even.ts'
import { StepIndex } from './steps.ts'

export interface PlanBroker {
  readonly id: NodeId
  readonly host: string
  /** '' where it has none. */
  readonly rack: string
}

export interface PlanPartition {
  readonly topic: string
  readonly partition: number
  /** In their order: the first is the preferred leader. */
  readonly replicas: readonly NodeId[]
}

export interface PlannedChange extends PlanPartition {
  readonly before: readonly NodeId[]
}

/** Why partitions cannot be placed on these brokers, undefined if they can. */
export function planProblem(
  brokers: readonly PlanBroker[],
  partitions: readonly PlanPartition[],
  factor?: number,
): string | undefined {
  if (brokers.length === 0) return 'there is no broker to place replicas on'
  const most = partitions.find(({ replicas }) => (factor ?? replicas.length) > brokers.length)
  if (most === undefined) return undefined
  const wanted = factor ?? most.replicas.length
  return `${wanted} replicas of ${most.topic}-${most.partition} cannot be placed on ${brokers.length} broker(s)`
}

/**
 * Chooses where replicas go so that they live on these brokers alone. What counts, most important first:
 * replicas of a partition are on different hosts, then racks, as far as there are any; each topic's replicas are even
 * over the brokers, and then those of all; as few replicas are copied as that takes; leaders are even, by topic and in all.
 * Even is a difference of one at most, where hosts and racks leave room for it. Partitions that stay as they are are left
 * out. It knows no chance: the same cluster gives the same plan. Only after `planProblem` found none.
 *
 * @param factor how many replicas each partition gets; as many as it has where that is left out.
 */
export function planReassignment(
  brokers: readonly PlanBroker[],
  partitions: readonly PlanPartition[],
  factor?: number,
): PlannedChange[] {
  const plan = new Plan(brokers, partitions, factor)
  plan.place()
  plan.spread()
  plan.evenReplicas()
  plan.evenLeaders()
  return plan.changes()
}

/** How many replicas of a change are on brokers that had none. */
export function copiesOf({ before, replicas }: PlannedChange): number {
  return replicas.filter(id => !before.includes(id)).length
}

interface Placed {
  readonly source: PlanPartition
  readonly topic: TopicCounts
  readonly factor: number
  /** Where it was, as far as those brokers stay. */
  readonly original: ReadonlySet<Index>
  readonly replicas: Index[]
}

/** By broker. */
interface Counts {
  readonly replicas: number[]
  readonly leads: number[]
}

interface TopicCounts extends Counts {
  readonly partitions: Placed[]
}

/** One of a partition's replicas, by its position, and the broker that takes its place or its leadership. */
type Step = EvenStep<Placed> & { readonly position: number }

const NOWHERE: Index = -1

/** More than a partition has replicas. */
const HOST_WEIGHT = 2 ** 20

class Plan {
  readonly #brokers: readonly PlanBroker[]
  readonly #hosts: readonly number[]
  readonly #racks: readonly number[]
  readonly #placed: Placed[] = []
  readonly #topics = new Map<string, TopicCounts>()
  readonly #all: Counts

  constructor(brokers: readonly PlanBroker[], partitions: readonly PlanPartition[], factor: number | undefined) {
    this.#brokers = brokers
    this.#hosts = numbered(brokers.map(({ host }) => host))
    this.#racks = numbered(brokers.map(({ rack }) => rack))
    this.#all = { replicas: brokers.map(() => 0), leads: brokers.map(() => 0) }
    const indexes = new Map(brokers.map(({ id }, index) => [id, index]))
    for (const source of partitions) {
      const replicas = source.replicas.map(id => indexes.get(id) ?? NOWHERE)
      const topic = this.#topic(source.topic)
      const original = new Set(replicas.filter(index => index !== NOWHERE))
      const placed = { source, topic, factor: factor ?? replicas.length, original, replicas }
      this.#placed.push(placed)
      topic.partitions.push(placed)
      for (const index of original) this.#count(topic, index, 1)
    }
  }

  #topic(name: string): TopicCounts {
    const known = this.#topics.get(name)
    if (known !== undefined) return known
    const topic = { replicas: this.#brokers.map(() => 0), leads: this.#brokers.map(() => 0), partitions: [] }
    this.#topics.set(name, topic)
    return topic
  }

  #count(topic: TopicCounts, index: Index, change: 1 | -1): void {
    topic.replicas[index] = (topic.replicas[index] ?? 0) + change
    this.#all.replicas[index] = (this.#all.replicas[index] ?? 0) + change
  }

  /** Replicas on brokers that go get new ones, each in its position, so that leaders change no more than they must. */
  place(): void {
    for (const placed of this.#placed) this.#shrink(placed)
    for (const placed of this.#placed) {
      const { replicas, factor, topic } = placed
      while (replicas.length < factor) replicas.push(NOWHERE)
      for (const [position, index] of replicas.entries()) {
        if (index !== NOWHERE) continue
        const to = this.#best(placed, position)
        replicas[position] = to
        this.#count(topic, to, 1)
      }
    }
  }

  /** First those that have to go anyway, then the ones nearest to others, and the leader last. */
  #shrink(placed: Placed): void {
    const { replicas, factor, topic } = placed
    while (replicas.length > factor) {
      let position = replicas.lastIndexOf(NOWHERE)
      if (position < 0) {
        let worst: readonly number[] | undefined
        for (let each = 1; each < replicas.length; each++) {
          const index = replicas[each] ?? NOWHERE
          const rank = [
            -this.#nearness(placed, each, index),
            -(topic.replicas[index] ?? 0),
            -(this.#all.replicas[index] ?? 0),
          ]
          if (worst !== undefined && compare(rank, worst) >= 0) continue
          worst = rank
          position = each
        }
        this.#count(topic, replicas[position] ?? NOWHERE, -1)
      }
      replicas.splice(position, 1)
    }
  }

  /** The broker for a position: away from the partition's other replicas, then where there is least. */
  #best(placed: Placed, position: number): Index {
    let best = NOWHERE
    let bestRank: readonly number[] = []
    for (const index of this.#brokers.keys()) {
      if (placed.replicas.includes(index)) continue
      const rank = [
        this.#nearness(placed, position, index),
        placed.topic.replicas[index] ?? 0,
        this.#all.replicas[index] ?? 0,
      ]
      if (best !== NOWHERE && compare(rank, bestRank) >= 0) continue
      best = index
      bestRank = rank
    }
    return best
  }

  /**
   * How near a replica at `index`, in this position, is to the partition's others: one by one those on its host, and
   * what weighs less, those in its rack.
   */
  #nearness({ replicas }: Placed, position: number, index: Index): number {
    const host = this.#hosts[index]
    const rack = this.#racks[index]
    let nearness = 0
    for (let other = 0; other < replicas.length; other++) {
      const at = replicas[other] ?? NOWHERE
      if (other === position || at === NOWHERE) continue
      if (this.#hosts[at] === host) nearness += HOST_WEIGHT
      if (this.#racks[at] === rack) nearness++
    }
    return nearness
  }

  /** Moves replicas apart that share a host or rack while another is free of them. */
  spread(): void {
    for (const placed of this.#placed) {
      for (let position = placed.replicas.length - 1; position >= 0; position--) {
        const from = placed.replicas[position] ?? NOWHERE
        const to = this.#best(placed, position)
        if (to === NOWHERE) continue
        if (this.#nearness(placed, position, to) >= this.#nearness(placed, position, from)) continue
        this.#move({ placed, position, to })
        // Whoever was kept from moving by this one may now.
        position = placed.replicas.length
      }
    }
  }

  #move({ placed, position, to }: Pick<Step, 'placed' | 'position' | 'to'>): void {
    this.#count(placed.topic, placed.replicas[position] ?? NOWHERE, -1)
    placed.replicas[position] = to
    this.#count(placed.topic, to, 1)
  }

  evenReplicas(): void {
    const size = this.#brokers.length
    const steps = {
      from: ({ replicas }: Placed) => replicas,
      step: (placed: Placed, from: Index, to: Index) => this.#step(placed, from, to),
    }
    for (const topic of this.#topics.values()) {
      const index = new StepIndex<Placed, Step>(size, topic.partitions, steps)
      even<Step>(topic.replicas, this.#all.replicas, (...asked) => index.best(...asked), this.#moving(index))
      this.#spareCopies(topic, index)
    }
    // Among all, only what leaves each topic as even as it is.
    const index = new StepIndex<Placed, Step>(size, this.#placed, {
      ...steps,
      allowed: ({ topic }, from, to) => (topic.replicas[from] ?? 0) > (topic.replicas[to] ?? 0),
      group: ({ topic }) => topic,
    })
    even<Step>(this.#all.replicas, this.#all.replicas, (...asked) => index.best(...asked), this.#moving(index))
  }

  #moving(index: StepIndex<Placed, Step>): (step: Step) => void {
    return step => {
      this.#move(step)
      index.moved(step.placed)
    }
  }

  /** Exchanges moves for others that leave as even what is even, and copy less: cycles of steps that cost less than none. */
  #spareCopies(topic: TopicCounts, index: StepIndex<Placed, Step>): void {
    const move = this.#moving(index)
    for (;;) {
      const cycle = cheapCycle<Step>(topic.replicas, (...asked) => index.best(...asked))
      if (cycle === undefined) return
      for (const { placed, position, to } of cycle) {
        // Steps of one partition were judged apart; together they may bring it closer than it was.
        const from = placed.replicas[position] ?? NOWHERE
        const nearer = this.#nearness(placed, position, to) > this.#nearness(placed, position, from)
        if (nearer || placed.replicas.includes(to)) return
        move({ placed, position, to, cost: 0 })
      }
    }
  }

  /** A replica that goes elsewhere, no nearer to the others than it is. */
  #step(placed: Placed, from: Index, to: Index): Step | undefined {
    const { replicas, original } = placed
    const position = replicas.indexOf(from)
    if (position < 0 || replicas.includes(to)) return undefined
    if (this.#nearness(placed, position, to) > this.#nearness(placed, position, from)) return undefined
    return { placed, position, to, cost: Number(original.has(from)) - Number(original.has(to)) }
  }

  evenLeaders(): void {
    for (const { topic, replicas } of this.#placed) {
      const leader = replicas[0] ?? NOWHERE
      topic.leads[leader] = (topic.leads[leader] ?? 0) + 1
      this.#all.leads[leader] = (this.#all.leads[leader] ?? 0) + 1
    }
    const lead = ({ placed, position, to }: Step): void => {
      const { replicas, topic } = placed
      const from = replicas[0] ?? NOWHERE
      replicas[0] = to
      replicas[position] = from
      for (const { leads } of [topic, this.#all]) {
        leads[from] = (leads[from] ?? 0) - 1
        leads[to] = (leads[to] ?? 0) + 1
      }
    }
    for (const topic of this.#topics.values()) {
      const index = new StepIndex<Placed, Step>(this.#brokers.length, topic.partitions, {
        from: ({ replicas }) => replicas.slice(0, 1),
        step: (placed, from, to) => {
          const position = placed.replicas[0] === from ? placed.replicas.indexOf(to, 1) : NOWHERE
          return position < 0 ? undefined : { placed, position, to, cost: 0 }
        },
      })
      const leadAnd = (step: Step): void => {
        lead(step)
        index.moved(step.placed)
      }
      even<Step>(topic.leads, this.#all.leads, (...asked) => index.best(...asked), leadAnd)
    }
    for (let again = true; again; ) {
      again = false
      for (const start of this.#brokers.keys()) {
        for (let path = this.#leadsToLess(start); path !== undefined; path = this.#leadsToLess(start)) {
          for (const step of path) lead(step)
          again = true
        }
      }
    }
  }

  /**
   * The shortest way for leadership from a broker to one that leads two less in all. Within a topic it may go by brokers
   * that lead as many as others, as long as it ends where the topic has less than where it began.
   */
  #leadsToLess(start: Index): Step[] | undefined {
    const { leads } = this.#all
    const most = leads[start] ?? 0
    if (most - Math.min(...leads) <= 1) return undefined
    interface Node {
      readonly index: Index
      readonly topic?: TopicCounts
      /** What the broker leads of the topic by which it was entered. */
      readonly entry: number
      readonly from: Node | undefined
      readonly step?: Step
    }
    const seen = new Set<Index>([start])
    const seenOf = new Map<TopicCounts, Set<Index>>([...this.#topics.values()].map(topic => [topic, new Set<Index>()]))
    const queue: Node[] = [{ index: start, entry: 0, from: undefined }]
    const wayTo = (end: Node): Step[] => {
      const steps: Step[] = []
      for (let node: Node | undefined = end; node !== undefined; node = node.from)
        if (node.step) steps.unshift(node.step)
      return steps
    }
    for (const node of queue) {
      const { index, topic, entry } = node
      if (topic === undefined) {
        for (const [each, entered] of seenOf) {
          const led = each.leads[index] ?? 0
          if (led === 0 || entered.has(index)) continue
          entered.add(index)
          queue.push({ index, topic: each, entry: led, from: node })
        }
        continue
      }
      const entered = seenOf.get(topic) ?? new Set()
      let found: Node | undefined
      leaderships(topic.partitions, index, step => {
        const { to } = step
        if (found !== undefined || to === start) return
        if ((topic.leads[to] ?? 0) < entry && !seen.has(to)) {
          seen.add(to)
          const left = { index: to, entry: 0, from: node, step }
          if (most - (leads[to] ?? 0) > 1) found = left
          queue.push(left)
        }
        if (entered.has(to)) return
        entered.add(to)
        queue.push({ index: to, topic, entry, from: node, step })
      })
      if (found !== undefined) return wayTo(found)
    }
    return undefined
  }

  changes(): PlannedChange[] {
    return this.#placed.flatMap(({ source: { topic, partition, replicas: before }, replicas: indexes }) => {
      const replicas = indexes.map(index => this.#brokers[index]?.id ?? NOWHERE)
      const same = replicas.length === before.length && replicas.every((id, position) => id === before[position])
      return same ? [] : [{ topic, partition, before, replicas }]
    })
  }
}

function numbered(names: readonly string[]): number[] {
  const numbers = new Map([...new Set(names)].map((name, index) => [name, index]))
  return names.map(name => numbers.get(name) ?? 0)
}

function leaderships(partitions: readonly Placed[], from: Index, found: (step: Step) => void): void {
  for (const placed of partitions) {
    if (placed.replicas[0] !== from) continue
    for (let position = 1; position < placed.replicas.length; position++) {
      found({ placed, position, to: placed.replicas[position] ?? NOWHERE, cost: 0 })
    }
  }
}
