import { INT32_MAX, MiB, type Offset } from '#base/units.ts'
import { checkCrc, leaderEpoch, magic } from '#records/batch.ts'
import type { Clock, Disk, Logger } from '#world/world.ts'
import type { BatchFold } from './batch-fold.ts'
import { BatchWalk } from './batch-walk.ts'
import { inParallel, isMissing, offsetName, offsetOfName, readText } from './files.ts'
import { LeaderEpochs } from './leader-epochs.ts'
import { settleLeftovers } from './leftovers.ts'
import type { LogConfig } from './log-config.ts'
import { PRODUCER_SNAPSHOT_SUFFIX } from './producer-snapshot.ts'
import { ProducerSnapshots } from './producer-snapshots.ts'
import { findShortened, warnOfSealed } from './sealed.ts'
import { LOG_SUFFIX, SEGMENT_SUFFIXES, Segment, type SegmentPlace, TXN_INDEX_SUFFIX } from './segment.ts'
import { DamagedLogError, StorageError } from './storage-error.ts'

export const LEADER_EPOCH_FILE = 'leader-epoch-checkpoint'

const RECOVERY_CHUNK_BYTES = MiB
const REPLAY_CHUNK_BYTES = 64 * 1024

export interface LoadOptions {
  readonly disk: Disk
  readonly clock: Clock
  readonly log: Logger
  readonly place: SegmentPlace
  readonly config: LogConfig
  readonly fold: BatchFold
  readonly recoveryPoint: Offset
  /** At or above the recovery point: all below was synced. */
  readonly syncedTo: Offset
  readonly clean: boolean
  readonly startOffset: Offset
  /** The folder was made just now. */
  readonly fresh: boolean
}

export interface Loaded {
  /** At least one; the last grows. */
  readonly segments: Segment[]
  readonly epochs: LeaderEpochs
  readonly snapshots: ProducerSnapshots
  readonly startOffset: Offset
  readonly endOffset: Offset
  readonly durableOffset: Offset
  /** The next start finds the same by itself: there is nothing to write down yet. */
  readonly saved: boolean
  /** Nobody may have made the folder's own name durable: whoever made it may have died before, or had nothing to sync. */
  readonly folderUnsynced: boolean
}

/**
 * Reads what a folder holds. After a clean stop only the end is looked for; otherwise every batch from the recovery point
 * on is checked, and the log ends before the first one that is torn. What makes no sense is rebuilt or cut off, with a
 * line that says so, but nothing that was synced: it rejects with a DamagedLogError where that is damaged. Segments below
 * the recovery point, and after a clean stop all but the last, are not read; that their files are shorter than they were
 * is said.
 */
export async function loadLog(options: LoadOptions): Promise<Loaded> {
  const { disk, clock, place, log } = options
  const { folder } = place
  if (options.fresh) return empty(options, new ProducerSnapshots(disk, folder, []), new LeaderEpochs())
  const names = await settleLeftovers(disk, folder, await listOrMake(disk, folder), log)

  const bases: Offset[] = []
  const snapshotOffsets: Offset[] = []
  for (const name of names) {
    const base = offsetOfName(name, LOG_SUFFIX)
    if (base !== undefined) bases.push(base)
    const snapshot = offsetOfName(name, PRODUCER_SNAPSHOT_SUFFIX)
    if (snapshot !== undefined) snapshotOffsets.push(snapshot)
  }
  await removeOrphans(disk, folder, names, bases)
  const text = names.has(LEADER_EPOCH_FILE) ? await readText(disk, `${folder}/${LEADER_EPOCH_FILE}`) : undefined
  const epochs = text === undefined ? new LeaderEpochs() : LeaderEpochs.decode(text)
  const snapshots = new ProducerSnapshots(disk, folder, snapshotOffsets)
  if (bases.length === 0) return empty(options, snapshots, epochs)

  const segments = bases.toSorted((a, b) => a - b).map(base => new Segment(place, base, clock.now()))
  for (const segment of segments) {
    if (!names.has(offsetName(segment.baseOffset, TXN_INDEX_SUFFIX))) segment.hasNoAborted()
  }
  await inParallel(segments.slice(0, -1), 8, async segment => {
    segment.size = await (await segment.open()).size()
  })
  let end: End
  try {
    end = await findEnd(options, segments, epochs, snapshots)
    warnOfSealed(options, await findShortened(disk, segments.slice(0, end.checkedSegment + 1)))
  } catch (error) {
    for (const segment of segments) segment.closeFile()
    throw error
  }
  const { endOffset, checkedFrom } = end
  if (options.startOffset > endOffset) {
    log.warn(
      { folder, startOffset: options.startOffset, endOffset },
      'the log ends before its start offset, so all that it holds was deleted; it begins anew at its start offset',
    )
    for (const segment of segments) await segment.removeFiles()
    return empty(options, snapshots, epochs)
  }
  const startOffset = Math.max(options.startOffset, (segments[0] as Segment).baseOffset)
  epochs.truncateFromEnd(endOffset)
  epochs.truncateFromStart(startOffset)
  await snapshots.removeAbove(endOffset)
  // Batches between it and the first segment are gone: what it knows of their producers is out of date.
  await snapshots.removeBelow((segments[0] as Segment).baseOffset)
  await snapshots.removeStrays(segments.map(segment => segment.baseOffset))
  await restoreFold(options, segments, snapshots, endOffset, checkedFrom)
  // It may be long until somebody reads or appends, and of many logs most are idle.
  for (const segment of segments) segment.closeFile()
  const durableOffset = options.clean ? endOffset : Math.min(endOffset, checkedFrom)
  return {
    segments,
    epochs,
    snapshots,
    startOffset,
    endOffset,
    durableOffset,
    saved: options.clean,
    folderUnsynced: !options.clean,
  }
}

