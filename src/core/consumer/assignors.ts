import { assert } from '#base/assert.ts'
import { type Assignment, compareText, emptyAssignment, type GroupMember, partitionKey } from './assignment.ts'
import { assignSticky, resolveOwnership } from './sticky.ts'

export interface Assignor {
  readonly name: string
  /** Whether members keep what they hold through a rebalance (KIP-429). */
  readonly cooperative: boolean
  /** Topics that have no partitions (yet) are not in `partitionCounts`. */
  assign(members: readonly GroupMember[], partitionCounts: ReadonlyMap<string, number>): Assignment
}

/** Static members come first, by their instance id, then the others by member id: the order of the Java client. */
function compareMembers(a: GroupMember, b: GroupMember): number {
  if (a.groupInstanceId !== null && b.groupInstanceId !== null) return compareText(a.groupInstanceId, b.groupInstanceId)
  if (a.groupInstanceId !== null) return -1
  if (b.groupInstanceId !== null) return 1
  return compareText(a.memberId, b.memberId)
}

/** The topics that somebody subscribes to and that exist, in order. */
function subscribedTopics(members: readonly GroupMember[], counts: ReadonlyMap<string, number>): string[] {
  const topics = new Set(members.flatMap(member => member.topics))
  return [...topics].filter(topic => (counts.get(topic) ?? 0) > 0).sort(compareText)
}

/** Each topic by itself, in contiguous ranges; the first members get one more where it does not come out even. */
export const rangeAssignor: Assignor = {
  name: 'range',
  cooperative: false,
  assign(members, counts) {
    const assignment = emptyAssignment(members)
    const sorted = [...members].sort(compareMembers)
    for (const topic of subscribedTopics(members, counts)) {
      const takers = sorted.filter(member => member.topics.includes(topic))
      const count = counts.get(topic) ?? 0
      const each = Math.floor(count / takers.length)
      const extra = count % takers.length
      let partition = 0
      for (const [index, member] of takers.entries()) {
        for (const end = partition + each + (index < extra ? 1 : 0); partition < end; partition++)
          assignment.get(member.memberId)?.push({ topic, partition })
      }
    }
    return assignment
  },
}

/** All partitions of all topics dealt out in turn. */
export const roundRobinAssignor: Assignor = {
  name: 'roundrobin',
  cooperative: false,
  assign(members, counts) {
    const assignment = emptyAssignment(members)
    const sorted = [...members].sort(compareMembers)
    let turn = 0
    const next = (): GroupMember => sorted[turn++ % sorted.length] as GroupMember
    for (const topic of subscribedTopics(members, counts)) {
      for (let partition = 0; partition < (counts.get(topic) ?? 0); partition++) {
        let member = next()
        while (!member.topics.includes(topic)) member = next()
        assignment.get(member.memberId)?.push({ topic, partition })
      }
    }
    return assignment
  },
}

/**
 * Balanced, and as close to what members hold as balance allows. A partition that changes hands is left out in this
 * round: its owner gives it up and joins again, and the next round hands it on (KIP-429).
 */
export const cooperativeStickyAssignor: Assignor = {
  name: 'cooperative-sticky',
  cooperative: true,
  assign(members, counts) {
    const ownership = resolveOwnership(members, counts)
    const assignment = assignSticky(members, counts, ownership)
    for (const [memberId, partitions] of assignment) {
      const settled = partitions.filter(partition => {
        const key = partitionKey(partition)
        return !ownership.contested.has(key) && (ownership.owners.get(key) ?? memberId) === memberId
      })
      assignment.set(memberId, settled)
    }
    return assignment
  },
}

const ASSIGNORS: readonly Assignor[] = [rangeAssignor, roundRobinAssignor, cooperativeStickyAssignor]

export function assignorByName(name: string): Assignor {
  const assignor = ASSIGNORS.find(known => known.name === name)
  assert(assignor !== undefined, `there is no assignor "${name}"`)
  return assignor
}
