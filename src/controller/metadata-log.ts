import { assert } from '#base/assert.ts'
import { type Epoch, GiB, type Millis, type Offset } from '#base/units.ts'
import { METADATA_TOPIC_ID } from '#base/uuid.ts'
import { MetadataImage } from '#core/metadata/image.ts'
import { decodeMetadataRecord, encodeMetadataRecord, type MetadataRecord } from '#core/metadata/record.ts'
import type { LogView, SnapshotId } from '#core/raft/log-view.ts'
import type { Voter } from '#core/raft/quorum.ts'
import {
  batchesOf,
  checkCrc,
  isControl,
  lastOffset,
  leaderEpoch,
  maxTimestamp,
  wholeBatchSize,
} from '#records/batch.ts'
import { BatchBuilder } from '#records/builder.ts'
import { buildControlBatch, type ControlRecord } from '#records/control.ts'
import { recordsOf } from '#records/records.ts'
import { NO_FOLD } from '#storage/batch-fold.ts'
import { overwriteFile } from '#storage/files.ts'
import { Log, type LogRange } from '#storage/log.ts'
import { LOG_CONFIG_DEFAULT, type LogConfig } from '#storage/log-config.ts'
import { SegmentCache } from '#storage/segment-cache.ts'
import { DamagedLogError, StorageError } from '#storage/storage-error.ts'
import { SyncedOffset } from '#storage/synced-offset.ts'
import type { Clock, Disk, Logger } from '#world/world.ts'
import { decodeQuorumRecord } from './control-records.ts'
import { buildSnapshot, isWholeSnapshot } from './metadata-snapshot.ts'
import { type SnapshotFile, Snapshots } from './snapshots.ts'

export const METADATA_FOLDER = '__cluster_metadata-0'

const READ_BYTES = 4 * 1024 * 1024
/** A batch of the metadata log holds the records of one decision. */
const FIRST_BATCH_BYTES_MAX = 16 * 1024 * 1024

export interface MetadataLogOptions {
  readonly disk: Disk
  readonly clock: Clock
  readonly log: Logger
  /** The log folder that holds `__cluster_metadata-0`. */
  readonly folder: string
  /** `metadata.log.segment.bytes` and `.ms` */
  readonly segmentBytes?: number
  readonly segmentMs?: Millis
  /** Partitions lie beside the metadata log: it must not be an empty one. */
  readonly partitionsThere?: boolean
}

/** What the log says: the metadata, and beside it raft's own. */
export interface Folded {
  readonly image: MetadataImage
  readonly kraftVersion: number
  /** Undefined where no record names them: a fixed list, or an empty log. */
  readonly voters: readonly Voter[] | undefined
  /** Of the last LeaderChange. */
  readonly voterIds: readonly number[] | undefined
  readonly lastTimestamp: Millis
  /** Bytes of the log behind the snapshot. */
  readonly bytes: number
}

interface Folding {
  readonly image: MetadataImage
  kraftVersion: number
  voters: readonly Voter[] | undefined
  voterIds: readonly number[] | undefined
  lastTimestamp: Millis
  bytes: number
}

/** The metadata log is gone or damaged: to go on without what it said would make partitions nobody's, and undo changes. */
export class LostMetadataError extends Error {
  override readonly name = 'LostMetadataError'
}

/** Looks before anything is cut off: the log must begin with a whole batch. */
async function refuseLost(disk: Disk, folder: string): Promise<void> {
  const [first] = (await disk.list(folder))
    .map(({ name }) => name)
    .filter(name => name.endsWith('.log'))
    .toSorted()
  const lost = (what: string) =>
    new LostMetadataError(
      `the log of the cluster's metadata ${what} (${folder}), and partitions lie beside it that only it describes. ` +
        'Restore this folder from a backup. To begin a new cluster, move the other folders away first',
    )
  if (first === undefined) throw lost('is missing')
  const file = await disk.open(`${folder}/${first}`, { create: false, write: false })
  try {
    const head = Buffer.alloc(Math.min(await file.size(), FIRST_BATCH_BYTES_MAX))
    const bytes = head.subarray(0, await file.read(head, 0))
    const size = wholeBatchSize(bytes, 0, bytes.length)
    if (bytes.length === 0) throw lost('is empty')
    if (size <= 0 || checkCrc(bytes, 0) !== undefined) throw lost('is damaged at its beginning')
  } finally {
    await file.close()
  }
}

