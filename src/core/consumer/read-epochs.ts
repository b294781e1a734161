import type { Epoch, Offset } from '#base/units.ts'

interface Run {
  readonly epoch: Epoch
  /** The first offset that was read under it. */
  readonly from: Offset
}

/** So many changes of epoch are remembered; of what was read before them, only the epoch in which it ended. */
const RUNS_MAX = 64

/**
 * In which leaders' epochs a consumer read what lies before its position, so that a log that was cut since, by an election
 * of a leader that lacks what was committed, is told from one that goes on (KIP-320). -1 is not known.
 */
export class ReadEpochs {
  /** Of what lies before the first offset that was read, as a commit says. */
  #first: Epoch
  #origin: Offset
  /** Rising in both. */
  #runs: Run[] = []

  constructor(position: Offset, epoch: Epoch = -1) {
    this.#origin = position
    this.#first = epoch
  }

  /** What lies from this offset on was read, and is of that epoch. */
  read(epoch: Epoch, from: Offset): void {
    if (epoch < 0 || epoch <= (this.#runs.at(-1)?.epoch ?? -1)) return
    this.#runs.push({ epoch, from })
    if (this.#runs.length <= RUNS_MAX) return
    const [oldest] = this.#runs.splice(0, 1)
    this.#first = oldest?.epoch ?? -1
    this.#origin = this.#runs[0]?.from ?? this.#origin
  }

  /** The epoch of what lies directly before an offset. */
  before(offset: Offset): Epoch {
    const last = this.#runs.findLast(({ from }) => from < offset)
    if (last !== undefined) return last.epoch
    return offset >= this.#origin ? this.#first : -1
  }

  /**
   * The leader's log has no later record of `epoch`, or of one before it, than at `endOffset`. What was read of it beyond that, or in a
   * later epoch, is no part of the log: where reading goes on. As a follower does it (KIP-101, 279); the leader may
   * have to say more than once.
   */
  cut(position: Offset, epoch: Epoch, endOffset: Offset): Offset {
    const firstBeyond = this.#runs.find(run => run.epoch > epoch)?.from ?? position
    const end = Math.min(position, endOffset, firstBeyond)
    this.#runs = this.#runs.filter(({ from }) => from < end)
    if (end <= this.#origin) {
      this.#origin = end
      this.#first = Math.min(this.#first, epoch)
    }
    return end
  }
}
