import { assert } from '#base/assert.ts'
import { Complaints } from '#base/complaints.ts'
import type { Offset } from '#base/units.ts'
import { type Uuid, uuidFromRandom } from '#base/uuid.ts'
import { type Chance, type Clock, type Disk, type Entry, type Lock, type Logger, WorldError } from '#world/world.ts'
import { type BootMark, BootMarkFile, readBootMark } from './boot-mark.ts'
import { readCleanShutdown, removeCleanShutdown, writeCleanShutdown } from './clean-shutdown.ts'
import { DiskWatch } from './disk-watch.ts'
import { inParallel } from './files.ts'
import { LogOffsets, type OpenLog } from './log-offsets.ts'
import {
  ForeignFolderError,
  META_PROPERTIES_FILE,
  type MetaProperties,
  readMetaProperties,
  writeMetaProperties,
} from './meta-properties.ts'
import { HIGH_WATERMARK_CHECKPOINT, LOG_START_CHECKPOINT, RECOVERY_POINT_CHECKPOINT } from './offset-checkpoint.ts'
import { parsePartitionFolderName, suffixedFolderName } from './partition-folder.ts'
import { cureOf, isFull, type StorageError, storageError } from './storage-error.ts'
import { GroupedSyncs } from './syncs.ts'
import { WriteTurns } from './write-turns.ts'

/** The more at once, the more share a sync; while clients are served they must not crowd the thread pool. */
const CLOSE_AT_ONCE = 2048
const PROBE_FILE = '.tidemark-probe'
const METADATA_TOPIC = '__cluster_metadata'
export const LOCK_FILE = '.lock'
const CHECKPOINT_AT_ONCE = 128

export interface LogFolderWorld {
  readonly disk: Disk
  readonly clock: Clock
  readonly random: Chance
  readonly log: Logger
}

/** Two keep a disk busy while the loop takes up what the one before has done. */
const WRITES_AT_ONCE = 2

/** One entry of `log.dirs`: its mark of ownership, its lock, its checkpoints, and the logs that are open in it. */
export class LogFolder {
  readonly #world: LogFolderWorld
  readonly path: string
  readonly #lock: Lock
  /** Broker epoch of the clean stop before this start, undefined when it was not clean. */
  readonly cleanBrokerEpoch: number | undefined
  /** What a life left that ended without a stop, where the machine has gone on since. */
  readonly bootMark: BootMark | undefined
  readonly #ownMark: BootMarkFile
  #directoryId: Uuid
  #online = true
  /** Names of partitions' folders that were found at the start and not opened yet. */
  readonly found: Set<string>
  /** Those of them that this life wrote to and left as they were, with nothing written down. */
  readonly #leftBehind = new Set<string>()
  /** What lay in the folder before this start made it its own; undefined for one that was its own already. */
  readonly #foreign: ReadonlySet<string> | undefined
  readonly logs: Map<string, OpenLog>
  readonly turns: WriteTurns
  readonly watch: DiskWatch
  /** The disk hangs, or answers again. */
  hangChanged: () => void = () => {}
  readonly #recoveryPoints: LogOffsets
  readonly #startOffsets: LogOffsets
  readonly #highWatermarks: LogOffsets
  readonly complaints: Complaints
  #checkpointing: Promise<void> = Promise.resolve()

