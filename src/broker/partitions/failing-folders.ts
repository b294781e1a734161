import type { Millis } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import type { LogFolders } from '#storage/log-folders.ts'
import { HungDiskError, isFull } from '#storage/storage-error.ts'
import type { Logger } from '#world/world.ts'
import type { Partition } from './partition.ts'

/** A disk that fails for so long is not taken to mend itself. */
const GIVEN_UP_AFTER_MS: Millis = 10_000
/** What says that the folder, or the disk below it, is not there any more. */
const GONE: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'EROFS', 'ENODEV', 'ENXIO', 'ESTALE'])
/** Somebody may just be mounting it. */
const GONE_AFTER_MS: Millis = 3_000

/**
 * Which folders the cluster is told of as offline (KIP-858), so that others lead what lies there: those in which some log
 * has refused writes for long. Not those that are only full or hang: they mend themselves when space returns, or an answer.
 */
export class FailingFolders {
  readonly #folders: LogFolders
  readonly #log: Logger
  readonly #since = new Map<Uuid, Millis>()
  readonly #givenUp = new Set<Uuid>()
  /** Failures of logs that were looked at. */
  #seen = 0

  constructor(folders: LogFolders, log: Logger) {
    this.#folders = folders
    this.#log = log
  }

  /** How many are given up. */
  get count(): number {
    return this.#givenUp.size
  }

  hasGivenUp(partition: Partition): boolean {
    if (this.#givenUp.size === 0) return false
    const directory = this.#folders.directoryOf(partition.log)
    return directory !== undefined && this.#givenUp.has(directory)
  }

  /** Those that are given up, for good: the cluster takes a folder back when the broker starts again. */
  look(partitions: Iterable<Partition>, now: Millis): readonly Uuid[] {
    const { failures } = this.#folders
    if (this.#since.size === 0 && failures === this.#seen) return [...this.#givenUp]
    this.#seen = failures
    const failing = new Map<Uuid, Millis>()
    for (const { log } of partitions) {
      if (log.failure === undefined || isFull(log.failure) || log.failure instanceof HungDiskError) continue
      const directory = this.#folders.directoryOf(log)
      if (directory === undefined) continue
      const patienceMs = GONE.has(log.failure.errno) ? GONE_AFTER_MS : GIVEN_UP_AFTER_MS
      failing.set(directory, Math.min(patienceMs, failing.get(directory) ?? patienceMs))
    }
    for (const directory of this.#since.keys()) if (!failing.has(directory)) this.#since.delete(directory)
    for (const [directory, patienceMs] of failing) {
      const since = this.#since.get(directory) ?? now
      this.#since.set(directory, since)
      if (now - since < patienceMs || this.#givenUp.has(directory)) continue
      this.#givenUp.add(directory)
      this.#folders.giveUp(directory)
      const folder = this.#folders.folders.find(each => each.directoryId === directory)?.path
      this.#log.error(
        { folder, failedMs: now - since },
        'a folder has refused writes for long; the cluster is told that it is offline, and others lead what lies there. Mend the disk and start the node again',
      )
    }
    return [...this.#givenUp]
  }
}
