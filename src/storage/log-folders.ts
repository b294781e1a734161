import { assert } from '#base/assert.ts'
import type { Millis, NodeId, Offset } from '#base/units.ts'
import { type Uuid, uuidFromRandom } from '#base/uuid.ts'
import { type Timer, WorldError } from '#world/world.ts'
import type { BatchFold } from './batch-fold.ts'
import type { BootMark } from './boot-mark.ts'
import { DamagedLogs } from './damaged-logs.ts'
import { LeavingPartitions } from './leaving-partitions.ts'
import { Log } from './log.ts'
import type { LogConfig } from './log-config.ts'
import { LogFolder, type LogFolderWorld, moveAside } from './log-folder.ts'
import { ForeignFolderError, type MetaProperties, readMetaProperties } from './meta-properties.ts'
import { partitionFolderName } from './partition-folder.ts'
import { readPartitionMetadata, writePartitionMetadata } from './partition-metadata.ts'
import { SegmentCache, type SegmentCacheLimits } from './segment-cache.ts'
import { cureOf, DamagedLogError, StorageError, storageError } from './storage-error.ts'

const PROGRESS_EVERY_MS: Millis = 5_000
const CHECKPOINT_EVERY_MS: Millis = 60_000

export interface LogFoldersOptions extends LogFolderWorld {
  /** `log.dirs`; at least one. New partitions go to the one with the fewest. */
  readonly paths: readonly string[]
  readonly nodeId: NodeId
  /** The cluster that folders must belong to; without it what they say. */
  readonly clusterId?: string | undefined
  /** Folders that know no cluster wait for `found`; otherwise they are a new one, whose id is drawn here. */
  readonly awaitsCluster?: boolean | undefined
  /** `log.flush.offset.checkpoint.interval.ms`. */
  readonly checkpointEveryMs?: Millis | undefined
  readonly limits?: SegmentCacheLimits | undefined
}

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

/** How often it is looked whether the log of an earlier topic has left its name, and for how long. */
const FREE_LOOK_MS: Millis = 10
const FREE_MS_MAX: Millis = 10_000

/** All log folders of a node. A folder whose disk fails goes offline; the others go on. */
export class LogFolders {
  readonly #options: LogFoldersOptions
  #clusterId: string | undefined
  readonly #folders: LogFolder[]
  /** Paths of folders that could not be opened at the start. */
  readonly #failed: readonly string[]
  readonly #cache: SegmentCache
  #checkpointTimer: Timer | undefined
  #checkpointing: Promise<void> | undefined
  readonly #leaving: LeavingPartitions
  readonly #damaged: DamagedLogs
  readonly #toOpen: number
  #opened = 0
  #failures = 0
  #progressAt: Millis
  #closed = false
  /** By name: who opens it, and behind him who waits to. */
  readonly #turns = new Map<string, Promise<void>>()
  #isRegistered = false

  private constructor(
    options: LogFoldersOptions,
    clusterId: string | undefined,
    folders: LogFolder[],
    failed: readonly string[],
  ) {
    this.#options = options
    this.#clusterId = clusterId
    this.#folders = folders
    this.#failed = failed
    this.#cache = new SegmentCache(options.clock, options.limits)
    this.#damaged = new DamagedLogs(options.disk)
    this.#leaving = new LeavingPartitions(options)
    this.#toOpen = folders.reduce((sum, folder) => sum + folder.found.size, 0)
    this.#progressAt = options.clock.monotonic()
    this.#planCheckpoint()
  }