async function listOrMake(disk: Disk, folder: string) {
  try {
    return await disk.list(folder)
  } catch (error) {
    if (!isMissing(error)) throw error
    await disk.makeFolder(folder)
    return []
  }
}

async function empty(options: LoadOptions, snapshots: ProducerSnapshots, epochs: LeaderEpochs): Promise<Loaded> {
  const { startOffset, place, clock, fold } = options
  const segment = new Segment(place, startOffset, clock.now())
  await segment.resume(0)
  // Its file comes with the first append, and is durable only with its name.
  segment.nameUnsynced = true
  await snapshots.removeAbove(-1)
  epochs.clear()
  fold.restore([], startOffset)
  return {
    segments: [segment],
    epochs,
    snapshots,
    startOffset,
    endOffset: startOffset,
    durableOffset: startOffset,
    saved: true,
    folderUnsynced: true,
  }
}

/** Index files whose log is gone. */
async function removeOrphans(
  disk: Disk,
  folder: string,
  names: ReadonlySet<string>,
  bases: readonly Offset[],
): Promise<void> {
  const known = new Set(bases)
  for (const name of names) {
    for (const suffix of SEGMENT_SUFFIXES) {
      const base = offsetOfName(name, suffix)
      if (base !== undefined && !known.has(base)) await disk.remove(`${folder}/${name}`)
    }
  }
}

interface End {
  readonly endOffset: Offset
  /** From which offset on batches had to be checked for it; the end itself when none. */
  readonly checkedFrom: Offset
  /** The first segment of which that is so, by index. */
  readonly checkedSegment: number
}

async function findEnd(
  options: LoadOptions,
  segments: Segment[],
  epochs: LeaderEpochs,
  snapshots: ProducerSnapshots,
): Promise<End> {
  const active = segments.at(-1) as Segment
  const { recoveryPoint } = options
  if (options.clean) {
    const size = await sizeOf(active)
    const endOffset = await active.resume(size)
    // A clean stop leaves its end as the recovery point. Offsets lie outside of the checksums, so nothing else tells that
    // the last one is not what it was, and what is appended behind a wrong one would be cut off by the next recovery.
    const isAsLeft = recoveryPoint === 0 || endOffset === recoveryPoint
    const checkedSegment = segments.length - 1
    if (endOffset !== undefined && isAsLeft) return { endOffset, checkedFrom: endOffset, checkedSegment }
    options.log.warn(
      { folder: options.place.folder, segment: active.baseOffset, endOffset, recoveryPoint },
      'the log does not end where the last stop, which was clean, left it; checking its last segment',
    )
    // All was synced, also where the recovery point is lost.
    const syncedTo = recoveryPoint === 0 ? Number.POSITIVE_INFINITY : recoveryPoint
    return recover(options, segments, epochs, active.baseOffset, syncedTo)
  }
  // The snapshot at the base of a segment is written after all before it was synced.
  const witnessed = segments.findLast(({ baseOffset }) => snapshots.has(baseOffset))?.baseOffset ?? 0
  return recover(options, segments, epochs, recoveryPoint, Math.max(options.syncedTo, witnessed))
}

