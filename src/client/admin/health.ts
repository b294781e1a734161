import type { NodeId } from '#base/units.ts'
import type { Topic } from '../metadata.ts'
import type { TopicPartition } from '../per-leader.ts'

export interface BrokerLoad {
  readonly leads: number
  readonly replicas: number
  /** Partitions whose first replica it is, whoever leads them. */
  readonly preferred: number
  /** Replicas that are not in sync. */
  readonly behind: number
}

export interface ClusterHealth {
  readonly topics: number
  readonly partitions: number
  readonly replicas: number
  /** By broker, also those that are only named as replicas. */
  readonly brokers: ReadonlyMap<NodeId, BrokerLoad>
  /** Without a leader: neither read nor written. */
  readonly offline: readonly TopicPartition[]
  /** With fewer in sync than min.insync.replicas: acks=all is refused. */
  readonly underMinIsr: readonly TopicPartition[]
  /** With a replica that is not in sync. */
  readonly underReplicated: readonly TopicPartition[]
  /** Led by another than the first replica. */
  readonly notPreferred: readonly TopicPartition[]
}

/** @param minInSync min.insync.replicas by topic; 1 where it is not told. */
export function healthOf(topics: readonly Topic[], minInSync: ReadonlyMap<string, number>): ClusterHealth {
  const brokers = new Map<NodeId, { leads: number; replicas: number; preferred: number; behind: number }>()
  const load = (id: NodeId) => {
    const known = brokers.get(id) ?? { leads: 0, replicas: 0, preferred: 0, behind: 0 }
    brokers.set(id, known)
    return known
  }
  const offline: TopicPartition[] = []
  const underMinIsr: TopicPartition[] = []
  const underReplicated: TopicPartition[] = []
  const notPreferred: TopicPartition[] = []
  let partitions = 0
  let replicas = 0
  for (const topic of topics) {
    for (const { partition, leader, replicas: ids, isr } of topic.partitions) {
      const here = { topic: topic.name, partition }
      partitions++
      replicas += ids.length
      for (const id of ids) {
        load(id).replicas++
        if (!isr.includes(id)) load(id).behind++
      }
      const [first] = ids
      if (first !== undefined) load(first).preferred++
      if (leader >= 0) load(leader).leads++
      else offline.push(here)
      if (isr.length < (minInSync.get(topic.name) ?? 1)) underMinIsr.push(here)
      if (isr.length < ids.length) underReplicated.push(here)
      if (leader >= 0 && leader !== first) notPreferred.push(here)
    }
  }
  return {
    topics: topics.length,
    partitions,
    replicas,
    brokers,
    offline,
    underMinIsr,
    underReplicated,
    notPreferred,
  }
}