  private constructor(
    world: LogFolderWorld,
    path: string,
    lock: Lock,
    cleanBrokerEpoch: number | undefined,
    bootMark: BootMark | undefined,
    directoryId: Uuid,
    found: Set<string>,
    foreign: ReadonlySet<string> | undefined,
    logs: Map<string, OpenLog>,
    offsets: readonly [LogOffsets, LogOffsets, LogOffsets],
  ) {
    this.#world = world
    this.turns = new WriteTurns(WRITES_AT_ONCE, world.clock)
    this.complaints = new Complaints(world.clock, world.log)
    this.watch = new DiskWatch({
      ...world,
      folder: path,
      probeFile: PROBE_FILE,
      consequence:
        'refusing writes there with KAFKA_STORAGE_ERROR, and others lead what lies there, where there are others',
      changed: () => this.#hangChanged(),
    })
    this.path = path
    this.#lock = lock
    this.cleanBrokerEpoch = cleanBrokerEpoch
    this.bootMark = bootMark
    this.#directoryId = directoryId
    this.found = found
    this.#foreign = foreign
    this.logs = logs
    ;[this.#recoveryPoints, this.#startOffsets, this.#highWatermarks] = offsets
    this.#ownMark = new BootMarkFile(world, path)
  }

  /**
   * Locks the folder and reads what it says of itself, without opening logs. `identify` decides whether the folder is ours
   * and what a new one is told; it throws when it is another's. Rejects with a ForeignFolderError when partitions lie in a
   * folder that does not say whose they are, with a WorldError when the disk fails. `mayAwait`: it is no damage when a folder
   * that has its node's number lacks its cluster's id.
   */
  static async open(
    world: LogFolderWorld,
    path: string,
    identify: (found: MetaProperties | undefined) => Omit<MetaProperties, 'directoryId'>,
    mayAwait = false,
  ): Promise<LogFolder> {
    const { disk, random } = world
    await disk.makeFolder(path)
    const lock = await disk.lock(`${path}/${LOCK_FILE}`)
    try {
      const properties = await readMetaProperties(disk, path)
      if (properties?.clusterId === undefined) await refuseNameless(disk, path, properties !== undefined, mayAwait)
      const identity = identify(properties)
      const directoryId = properties?.directoryId ?? uuidFromRandom(bytes => random.fill(bytes))
      // It was nobody's so far, so nobody may have made its name durable.
      if (properties === undefined) await syncNames(disk, path)
      if (properties?.directoryId === undefined || properties.clusterId !== identity.clusterId)
        await writeMetaProperties(disk, path, { ...identity, directoryId })
      const cleanBrokerEpoch = await readCleanShutdown(disk, path)
      const bootMark = cleanBrokerEpoch === undefined ? await readBootMark(disk, path) : undefined
      if (cleanBrokerEpoch !== undefined) {
        // A life that is killed before it has registered has lost nothing either.
        const mark: BootMark = { brokerEpoch: cleanBrokerEpoch, incarnationId: undefined }
        await new BootMarkFile(world, path).keep(mark)
        await removeCleanShutdown(disk, path)
      }
      const logs = new Map<string, OpenLog>()
      const offsets = [
        await LogOffsets.read(disk, path, RECOVERY_POINT_CHECKPOINT, logs, ({ log }) => log.recoveryPoint),
        await LogOffsets.read(disk, path, LOG_START_CHECKPOINT, logs, ({ log }) => log.startOffset),
        await LogOffsets.read(disk, path, HIGH_WATERMARK_CHECKPOINT, logs, ({ log, highWatermark }) =>
          // While a log is cut it is above the end, for which something else will come.
          Math.min(highWatermark(), log.endOffset),
        ),
      ] as const
      const entries = await disk.list(path)
      const found = await settleFolders(world, path, entries)
      const foreign =
        properties === undefined
          ? new Set(entries.map(({ name }) => name).filter(name => name !== META_PROPERTIES_FILE))
          : undefined
      return new LogFolder(world, path, lock, cleanBrokerEpoch, bootMark, directoryId, found, foreign, logs, offsets)
    } catch (error) {
      await lock.release()
      throw error
    }
  }

  get directoryId(): Uuid {
    return this.#directoryId
  }

  get online(): boolean {
    return this.#online
  }

  /** Nothing new is put here, and nothing written down any more. */
  giveUp(): void {
    this.#online = false
    // Its logs go on trying, and would promise each minute that writes go on by themselves.
    this.complaints.end()
  }

  #hangChanged(): void {
    const { failure } = this.watch
    if (failure !== undefined) for (const { log } of this.logs.values()) log.hangs(failure)
    this.hangChanged()
  }

  /** Does something short that writes here. */
  async watched<T>(work: () => Promise<T>): Promise<T> {
    this.watch.writeBegins()
    try {
      return await work()
    } finally {
      this.watch.writeEnds()
    }
  }

  /** The broker epoch of the life before, undefined where something that it had written may be missing. */
  get keptBrokerEpoch(): Offset | undefined {
    return this.cleanBrokerEpoch ?? this.bootMark?.brokerEpoch
  }

  /** For a death that loses nothing. */
  async keep(mark: BootMark): Promise<void> {
    await this.#ownMark.keep(mark)
  }

  /** As `keep`, until the mark of before is gone. */
  keepSurely(mark: BootMark): Promise<void> {
    return this.#ownMark.keepSurely(mark)
  }

  /** What was written may be gone even if the process alone dies. */
  syncFailed(): void {
    this.#ownMark.syncFailed()
  }