async function sizeOf(segment: Segment): Promise<number> {
  segment.size = await (await segment.open()).size()
  return segment.size
}

/** Checks all from the recovery point on. Below `syncedTo` nothing is cut off. */
async function recover(
  options: LoadOptions,
  segments: Segment[],
  epochs: LeaderEpochs,
  recoveryPoint: Offset,
  syncedTo: Offset,
): Promise<End> {
  const { place, log } = options
  const { folder } = place
  let first = segments.findLastIndex(segment => segment.baseOffset <= recoveryPoint)
  if (first < 0) first = 0
  const checkedFrom = Math.max(recoveryPoint, (segments[first] as Segment).baseOffset)
  let endOffset = (segments[first] as Segment).baseOffset
  for (let index = first; index < segments.length; index++) {
    const segment = segments[index] as Segment
    const { baseOffset } = segment
    // Either offsets that the segments before it have already: a file that cannot belong to this log. Or offsets are missing:
    // compaction leaves gaps, but a power cut may take whole batches from the end of the segment before, which was sealed
    // and not synced yet.
    if (baseOffset < endOffset && baseOffset < syncedTo) throw overlapping(folder, segment, endOffset, syncedTo)
    const isStray = baseOffset < endOffset || (index > first && baseOffset > endOffset && baseOffset > syncedTo)
    if (index > first && baseOffset > endOffset && !isStray) {
      warnOfSealed(options, [{ segment: segments[index - 1] as Segment, endOffset, nextSegment: baseOffset }])
    }
    const found = isStray ? undefined : await recoverSegment(options, segment, epochs, recoveryPoint, syncedTo)
    endOffset = Math.max(endOffset, found?.endOffset ?? endOffset)
    if (found?.cutBytes === 0) continue
    const later = segments.splice(isStray ? index : index + 1)
    let bytesAfter = 0
    for (const removed of later) bytesAfter += await sizeOf(removed)
    log.warn(
      { folder, endOffset, segment: baseOffset, bytes: found?.cutBytes, segmentsAfter: later.length, bytesAfter },
      'cut off the end of the log, from a batch on that is torn or damaged: nothing says that it was ever synced',
    )
    for (const removed of later) await removed.removeFiles()
    break
  }
  if (Number.isFinite(syncedTo) && endOffset < syncedTo) {
    log.warn(
      { folder, endOffset, syncedTo },
      'the log ends before what was synced: its last file is shorter than it was, or missing; restore it from a backup for the records behind the end',
    )
  }
  for (const segment of segments.slice(0, -1)) {
    segment.seal()
    await segment.writeIndexes().catch(() => undefined)
  }
  ;(segments.at(-1) as Segment).busy = true
  return { endOffset, checkedFrom: Math.min(checkedFrom, endOffset), checkedSegment: first }
}

function overlapping(folder: string, segment: Segment, endOffset: Offset, syncedTo: Offset): DamagedLogError {
  return new DamagedLogError(folder, {
    file: segment.path(LOG_SUFFIX),
    sizeInBytes: segment.size,
    position: 0,
    offset: segment.baseOffset,
    fault: `the segment before it reaches to offset ${endOffset}`,
    syncedTo,
  })
}

