import type { NodeId, Offset } from '#base/units.ts'
import type { Voter } from '#core/raft/quorum.ts'
import type { QuorumRecord } from '#core/raft/quorum-record.ts'

/** Voters as a record names them. */
export interface VotersAt {
  readonly offset: Offset
  readonly voters: readonly Voter[]
}

interface At<T> {
  readonly offset: Offset
  readonly value: T
}

/**
 * What the log's control records said and where: voters and kraft.version hold from their record on, committed or not
 * (KIP-853), so that a log that is cut back has those of before.
 */
export class QuorumHistory {
  #voters: At<readonly Voter[]>[] = []
  #levels: At<number>[] = []
  #leaderChanges: At<readonly NodeId[]>[] = []

  note(record: QuorumRecord, offset: Offset): void {
    if (record.type === 'kraftVoters') this.#voters.push({ offset, value: record.voters })
    else if (record.type === 'kraftVersion') this.#levels.push({ offset, value: record.level })
    else this.#leaderChanges.push({ offset, value: record.voterIds })
  }

  /** The log was cut back to this end. */
  truncate(endOffset: Offset): void {
    for (const list of [this.#voters, this.#levels, this.#leaderChanges]) {
      while ((list.at(-1)?.offset ?? -1) >= endOffset) list.pop()
    }
  }

  /** What is below is committed: only the last of it is of use. */
  forgetBelow(offset: Offset): void {
    for (const list of [this.#voters, this.#levels, this.#leaderChanges]) {
      const kept = list.findIndex((_, index) => (list[index + 1]?.offset ?? offset) >= offset)
      if (kept > 0) list.splice(0, kept)
    }
  }

  /** The log begins anew; this is what it begins with. */
  restart(history: QuorumHistory): void {
    this.#voters = history.#voters
    this.#levels = history.#levels
    this.#leaderChanges = history.#leaderChanges
  }

  /** The voters that count now; undefined where no record names any. */
  get voters(): VotersAt | undefined {
    const last = this.#voters.at(-1)
    return last === undefined ? undefined : { offset: last.offset, voters: last.value }
  }

  get kraftVersion(): number {
    return this.#levels.at(-1)?.value ?? 0
  }

  /** The voters' ids of the last LeaderChange. */
  get leaderChangeIds(): readonly NodeId[] | undefined {
    return this.#leaderChanges.at(-1)?.value
  }

  /** What records below an offset say. */
  below(offset: Offset): { readonly kraftVersion: number; readonly voters: readonly Voter[] } {
    return {
      kraftVersion: this.#levels.findLast(at => at.offset < offset)?.value ?? 0,
      voters: this.#voters.findLast(at => at.offset < offset)?.value ?? [],
    }
  }
}
