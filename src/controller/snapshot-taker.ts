import type { Millis } from '#base/units.ts'
import type { SnapshotId } from '#core/raft/log-view.ts'
import { StorageError } from '#storage/storage-error.ts'
import { type Clock, type Logger, WorldError } from '#world/world.ts'
import type { MetadataLog } from './metadata-log.ts'
import { NotControllerError, type Term } from './term.ts'

const SNAPSHOT_BYTES = 20 * 1024 * 1024
const SNAPSHOT_INTERVAL_MS = 3_600_000

export interface SnapshotLimits {
  /** metadata.log.max.record.bytes.between.snapshots */
  readonly snapshotBytes?: number
  /** metadata.log.max.snapshot.interval.ms; 0 is never. */
  readonly snapshotIntervalMs?: Millis
}

/** Takes snapshots of a term's image, by bytes written since the last one and by time; none while nothing is written. */
export class SnapshotTaker {
  readonly #log: MetadataLog
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #bytesMax: number
  readonly #intervalMs: Millis
  #dueAt: Millis | undefined
  /** What the term had appended then; negative for what the log held before the term. */
  #bytesAtLast = 0
  #storing: Promise<void> | undefined

  constructor(log: MetadataLog, clock: Clock, logger: Logger, limits: SnapshotLimits) {
    this.#log = log
    this.#clock = clock
    this.#logger = logger
    this.#bytesMax = limits.snapshotBytes ?? SNAPSHOT_BYTES
    this.#intervalMs = limits.snapshotIntervalMs ?? SNAPSHOT_INTERVAL_MS
  }

  wakeAt(): Millis | undefined {
    return this.#storing === undefined ? this.#dueAt : undefined
  }

  /** A term begins whose log has so many bytes behind its last snapshot. */
  begin(bytesBehind: number): void {
    this.#bytesAtLast = -bytesBehind
    this.#dueAt = undefined
  }

  /** Takes one if it is time. Asked after every append and when `wakeAt` has come. */
  consider(term: Term): void {
    const bytes = term.appendedBytes - this.#bytesAtLast
    if (bytes <= 0 || this.#storing !== undefined) return
    const now = this.#clock.monotonic()
    if (this.#intervalMs > 0) this.#dueAt ??= now + this.#intervalMs
    if (bytes >= this.#bytesMax || (this.#dueAt !== undefined && this.#dueAt <= now)) this.#take(term)
  }

  /** What is being stored is stored, or failed. */
  async settled(): Promise<void> {
    await this.#storing
  }

  /** The image is written down now, and stored as a snapshot when all that it holds is committed. */
  #take(term: Term): void {
    if (term.machine.image.inTransaction) return
    this.#dueAt = undefined
    this.#bytesAtLast = term.appendedBytes
    const { machine, kraftVersion, voters, lastTimestamp } = term
    const { id, parts } = this.#log.snapshotOf({ image: machine.image, kraftVersion, voters, lastTimestamp })
    this.#storing = this.#store(term, id, parts).finally(() => {
      this.#storing = undefined
    })
  }

  async #store(term: Term, id: SnapshotId, parts: readonly Buffer[]): Promise<void> {
    const { folder } = this.#log
    try {
      await term.whenCommitted()
      await this.#log.storeSnapshot(id, parts, term.highWatermark)
      this.#logger.info({ folder, ...id }, 'wrote a snapshot of the metadata')
    } catch (error) {
      if (error instanceof NotControllerError) return
      if (!(error instanceof StorageError) && !(error instanceof WorldError)) throw error
      this.#logger.warn({ folder, reason: error.message }, 'no snapshot of the metadata could be written')
    }
  }
}
