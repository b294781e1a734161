import { assert } from '#base/assert.ts'
import { type Epoch, GiB, type Millis, type Offset } from '#base/units.ts'
import { METADATA_TOPIC_ID } from '#base/uuid.ts'
import { foldBatch } from '#core/metadata/fold.ts'
import { MetadataImage } from '#core/metadata/image.ts'
import { encodeMetadataRecord, type MetadataRecord } from '#core/metadata/record.ts'
import { isWholeSnapshot } from '#core/metadata/whole-snapshot.ts'
import type { LogView, SnapshotId } from '#core/raft/log-view.ts'
import type { Voter } from '#core/raft/quorum.ts'
import { quorumRecordsOf } from '#core/raft/quorum-record.ts'
import { baseOffset, batchesOf, checkBatch, checkCrc, lastOffset, maxTimestamp, sizeInBytes } from '#records/batch.ts'
import { BatchBuilder } from '#records/builder.ts'
import { buildControlBatch, type ControlRecord } from '#records/control.ts'
import { NO_FOLD } from '#storage/batch-fold.ts'
import { DiskWatch } from '#storage/disk-watch.ts'
import { overwriteFile } from '#storage/files.ts'
import { Log } from '#storage/log.ts'
import { LOG_CONFIG_DEFAULT, type LogConfig } from '#storage/log-config.ts'
import type { LogRange } from '#storage/log-range.ts'
import { SegmentCache } from '#storage/segment-cache.ts'
import { DamagedLogError, StorageError } from '#storage/storage-error.ts'
import { SyncedOffset } from '#storage/synced-offset.ts'
import type { Clock, Disk, Logger } from '#world/world.ts'
import { damagedAt, refuseLost, shortened } from './lost-metadata.ts'
import { buildSnapshotInTurns } from './metadata-snapshot.ts'
import { QuorumHistory } from './quorum-history.ts'
import { type IncomingSnapshot, type SnapshotFile, Snapshots } from './snapshots.ts'

const PROBE_FILE = '.tidemark-probe-metadata'
export const METADATA_FOLDER = '__cluster_metadata-0'

/** Read and folded in one go: some tens of milliseconds. */
const READ_BYTES = 1024 * 1024

export interface MetadataLogOptions {
  readonly disk: Disk
  readonly clock: Clock
  readonly log: Logger
  /** The log folder that holds `__cluster_metadata-0`. */
  readonly folder: string
  /** `metadata.log.segment.bytes` */
  readonly segmentBytes?: number
  /** Partitions lie beside the metadata log: it must not be an empty one. */
  readonly partitionsThere?: boolean
}

/** What the log says up to an offset: the metadata, and beside it raft's own. */
export interface Folded {
  readonly image: MetadataImage
  readonly history: QuorumHistory
  /** Everything below is in it. */
  readonly endOffset: Offset
  readonly lastTimestamp: Millis
}

/** A batch on its way to the disk. Durable when `done` resolves; it rejects with a StorageError. */
export interface Appended {
  readonly batch: Buffer
  readonly done: Promise<void>
}

/** What a snapshot is made of. */
export interface SnapshotState {
  readonly kraftVersion: number
  readonly voters: readonly Voter[]
  readonly id: SnapshotId
  readonly image: MetadataImage
  readonly lastTimestamp: Millis
}

/** A snapshot that came from the leader may be newer than the log beside it, or of a history that this one is none of. */
function goesOnFrom(log: Log, { endOffset, epoch }: SnapshotId): boolean {
  if (log.endOffset <= endOffset) return log.endOffset === endOffset
  return log.startOffset > endOffset || (log.latestEpoch ?? epoch) >= epoch
}

/** The folder `__cluster_metadata-0`: a log whose appends are durable when they are acknowledged, and its snapshots. */
export class MetadataLog implements LogView {
  readonly folder: string
  readonly #log: Log
  readonly #snapshots: Snapshots
  readonly #cache: SegmentCache
  readonly #watch: DiskWatch
  /** Whoever cuts the log below its durable offset lowers this before. */
  readonly #synced: SyncedOffset
  readonly #clock: Clock
  readonly #logger: Logger
  /** What was appended since the log was opened, and what it held behind its last snapshot then. */
  appendedBytes = 0

  private constructor(
    folder: string,
    log: Log,
    snapshots: Snapshots,
    synced: SyncedOffset,
    cache: SegmentCache,
    watch: DiskWatch,
    { clock, log: logger }: MetadataLogOptions,
  ) {
    this.#logger = logger
    this.folder = folder
    this.#log = log
    this.#snapshots = snapshots
    this.#synced = synced
    this.#cache = cache
    this.#watch = watch
    this.#clock = clock
  }

