import type { NodeId } from '#base/units.ts'
import type { Topic } from '../metadata.ts'
import type { TopicPartition } from '../per-leader.ts'
import type { Reassignment } from './reassignments.ts'

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
  /** With a replica that is not in sync, other than those that a reassignment adds. */
  readonly underReplicated: readonly TopicPartition[]
  /** Led by another than the first replica. */
  readonly notPreferred: readonly (TopicPartition & {
    /** The first replica is in sync, so an election gives it the leadership. */
    readonly electable: boolean
  })[]
}

/**
 * @param minInSync min.insync.replicas by topic; 1 where it is not told.
 * @param reassignments those that go on.
 */
export function healthOf(
  topics: readonly Topic[],
  minInSync: ReadonlyMap<string, number>,
  reassignments: readonly Pick<Reassignment, 'topic' | 'partition' | 'adding'>[] = [],
): ClusterHealth {
  const adding = new Map(reassignments.map(each => [`${each.topic}-${each.partition}`, each.adding]))
  const brokers = new Map<NodeId, { leads: number; replicas: number; preferred: number; behind: number }>()
  const load = (id: NodeId) => {
    const known = brokers.get(id) ?? { leads: 0, replicas: 0, preferred: 0, behind: 0 }
    brokers.set(id, known)
    return known
  }
  const offline: TopicPartition[] = []
  const underMinIsr: TopicPartition[] = []
  const underReplicated: TopicPartition[] = []
  const notPreferred: ClusterHealth['notPreferred'][number][] = []
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
      const added = adding.get(`${topic.name}-${partition}`) ?? []
      if (ids.some(id => !isr.includes(id) && !added.includes(id))) underReplicated.push(here)
      if (leader >= 0 && first !== undefined && leader !== first) {
        notPreferred.push({ ...here, electable: isr.includes(first) })
      }
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
