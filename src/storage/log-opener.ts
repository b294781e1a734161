import { assert } from '#base/assert.ts'
import type { Millis, Offset } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import type { BatchFold } from './batch-fold.ts'
import { DamagedLogs } from './damaged-logs.ts'
import type { LeavingPartitions } from './leaving-partitions.ts'
import { Log } from './log.ts'
import type { LogConfig } from './log-config.ts'
import { type LogFolder, type LogFolderWorld, moveAside } from './log-folder.ts'
import { partitionFolderName } from './partition-folder.ts'
import { readPartitionMetadata, writePartitionMetadata } from './partition-metadata.ts'
import type { SegmentCache } from './segment-cache.ts'
import { DamagedLogError, StorageError, storageError } from './storage-error.ts'

const PROGRESS_EVERY_MS: Millis = 5_000

/** How often it is looked whether the log of an earlier topic has left its name, and for how long. */
const FREE_LOOK_MS: Millis = 10
const FREE_MS_MAX: Millis = 10_000

export interface OpenPartition {
  readonly topic: string
  readonly topicId: Uuid
  readonly partition: number
  readonly config: LogConfig
  readonly fold: BatchFold
  /** Asked when checkpoints are written; without it the end of the log, which is right where there is one replica. */
  readonly highWatermark?: (() => Offset) | undefined
  /** Where the controller wants a new one to be. */
  readonly directoryId?: Uuid | undefined
}

export interface OpenedPartition {
  readonly log: Log
  /** As the last checkpoint had it, 0 for a new one. */
  readonly highWatermark: Offset
  readonly directoryId: Uuid
}

interface OpenerWorld extends LogFolderWorld {
  /** `log.dirs`. */
  readonly paths: readonly string[]
}

/** Opens the logs of partitions where they lie, and makes new ones in the folder that has the fewest. */
export class LogOpener {
  readonly #world: OpenerWorld
  readonly #folders: readonly LogFolder[]
  readonly #cache: SegmentCache
  readonly #leaving: LeavingPartitions
  readonly #damaged: DamagedLogs
  /** By name: who opens it, and behind him who waits to. */
  readonly #turns = new Map<string, Promise<void>>()
  readonly #toOpen: number
  readonly #wasClean: boolean
  #opened = 0
  #progressAt: Millis
  /** How often a log began to refuse appends. */
  failures = 0
  #closed = false

  constructor(world: OpenerWorld, folders: readonly LogFolder[], cache: SegmentCache, leaving: LeavingPartitions) {
    this.#world = world
    this.#folders = folders
    this.#cache = cache
    this.#leaving = leaving
    this.#damaged = new DamagedLogs(world.disk)
    this.#toOpen = folders.reduce((sum, folder) => sum + folder.found.size, 0)
    // A folder that is new has no mark of a clean stop, and nothing to check.
    this.#wasClean = folders.every(({ found, cleanBrokerEpoch }) => found.size === 0 || cleanBrokerEpoch !== undefined)
    this.#progressAt = world.clock.monotonic()
  }

