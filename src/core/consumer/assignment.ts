export interface TopicPartition {
  readonly topic: string
  readonly partition: number
}

/** A member of a group as its leader sees it. */
export interface GroupMember {
  readonly memberId: string
  readonly groupInstanceId: string | null
  readonly topics: readonly string[]
  /** What it held when it joined; empty where it does not say. */
  readonly ownedPartitions: readonly TopicPartition[]
  /** The generation in which it held them, -1 if it does not say. */
  readonly generationId: number
}

/** Member id → what it gets. Every member has an entry. */
export type Assignment = Map<string, TopicPartition[]>

export function emptyAssignment(members: readonly GroupMember[]): Assignment {
  return new Map(members.map(member => [member.memberId, []]))
}

/** One string per partition. Two partitions never share it: the number is what stands after the last dash. */
export function partitionKey(of: TopicPartition): string {
  return `${of.topic}-${of.partition}`
}

/** UTF-16 order, as in Java. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** What is in `partitions` and not in `others`. */
export function without(partitions: readonly TopicPartition[], others: readonly TopicPartition[]): TopicPartition[] {
  const keys = new Set(others.map(partitionKey))
  return partitions.filter(partition => !keys.has(partitionKey(partition)))
}

/** The wire's form: partitions under their topic. */
export function groupByTopic(partitions: readonly TopicPartition[]): { topic: string; partitions: number[] }[] {
  const byTopic = new Map<string, number[]>()
  for (const { topic, partition } of partitions) {
    const list = byTopic.get(topic)
    if (list === undefined) byTopic.set(topic, [partition])
    else list.push(partition)
  }
  return [...byTopic].map(([topic, list]) => ({ topic, partitions: list }))
}

export function ungroup(
  topics: readonly { readonly topic: string; readonly partitions: readonly number[] }[],
): TopicPartition[] {
  return topics.flatMap(({ topic, partitions }) => partitions.map(partition => ({ topic, partition })))
}
