import type { Epoch, Millis, Offset } from '#base/units.ts'
import { leaderEpoch, magic } from '#records/batch.ts'
import { firstAtOrAfter, openRecords } from '#records/records.ts'
import type { Segment } from './segment.ts'

export interface TimestampOffset {
  readonly timestamp: Millis
  readonly offset: Offset
  /** -1 in messages of the old formats. */
  readonly leaderEpoch: Epoch
}

/** Index of the segment that an offset belongs to; -1 when it lies before all of them. */
export function segmentAt(segments: readonly Segment[], offset: Offset): number {
  let low = 0
  let high = segments.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((segments[middle] as Segment).baseOffset <= offset) low = middle + 1
    else high = middle
  }
  return low - 1
}

/**
 * The first record, in offset order, at or after a time. Times need not rise: every entry of a time index speaks for all
 * that lies before it, so skipping what is older as a whole never skips a record that counts.
 */
export async function findTimestamp(
  segments: readonly Segment[],
  timestamp: Millis,
  from: Offset,
  endOffset: Offset,
): Promise<TimestampOffset | undefined> {
  const first = Math.max(0, segmentAt(segments, from))
  for (let index = first; index < segments.length; index++) {
    const segment = segments[index] as Segment
    if (segment.baseOffset >= endOffset || segment.size === 0) break
    if ((await segment.maxTimestamp()) < timestamp) continue
    const { times } = await segment.indexes()
    const slot = times.below(timestamp)
    const older = slot < 0 ? segment.baseOffset : segment.baseOffset + times.relativeOffset(slot) + 1
    const walk = await segment.seek(Math.max(older, from))
    while (walk !== undefined && (walk.here() || (await walk.load()))) {
      if (walk.baseOffset >= endOffset) return undefined
      if (walk.maxTimestamp >= timestamp && walk.lastOffset >= from) {
        const { bytes, epoch } = await wholeBatch(segment, walk.position, walk.size)
        const found = firstAtOrAfter(bytes, 0, timestamp, from)
        if (found !== undefined) return found.offset >= endOffset ? undefined : { ...found, leaderEpoch: epoch }
      }
      walk.advance()
    }
  }
  return undefined
}

/** The first record that has the highest time of all. */
export async function findMaxTimestamp(segments: readonly Segment[]): Promise<TimestampOffset | undefined> {
  let newest: Segment | undefined
  let highest: Millis = -1
  for (const segment of segments) {
    if (segment.size === 0) continue
    const timestamp = await segment.maxTimestamp()
    if (timestamp <= highest) continue
    newest = segment
    highest = timestamp
  }
  if (newest === undefined) return undefined
  const walk = await newest.seek(newest.maxTimestampOffset)
  if (walk === undefined) return undefined
  const { bytes, epoch } = await wholeBatch(newest, walk.position, walk.size)
  const records = openRecords(bytes)
  while (records.next()) {
    if (records.timestamp === highest) return { timestamp: highest, offset: records.offset, leaderEpoch: epoch }
  }
  return undefined
}

async function wholeBatch(segment: Segment, position: number, size: number): Promise<{ bytes: Buffer; epoch: Epoch }> {
  const bytes = Buffer.allocUnsafe(size)
  const read = await (await segment.open()).read(bytes, position)
  if (read < size) throw segment.unreadable()
  return { bytes, epoch: magic(bytes, 0) < 2 ? -1 : leaderEpoch(bytes, 0) }
}
