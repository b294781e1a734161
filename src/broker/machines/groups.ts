import type { Uuid } from '#base/uuid.ts'
import type { GroupCommand, GroupReply } from '#core/group/commands.ts'
import { partitionForGroup } from '#core/group/partition-for-group.ts'
import { OFFSETS_TOPIC } from '#core/metadata/topic-name.ts'
import type { Caller } from '#network/service.ts'
import type { Partition } from '../partitions/partition.ts'
import { CoordinatorError, ShardRunner, type ShardSurroundings } from './group-shards.ts'

/** The group coordinator of this broker: one shard for each partition of `__consumer_offsets` that it leads. */
export class Groups {
  readonly #around: ShardSurroundings
  readonly #partitionCount: () => number | undefined
  readonly #shards = new Map<number, ShardRunner>()

  constructor(around: ShardSurroundings, partitionCount: () => number | undefined) {
    this.#around = around
    this.#partitionCount = partitionCount
  }

  /** The partition of `__consumer_offsets` that a group lives in; undefined while the topic does not exist. */
  partitionOf(groupId: string): number | undefined {
    const count = this.#partitionCount()
    return count === undefined ? undefined : partitionForGroup(groupId, count)
  }

  lead(partition: Partition): void {
    if (partition.topic !== OFFSETS_TOPIC || this.#shards.has(partition.index)) return
    this.#shards.set(partition.index, new ShardRunner(partition, this.#around))
  }

  resign(index: number): void {
    this.#shards.get(index)?.stop()
    this.#shards.delete(index)
  }

  /** The reply of the group's shard. Rejects with a CoordinatorError. */
  ask<Kind extends GroupReply['kind']>(
    groupId: string,
    caller: Caller,
    command: (call: number) => GroupCommand & { readonly kind: Kind },
  ): Promise<Extract<GroupReply, { kind: Kind }>> {
    const index = this.partitionOf(groupId)
    const shard = index === undefined ? undefined : this.#shards.get(index)
    if (shard === undefined) return Promise.reject(new CoordinatorError('NOT_COORDINATOR'))
    return shard.submit(command, run => caller.whenGone(run)) as Promise<Extract<GroupReply, { kind: Kind }>>
  }

  /** The replies of all shards of this broker; those that are loading are an error of the whole. */
  askAll<Kind extends GroupReply['kind']>(
    caller: Caller,
    command: (call: number) => GroupCommand & { readonly kind: Kind },
  ): Promise<Extract<GroupReply, { kind: Kind }>[]> {
    const asked = [...this.#shards.values()].map(shard => shard.submit(command, run => caller.whenGone(run)))
    return Promise.all(asked) as Promise<Extract<GroupReply, { kind: Kind }>[]>
  }

  topicsDeleted(topics: readonly { readonly name: string; readonly topicId: Uuid }[]): void {
    for (const shard of this.#shards.values()) shard.tell({ kind: 'TopicsDeleted', topics })
  }

  stop(): void {
    for (const index of [...this.#shards.keys()]) this.resign(index)
  }
}
