import type { Epoch, NodeId, Offset } from '#base/units.ts'
import type { InSyncReplicas, IsrProposal } from '#core/partition/in-sync-replicas.ts'
import { type LeaderEffect, type LeaderEvent, PartitionLeader } from '#core/partition/leader.ts'
import type { StorageError } from '#storage/storage-error.ts'
import type { Partition, ProduceToken } from './partition.ts'
import type { Replica } from './replica.ts'
import type { PartitionSurroundings } from './surroundings.ts'
import { Wake } from './wake.ts'

export interface Leadership {
  readonly epoch: Epoch
  readonly partitionEpoch: Epoch
  readonly replicas: readonly NodeId[]
  readonly isr: readonly NodeId[]
  /** Asked of the controller in this epoch, when this broker led in it before. */
  readonly pending?: IsrProposal | undefined
  readonly minInSync: number
}

/** A partition that is led here, in one epoch: drives core's leader over the replica. */
export class Leading {
  readonly #partition: Partition
  readonly #replica: Replica
  readonly #around: PartitionSurroundings
  readonly #leader: PartitionLeader<ProduceToken>
  readonly #wake: Wake

  constructor(partition: Partition, replica: Replica, around: PartitionSurroundings, leadership: Leadership) {
    this.#partition = partition
    this.#replica = replica
    this.#around = around
    this.#wake = new Wake(around, this)
    const { endOffset, nextOffset, failure } = replica.log
    // Appends of the epoch before may be under way, and come to the log unless it fails.
    const epochStart = failure === undefined ? nextOffset : endOffset
    const { nodeId, lagTimeMaxMs, eligibleEpoch, clock } = around
    this.#leader = new PartitionLeader({
      ...leadership,
      nodeId,
      endOffset,
      nextOffset: epochStart,
      highWatermark: Math.min(replica.highWatermark, endOffset),
      producers: replica.producers,
      lagTimeMaxMs,
      eligibleEpoch,
      now: clock.monotonic(),
    })
  }

  get nextOffset(): Offset {
    return this.#leader.nextOffset
  }

  /** Where the log ended when this broker began to lead; less where what was under way then did not come to it. */
  get epochStart(): Offset {
    return this.#leader.replicas.epochStart
  }

  get replicas(): InSyncReplicas {
    return this.#leader.replicas
  }

  begin(): void {
    this.#replica.moveHighWatermark(this.#leader.highWatermark)
    const { pending } = this.#leader.replicas
    if (pending !== undefined) this.#around.alterIsr(this.#partition, pending)
    this.#plan()
  }

  end(): void {
    this.step({ kind: 'resigned' })
    this.#wake.cancel()
  }

  step(event: LeaderEvent<ProduceToken>): void {
    this.#perform(this.#leader.step(event, this.#around.clock.monotonic()))
    // An answer of the controller, as much as a write, may leave somebody behind whom nothing else brings to mind again.
    if (!this.#wake.isSet) this.#plan()
  }

  produce(buffer: Buffer, at: number, size: number, acks: -1 | 0 | 1, token: ProduceToken): void {
    // While the log is mended its producers are read from it anew: by half of them nobody can be judged.
    const { failure } = this.#replica.log
    if (failure !== undefined) {
      token.settle({ token, error: 'KAFKA_STORAGE_ERROR', message: failure.message, baseOffset: -1 })
      return
    }
    this.#perform(this.#leader.step({ kind: 'produce', buffer, at, size, acks, token }, 0))
  }

  /** The log is done with what was appended to it. */
  settled(failure: StorageError | undefined): void {
    const { endOffset } = this.#replica.log
    const event: LeaderEvent<ProduceToken> =
      failure === undefined
        ? { kind: 'stored', endOffset }
        : { kind: 'storeFailed', endOffset, message: failure.message }
    this.#perform(this.#leader.step(event, this.#leader.replicas.isAlone ? 0 : this.#around.clock.monotonic()))
    this.#replica.endWatchers.tell()
    if (!this.#wake.isSet) this.#plan()
  }

  #perform(effects: readonly LeaderEffect<ProduceToken>[]): void {
    let isSettled = false
    for (const effect of effects) {
      switch (effect.kind) {
        case 'append':
          isSettled = this.#replica.append(effect.buffer, effect.at, effect.size, effect.firstOffset)
          break
        case 'answer':
          effect.answer.token.settle(effect.answer)
          break
        case 'highWatermark':
          this.#replica.moveHighWatermark(effect.offset)
          break
        case 'alterIsr':
          this.#around.alterIsr(this.#partition, effect.proposal)
          break
      }
    }
    if (isSettled) this.settled(undefined)
  }

  tick(): void {
    this.step({ kind: 'tick' })
    this.#plan()
  }

  #plan(): void {
    this.#wake.set(this.#leader.wakeAt(this.#around.clock.monotonic()))
  }
}
