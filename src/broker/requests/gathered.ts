import type { Pieces } from '#network/turns.ts'

interface Partition {
  readonly partitionIndex: number
}
interface Topic<P extends Partition> {
  readonly name: string
  readonly partitions: readonly P[]
}

export interface Gathered<P extends Partition> {
  readonly name: string
  /** By index, each as it was named last. */
  readonly partitions: Map<number, P>
  /** Those that were named more than once. */
  readonly twice: Set<number>
}

/** Each topic and each partition of a request once, in the order in which they came first, as Kafka answers them. */
export async function gathered<P extends Partition>(
  topics: readonly Topic<P>[],
  pieces: Pieces,
): Promise<Gathered<P>[]> {
  const byName = new Map<string, Gathered<P>>()
  for (const { name, partitions } of topics) {
    if (partitions.length === 0) continue
    let topic = byName.get(name)
    if (topic === undefined) {
      topic = { name, partitions: new Map(), twice: new Set() }
      byName.set(name, topic)
    }
    for (const partition of partitions) {
      const wait = pieces.next()
      if (wait) await wait
      if (topic.partitions.has(partition.partitionIndex)) topic.twice.add(partition.partitionIndex)
      topic.partitions.set(partition.partitionIndex, partition)
    }
  }
  return [...byName.values()]
}