  /**
   * Makes what is missing, locks, and looks at what is there; logs are opened one by one afterwards. An empty folder becomes
   * ours. Rejects with a {@link ForeignFolderError}, or with a StorageError when no folder can be used.
   */
  static async open(options: LogFoldersOptions): Promise<LogFolders> {
    const { paths, nodeId, log, random } = options
    assert(paths.length > 0, 'a node has a log folder')
    let { clusterId } = options as { clusterId: string | undefined }
    const folders: LogFolder[] = []
    const failed: string[] = []
    let failure: StorageError | undefined
    // Those that know their cluster first, so that a new folder beside them learns it.
    const known = await inOrderOfKnowledge(options)
    for (const path of known) {
      const identify = (found: MetaProperties | undefined) => {
        if (found !== undefined) checkOwner(path, found, nodeId, clusterId)
        clusterId ??= found?.clusterId
        if (options.awaitsCluster !== true) clusterId ??= uuidFromRandom(bytes => random.fill(bytes))
        return { clusterId, nodeId }
      }
      try {
        const mayAwait = options.awaitsCluster === true || clusterId !== undefined
        const opened = await LogFolder.open(options, path, identify, mayAwait)
        folders.push(opened)
        const twin = folders.find(other => other !== opened && other.directoryId === opened.directoryId)
        if (twin !== undefined) {
          throw new ForeignFolderError(
            `${path} is a copy of ${twin.path}: both have directory.id ${opened.directoryId}; remove one of them from log.dirs`,
          )
        }
      } catch (error) {
        if (error instanceof WorldError && error.code !== 'EBUSY') {
          failure = storageError(error, path)
          failed.push(path)
          log.error(
            { folder: path, errno: error.code },
            `${failure.message}; the folder is offline. ${cureOf(error.code)}`,
          )
          continue
        }
        for (const folder of folders) await folder.close(-1)
        if (!(error instanceof WorldError)) throw error
        throw new ForeignFolderError(`${path} is in use by another process; stop it, or choose another folder`)
      }
    }
    if (folders.length === 0) {
      throw failure ?? new StorageError('EIO', paths.join(','), 'no log folder can be used')
    }
    folders.sort((a, b) => paths.indexOf(a.path) - paths.indexOf(b.path))
    return new LogFolders(options, clusterId, folders, failed)
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

  get hadCleanShutdown(): boolean {
    return this.#folders.every(folder => folder.cleanBrokerEpoch !== undefined)
  }

  /** How often a log began to refuse appends: while it stays the same, those that are well are still well. */
  get failures(): number {
    return this.#failures
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
    return this.#folders.find(folder => log.folder.startsWith(`${folder.path}/`))
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
    const { clock } = this.#options
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
    let home = this.#folders.find(folder => folder.found.has(name))
    if (home !== undefined && !(await this.#isOurs(home, name, topicId))) home = undefined
    const fresh = home === undefined
    home ??= this.#placeFor(wanted.directoryId)
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
    const { disk, clock, log } = this.#options
    const folder = `${home.path}/${name}`
    if (fresh) {
      await disk.makeFolder(folder)
      await writePartitionMetadata(disk, folder, wanted.topicId)
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
      clean: fresh || home.cleanBrokerEpoch !== undefined,
      startOffset,
      fresh,
      cache: this.#cache,
      turns: home.turns,
      recoveryPointLowered: () => home.writeRecoveryPoints(),
      syncFailed: () => home.syncFailed(),
      failed: () => {
        this.#failures++
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
      // A checkpoint above the end would vouch for what is appended from now on.
      if (recoveryPoint > opened.endOffset) await home.lowerRecoveryPoint(name, opened.endOffset)
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
    const { disk, log } = this.#options
    const folder = `${home.path}/${name}`
    try {
      const id = await readPartitionMetadata(disk, folder)
      if (id === topicId) return true
      if (id === undefined) {
        await writePartitionMetadata(disk, folder, topicId)
        return true
      }
      const aside = await moveAside(this.#options, folder, 'stray')
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
      if (best === undefined || folder.size < best.size) best = folder
    }
    if (best === undefined) throw new StorageError('EIO', this.#options.paths.join(','), 'all log folders are offline')
    return best
  }

  #progress(): void {
    this.#opened++
    const { clock, log } = this.#options
    const now = clock.monotonic()
    const isLast = this.#opened === this.#toOpen
    if (!isLast && now - this.#progressAt < PROGRESS_EVERY_MS) return
    this.#progressAt = now
    const checked = this.hadCleanShutdown ? '' : ', checking what was not synced because the last stop was not clean'
    log.info({ opened: this.#opened, found: this.#toOpen }, `opened ${this.#opened} of ${this.#toOpen} logs${checked}`)
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

  #planCheckpoint(): void {
    this.#checkpointTimer = this.#options.clock.after(this.#options.checkpointEveryMs ?? CHECKPOINT_EVERY_MS, () => {
      this.#checkpointing = this.checkpoint().finally(() => {
        if (!this.#closed) this.#planCheckpoint()
      })
    })
  }

  /** Writes indexes, snapshots and offset checkpoints of all that changed. */
  async checkpoint(): Promise<void> {
    for (const folder of this.#folders) await folder.checkpoint()
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
    await this.#close(folder => folder.close(brokerEpoch))
  }

  /** As `close` at the end of a start that failed before anybody could know of this node: new folders are nobody's again. */
  async closeUnused(): Promise<void> {
    const { previousBrokerEpoch } = this
    const isUnused = !this.#isRegistered && this.#folders.every(({ logs }) => logs.size === 0)
    await this.#close(folder =>
      isUnused ? folder.closeUnused(previousBrokerEpoch) : folder.close(previousBrokerEpoch),
    )
  }

  async #close(closeOne: (folder: LogFolder) => Promise<void>): Promise<void> {
    this.#closed = true
    this.#checkpointTimer?.cancel()
    await this.#checkpointing
    await this.#leaving.close()
    await Promise.all(this.#folders.map(closeOne))
    this.#cache.close()
  }
}

async function inOrderOfKnowledge({ disk, paths }: LogFoldersOptions): Promise<string[]> {
  const known: string[] = []
  const fresh: string[] = []
  for (const path of paths) {
    const properties = await readMetaProperties(disk, path).catch(() => undefined)
    ;(properties?.clusterId === undefined ? fresh : known).push(path)
  }
  return [...known, ...fresh]
}

function checkOwner(path: string, found: MetaProperties, nodeId: NodeId, clusterId: string | undefined): void {
  if (found.nodeId !== nodeId) {
    throw new ForeignFolderError(
      `${path} belongs to node ${found.nodeId}, and this is node ${nodeId}; correct node.id or choose another folder`,
    )
  }
  if (clusterId !== undefined && found.clusterId !== undefined && found.clusterId !== clusterId) {
    throw new ForeignFolderError(
      `${path} belongs to cluster ${found.clusterId}, and this node to ${clusterId}; choose another folder`,
    )
  }
}
