import { Complaints } from '#base/complaints.ts'
import type { Millis, Offset } from '#base/units.ts'
import { StorageError } from '#storage/storage-error.ts'
import { type Clock, type Logger, WorldError } from '#world/world.ts'
import type { MetadataLog, SnapshotState } from './metadata-log.ts'
import { NotControllerError } from './term.ts'

const SNAPSHOT_BYTES = 20 * 1024 * 1024
const SNAPSHOT_INTERVAL_MS = 3_600_000
/** Before one that was due is tried again: nobody says how far all is committed, or a transaction is open. */
const POSTPONED_MS: Millis = 10_000

export interface SnapshotLimits {
  /** metadata.log.max.record.bytes.between.snapshots */
  readonly snapshotBytes?: number
  /** metadata.log.max.snapshot.interval.ms; 0 is never. */
  readonly snapshotIntervalMs?: Millis
}

/** Of what snapshots are taken: the image of a term, or that of a controller which stands by. */
export interface SnapshotSource {
  /** What a snapshot would hold now; undefined while there is nothing that it could. */
  state(): SnapshotState | undefined
  /** Resolves with the high watermark when all of that state is committed; rejects with a NotControllerError. */
  whenCommitted(): Promise<Offset>
}

/** Takes snapshots of the metadata, by bytes written since the last one and by time; none while nothing is written. */
export class SnapshotTaker {
  readonly #log: MetadataLog
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #bytesMax: number
  readonly #intervalMs: Millis
  #dueAt: Millis | undefined
  /** What the log had taken then. */
  #bytesAtLast = 0
  #storing: Promise<void> | undefined
  #isHeld = false
  /** One that is kept is of no use, however little was written since. */
  #isWanted = false
  readonly #complaints: Complaints

  constructor(log: MetadataLog, clock: Clock, logger: Logger, limits: SnapshotLimits) {
    this.#complaints = new Complaints(clock, logger)
    this.#log = log
    this.#clock = clock
    this.#logger = logger
    this.#bytesMax = limits.snapshotBytes ?? SNAPSHOT_BYTES
    this.#intervalMs = limits.snapshotIntervalMs ?? SNAPSHOT_INTERVAL_MS
  }

  wakeAt(): Millis | undefined {
    return this.#storing === undefined && !this.#isHeld ? this.#dueAt : undefined
  }

  /** Takes one if it is time. Asked after every append and when `wakeAt` has come. */
  consider(source: SnapshotSource): void {
    const bytes = this.#log.appendedBytes - this.#bytesAtLast
    if ((bytes <= 0 && !this.#isWanted) || this.#storing !== undefined || this.#isHeld) return
    const now = this.#clock.monotonic()
    if (this.#intervalMs > 0) this.#dueAt ??= now + this.#intervalMs
    if (this.#isWanted || bytes >= this.#bytesMax || (this.#dueAt !== undefined && this.#dueAt <= now))
      this.#take(source)
  }

  /** Takes one as soon as can be. */
  renew(source: SnapshotSource): void {
    this.#isWanted = true
    this.consider(source)
  }

  /** What is being stored is stored, or failed. */
  async settled(): Promise<void> {
    await this.#storing
  }

  /**
   * None is being stored when it resolves, and none will be before what it gives is called: one of before, stored beside
   * the leader's while the log begins anew at that, would be taken for the latest, without what lies between the two.
   */
  async hold(): Promise<() => void> {
    this.#isHeld = true
    await this.#storing
    return () => {
      this.#isHeld = false
    }
  }

  /** The image as it is now is written down in turns, and stored as a snapshot when all that it holds is committed. */
  #take(source: SnapshotSource): void {
    const state = source.state()
    if (state === undefined || state.image.inTransaction) {
      // Who waits for this one would be woken for it again and again, in no time.
      if (this.#dueAt !== undefined) this.#dueAt = Math.max(this.#dueAt, this.#clock.monotonic() + POSTPONED_MS)
      return
    }
    this.#dueAt = undefined
    this.#isWanted = false
    this.#bytesAtLast = this.#log.appendedBytes
    // Asked now: whoever is asked later may speak of another term.
    const committed = source.whenCommitted()
    committed.catch(() => {})
    this.#storing = this.#store({ ...state, image: state.image.copy() }, committed).finally(() => {
      this.#storing = undefined
    })
  }

  async #store(state: SnapshotState, committed: Promise<Offset>): Promise<void> {
    const { folder } = this.#log
    const { id } = state
    try {
      const highWatermark = await committed
      const parts = await this.#build(state)
      await this.#log.storeSnapshot(id, parts, highWatermark)
      this.#logger.info({ folder, ...id }, 'wrote a snapshot of the metadata')
    } catch (error) {
      if (error instanceof NotControllerError) return
      if (!(error instanceof StorageError) && !(error instanceof WorldError)) throw error
      this.#complaints.tell(
        'warn',
        'not written',
        { folder, reason: error.message },
        'no snapshot of the metadata could be written, so its log grows and starts take longer; it is tried again as the log grows. Free space on this disk, or check it',
      )
    }
  }

  /** A snapshot of many partitions takes long: everybody else has a turn in between. */
  async #build(state: SnapshotState): Promise<Buffer[]> {
    const building = this.#log.snapshotOf(state)
    for (;;) {
      const step = building.next()
      if (step.done === true) return step.value
      await new Promise<void>(resolve => this.#clock.soon(resolve))
    }
  }
}
