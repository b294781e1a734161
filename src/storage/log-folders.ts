import { assert } from '#base/assert.ts'
import type { Millis, Offset } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import type { Timer } from '#world/world.ts'
import type { BootMark } from './boot-mark.ts'
import { type Claim, type Claimed, claimFolders } from './claim.ts'
import { LeavingPartitions } from './leaving-partitions.ts'
import type { Log } from './log.ts'
import { type LogFolder, moveAside } from './log-folder.ts'
import { LogOpener, type OpenedPartition, type OpenPartition } from './log-opener.ts'
import { isRightIn, partitionFolderName } from './partition-folder.ts'
import { SegmentCache, type SegmentCacheLimits } from './segment-cache.ts'
import { storageError } from './storage-error.ts'

const CHECKPOINT_EVERY_MS: Millis = 60_000

export interface LogFoldersOptions extends Claim {
  /** `log.flush.offset.checkpoint.interval.ms`. */
  readonly checkpointEveryMs?: Millis | undefined
  readonly limits?: SegmentCacheLimits | undefined
}

/** All log folders of a node. A folder whose disk fails goes offline; the others go on. */
export class LogFolders {
  readonly #options: LogFoldersOptions
  #clusterId: string | undefined
  readonly #folders: LogFolder[]
  /** Paths of folders that could not be opened at the start. */
  readonly #failed: readonly string[]
  readonly #cache: SegmentCache
  /** One for each folder: a disk that hangs holds up no other. */
  readonly #checkpointTimers = new Map<LogFolder, Timer>()
  readonly #leaving: LeavingPartitions
  readonly #opener: LogOpener
  #closed = false
  #isRegistered = false
  #hangChanged: () => void = () => {}

  private constructor(options: LogFoldersOptions, { clusterId, folders, failed }: Claimed) {
    this.#options = options
    this.#clusterId = clusterId
    this.#folders = folders
    this.#failed = failed
    this.#cache = new SegmentCache(options.clock, options.limits)
    this.#leaving = new LeavingPartitions(options)
    this.#opener = new LogOpener(options, folders, this.#cache, this.#leaving)
    for (const folder of folders) {
      folder.hangChanged = () => {
        this.#opener.failures++
        this.#hangChanged()
      }
    }
    for (const folder of folders) this.#planCheckpoint(folder)
  }

  /**
   * Claims the folders; logs are opened one by one afterwards. Rejects with a ForeignFolderError when one is another's, with a
   * StorageError when none can be used.
   */
  static async open(options: LogFoldersOptions): Promise<LogFolders> {
    return new LogFolders(options, await claimFolders(options))
  }

  /** Undefined while the folders know no cluster. */
  get clusterId(): string | undefined {
    return this.#clusterId
  }

  /** Makes the folders those of a cluster; durable when it resolves. Rejects with a StorageError, and may be called again. */
  async found(clusterId: string): Promise<void> {
    assert(this.#clusterId === undefined, 'a node belongs to one cluster')
    const { nodeId } = this.#options
    for (const folder of this.#folders) if (folder.online) await folder.belongTo({ clusterId, nodeId })
    this.#clusterId = clusterId
  }

  /** All, in the order of `log.dirs`. */
  get folders(): readonly {
    readonly path: string
    readonly online: boolean
    readonly directoryId: Uuid | undefined
  }[] {
    return this.#options.paths.map(path => {
      const folder = this.#folders.find(candidate => candidate.path === path)
      return { path, online: folder?.online ?? false, directoryId: folder?.directoryId }
    })
  }

  /** Of the folders that work. */
  get directoryIds(): Uuid[] {
    return this.#folders.filter(folder => folder.online).map(folder => folder.directoryId)
  }

  /** A folder that refuses writes for long is offline until the next start: what is new goes elsewhere. */
  giveUp(directoryId: Uuid): void {
    this.#folders.find(folder => folder.directoryId === directoryId)?.giveUp()
  }

