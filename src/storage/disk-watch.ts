import type { Millis } from '#base/units.ts'
import { type Clock, type Disk, type File, type Logger, type Timer, WorldError } from '#world/world.ts'
import { HungDiskError } from './storage-error.ts'

export interface DiskWatchOptions {
  readonly disk: Disk
  readonly clock: Clock
  readonly log: Logger
  readonly folder: string
  /** Written and synced in the folder to see whether a disk that hung answers again. */
  readonly probeFile: string
  /** What follows when it hangs, for the log line. */
  readonly consequence: string
  /** It hangs from now on, or answers again. */
  readonly changed: () => void
}

const LOOK_EVERY_MS: Millis = 500
/**
 * So long nobody's write came back, nor anybody's sync that somebody waits for. A disk that is only busy gives back one
 * write after another; filling the page cache takes microseconds, and the kernel slows a writer by fractions of a second.
 * It is less than a session (9 s), so that a disk that hangs costs no more than a machine that does, and more than what
 * disks in use take now and then: a cloud volume that moves, a drive that wakes or tries a sector again.
 */
const HUNG_LOOKS = 10
const PROBE_EVERY_MS: Millis = 1_000
const PROBE_BYTES = 4096
/** A probe that takes longer is no sign of health. */
const PROBE_MS_MAX: Millis = 1_000
/** It is believed to answer after so long without a slow probe. Each time that it hangs again within the next, twice as long. */
const CALM_MS: Millis = 5_000
const CALM_MS_MAX: Millis = 60_000
const RELAPSE_MS: Millis = 600_000

/** What one kind of operation has done, and for how many looks in a row nothing of it came back while some were awaited. */
class Operations {
  #underWay = 0
  #ended = 0
  #seen = 0
  silentLooks = 0

  get isIdle(): boolean {
    return this.#underWay === 0
  }

  begin(): void {
    this.#underWay++
  }

  end(): void {
    this.#underWay--
    this.#ended++
  }

  look(): void {
    this.silentLooks = this.isIdle || this.#ended !== this.#seen ? 0 : this.silentLooks + 1
    this.#seen = this.#ended
  }
}

/**
 * Sees that a disk hangs: what it is asked for neither succeeds nor fails. It looks from time to time while something is
 * under way, and counts looks, not time, so that a process that stood still itself (SIGSTOP) does not blame its disk for it.
 * Writes and syncs are looked at apart: the page cache goes on to take writes for as long as it has room.
 */
export class DiskWatch {
  readonly #options: DiskWatchOptions
  readonly #writes = new Operations()
  /** One for each log in which appends wait for a sync. */
  readonly #syncs = new Operations()
  #timer: Timer | undefined
  #failure: HungDiskError | undefined
  #hungSince: Millis = 0
  #calmMs = CALM_MS
  #healedAt: Millis = Number.NEGATIVE_INFINITY
  #stopped = false

  constructor(options: DiskWatchOptions) {
    this.#options = options
  }

  /** Set while the disk hangs, and until it is believed to answer again. */
  get failure(): HungDiskError | undefined {
    return this.#failure
  }

  writeBegins(): void {
    this.#writes.begin()
    this.#planLook()
  }

  writeEnds(): void {
    this.#writes.end()
  }

  syncBegins(): void {
    this.#syncs.begin()
    this.#planLook()
  }

  syncEnds(): void {
    this.#syncs.end()
  }

  stop(): void {
    this.#stopped = true
    this.#timer?.cancel()
  }

  #planLook(): void {
    if (this.#timer !== undefined || this.#stopped) return
    this.#timer = this.#options.clock.after(LOOK_EVERY_MS, () => {
      this.#timer = undefined
      this.#look()
    })
  }

  #look(): void {
    this.#writes.look()
    this.#syncs.look()
    if (this.#failure === undefined && this.#silentLooks >= HUNG_LOOKS) this.#hangs()
    if (this.#failure !== undefined || !this.#writes.isIdle || !this.#syncs.isIdle) this.#planLook()
  }

  get #silentLooks(): number {
    return Math.max(this.#writes.silentLooks, this.#syncs.silentLooks)
  }

  #hangs(): void {
    const { clock, log, folder, consequence, changed } = this.#options
    const now = clock.monotonic()
    this.#calmMs = now - this.#healedAt < RELAPSE_MS ? Math.min(CALM_MS_MAX, 2 * this.#calmMs) : CALM_MS
    this.#hungSince = now - HUNG_LOOKS * LOOK_EVERY_MS
    const failure = new HungDiskError(folder, now - this.#hungSince)
    this.#failure = failure
    log.error(
      { folder },
      `${failure.message}; ${consequence}. ` +
        'Check the disk, its cable or volume and the kernel log; it is used again by itself when it answers',
    )
    changed()
    void this.#probeUntilWell()
  }

  async #probeUntilWell(): Promise<void> {
    const { clock, log, folder, changed } = this.#options
    let wellSince: Millis | undefined
    while (wellSince === undefined || clock.monotonic() - wellSince < this.#calmMs) {
      await new Promise<void>(resolve => clock.after(PROBE_EVERY_MS, resolve))
      const since = clock.monotonic()
      await this.#probe()
      if (this.#stopped) return
      const isWell = clock.monotonic() - since <= PROBE_MS_MAX && this.#silentLooks === 0
      wellSince = isWell ? (wellSince ?? since) : undefined
    }
    this.#failure = undefined
    this.#healedAt = clock.monotonic()
    const hungMs = Math.round(wellSince - this.#hungSince)
    log.info({ folder, hungMs }, `the disk of ${folder} answers again; it is written to again`)
    changed()
  }

  /** Whether it succeeds is for others to see: a disk that fails does not hang. */
  async #probe(): Promise<void> {
    const { disk, folder, probeFile } = this.#options
    const path = `${folder}/${probeFile}`
    let file: File | undefined
    try {
      file = await disk.open(path, { create: true, write: true })
      await file.write([Buffer.alloc(PROBE_BYTES)], 0)
      await file.sync()
      await disk.remove(path)
    } catch (error) {
      if (!(error instanceof WorldError)) throw error
    } finally {
      await file?.close().catch(() => undefined)
    }
  }
}
