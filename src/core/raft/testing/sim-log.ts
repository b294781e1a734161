import { assert } from '#base/assert.ts'
import type { Epoch, Offset } from '#base/units.ts'
import type { LogView, SnapshotId } from '../log-view.ts'
import type { Voter } from '../quorum.ts'

/** A record of a simulated log: unlike any other by its value. */
export interface SimRecord {
  readonly epoch: Epoch
  readonly value: number
  readonly voters?: readonly Voter[]
}

/** Who votes, by the record at `offset`, and who did before. */
export interface VotersAt {
  readonly voters: readonly Voter[]
  readonly offset: Offset
  readonly former: readonly Voter[]
}

export interface SimSnapshot {
  readonly id: SnapshotId
  readonly votersAt: VotersAt | undefined
}

/** A log and its snapshots on a disk that loses what was not synced. What is not durable yet cannot be read. */
export class SimLog implements LogView {
  startOffset: Offset = 0
  /** Everything below outlives a crash. */
  durable: Offset = 0
  snapshots: SimSnapshot[] = []
  #records: SimRecord[] = []
  #epochs: { readonly epoch: Epoch; readonly start: Offset }[] = []

  get nextOffset(): Offset {
    return this.startOffset + this.#records.length
  }

  get endOffset(): Offset {
    return this.durable
  }

  get lastEpoch(): Epoch {
    return this.#epochs.at(-1)?.epoch ?? this.latestSnapshot?.epoch ?? 0
  }

  get earliestSnapshot(): SnapshotId | undefined {
    return this.snapshots[0]?.id
  }

  get latestSnapshot(): SnapshotId | undefined {
    return this.snapshots.at(-1)?.id
  }

  /**
   * As Kafka's checkpoint of leader epochs: of an epoch before the first one that it knows, the end is where that begins;
   * it knows nothing of epochs after the last.
   */
  endOffsetForEpoch(epoch: Epoch): SnapshotId | undefined {
    const first = this.#epochs[0]
    if (first === undefined || epoch > this.lastEpoch) return undefined
    const index = this.#epochs.findLastIndex(each => each.epoch <= epoch)
    const found = this.#epochs[index]
    if (found === undefined) return { epoch, endOffset: first.start }
    return { epoch: found.epoch, endOffset: this.#epochs[index + 1]?.start ?? this.nextOffset }
  }

  at(offset: Offset): SimRecord | undefined {
    return this.#records[offset - this.startOffset]
  }

  append(record: SimRecord): void {
    assert(record.epoch >= this.lastEpoch, 'epochs of a log never go back')
    if (record.epoch > (this.#epochs.at(-1)?.epoch ?? -1)) {
      this.#epochs.push({ epoch: record.epoch, start: this.nextOffset })
    }
    this.#records.push(record)
  }

  truncate(endOffset: Offset): void {
    assert(endOffset >= this.startOffset, 'a log is not cut before its start')
    this.#records.length = Math.min(this.#records.length, endOffset - this.startOffset)
    while (this.#epochs.length > 0 && (this.#epochs.at(-1)?.start ?? 0) >= endOffset) this.#epochs.pop()
    this.durable = Math.min(this.durable, this.nextOffset)
  }

  /** A crash: some of what was not synced is lost. */
  tear(kept: number): void {
    this.truncate(Math.min(this.nextOffset, this.durable + kept))
    this.durable = this.nextOffset
  }

  /** The last record that names the voters, in the log or below its start. */
  votersAt(end: Offset = this.nextOffset): VotersAt | undefined {
    const found: { voters: readonly Voter[]; offset: Offset }[] = []
    for (let offset = end - 1; offset >= this.startOffset && found.length < 2; offset--) {
      const voters = this.at(offset)?.voters
      if (voters !== undefined) found.push({ voters, offset })
    }
    const snapshot = this.snapshots.findLast(({ id }) => id.endOffset <= end)?.votersAt
    const [last, before] = found
    if (last === undefined) return snapshot
    return { ...last, former: before?.voters ?? snapshot?.voters ?? [] }
  }

  /** Everything below must be committed. The snapshot before it stays, and the log behind that one. */
  takeSnapshot(endOffset: Offset): void {
    const epoch = this.at(endOffset - 1)?.epoch
    if (epoch === undefined || endOffset <= (this.latestSnapshot?.endOffset ?? 0)) return
    this.snapshots.push({ id: { endOffset, epoch }, votersAt: this.votersAt(endOffset) })
    if (this.snapshots.length > 2) this.snapshots.shift()
    if (this.snapshots.length === 2) this.#startAt(this.snapshots[0]?.id.endOffset ?? 0)
  }

  #startAt(offset: Offset): void {
    this.#records.splice(0, offset - this.startOffset)
    this.startOffset = offset
    const firstKept = this.#epochs.findLastIndex(({ start }) => start <= offset)
    if (firstKept >= 0) {
      const epoch = this.#epochs[firstKept]?.epoch ?? 0
      this.#epochs.splice(0, firstKept + 1, { epoch, start: offset })
    }
    if (this.#records.length === 0) this.#epochs = []
  }

  beginAt(snapshot: SimSnapshot): void {
    this.#records = []
    this.#epochs = []
    this.snapshots = [snapshot]
    this.startOffset = snapshot.id.endOffset
    this.durable = this.startOffset
  }
}
