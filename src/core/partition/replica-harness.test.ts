import { baseOffset, lastOffset, leaderEpoch } from '#records/batch.ts'
import { recordsOf } from '#records/records.ts'
import { LeaderEpochs } from '#storage/leader-epochs.ts'
import type { FetchPosition, FollowedLog, PartitionFollower } from './follower.ts'
import type { PartitionLeader } from './leader.ts'

export interface Token {
  readonly id: string
}

/** A log whose writes take a while. What was handed over and is not stored is lost when its broker stops. */
export class ModelLog implements FollowedLog {
  readonly startOffset = 0
  batches: Buffer[] = []
  epochs = new LeaderEpochs()
  /** Handed to the disk and not stored yet. */
  pending: Buffer[] = []

  get endOffset(): number {
    const last = this.batches.at(-1)
    return last === undefined ? 0 : lastOffset(last, 0) + 1
  }
  get nextOffset(): number {
    const last = this.pending.at(-1)
    return last === undefined ? this.endOffset : lastOffset(last, 0) + 1
  }
  get latestEpoch(): number | undefined {
    return this.epochs.latest
  }
  endOffsetForEpoch(epoch: number) {
    return this.epochs.endOffsetFor(epoch, this.nextOffset)
  }
  store(count: number): void {
    for (const batch of this.pending.splice(0, count)) {
      const epoch = leaderEpoch(batch, 0)
      if (epoch !== this.epochs.latest) this.epochs.assign(epoch, baseOffset(batch, 0))
      this.batches.push(batch)
    }
  }
  truncate(offset: number): void {
    while (this.batches.length > 0 && lastOffset(this.batches.at(-1) as Buffer, 0) >= offset) this.batches.pop()
    this.epochs.truncateFromEnd(this.endOffset)
  }
  /** As at a start: epochs are those of the batches. */
  readEpochs(): void {
    this.epochs = new LeaderEpochs()
    for (const batch of this.batches) this.epochs.assign(leaderEpoch(batch, 0), baseOffset(batch, 0))
  }
  /** What lies at which offset. */
  values(): Map<number, string> {
    const values = new Map<number, string>()
    for (const batch of this.batches) {
      for (const { offset, value } of recordsOf(batch, 0)) values.set(offset, String(value))
    }
    return values
  }
}

/** A broker's part of the partition; what it knows of the cluster is the test's. */
export class Replica {
  readonly id: number
  log = new ModelLog()
  up = false
  brokerEpoch = -1
  leader: PartitionLeader<Token> | undefined
  ledBefore: PartitionLeader<Token>['replicas'] | undefined
  follower: PartitionFollower | undefined
  leaderId = -1
  leaderEpoch = -1
  highWatermark = 0
  /** As a checkpoint has it. */
  savedWatermark = 0
  cutting: number | undefined
  /** A fetch is under way. */
  asked: FetchPosition | undefined
  constructor(id: number) {
    this.id = id
  }

  /** Its process is gone; what its disk has stays. */
  stop(): void {
    this.log.readEpochs()
    this.up = false
    this.leader = undefined
    this.ledBefore = undefined
    this.follower = undefined
    this.leaderId = -1
    this.leaderEpoch = -1
    this.cutting = undefined
    this.asked = undefined
  }
}
