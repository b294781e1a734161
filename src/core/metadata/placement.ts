import type { NodeId } from '#base/units.ts'
import { isLoopback } from '../config/listeners.ts'
import type { MetadataImage } from './image.ts'
import type { BrokerImage } from './node-image.ts'

interface Candidate {
  readonly id: NodeId
  readonly host: string
  readonly rack: string
  readonly fenced: boolean
  /** Counted over the whole cluster. */
  leads: number
  replicas: number
  /** Counted over the topic that is being placed. */
  topicLeads: number
  topicReplicas: number
}

/** Broken ties one after another: the first difference decides, smaller wins. */
type Rank = readonly number[]

/**
 * Chooses brokers for the replicas of new partitions. The first replica, which will lead, goes to the broker that leads
 * the fewest partitions of the topic, then of the cluster; the others go to hosts, then to racks, that have none of
 * the partition yet, and there to the broker that has the fewest replicas. Fenced brokers only when no other is left,
 * and never as the first. It knows no chance: the same cluster gives the same placement.
 *
 * Brokers are on one host when they register the same host for `interBrokerListener` (their first listener where they
 * have none of that name): that is the address by which replicas are copied, and so the brokers of one process, or of
 * several on one machine, are never taken for two machines.
 */
export class Placement {
  readonly #candidates: Candidate[] = []
  readonly #byId = new Map<NodeId, Candidate>()

  constructor(image: MetadataImage, interBrokerListener?: string) {
    for (const broker of image.brokers.values()) {
      if (broker.inControlledShutdown || isCordoned(broker)) continue
      const candidate = {
        id: broker.id,
        host: hostOf(broker, interBrokerListener),
        rack: broker.rack ?? '',
        fenced: broker.fenced,
        leads: 0,
        replicas: 0,
        topicLeads: 0,
        topicReplicas: 0,
      }
      this.#candidates.push(candidate)
      this.#byId.set(broker.id, candidate)
    }
    this.#candidates.sort((a, b) => a.id - b.id)
    for (const topic of image.topics.values()) {
      for (const partition of topic.partitions) this.#count(partition.replicas, false)
    }
  }

  get size(): number {
    return this.#candidates.length
  }

  get unfenced(): number {
    return this.#candidates.reduce((count, candidate) => count + (candidate.fenced ? 0 : 1), 0)
  }

  /** Why no partition of so many replicas can be placed, undefined if it can. */
  problem(replicationFactor: number): string | undefined {
    if (replicationFactor > this.size) {
      return `The target replication factor of ${replicationFactor} cannot be reached because only ${this.size} broker(s) are registered.`
    }
    return this.unfenced === 0 ? 'All brokers are currently fenced.' : undefined
  }

  /** Places partitions of one topic, of which `existing` are there already. Only after `problem` found none. */
  place(count: number, replicationFactor: number, existing: Iterable<readonly NodeId[]> = []): NodeId[][] {
    for (const candidate of this.#candidates) {
      candidate.topicLeads = 0
      candidate.topicReplicas = 0
    }
    for (const replicas of existing) this.#countTopic(replicas)
    const placed: NodeId[][] = []
    for (let index = 0; index < count; index++) {
      const replicas = this.#placeOne(replicationFactor)
      this.#count(replicas, true)
      placed.push(replicas)
    }
    return placed
  }

  #placeOne(replicationFactor: number): NodeId[] {
    const first = this.#best(candidate => {
      if (candidate.fenced) return undefined
      return [candidate.topicLeads, candidate.leads, candidate.topicReplicas, candidate.replicas]
    })
    const replicas: NodeId[] = []
    const hosts = new Map<string, number>()
    const racks = new Map<string, number>()
    const taken = new Set<NodeId>()
    const size = this.#candidates.length
    // So that the partitions of one leader do not all share their followers.
    const turn = first === undefined ? 0 : this.#candidates.indexOf(first) + 1 + first.topicLeads
    for (let next = first; next !== undefined; ) {
      replicas.push(next.id)
      taken.add(next.id)
      hosts.set(next.host, (hosts.get(next.host) ?? 0) + 1)
      racks.set(next.rack, (racks.get(next.rack) ?? 0) + 1)
      if (replicas.length === replicationFactor) break
      next = this.#best((candidate, position) => {
        if (taken.has(candidate.id)) return undefined
        return [
          candidate.fenced ? 1 : 0,
          hosts.get(candidate.host) ?? 0,
          racks.get(candidate.rack) ?? 0,
          candidate.topicReplicas,
          candidate.replicas,
          (position - turn + 2 * size) % size,
        ]
      })
    }
    return replicas
  }

  #best(rank: (candidate: Candidate, position: number) => Rank | undefined): Candidate | undefined {
    let best: Candidate | undefined
    let bestRank: Rank = []
    for (const [position, candidate] of this.#candidates.entries()) {
      const rankHere = rank(candidate, position)
      if (rankHere === undefined || (best !== undefined && !isBefore(rankHere, bestRank))) continue
      best = candidate
      bestRank = rankHere
    }
    return best
  }

  #count(replicas: readonly NodeId[], ofTopic: boolean): void {
    for (const [position, id] of replicas.entries()) {
      const candidate = this.#byId.get(id)
      if (candidate === undefined) continue
      candidate.replicas++
      if (position === 0) candidate.leads++
    }
    if (ofTopic) this.#countTopic(replicas)
  }

  #countTopic(replicas: readonly NodeId[]): void {
    for (const [position, id] of replicas.entries()) {
      const candidate = this.#byId.get(id)
      if (candidate === undefined) continue
      candidate.topicReplicas++
      if (position === 0) candidate.topicLeads++
    }
  }
}

function hostOf({ endPoints }: BrokerImage, interBrokerListener: string | undefined): string {
  const { host } = endPoints.find(({ name }) => name === interBrokerListener) ?? endPoints[0] ?? { host: '' }
  return isLoopback(host) ? 'localhost' : host.toLowerCase()
}

/** All of its directories take no new replicas. */
function isCordoned(broker: BrokerImage): boolean {
  const cordoned = broker.cordonedLogDirs
  return cordoned !== null && broker.logDirs.length > 0 && broker.logDirs.every(dir => cordoned.includes(dir))
}

function isBefore(a: Rank, b: Rank): boolean {
  for (let i = 0; i < a.length; i++) {
    const difference = (a[i] as number) - (b[i] as number)
    if (difference !== 0) return difference < 0
  }
  return false
}