  /**
   * Opens a partition's log, and makes it where there is none. One that was left by an earlier topic of the same name is
   * moved aside; one of an earlier topic that is still being opened is waited for, and for its owner to take it away. Rejects
   * with a StorageError when the disk does not take it.
   */
  async open(wanted: OpenPartition): Promise<OpenedPartition> {
    assert(!this.#closed, 'closed folders open nothing')
    const name = partitionFolderName(wanted.topic, wanted.partition)
    const opening = this.#openAfter(this.#turns.get(name), name, wanted)
    const turn = opening.then(
      () => {},
      () => {},
    )
    this.#turns.set(name, turn)
    try {
      return await opening
    } finally {
      if (this.#turns.get(name) === turn) this.#turns.delete(name)
    }
  }

  async #openAfter(before: Promise<void> | undefined, name: string, wanted: OpenPartition): Promise<OpenedPartition> {
    if (before !== undefined) {
      await before
      await this.#free(name)
    }
    await this.#leaving.gone(name)
    return await this.#open(name, wanted)
  }

  /** When the log of an earlier topic has left the name. Its owner had to get it first, and to see that the topic is deleted. */
  async #free(name: string): Promise<void> {
    const { clock } = this.#world
    const since = clock.monotonic()
    for (;;) {
      if (this.#closed) throw new StorageError('ECANCELED', name, 'the folders were closed meanwhile')
      const home = this.#folders.find(({ logs }) => logs.has(name))
      if (home === undefined) return
      if (clock.monotonic() - since >= FREE_MS_MAX)
        throw new StorageError(
          'EBUSY',
          `${home.path}/${name}`,
          'the log of an earlier topic of the same name is still open',
        )
      await new Promise<void>(resolve => clock.after(FREE_LOOK_MS, resolve))
    }
  }

  async #open(name: string, wanted: OpenPartition): Promise<OpenedPartition> {
    const { topicId } = wanted
    // Where two folders hold it, as when one of them was away for a while, the cluster knows which of them is followed up.
    const holders = this.#folders.filter(folder => folder.found.has(name))
    let home = holders.find(({ directoryId }) => directoryId === wanted.directoryId) ?? holders[0]
    if (home !== undefined) refuseHung(home)
    if (home !== undefined && !(await this.#isOurs(home, name, topicId))) home = undefined
    const fresh = home === undefined
    home ??= this.#placeFor(wanted.directoryId)
    refuseHung(home)
    // Counts from now on, so that the next one is placed elsewhere.
    home.found.add(name)
    try {
      return await this.#openIn(home, name, wanted, fresh)
    } catch (error) {
      const failure = storageError(error, home.path)
      if (fresh) home.found.delete(name)
      throw failure
    }
  }

  async #openIn(home: LogFolder, name: string, wanted: OpenPartition, fresh: boolean): Promise<OpenedPartition> {
    const { disk, clock, log } = this.#world
    const folder = `${home.path}/${name}`
    if (fresh) {
      await home.watched(async () => {
        await home.clear(name)
        await disk.makeFolder(folder)
        await writePartitionMetadata(disk, folder, wanted.topicId)
      })
    }
    await this.#damaged.refuse(folder)
    const startOffset = fresh ? 0 : home.startOffset(name)
    const recoveryPoint = fresh ? 0 : home.recoveryPoint(name)
    const opened = await Log.open({
      disk,
      clock,
      log,
      folder,
      config: wanted.config,
      fold: wanted.fold,
      recoveryPoint,
      clean: fresh || home.wasClosed(name),
      startOffset,
      fresh,
      cache: this.#cache,
      turns: home.turns,
      complaints: home.complaints,
      wasCut: () => home.wasCut(name),
      watch: home.watch,
      refusal: () => home.watch.failure,
      syncFailed: () => home.syncFailed(),
      failed: () => {
        this.failures++
      },
    }).catch((error: unknown) => {
      if (error instanceof DamagedLogError) this.#damaged.add(folder, error)
      throw error
    })
    try {
      // What a dead process left unsynced is served from now on, and a repeat of it is answered as written: where that is a
      // promise that survives a power cut, it has to be made true first.
      if (wanted.config.flushMessages < Number.MAX_SAFE_INTEGER && opened.durableOffset < opened.endOffset) {
        await opened.flush()
      }
      await home.endsAt(name, opened.endOffset)
    } catch (error) {
      // Left alone it would mend itself some time, and cut off what its successor has appended by then.
      await opened.abandon()
      throw error
    }
    const highWatermark = fresh ? 0 : home.highWatermark(name)
    home.added(name, { log: opened, highWatermark: wanted.highWatermark ?? (() => opened.endOffset) })
    if (!fresh) this.#progress()
    return { log: opened, highWatermark, directoryId: home.directoryId }
  }

  async #isOurs(home: LogFolder, name: string, topicId: Uuid): Promise<boolean> {
    const { disk, log } = this.#world
    const folder = `${home.path}/${name}`
    try {
      const id = await readPartitionMetadata(disk, folder)
      if (id === topicId) return true
      if (id === undefined) {
        await writePartitionMetadata(disk, folder, topicId)
        return true
      }
      const aside = await moveAside(this.#world, folder, 'stray')
      home.forget(name)
      log.warn(
        { folder, movedTo: aside, topicId, foundTopicId: id },
        'found the log of another topic of the same name and moved it aside; remove it if it is not wanted',
      )
      return false
    } catch (error) {
      throw storageError(error, home.path)
    }
  }

  #placeFor(directoryId: Uuid | undefined): LogFolder {
    let best: LogFolder | undefined
    for (const folder of this.#folders) {
      if (!folder.online) continue
      if (folder.directoryId === directoryId) return folder
      if (best === undefined || crowdOf(folder) < crowdOf(best)) best = folder
    }
    if (best === undefined) throw new StorageError('EIO', this.#world.paths.join(','), 'all log folders are offline')
    return best
  }

  #progress(): void {
    this.#opened++
    const { clock, log } = this.#world
    const now = clock.monotonic()
    const isLast = this.#opened === this.#toOpen
    if (!isLast && now - this.#progressAt < PROGRESS_EVERY_MS) return
    this.#progressAt = now
    const checked = this.#wasClean ? '' : ', checking what was not synced because the last stop was not clean'
    log.info({ opened: this.#opened, found: this.#toOpen }, `opened ${this.#opened} of ${this.#toOpen} logs${checked}`)
  }

  close(): void {
    this.#closed = true
  }
}

/** Who asks comes again. */
function refuseHung({ watch }: LogFolder): void {
  if (watch.failure !== undefined) throw watch.failure
}

/** One that hangs has no place for anybody, unless there is no other. */
function crowdOf({ size, watch }: LogFolder): number {
  return watch.failure === undefined ? size : Number.POSITIVE_INFINITY
}