  /** The broker epoch of the life before, if nothing of what it had written is lost in any folder, else -1 (KIP-966). */
  get previousBrokerEpoch(): number {
    if (this.#failed.length > 0) return -1
    const epochs = new Set(this.#folders.map(folder => folder.keptBrokerEpoch ?? -1))
    const [epoch] = epochs
    return epochs.size === 1 ? (epoch as number) : -1
  }

  /** Whether a broker has lived here: then the cluster was founded, though no partition came to these folders. */
  get lived(): boolean {
    return this.#folders.some(({ keptBrokerEpoch }) => keptBrokerEpoch !== undefined)
  }

  /**
   * Under which id the broker registers: a new one, or that of a life that was killed before it heard of its epoch. With
   * another id the controller would miss an epoch in between, and believe that something is lost.
   */
  async register(freshId: Uuid): Promise<Uuid> {
    const ids = new Set(this.#folders.map(({ bootMark }) => bootMark?.incarnationId))
    const [unfinished] = ids
    const incarnationId = ids.size === 1 && this.#failed.length === 0 ? (unfinished ?? freshId) : freshId
    const mark: BootMark = { brokerEpoch: this.previousBrokerEpoch, incarnationId }
    await Promise.all(this.#folders.map(folder => folder.keep(mark)))
    return incarnationId
  }

  /** The broker lives in this epoch from now on; resolves when nothing says otherwise any more. */
  async registered(brokerEpoch: Offset): Promise<void> {
    this.#isRegistered = true
    await Promise.all(this.#folders.map(folder => folder.keepSurely({ brokerEpoch, incarnationId: undefined })))
  }

  /** How often a log began to refuse appends: while it stays the same, those that are well are still well. */
  get failures(): number {
    return this.#opener.failures
  }

  /** Calls whenever the disk of a folder begins to hang, or answers again. */
  onHang(changed: () => void): void {
    this.#hangChanged = changed
  }

  /** The folders whose disk hangs now. */
  get hungDirectoryIds(): Uuid[] {
    return this.#folders.filter(({ watch }) => watch.failure !== undefined).map(folder => folder.directoryId)
  }

  /** Open files of segments, for metrics. */
  get openFiles(): number {
    return this.#cache.openFiles
  }

  /** Names (`topic-partition`) of the partitions that lie here and were not opened. */
  get unopened(): string[] {
    return this.#folders.flatMap(folder => [...folder.found])
  }

  /** Whether a partition lies in a folder that works, open or not. */
  has(topic: string, partition: number): boolean {
    const name = partitionFolderName(topic, partition)
    return this.#folders.some(folder => folder.found.has(name) || folder.logs.has(name))
  }

  /** The directory that a log is in. */
  directoryOf(log: Log): Uuid | undefined {
    return this.#folderOf(log)?.directoryId
  }

  #folderOf(log: Log): LogFolder | undefined {
    return this.#folders.find(({ path }) => isRightIn(path, log.folder))
  }

  /**
   * Opens a partition's log, and makes it where there is none. One that was left by an earlier topic of the same name is
   * moved aside; one of an earlier topic that is still being opened is waited for, and for its owner to take it away. Rejects
   * with a StorageError when the disk does not take it.
   */
  open(wanted: OpenPartition): Promise<OpenedPartition> {
    return this.#opener.open(wanted)
  }

  /** Partitions that lie here and that nobody wants: their folders get `-stray`. Returns how many. */
  async moveStrays(isWanted: (name: string) => boolean): Promise<number> {
    let count = 0
    for (const folder of this.#folders) {
      for (const name of [...folder.found]) {
        if (isWanted(name)) continue
        try {
          const movedTo = await moveAside(this.#options, `${folder.path}/${name}`, 'stray')
          this.#options.log.warn({ movedTo }, 'moved aside the log of a partition that this node does not host')
          folder.forget(name)
          count++
        } catch (error) {
          storageError(error, folder.path)
        }
      }
    }
    return count
  }

  /** Deletes a partition: its folder gets `-delete` when the log is at rest and goes after `file.delete.delay.ms`. */
  remove(log: Log): Promise<void> {
    const home = this.#folderOf(log)
    assert(home !== undefined, 'a log that was opened here')
    return this.#leaving.leave(home, log)
  }

  #planCheckpoint(folder: LogFolder): void {
    const { clock, checkpointEveryMs = CHECKPOINT_EVERY_MS } = this.#options
    const timer = clock.after(checkpointEveryMs, () => {
      void folder.checkpoint().finally(() => {
        if (!this.#closed) this.#planCheckpoint(folder)
      })
    })
    this.#checkpointTimers.set(folder, timer)
  }

  /** Writes indexes, snapshots and offset checkpoints of all that changed. */
  async checkpoint(): Promise<void> {
    await Promise.all(this.#folders.map(folder => folder.checkpoint()))
  }

  /**
   * Writes down where a log begins, so that what was deleted does not come back when the process dies; who comes at the same
   * time shares the write. Rejects with a StorageError when it may come back, unless the disk is only full.
   */
  async keepStartOffset(log: Log): Promise<void> {
    await this.#folderOf(log)?.keepStartOffsets()
  }

  /** The clean stop of all logs; after it the process may end. */
  async close(brokerEpoch = -1): Promise<void> {
    const failed = [...this.#failed, ...(await this.#close(folder => folder.close(brokerEpoch)))]
    if (failed.length === 0) {
      this.#options.log.info({}, 'everything is on disk')
      return
    }
    this.#options.log.warn(
      { folders: failed },
      `not everything is on disk that was written to ${failed.join(', ')}: the next start checks what lies there, and what is missing is copied from the leaders`,
    )
  }

  /** As `close` at the end of a start that failed before anybody could know of this node: new folders are nobody's again. */
  async closeUnused(): Promise<void> {
    const { previousBrokerEpoch } = this
    const isUnused = !this.#isRegistered && this.#folders.every(({ logs }) => logs.size === 0)
    await this.#close(folder =>
      // Also where another folder could not be had: what each says of the life before is as true as it was.
      isUnused ? folder.closeUnused(folder.keptBrokerEpoch ?? -1) : folder.close(previousBrokerEpoch),
    )
  }

  /** Resolves with the paths of those that did not write everything. */
  async #close(closeOne: (folder: LogFolder) => Promise<boolean>): Promise<string[]> {
    this.#closed = true
    this.#opener.close()
    for (const timer of this.#checkpointTimers.values()) timer.cancel()
    await this.#leaving.close()
    const whole = await Promise.all(this.#folders.map(closeOne))
    this.#cache.close()
    return this.#folders.filter((_, index) => whole[index] !== true).map(({ path }) => path)
  }
}
