import type { Epoch, NodeId, Offset } from '#base/units.ts'
import {
  type FetchPosition,
  type FollowerEffect,
  type FollowerEvent,
  PartitionFollower,
} from '#core/partition/follower.ts'
import type { Partition } from './partition.ts'
import type { Replica } from './replica.ts'
import type { PartitionSurroundings } from './surroundings.ts'
import { Wake } from './wake.ts'

/** A partition that follows a leader elsewhere, in one epoch: drives core's follower over the replica. */
export class Following {
  readonly #partition: Partition
  readonly #replica: Replica
  readonly #around: PartitionSurroundings
  readonly #leaderId: NodeId
  readonly #follower: PartitionFollower
  readonly #wake: Wake

  constructor(
    partition: Partition,
    replica: Replica,
    around: PartitionSurroundings,
    leader: { readonly id: NodeId; readonly epoch: Epoch },
  ) {
    this.#partition = partition
    this.#replica = replica
    this.#around = around
    this.#leaderId = leader.id
    this.#wake = new Wake(around, this)
    const { log } = replica
    this.#follower = new PartitionFollower({
      epoch: leader.epoch,
      log,
      highWatermark: replica.highWatermark,
      isBusy: log.failure === undefined && log.nextOffset > log.endOffset,
      backoffMs: around.fetchBackoffMs,
    })
  }

  /** Where to fetch from; undefined while nothing can be fetched. */
  get position(): FetchPosition | undefined {
    return this.#follower.position
  }

  /** The log is not done yet with what was fetched last. */
  get isBusy(): boolean {
    return this.#follower.isBusy
  }

  get isCaughtUp(): boolean {
    return this.#follower.isCaughtUp
  }

  begin(): void {
    this.#perform(this.#follower.begin())
  }

  end(): void {
    this.#wake.cancel()
  }

  tick(): void {
    this.step({ kind: 'tick' })
  }

  step(event: FollowerEvent): void {
    this.#perform(this.#follower.step(event, this.#around.clock.monotonic()))
  }

  /** The log is done with something that was appended to it. */
  settled(failed: boolean): void {
    const { failure, nextOffset, endOffset } = this.#replica.log
    // More may have come behind it, in an epoch before.
    if (failure !== undefined || nextOffset === endOffset) this.step({ kind: 'settled', failed })
  }

  #perform(effects: readonly FollowerEffect[]): void {
    const { log } = this.#replica
    let isSettled = false
    for (const effect of effects) {
      switch (effect.kind) {
        case 'append':
          if (log.failure === undefined) isSettled = this.#replica.appendFetched(effect.records, effect.size)
          else this.step({ kind: 'settled', failed: true })
          break
        case 'truncate':
          this.#cut(effect.offset, () => log.truncateTo(effect.offset))
          break
        case 'startAnew':
          this.#cut(effect.offset, () => log.truncateFullyAndStartAt(effect.offset))
          break
        case 'highWatermark':
          this.#replica.moveHighWatermark(effect.offset)
          break
        case 'logStart':
          log.deleteRecordsBefore(effect.offset)
          this.#partition.startMoved()
          break
        case 'askOffsets':
          this.#around.askOffsets(this.#partition)
          break
        case 'complain':
          this.#around.log.warn(
            { ...this.#names, reason: effect.message },
            'a partition cannot be followed, so this replica is not in sync; trying again',
          )
          break
      }
    }
    if (isSettled) {
      this.settled(false)
      return
    }
    this.#wake.set(this.#follower.wakeAt())
    if (this.position !== undefined) this.#around.fetchable(this.#partition)
  }

  #cut(offset: Offset, cut: () => Promise<unknown>): void {
    const { log, highWatermark } = this.#replica
    const { endOffset } = log
    const fields = { ...this.#names, offset, endOffset }
    if (offset < highWatermark && endOffset > log.startOffset) {
      this.#around.log.warn(
        fields,
        'cutting off records that were committed: the cluster elected a leader without them (unclean.leader.election.enable, or `cluster elect --unclean`)',
      )
    } else if (offset < endOffset) this.#around.log.info(fields, 'cutting off what the leader does not have')
    this.#replica.cut(cut)
  }

  get #names() {
    return { topic: this.#partition.topic, partition: this.#partition.index, leader: this.#leaderId }
  }
}