const CURE =
  'Check the disk, restore this folder from a backup and start again. To do without what was changed since then, topics that were made included'

function damagedAt({ file, position, finding }: DamagedLogError, folder: string, synced: SyncedOffset): Error {
  return new LostMetadataError(
    `the log of the cluster's metadata (${folder}) is damaged: ${finding}. ${CURE}: ` +
      `truncate -s ${position} ${file} && rm -f ${synced.path}`,
  )
}

function shortened({ folder, endOffset }: Log, synced: SyncedOffset): Error {
  return new LostMetadataError(
    `the log of the cluster's metadata (${folder}) ends at offset ${endOffset} and was synced up to ${synced.offset}: ` +
      `its last file is shorter than it was, or missing. ${CURE}: rm ${synced.path}`,
  )
}

/** The folder `__cluster_metadata-0`: a log whose appends are durable when they are acknowledged, and its snapshots. */
export class MetadataLog implements LogView {
  readonly folder: string
  readonly #log: Log
  readonly #snapshots: Snapshots
  readonly #cache: SegmentCache
  /** Whoever cuts the log below its durable offset lowers this before. */
  readonly #synced: SyncedOffset
  readonly #clock: Clock
  readonly #logger: Logger

  private constructor(
    folder: string,
    log: Log,
    snapshots: Snapshots,
    synced: SyncedOffset,
    cache: SegmentCache,
    { clock, log: logger }: MetadataLogOptions,
  ) {
    this.#logger = logger
    this.folder = folder
    this.#log = log
    this.#snapshots = snapshots
    this.#synced = synced
    this.#cache = cache
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
      segmentMs: options.segmentMs ?? LOG_CONFIG_DEFAULT.segmentMs,
      retentionMs: -1,
      flushMessages: 1,
    }
    const cache = new SegmentCache(clock)
    const synced = await SyncedOffset.read(disk, folder)
    let opened: Log | undefined
    const log = await Log.open({
      cache,
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
      recoveryPointLowered: () => synced.lower(opened?.durableOffset ?? 0),
    }).catch((error: unknown) => {
      throw error instanceof DamagedLogError ? damagedAt(error, folder, synced) : error
    })
    opened = log
    const { latest } = snapshots
    if (Math.max(log.endOffset, latest?.endOffset ?? 0) < synced.offset) {
      await log.abandon()
      throw shortened(log, synced)
    }
    if (latest !== undefined && latest.endOffset > log.endOffset) await log.truncateFullyAndStartAt(latest.endOffset)
    return new MetadataLog(folder, log, snapshots, synced, cache, options)
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

  findSnapshot(id: SnapshotId): SnapshotFile | undefined {
    return this.#snapshots.find(id)
  }

  endOffsetForEpoch(epoch: Epoch): SnapshotId | undefined {
    const end = this.#log.endOffsetForEpoch(epoch)
    return end === undefined || end.leaderEpoch < 0 ? undefined : { endOffset: end.endOffset, epoch: end.leaderEpoch }
  }

  /** Reads the latest snapshot and all of the log behind it. */
  async fold(): Promise<Folded> {
    const image = new MetadataImage()
    const folding: Folding = {
      image,
      kraftVersion: 0,
      voters: undefined,
      voterIds: undefined,
      lastTimestamp: 0,
      bytes: 0,
    }
    const snapshot = await this.#newestWhole()
    if (snapshot !== undefined) foldBatches(snapshot.bytes, folding, () => snapshot.id.endOffset - 1)
    let from = Math.max(snapshot?.id.endOffset ?? 0, this.startOffset)
    while (from < this.endOffset) {
      const range = await this.read(from, READ_BYTES, this.endOffset)
      // The log is being mended: there is more than it can say now, and to end here would forget it.
      if (range === undefined) throw new StorageError('EAGAIN', this.folder, 'the metadata log is being mended')
      const bytes = await this.#log.readBytes(range)
      foldBatches(bytes, folding, offset => offset, from)
      folding.bytes += bytes.length
      from = range.nextOffset
    }
    return folding
  }

