import type { Offset } from '#base/units.ts'
import type { GroupMetadataValue, OffsetCommitValue } from '#protocol/records/offset-records.ts'
import type { GroupEntry } from './entries.ts'

export interface CommittedOffset extends OffsetCommitValue {
  /** Where in `__consumer_offsets` it was written. */
  readonly at: Offset
}

type OffsetsByPartition = Map<number, CommittedOffset>
type OffsetsByTopic = Map<string, OffsetsByPartition>

/** A group that only keeps offsets: nobody ever joined it, so no record of its own was written. */
const SIMPLE_GROUP: GroupMetadataValue = {
  protocolType: '',
  generation: 0,
  protocol: null,
  leader: null,
  currentStateTimestamp: -1,
  members: [],
}

/** What a shard of groups must never lose: the fold of its partition of `__consumer_offsets`. */
export class GroupStore {
  readonly #groups = new Map<string, GroupMetadataValue>()
  readonly #offsets = new Map<string, OffsetsByTopic>()

  /** Group ids, in the order in which they first came. */
  get groupIds(): IterableIterator<string> {
    return this.#groups.keys()
  }

  group(groupId: string): GroupMetadataValue | undefined {
    return this.#groups.get(groupId)
  }

  offsets(groupId: string): ReadonlyMap<string, ReadonlyMap<number, CommittedOffset>> | undefined {
    return this.#offsets.get(groupId)
  }

  offset(groupId: string, topic: string, partition: number): CommittedOffset | undefined {
    return this.#offsets.get(groupId)?.get(topic)?.get(partition)
  }

  apply(entry: GroupEntry, at: Offset): void {
    if (entry.kind === 'GroupMetadata') {
      if (entry.value === null) this.#groups.delete(entry.group)
      else this.#groups.set(entry.group, entry.value)
    } else if (entry.value === null) {
      this.#forget(entry.group, entry.topic, entry.partition)
    } else {
      if (!this.#groups.has(entry.group)) this.#groups.set(entry.group, SIMPLE_GROUP)
      const topics = getOrAdd<string, OffsetsByTopic>(this.#offsets, entry.group)
      const partitions = getOrAdd<string, OffsetsByPartition>(topics, entry.topic)
      // One of a transaction counts when that ends; what was committed behind it is newer.
      if ((partitions.get(entry.partition)?.at ?? -1) > at) return
      partitions.set(entry.partition, { ...entry.value, at })
    }
  }

  #forget(group: string, topic: string, partition: number): void {
    const topics = this.#offsets.get(group)
    const partitions = topics?.get(topic)
    if (topics === undefined || partitions === undefined) return
    partitions.delete(partition)
    if (partitions.size === 0) topics.delete(topic)
    if (topics.size === 0) this.#offsets.delete(group)
  }
}

function getOrAdd<K, V extends Map<unknown, unknown>>(map: Map<K, V>, key: K): V {
  let value = map.get(key)
  if (value === undefined) {
    value = new Map() as V
    map.set(key, value)
  }
  return value
}
