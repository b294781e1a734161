import type { Offset } from '#base/units.ts'
import type { File } from '#world/world.ts'
import { BatchWalk } from './batch-walk.ts'
import type { Segment } from './segment.ts'

/** Whole batches that lie together in one file. Stays readable for half a minute, whatever is deleted meanwhile. */
export interface LogRange {
  readonly file: File
  readonly position: number
  readonly size: number
  /** The offset after the last batch: where to read on. */
  readonly nextOffset: Offset
}

/**
 * From the ends of the active segment's recent batches, without a promise. Null when `from` lies before them or the file
 * is not open.
 */
export function recentRange(
  active: Segment,
  from: Offset,
  maxBytes: number,
  below: Offset,
  minOneBatch: boolean,
): LogRange | undefined | null {
  const { recent, baseOffset } = active
  const first = recent === undefined ? -1 : recent.find(from - baseOffset)
  if (recent === undefined || first < 0) return null
  const { file } = active
  if (file === undefined) return null
  const position = recent.startPosition(first)
  let last = recent.findEnd(first, position + maxBytes, below - baseOffset)
  if (last < first) {
    if (!minOneBatch || recent.lastRelative(first) >= below - baseOffset) return undefined
    last = first
  }
  const size = recent.endPosition(last) - position
  return { file, position, size, nextOffset: baseOffset + recent.lastRelative(last) + 1 }
}

/**
 * By index and headers, from the batch that starts at `start`. It ends before damage, and rejects with a StorageError where
 * it would begin with it: `end` is an offset that no batch of the segment reaches.
 */
export async function rangeOf(
  segment: Segment,
  start: number,
  maxBytes: number,
  below: Offset,
  end: Offset,
  minOneBatch: boolean,
): Promise<LogRange | undefined> {
  const { size, cuts } = segment
  const file = await segment.open()
  const { offsets } = await segment.indexes()
  // An entry's position is where a batch starts: everything between `start` and the last one that fits goes without a look.
  const slot = Math.min(
    offsets.floorPosition(start + maxBytes),
    offsets.floorOffset(Math.min(below - 1 - segment.baseOffset, 0x7fff_ffff)),
  )
  let walk = new BatchWalk(file, slot < 0 ? start : Math.max(start, offsets.position(slot)), size, { chunkBytes: 1024 })
  if (walk.position > start && !(await walk.load())) walk = new BatchWalk(file, start, size, { chunkBytes: 1024 })
  let nextOffset = -1
  let stop = walk.position
  let isDamaged = false
  while (walk.here() || (await walk.load())) {
    if (nextOffset < 0) nextOffset = walk.baseOffset
    isDamaged = walk.lastOffset >= end
    const fits = walk.position + walk.size - start <= maxBytes || (minOneBatch && walk.position === start)
    if (!fits || walk.lastOffset >= below) break
    walk.advance()
    stop = walk.position
    nextOffset = walk.lastOffset + 1
  }
  isDamaged ||= segment.isDamagedAt(walk, size)
  if (stop === start && isDamaged) throw segment.unreadable(start)
  // Nothing fits, or it was cut off meanwhile.
  if (stop === start || nextOffset < 0) return undefined
  // Who goes on at damage must come to look for it.
  if (!isDamaged && !walk.damaged) segment.remember(nextOffset, stop, cuts)
  return { file, position: start, size: stop - start, nextOffset }
}