  /** Writes down which cluster the folder belongs to. Rejects with a StorageError. */
  async belongTo(identity: Omit<MetaProperties, 'directoryId'>): Promise<void> {
    try {
      await writeMetaProperties(this.#world.disk, this.path, { ...identity, directoryId: this.#directoryId })
    } catch (error) {
      throw storageError(error, this.path)
    }
  }

  /** Partitions that live here, open or not. */
  get size(): number {
    return this.found.size + this.logs.size
  }

  recoveryPoint(name: string): Offset {
    return this.#recoveryPoints.loaded(name)
  }

  startOffset(name: string): Offset {
    return this.#startOffsets.loaded(name)
  }

  highWatermark(name: string): Offset {
    return this.#highWatermarks.loaded(name)
  }

  added(name: string, open: OpenLog): void {
    assert(!this.logs.has(name), `${name} is opened once`)
    this.forget(name)
    this.logs.set(name, open)
  }

  /** A partition that was open could not be taken away: whoever opens it next has to check it. */
  leaveBehind(name: string): void {
    this.found.add(name)
    this.#leftBehind.add(name)
  }

  /** Whether what a log holds was written down when it was closed last. */
  wasClosed(name: string): boolean {
    return this.cleanBrokerEpoch !== undefined && !this.#leftBehind.has(name)
  }

  forget(name: string): void {
    this.found.delete(name)
    this.#leftBehind.delete(name)
    this.logs.delete(name)
    for (const offsets of this.#offsets) offsets.forget(name)
  }

  /** In the order of writing: a recovery point below the start is harmless, records that come back are not. */
  get #offsets(): readonly LogOffsets[] {
    return [this.#startOffsets, this.#recoveryPoints, this.#highWatermarks]
  }

  /** Of a log that is not open yet: what was written down above its end would speak of what is appended from now on. */
  async endsAt(name: string, endOffset: Offset): Promise<void> {
    await this.#recoveryPoints.correct(name, endOffset)
    await this.#highWatermarks.correct(name, endOffset)
  }

  /** The same of one that is open and was cut, also where it begins. */
  async wasCut(name: string): Promise<void> {
    for (const offsets of this.#offsets) await offsets.lower(name)
  }

  /**
   * A partition is to be made anew. What is written down under its name is of an earlier topic, and after a crash would be
   * believed of this one: records below that one's start would be gone.
   */
  async clear(name: string): Promise<void> {
    for (const offsets of this.#offsets) await offsets.clear(name)
  }

  /** Writes down what changed, so that the next start is short even without a clean stop. One after another. */
  checkpoint(): Promise<void> {
    const checkpoint = this.#checkpointing.then(() => this.#checkpoint())
    this.#checkpointing = checkpoint
    return checkpoint
  }

  async #checkpoint(): Promise<void> {
    if (!this.online || this.watch.failure !== undefined) return
    const changed = [...this.logs].filter(([, { log }]) => log.hasUnsaved && log.failure === undefined)
    const syncs = new GroupedSyncs(this.#world.disk)
    await inParallel(changed, CHECKPOINT_AT_ONCE, async ([name, open]) => {
      try {
        await open.log.checkpoint(syncs)
      } catch (error) {
        // What was taken away meanwhile, with its topic or to another broker, has nothing to write down any more.
        if (this.logs.get(name) === open) this.#complain(error)
      }
    })
    for (const offsets of this.#offsets) await this.#attempt(() => offsets.write())
  }

  /**
   * After DeleteRecords, so that what was deleted does not come back when the process dies. Rejects with a StorageError when
   * it may. Not on a full disk: there deleting is the cure and must not look refused, and what frees the space also lets
   * the next checkpoint write the start offsets down; a crash before that costs no more than deleting once more.
   */
  async keepStartOffsets(): Promise<void> {
    if (!this.online) return
    try {
      await this.#startOffsets.write()
    } catch (error) {
      const failure = this.#complain(error)
      if (!isFull(failure)) throw failure
    }
  }

  async #attempt(work: () => Promise<void>): Promise<boolean> {
    try {
      await work()
      return true
    } catch (error) {
      this.#complain(error)
      return false
    }
  }

  #complain(error: unknown): StorageError {
    const failure = storageError(error, this.path)
    const { message, errno } = failure
    const text = `could not write a checkpoint: ${message}; ${cureOf(errno)}`
    this.complaints.tell('warn', `checkpoint ${errno}`, { folder: this.path, errno }, text)
    return failure
  }

  /**
   * Closes all logs and leaves the mark of a clean stop, unless one of them could not write down what it should. Resolves with
   * whether everything is on disk.
   */
  async close(brokerEpoch: number): Promise<boolean> {
    this.#ownMark.close()
    // Logs that were not opened since an unclean stop still have to be checked; one that is being opened is closed by nobody.
    const isChecked = [...this.found].every(name => this.wasClosed(name))
    this.watch.stop()
    await this.#checkpointing
    let clean = this.online
    const syncs = new GroupedSyncs(this.#world.disk)
    await inParallel([...this.logs.values()], CLOSE_AT_ONCE, async ({ log }) => {
      if (!(await this.#attempt(() => log.close(syncs)))) clean = false
    })
    for (const offsets of this.#offsets) if (clean && !(await this.#attempt(() => offsets.write()))) clean = false
    const { disk } = this.#world
    if (clean && isChecked) await this.#attempt(() => writeCleanShutdown(disk, this.path, brokerEpoch))
    await this.#lock.release()
    return clean
  }

  /**
   * As `close`, where nobody can know of this node yet and no log was opened: a folder that became its own in this start is
   * as it was before, and may become another's.
   */
  async closeUnused(brokerEpoch: number): Promise<boolean> {
    const foreign = this.#foreign
    this.watch.stop()
    if (foreign === undefined) return await this.close(brokerEpoch)
    const { disk } = this.#world
    await this.#attempt(async () => {
      const names = (await disk.list(this.path)).map(({ name }) => name)
      const own = names.filter(name => !foreign.has(name) && name !== LOCK_FILE && name !== META_PROPERTIES_FILE)
      // Whose they are goes last: without it what is left would be nobody's, and refused.
      for (const name of [...own, META_PROPERTIES_FILE]) await disk.remove(`${this.path}/${name}`)
      await disk.syncFolder(this.path)
    })
    await this.#lock.release()
    return true
  }
}

/** Removes what waited to be deleted when the process stopped; returns the names of partitions' folders. */
async function settleFolders(
  { disk, log }: LogFolderWorld,
  path: string,
  entries: readonly Entry[],
): Promise<Set<string>> {
  const found = new Set<string>()
  for (const { name, folder } of entries) {
    const parsed = folder ? parsePartitionFolderName(name) : undefined
    // The controller's log lies here too and is its own affair: waited for, no stop after a crash would be clean again.
    if (parsed === undefined || parsed.topic === METADATA_TOPIC) continue
    if (parsed.state === 'live') found.add(name)
    else if (parsed.state === 'delete') {
      // Nobody waits for it, and a failure only leaves it for the next start.
      disk.remove(`${path}/${name}`).catch(() => undefined)
    } else {
      log.warn(
        { folder: `${path}/${name}` },
        `left alone a ${parsed.state} replica; remove the folder if it is not wanted`,
      )
    }
  }
  return found
}

/** With a new identity the partitions of a folder would be taken for those of somebody else, and moved aside. */
async function refuseNameless(disk: Disk, path: string, isOurs: boolean, mayAwait: boolean): Promise<void> {
  const awaitsCluster = isOurs && mayAwait
  const partition = (await disk.list(path)).find(({ name, folder }) => {
    const parsed = folder ? parsePartitionFolderName(name) : undefined
    // The log of a quorum that has no cluster yet is there before the cluster's id is.
    return parsed?.state === 'live' && !(awaitsCluster && parsed.topic === METADATA_TOPIC)
  })
  if (partition === undefined) return
  if (isOurs && parsePartitionFolderName(partition.name)?.topic === METADATA_TOPIC) {
    throw new ForeignFolderError(
      `the node of ${path} was to join a cluster and has not heard yet which one, so it cannot be started by itself: ` +
        'name a node of the cluster again (--join, or controller.quorum.bootstrap.servers), or choose another folder',
    )
  }
  const file = `${path}/${META_PROPERTIES_FILE}`
  throw new ForeignFolderError(
    `${file} is missing or does not say whose folder this is, and partitions lie in it (${partition.name}); ` +
      'restore the file (lines cluster.id=..., node.id=..., version=1), or choose another folder',
  )
}

/** A power cut must not take the folder, nor those above it that were made together with it. */
async function syncNames(disk: Disk, path: string): Promise<void> {
  for (let at = path.lastIndexOf('/'); at >= 0; at = path.lastIndexOf('/', at - 1)) {
    try {
      await disk.syncFolder(path.slice(0, Math.max(1, at)))
    } catch (error) {
      // One that we may not even look into was not made by us.
      if (!(error instanceof WorldError) || (error.code !== 'EACCES' && error.code !== 'EPERM')) throw error
    }
    if (at === 0) return
  }
}

/** Moves a partition's folder aside, under a name that says why, and returns its new path. */
export async function moveAside(
  { disk, random }: LogFolderWorld,
  folder: string,
  state: 'delete' | 'stray',
): Promise<string> {
  const slash = folder.lastIndexOf('/')
  const name = parsePartitionFolderName(folder.slice(slash + 1))
  assert(name !== undefined, 'a folder of a partition')
  const aside = suffixedFolderName(name.topic, name.partition, state, random.fill(new Uint8Array(16)))
  const path = `${folder.slice(0, slash)}/${aside}`
  await disk.rename(folder, path)
  await disk.syncFolder(folder.slice(0, slash))
  return path
}