  /** Rejects with a StorageError or a WorldError, and with a LostMetadataError before anything is changed. */
  static async open(options: MetadataLogOptions): Promise<MetadataLog> {
    const { disk, clock, log: logger } = options
    const folder = `${options.folder}/${METADATA_FOLDER}`
    await disk.makeFolder(folder)
    const identity = `${folder}/partition.metadata`
    if ((await disk.readFile(identity)) === undefined) {
      await overwriteFile(disk, identity, Buffer.from(`version: 0\ntopic_id: ${METADATA_TOPIC_ID}`))
      await disk.syncFolder(folder)
    }
    // Also when it was there: the start that made it may have been killed before it got here.
    await disk.syncFolder(options.folder)
    const snapshots = await Snapshots.open(disk, folder, logger)
    if (options.partitionsThere === true && snapshots.latest === undefined) await refuseLost(disk, folder)
    const config: LogConfig = {
      ...LOG_CONFIG_DEFAULT,
      segmentBytes: options.segmentBytes ?? GiB,
      retentionMs: -1,
      flushMessages: 1,
    }
    const cache = new SegmentCache(clock)
    const watch = new DiskWatch({
      disk,
      clock,
      log: logger,
      folder: options.folder,
      probeFile: PROBE_FILE,
      consequence: 'this node takes no part in changes of the metadata, and its broker reads them from the leader',
      changed: () => {},
    })
    const synced = await SyncedOffset.read(disk, folder)
    let opened: Log | undefined
    const log = await Log.open({
      cache,
      watch,
      disk,
      clock,
      log: logger,
      folder,
      config,
      fold: NO_FOLD,
      // All that is read to fold it is checked. What lies before the first snapshot is on its way out, whole or not.
      recoveryPoint: snapshots.earliest?.endOffset ?? 0,
      syncedTo: synced.offset,
      clean: false,
      startOffset: snapshots.earliest?.endOffset ?? 0,
      wasCut: () => synced.lower(opened?.endOffset ?? 0),
    }).catch((error: unknown) => {
      throw error instanceof DamagedLogError ? damagedAt(error, folder, synced) : error
    })
    opened = log
    const { latest } = snapshots
    if (Math.max(log.endOffset, latest?.endOffset ?? 0) < synced.offset) {
      await log.abandon()
      throw shortened(log, synced)
    }
    if (latest !== undefined && !goesOnFrom(log, latest)) {
      await synced.lower(latest.endOffset)
      await log.truncateFullyAndStartAt(latest.endOffset)
      await snapshots.keepOnly(latest)
    }
    return new MetadataLog(folder, log, snapshots, synced, cache, watch, options)
  }

  get startOffset(): Offset {
    return this.#log.startOffset
  }

  get nextOffset(): Offset {
    return this.#log.nextOffset
  }

  get endOffset(): Offset {
    return this.#log.endOffset
  }

  get durableOffset(): Offset {
    return this.#log.durableOffset
  }

