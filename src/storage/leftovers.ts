import type { Offset } from '#base/units.ts'
import type { Disk, Entry, Logger } from '#world/world.ts'
import { BatchWalk } from './batch-walk.ts'
import { offsetOfName, withFile } from './files.ts'
import { LOG_SUFFIX, SEGMENT_SUFFIXES } from './segment.ts'

const DELETED = '.deleted'
const CLEANED = '.cleaned'
const SWAP = '.swap'
/** Of snapshots of the metadata log; their owner decides on them. */
const SNAPSHOT_DELETED = '.checkpoint.deleted'

/**
 * Ends what a crash left half done in a log's folder, as Kafka does, and returns the names that are left.
 *
 * Compaction writes `.cleaned`, renames to `.swap` when all of it is durable, removes the segments that it replaces, and
 * renames to the final names. So `.deleted` and `.cleaned` go, a `.swap` is carried through: segments that begin in its
 * offsets are removed and it gets its name. A split of a segment writes several; those `.swap` at or above the lowest
 * `.cleaned` belong to one that was not complete, and go as well.
 */
export async function settleLeftovers(
  disk: Disk,
  folder: string,
  entries: readonly Entry[],
  log: Logger,
): Promise<Set<string>> {
  const names = new Set(entries.filter(entry => !entry.folder).map(entry => entry.name))
  const remove = async (name: string): Promise<void> => {
    await disk.remove(`${folder}/${name}`)
    names.delete(name)
  }
  let leftover = false
  for (const name of names) {
    if (name.endsWith(DELETED) || name.endsWith(CLEANED) || name.endsWith(SWAP) || name.endsWith('.tmp'))
      leftover = true
  }
  if (!leftover) return names

  const cleaned = [...names].filter(name => name.endsWith(CLEANED))
  const lowestCleaned = Math.min(...cleaned.map(offsetOf))
  for (const name of names) {
    const isSwapOfIncomplete = name.endsWith(SWAP) && offsetOf(name) >= lowestCleaned
    const isDeleted = name.endsWith(DELETED) && !name.endsWith(SNAPSHOT_DELETED)
    if (isDeleted || isSwapOfIncomplete || name.endsWith('.tmp')) await remove(name)
  }
  for (const name of cleaned) await remove(name)

  let [first, after] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const name of names) {
    if (!name.endsWith(LOG_SUFFIX + SWAP)) continue
    first = Math.min(first, offsetOf(name))
    after = Math.max(after, await endOfSegment(disk, `${folder}/${name}`, offsetOf(name)))
  }
  for (const name of names) {
    if (!SEGMENT_SUFFIXES.some(suffix => offsetOfName(name, suffix) !== undefined)) continue
    if (offsetOf(name) >= first && offsetOf(name) < after) await remove(name)
  }
  for (const name of names) {
    if (!name.endsWith(SWAP)) continue
    const final = name.slice(0, -SWAP.length)
    log.info({ folder, file: final }, 'put in place what a compaction had finished when the process stopped')
    await disk.rename(`${folder}/${name}`, `${folder}/${final}`)
    names.delete(name)
    names.add(final)
  }
  await disk.syncFolder(folder)
  return names
}

function offsetOf(name: string): Offset {
  return /^\d{20}\./.test(name) ? Number(name.slice(0, 20)) : Number.NaN
}

async function endOfSegment(disk: Disk, path: string, baseOffset: Offset): Promise<Offset> {
  return withFile(disk, path, { create: false, write: false }, async file => {
    let end = baseOffset
    const walk = new BatchWalk(file, 0, await file.size(), { chunkBytes: 65_536 })
    while (walk.here() || (await walk.load())) {
      end = walk.lastOffset + 1
      walk.advance()
    }
    return end
  })
}