/** Checks a segment's batches from the recovery point on, and leaves it as one that grows. */
async function recoverSegment(
  { config, clean, place }: LoadOptions,
  segment: Segment,
  epochs: LeaderEpochs,
  recoveryPoint: Offset,
  syncedTo: Offset,
): Promise<{ readonly endOffset: Offset; readonly cutBytes: number }> {
  const size = await sizeOf(segment)
  let endOffset = segment.baseOffset
  let position = 0
  // What was synced is trusted, if it is whole up to the recovery point.
  if (recoveryPoint > segment.baseOffset) {
    const from = await segment.seek(recoveryPoint - 1).catch(() => undefined)
    const before = from !== undefined && from.lastOffset === recoveryPoint - 1 ? from.position + from.size : 0
    if (before > 0 && (await segment.resume(before, recoveryPoint)) === recoveryPoint) {
      position = before
      endOffset = recoveryPoint
    }
  }
  if (position === 0) segment.reset()
  // The file may be older than a truncation: from here on the batches say which epochs there were.
  epochs.truncateFromEnd(endOffset)
  segment.busy = true
  const file = await segment.openWritable()
  const walk = new BatchWalk(file, position, size, { whole: true, chunkBytes: RECOVERY_CHUNK_BYTES })
  let fault = 'no whole batch'
  while (walk.here() || (await walk.load())) {
    const isOld = magic(walk.buffer, walk.at) < 2
    // What a clean stop left ends where it was synced to: no gap leads across.
    const isBeyond = clean && walk.baseOffset > endOffset && walk.lastOffset >= syncedTo
    const inOrder = isOld || (walk.baseOffset >= endOffset && !isBeyond)
    if (!inOrder || walk.lastOffset - segment.baseOffset > INT32_MAX) {
      fault = `a batch of the offsets ${walk.baseOffset} to ${walk.lastOffset}`
      break
    }
    const error = checkCrc(walk.buffer, walk.at)
    if (error !== undefined) {
      fault = error.message
      break
    }
    segment.added(walk.baseOffset, walk.lastOffset, walk.size, walk.maxTimestamp, config.indexIntervalBytes)
    if (!isOld) epochs.assign(leaderEpoch(walk.buffer, walk.at), walk.baseOffset)
    endOffset = walk.lastOffset + 1
    walk.advance()
  }
  if (segment.size > position) segment.unsynced = true
  const cutBytes = size - segment.size
  if (cutBytes > 0) {
    if (endOffset < syncedTo) {
      const found = { file: segment.path(LOG_SUFFIX), sizeInBytes: size, position: segment.size, offset: endOffset }
      throw new DamagedLogError(place.folder, { ...found, fault, syncedTo })
    }
    await file.truncate(segment.size)
    segment.unsynced = true
  }
  // Names in the folder are as new as the bytes.
  segment.nameUnsynced = true
  return { endOffset, cutBytes }
}

/** Brings the fold to the end of the log: the newest snapshot, and the batches after it. */
export async function restoreFold(
  { fold, clean }: Pick<LoadOptions, 'fold' | 'clean'>,
  segments: readonly Segment[],
  snapshots: ProducerSnapshots,
  endOffset: Offset,
  recoveredFrom: Offset,
): Promise<void> {
  const snapshot = await snapshots.load(endOffset)
  if (snapshot === undefined && clean) {
    // As in Kafka: a clean stop writes one wherever there is anything to know.
    fold.restore([], endOffset)
    return
  }
  // Also what lies below the start offset of the log and is still there, though readers do not see it.
  const from = snapshot?.offset ?? (segments[0] as Segment).baseOffset
  fold.restore(snapshot?.entries ?? [], from)
  if (from >= endOffset) return
  for (
    let index = Math.max(
      0,
      segments.findLastIndex(segment => segment.baseOffset <= from),
    );
    ;
    index++
  ) {
    const segment = segments[index]
    if (segment === undefined || segment.baseOffset >= endOffset) return
    await replay(fold, segment, from, endOffset, recoveredFrom)
  }
}

/** What damage hides tells nothing of producers, as what is gone. */
async function seekUndamaged(segment: Segment, from: Offset): Promise<BatchWalk | undefined> {
  try {
    return await segment.seek(from)
  } catch (error) {
    if (!(error instanceof StorageError)) throw error
    return undefined
  }
}

async function replay(
  fold: BatchFold,
  segment: Segment,
  from: Offset,
  endOffset: Offset,
  recoveredFrom: Offset,
): Promise<void> {
  if (segment.size === 0) return
  const start = from <= segment.baseOffset ? 0 : (await seekUndamaged(segment, from))?.position
  if (start === undefined) return
  await segment.loadAborted()
  const walk = new BatchWalk(await segment.open(), start, segment.size, { chunkBytes: REPLAY_CHUNK_BYTES })
  while (walk.here() || (await walk.load())) {
    if (walk.lastOffset >= endOffset) return
    if (walk.baseOffset >= from && magic(walk.buffer, walk.at) === 2) {
      const aborted = fold.apply(walk.buffer, walk.at)
      if (aborted !== undefined && walk.lastOffset >= recoveredFrom) segment.appendAborted(aborted)
    }
    walk.advance()
  }
}