  get lastEpoch(): Epoch {
    return Math.max(this.#log.latestEpoch ?? 0, this.#snapshots.latest?.epoch ?? 0)
  }

  get earliestSnapshot(): SnapshotId | undefined {
    return this.#snapshots.earliest
  }

  get latestSnapshot(): SnapshotId | undefined {
    return this.#snapshots.latest
  }

  /** The epoch of the last record below an offset. */
  epochBelow(offset: Offset): Epoch {
    return this.#log.epochAt(offset - 1) ?? this.#snapshots.latest?.epoch ?? 0
  }

  findSnapshot(id: SnapshotId): SnapshotFile | undefined {
    return this.#snapshots.find(id)
  }

  /** Whether it was found not to be whole: another one is to be stored in its place. */
  isDamaged(snapshot: SnapshotFile): boolean {
    return this.#snapshots.isDamaged(snapshot)
  }

  isWhole(snapshot: SnapshotFile): Promise<boolean> {
    return this.#snapshots.isWhole(snapshot)
  }

  endOffsetForEpoch(epoch: Epoch): SnapshotId | undefined {
    const end = this.#log.endOffsetForEpoch(epoch)
    return end === undefined || end.leaderEpoch < 0 ? undefined : { endOffset: end.endOffset, epoch: end.leaderEpoch }
  }

  /** Reads the latest snapshot, and the log behind it as far as it is below `upTo`. */
  async fold(upTo: Offset = this.endOffset): Promise<Folded> {
    const image = new MetadataImage()
    const history = new QuorumHistory()
    const snapshot = await this.#newestWhole()
    let endOffset = Math.max(snapshot?.id.endOffset ?? 0, this.startOffset)
    let lastTimestamp: Millis = 0
    if (snapshot !== undefined) {
      const { bytes } = snapshot
      for (const at of batchesOf(bytes)) {
        lastTimestamp = maxTimestamp(bytes, at)
        noteQuorum(history, bytes, at, endOffset - 1)
        foldBatch(image, bytes, at, { offset: endOffset - 1 })
      }
    }
    const from = endOffset
    await this.readThrough(from, upTo, bytes => {
      for (const at of batchesOf(bytes)) {
        lastTimestamp = maxTimestamp(bytes, at)
        noteQuorum(history, bytes, at)
        foldBatch(image, bytes, at, { from })
        endOffset = lastOffset(bytes, at) + 1
      }
    })
    return { image, history, endOffset, lastTimestamp }
  }

  /** Hands over whole batches, from the one that holds `from` to the last that ends at or below `upTo`. */
  async readThrough(from: Offset, upTo: Offset, take: (bytes: Buffer) => void): Promise<void> {
    while (from < upTo) {
      const range = await this.read(from, READ_BYTES, upTo)
      // The log is being mended: there is more than it can say now, and to end here would forget it.
      if (range === undefined) throw new StorageError('EAGAIN', this.folder, 'the metadata log is being mended')
      const bytes = await this.#log.readBytes(range)
      this.#refuseDamaged(bytes, from)
      take(bytes)
      from = range.nextOffset
    }
  }

  /** It was whole when the log was opened; what rots behind that would be folded into an image that nobody else has. */
  #refuseDamaged(bytes: Buffer, from: Offset): void {
    let due = from
    for (let at = 0; at < bytes.length; at += sizeInBytes(bytes, at)) {
      const wrong = checkBatch(bytes, at, bytes.length) ?? checkCrc(bytes, at)
      const isNext = due === from ? baseOffset(bytes, at) <= due : baseOffset(bytes, at) === due
      if (wrong === undefined && isNext) {
        due = lastOffset(bytes, at) + 1
        continue
      }
      const what = wrong?.message ?? `offset ${baseOffset(bytes, at)} is there`
      throw new StorageError('EIO', this.folder, `the metadata log is damaged at offset ${due}: ${what}`)
    }
  }

