import { assert } from '#base/assert.ts'
import {
  type Assignment,
  compareText,
  emptyAssignment,
  type GroupMember,
  partitionKey,
  type TopicPartition,
} from './assignment.ts'

/** Who holds which partition at the start of a rebalance. */
export interface Ownership {
  /** Partition key → member, for what exactly one member holds validly. */
  readonly owners: ReadonlyMap<string, string>
  /** Claimed by two members of one generation: neither can be believed. */
  readonly contested: ReadonlySet<string>
}

/** Claims of a newer generation beat older ones; two claims of the same generation cancel each other out. */
export function resolveOwnership(members: readonly GroupMember[], counts: ReadonlyMap<string, number>): Ownership {
  const claims = new Map<string, { memberId: string; generationId: number }>()
  const contested = new Set<string>()
  for (const { memberId, generationId, topics, ownedPartitions } of members) {
    for (const owned of ownedPartitions) {
      if (owned.partition >= (counts.get(owned.topic) ?? 0) || !topics.includes(owned.topic)) continue
      const key = partitionKey(owned)
      const other = claims.get(key)
      if (other === undefined || generationId > other.generationId) {
        contested.delete(key)
        claims.set(key, { memberId, generationId })
      } else if (generationId === other.generationId && memberId !== other.memberId) contested.add(key)
    }
  }
  const owners = new Map(
    [...claims].filter(([key]) => !contested.has(key)).map(([key, claim]) => [key, claim.memberId]),
  )
  return { owners, contested }
}

/** A member with what it was given so far, by topic. */
interface Holder {
  readonly memberId: string
  readonly subscribed: ReadonlySet<string>
  readonly byTopic: Map<string, number[]>
  held: number
}

/**
 * Keeps what members hold, deals out the rest to whoever has least, then moves partitions from members with more to
 * members with at least two fewer until none can. Every move narrows the spread, so it ends. Ties go by member id, so that every leader comes to the same result.
 */
export function assignSticky(
  members: readonly GroupMember[],
  counts: ReadonlyMap<string, number>,
  { owners }: Ownership = resolveOwnership(members, counts),
): Assignment {
  const holders = members
    .map(
      (member): Holder => ({
        memberId: member.memberId,
        subscribed: new Set(member.topics.filter(topic => (counts.get(topic) ?? 0) > 0)),
        byTopic: new Map(),
        held: 0,
      }),
    )
    .sort((a, b) => compareText(a.memberId, b.memberId))
  const byId = new Map(holders.map(holder => [holder.memberId, holder]))

  const free: TopicPartition[] = []
  const topics = [...new Set(holders.flatMap(holder => [...holder.subscribed]))]
  const takers = new Map(topics.map(topic => [topic, holders.filter(holder => holder.subscribed.has(topic))]))
  // Topics with few takers first, while their takers still have room.
  topics.sort((a, b) => (takers.get(a)?.length ?? 0) - (takers.get(b)?.length ?? 0) || compareText(a, b))
  for (const topic of topics) {
    for (let partition = 0; partition < (counts.get(topic) ?? 0); partition++) {
      const owner = byId.get(owners.get(partitionKey({ topic, partition })) ?? '')
      if (owner !== undefined) give(owner, topic, partition)
      else free.push({ topic, partition })
    }
  }
  for (const { topic, partition } of free) {
    let least: Holder | undefined
    for (const taker of takers.get(topic) ?? []) if (least === undefined || taker.held < least.held) least = taker
    if (least !== undefined) give(least, topic, partition)
  }
  while (moveOne(holders, owners));

  const assignment = emptyAssignment(members)
  for (const holder of holders) {
    const partitions = assignment.get(holder.memberId)
    for (const topic of [...holder.byTopic.keys()].sort(compareText)) {
      const list = holder.byTopic.get(topic) ?? []
      for (const partition of list.sort((a, b) => a - b)) partitions?.push({ topic, partition })
    }
  }
  return assignment
}

function give(holder: Holder, topic: string, partition: number): void {
  const list = holder.byTopic.get(topic)
  if (list === undefined) holder.byTopic.set(topic, [partition])
  else list.push(partition)
  holder.held++
}

/**
 * Moves partitions along the shortest chain of members from one that has at least two more to one that has least: each
 * gives one that the next subscribes to. Without chains it could end where no single move helps but two would.
 */
function moveOne(holders: readonly Holder[], owners: ReadonlyMap<string, string>): boolean {
  const byLoad = [...holders].sort((a, b) => b.held - a.held)
  for (const receiver of byLoad.toReversed()) {
    if ((byLoad[0]?.held ?? 0) < receiver.held + 2) return false
    const gives = new Map<Holder, { readonly to: Holder; readonly topic: string }>()
    const reached = [receiver]
    for (const to of reached) {
      for (const donor of byLoad) {
        if (donor === receiver || gives.has(donor)) continue
        const topic = movableTopic(donor, to)
        if (topic === undefined) continue
        gives.set(donor, { to, topic })
        reached.push(donor)
        if (donor.held < receiver.held + 2) continue
        for (let at = donor; at !== receiver; ) {
          const step = gives.get(at)
          assert(step !== undefined, 'a chain leads to its receiver')
          move(at, step.to, step.topic, owners)
          at = step.to
        }
        return true
      }
    }
  }
  return false
}

function movableTopic(donor: Holder, to: Holder): string | undefined {
  for (const [topic, list] of donor.byTopic) if (list.length > 0 && to.subscribed.has(topic)) return topic
  return undefined
}

function move(donor: Holder, to: Holder, topic: string, owners: ReadonlyMap<string, string>): void {
  const list = donor.byTopic.get(topic) ?? []
  // What the donor did not hold before costs nothing to move.
  const fresh = list.findLastIndex(partition => owners.get(partitionKey({ topic, partition })) !== donor.memberId)
  const [partition] = list.splice(fresh >= 0 ? fresh : list.length - 1, 1)
  assert(partition !== undefined, 'a donor gives what it has')
  donor.held--
  give(to, topic, partition)
}
