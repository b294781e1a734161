import { Complaints } from '#base/complaints.ts'
import type { Millis } from '#base/units.ts'
import type { Clock, Logger } from '#world/world.ts'
import type { MetadataLog } from './metadata-log.ts'
import type { SnapshotFile } from './snapshots.ts'

/** Whoever finds it damaged comes again soon, and others may begin to read at the same time. */
const PAUSE_MS: Millis = 2000

/**
 * Whoever begins to read a snapshot has it looked at beside: what rots on a disk would be asked for again and again by all
 * who need it. One at a time, and not without pause: anybody may ask.
 */
export class SnapshotCheck {
  readonly #log: MetadataLog
  readonly #clock: Clock
  readonly #complaints: Complaints
  readonly #renew: () => void
  #checking: Promise<void> | undefined
  #nextAt: Millis = Number.NEGATIVE_INFINITY

  /** `renew`: another one is to be stored. */
  constructor(log: MetadataLog, clock: Clock, logger: Logger, renew: () => void) {
    this.#log = log
    this.#clock = clock
    this.#complaints = new Complaints(clock, logger)
    this.#renew = renew
  }

  /** Somebody begins to read it. */
  consider(snapshot: SnapshotFile): void {
    if (this.#checking !== undefined || this.#clock.monotonic() < this.#nextAt) return
    this.#checking = this.#check(snapshot).finally(() => {
      this.#checking = undefined
      this.#nextAt = this.#clock.monotonic() + PAUSE_MS
    })
  }

  /** Nothing is being read when it resolves. */
  async settled(): Promise<void> {
    await this.#checking
  }

  async #check(snapshot: SnapshotFile): Promise<void> {
    if (await this.#log.isWhole(snapshot)) return
    this.#complaints.tell(
      'error',
      'damaged',
      { folder: this.#log.folder, ...snapshot.id },
      'a snapshot of the metadata was damaged by this disk after it was written; storing another one. Check the disk',
    )
    this.#renew()
  }
}