  /** A snapshot that the disk damaged is not used, nor given to others: the log goes back to the one before it. */
  async #newestWhole(): Promise<{ readonly id: SnapshotId; readonly bytes: Buffer } | undefined> {
    const damaged: SnapshotFile[] = []
    for (const snapshot of this.#snapshots.newestFirst()) {
      const bytes = await this.#snapshots.read(snapshot)
      const { id } = snapshot
      if (isWholeSnapshot(bytes)) {
        for (const each of damaged) await this.#snapshots.discard(each)
        return { id, bytes }
      }
      damaged.push(snapshot)
      this.#logger.error(
        { folder: this.folder, ...id },
        'a snapshot of the metadata is damaged; using the one before it and the log. Check the disk',
      )
    }
    if (this.startOffset > 0) {
      throw new StorageError(
        'EIO',
        this.folder,
        `${this.folder}: the log begins at ${this.startOffset} and no snapshot is whole`,
      )
    }
    for (const each of damaged) await this.#snapshots.discard(each)
    return undefined
  }

  read(from: Offset, maxBytes: number, upTo: Offset): LogRange | undefined | Promise<LogRange | undefined> {
    return this.#log.read(from, maxBytes, upTo)
  }

  /** From here on what is appended is of this epoch. */
  beginEpoch(epoch: Epoch): void {
    this.#log.assignEpoch(epoch, this.nextOffset)
  }

  /** Appends that were refused are to be forgotten; the log mends itself. */
  get isFailing(): boolean {
    return this.#log.failure !== undefined
  }

  /** Appends wait, and nobody knows for how long: a leader hands over by itself (core/raft). */
  get isHung(): boolean {
    return this.#watch.failure !== undefined
  }

  appendControl(epoch: Epoch, records: readonly ControlRecord[]): Appended {
    const timestamp = this.#clock.now()
    return this.#append(buildControlBatch({ baseOffset: this.nextOffset, leaderEpoch: epoch, timestamp }, records))
  }

  /** One batch, so all of them or none. Durable when the promise resolves; rejects with a StorageError. */
  appendRecords(epoch: Epoch, records: readonly MetadataRecord[]): Appended {
    assert(records.length > 0, 'a batch has records')
    const timestamp = this.#clock.now()
    const builder = new BatchBuilder({ baseOffset: this.nextOffset, leaderEpoch: epoch })
    for (const record of records) builder.append(timestamp, null, encodeMetadataRecord(record))
    return this.#append(builder.build())
  }

  /** One record that this release writes and nobody folds. */
  appendValue(epoch: Epoch, value: Buffer): Appended {
    const builder = new BatchBuilder({ baseOffset: this.nextOffset, leaderEpoch: epoch })
    builder.append(this.#clock.now(), null, value)
    return this.#append(builder.build())
  }

  /** Takes batches of the leader's log as they are. Durable when the promise resolves; rejects with a StorageError. */
  appendFollowed(batches: Buffer): Promise<void> {
    return this.#append(batches).done
  }

  /** Cuts off what lies at and after an offset; rejects with a StorageError. */
  async truncateTo(endOffset: Offset): Promise<void> {
    await this.#synced.lower(endOffset)
    await this.#log.truncateTo(endOffset)
  }

  #append(batch: Buffer): Appended {
    this.appendedBytes += batch.length
    const done = this.#log.append(batch, 0, batch.length)
    done.then(
      () => this.#synced.reached(this.#log.durableOffset),
      () => undefined,
    )
    return { batch, done }
  }

  /** The bytes of a snapshot of everything below its end offset, built in turns of which the last returns them. */
  snapshotOf({ id, image, kraftVersion, voters, lastTimestamp }: SnapshotState): Generator<void, Buffer[]> {
    const records = image.snapshotRecords()
    const now = this.#clock.now()
    return buildSnapshotInTurns({ records, kraftVersion, voters, epoch: id.epoch, lastTimestamp, now })
  }

  /**
   * Stores a snapshot, all of which must be committed. The snapshot before it stays, for those who are reading it, and so
   * does the log behind that one; what is older goes.
   */
  async storeSnapshot(id: SnapshotId, parts: readonly Uint8Array[], highWatermark: Offset): Promise<void> {
    assert(id.endOffset <= highWatermark, 'a snapshot holds only what is committed')
    await this.#snapshots.write(id, parts)
    await this.#snapshots.prune()
    // Segments go as a whole: here begins the one that stays when this snapshot is the older of the two.
    await this.#log.roll()
    const start = this.#snapshots.earliest?.endOffset ?? 0
    if (start > this.startOffset) this.#log.deleteRecordsBefore(start)
    await this.#log.retain(this.#clock.now(), highWatermark)
    await this.#synced.keep().catch(() => undefined)
  }

  /** Begins to take a snapshot from the leader. Rejects with a WorldError. */
  beginSnapshot(id: SnapshotId): Promise<IncomingSnapshot> {
    return this.#snapshots.incoming(id)
  }

  /**
   * What came from the leader is a snapshot from now on; `restartAt` must follow. False, and nothing has changed, when it is
   * not whole.
   *
   * A crash in between: the snapshot is there and the log is not yet cut; `open` sees by offset or epoch that it does not
   * go on from it.
   */
  async install(incoming: IncomingSnapshot): Promise<boolean> {
    if (!isWholeSnapshot(await this.#snapshots.read(incoming))) return false
    await this.#snapshots.install(incoming)
    return true
  }

  /** What was begun is not gone on with. */
  forgoSnapshot(incoming: IncomingSnapshot): Promise<void> {
    return this.#snapshots.forgo(incoming)
  }

  /** The log begins anew at a snapshot; all that was here before is gone. May be done again when it failed. */
  async restartAt(id: SnapshotId): Promise<void> {
    await this.#synced.lower(id.endOffset)
    await this.#log.truncateFullyAndStartAt(id.endOffset)
    await this.#snapshots.keepOnly(id)
  }

  async close(): Promise<void> {
    this.#watch.stop()
    try {
      await this.#log.close()
      await this.#synced.keep().catch(() => undefined)
    } finally {
      await this.#synced.close()
      this.#cache.close()
      await this.#snapshots.close()
    }
  }
}

/** Notes what the records of one batch say of the quorum, in their place or, of a snapshot's, all in one. */
export function noteQuorum(history: QuorumHistory, bytes: Buffer, at: number, place?: Offset): void {
  for (const { offset, record } of quorumRecordsOf(bytes, at)) history.note(record, place ?? offset)
}
