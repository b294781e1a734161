import type { Offset } from '#base/units.ts'
import type { Disk, Logger } from '#world/world.ts'
import { BatchWalk } from './batch-walk.ts'
import { inParallel, isMissing, withFile } from './files.ts'
import type { LogConfig } from './log-config.ts'
import { OFFSET_INDEX_SUFFIX, type Segment, type SegmentPlace } from './segment.ts'

const INDEX_ENTRY_BYTES = 8

/** A sealed segment that does not end where the next one begins. */
export interface Shortened {
  readonly segment: Segment
  /** Behind its last whole batch. */
  readonly endOffset: Offset
  readonly nextSegment: Offset
  /** Where what follows is no batch; undefined where the file ends with a whole one. */
  readonly position?: number | undefined
}

/**
 * Looks whether each of these but the last reaches to the next, without reading it: from the last entry of its index on.
 * What cannot be told that way is not said. Sizes must be known.
 */
export async function findShortened(disk: Disk, segments: readonly Segment[]): Promise<Shortened[]> {
  const found: Shortened[] = []
  await inParallel(segments.slice(0, -1).entries(), 8, async ([index, segment]) => {
    const nextSegment = (segments[index + 1] as Segment).baseOffset
    const end = await endOf(disk, segment)
    if (end === undefined || (end.endOffset === nextSegment && end.position === undefined)) return
    found.push({ segment, nextSegment, ...end })
  })
  return found.toSorted((a, b) => a.nextSegment - b.nextSegment)
}

async function endOf(disk: Disk, segment: Segment): Promise<Pick<Shortened, 'endOffset' | 'position'> | undefined> {
  const entry = await lastIndexEntry(disk, segment)
  if (entry === undefined) return undefined
  const { baseOffset, size } = segment
  // An entry stands where its batch begins.
  const isShorter = entry.position > 0 && entry.position >= size
  let endOffset = isShorter ? baseOffset : baseOffset + entry.relativeOffset
  const walk = new BatchWalk(await segment.open(), isShorter ? 0 : entry.position, size)
  while (walk.here() || (await walk.load())) {
    endOffset = walk.lastOffset + 1
    walk.advance()
  }
  return { endOffset, position: walk.damaged || isShorter ? walk.position : undefined }
}

/** The beginning of the file for an index without entries; undefined for one that is missing or makes no sense. */
async function lastIndexEntry(
  disk: Disk,
  segment: Segment,
): Promise<{ readonly relativeOffset: number; readonly position: number } | undefined> {
  try {
    return await withFile(disk, segment.path(OFFSET_INDEX_SUFFIX), { create: false, write: false }, async file => {
      const size = await file.size()
      if (size === 0) return { relativeOffset: 0, position: 0 }
      const entry = Buffer.alloc(INDEX_ENTRY_BYTES)
      const whole = (await file.read(entry, size - INDEX_ENTRY_BYTES)) === INDEX_ENTRY_BYTES
      const [relativeOffset, position] = [entry.readInt32BE(0), entry.readInt32BE(4)]
      return whole && size % INDEX_ENTRY_BYTES === 0 && position > 0 && relativeOffset > 0
        ? { relativeOffset, position }
        : undefined
    })
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

/** One line for all of a log. Nothing is known to be wrong where compaction may have left a gap. */
export function warnOfSealed(
  { log, place, config }: { readonly log: Logger; readonly place: SegmentPlace; readonly config: LogConfig },
  found: readonly Shortened[],
): void {
  const wrong = found.filter(
    ({ endOffset, nextSegment, position }) =>
      position !== undefined || endOffset > nextSegment || !config.cleanupPolicy.has('compact'),
  )
  const [first] = wrong
  if (first === undefined) return
  const { segment, endOffset, nextSegment, position } = first
  log.warn(
    {
      folder: place.folder,
      segment: segment.baseOffset,
      sizeInBytes: segment.size,
      position,
      endOffset,
      nextSegment,
      segments: wrong.length,
    },
    'a segment does not end where the next one begins: its file is damaged or shorter than it was, unless the topic was compacted once. The offsets between cannot be read; restore the file from a backup',
  )
}