  /** A snapshot that the disk damaged is not used: the log goes back to the one before it. */
  async #newestWhole(): Promise<{ readonly id: SnapshotId; readonly bytes: Buffer } | undefined> {
    for (const snapshot of this.#snapshots.newestFirst()) {
      const bytes = await this.#snapshots.read(snapshot)
      if (isWholeSnapshot(bytes)) return { id: snapshot.id, bytes }
      const { id } = snapshot
      this.#logger.error(
        { folder: this.folder, ...id },
        'a snapshot of the metadata is damaged; using the one before it and the log. Check the disk',
      )
    }
    if (this.startOffset === 0) return undefined
    throw new StorageError(
      'EIO',
      this.folder,
      `${this.folder}: the log begins at ${this.startOffset} and no snapshot is whole`,
    )
  }

  read(from: Offset, maxBytes: number, upTo: Offset): LogRange | undefined | Promise<LogRange | undefined> {
    return this.#log.read(from, maxBytes, upTo, true)
  }

  /** From here on what is appended is of this epoch. */
  beginEpoch(epoch: Epoch): void {
    this.#log.assignEpoch(epoch, this.nextOffset)
  }

  appendControl(
    epoch: Epoch,
    records: readonly ControlRecord[],
  ): { readonly bytes: number; readonly done: Promise<void> } {
    const timestamp = this.#clock.now()
    return this.#append(buildControlBatch({ baseOffset: this.nextOffset, leaderEpoch: epoch, timestamp }, records))
  }

  /** One batch, so all of them or none. Durable when the promise resolves; rejects with a StorageError. */
  appendRecords(
    epoch: Epoch,
    records: readonly MetadataRecord[],
  ): { readonly bytes: number; readonly done: Promise<void> } {
    assert(records.length > 0, 'a batch has records')
    const timestamp = this.#clock.now()
    const builder = new BatchBuilder({ baseOffset: this.nextOffset, leaderEpoch: epoch })
    for (const record of records) builder.append(timestamp, null, encodeMetadataRecord(record))
    return this.#append(builder.build())
  }

  #append(batch: Buffer): { readonly bytes: number; readonly done: Promise<void> } {
    const done = this.#log.append(batch, 0, batch.length)
    done.then(
      () => this.#synced.reached(this.#log.durableOffset),
      () => undefined,
    )
    return { bytes: batch.length, done }
  }

  /** The bytes of a snapshot of what this image is now: of everything below `nextOffset`. */
  snapshotOf(folded: Pick<Folded, 'image' | 'kraftVersion' | 'voters' | 'lastTimestamp'>): {
    readonly id: SnapshotId
    readonly parts: Buffer[]
  } {
    const id = { endOffset: this.nextOffset, epoch: this.lastEpoch }
    const { image, kraftVersion, voters = [], lastTimestamp } = folded
    const records = image.snapshotRecords()
    const now = this.#clock.now()
    return { id, parts: buildSnapshot({ records, kraftVersion, voters, epoch: id.epoch, lastTimestamp, now }) }
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

  async close(): Promise<void> {
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

function foldBatches(bytes: Buffer, into: Folding, offsetOf: (offset: Offset) => Offset, from: Offset = 0): void {
  for (const at of batchesOf(bytes)) {
    if (lastOffset(bytes, at) < from) continue
    const epoch = leaderEpoch(bytes, at)
    into.lastTimestamp = maxTimestamp(bytes, at)
    if (isControl(bytes, at)) {
      for (const record of recordsOf(bytes, at)) {
        const control = decodeQuorumRecord(record)
        if (control?.type === 'kraftVersion') into.kraftVersion = control.level
        else if (control?.type === 'kraftVoters') into.voters = control.voters
        else if (control?.type === 'leaderChange') into.voterIds = control.voterIds
      }
      continue
    }
    for (const { offset, value } of recordsOf(bytes, at)) {
      if (value !== null && offset >= from) into.image.apply(decodeMetadataRecord(value), offsetOf(offset), epoch)
    }
  }
}
