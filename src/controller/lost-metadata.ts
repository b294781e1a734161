import { checkCrc, wholeBatchSize } from '#records/batch.ts'
import { withFile } from '#storage/files.ts'
import type { Log } from '#storage/log.ts'
import type { DamagedLogError } from '#storage/storage-error.ts'
import type { SyncedOffset } from '#storage/synced-offset.ts'
import type { Disk } from '#world/world.ts'

/** A batch of the metadata log holds the records of one decision. */
const FIRST_BATCH_BYTES_MAX = 16 * 1024 * 1024

/** The metadata log is gone or damaged: to go on without what it said would make partitions nobody's, and undo changes. */
class LostMetadataError extends Error {
  override readonly name = 'LostMetadataError'
}

/** Looks before anything is cut off: the log must begin with a whole batch. */
export async function refuseLost(disk: Disk, folder: string): Promise<void> {
  const [first] = (await disk.list(folder))
    .map(({ name }) => name)
    .filter(name => name.endsWith('.log'))
    .toSorted()
  const lost = (what: string) =>
    new LostMetadataError(
      `the log of the cluster's metadata ${what} (${folder}), and partitions lie beside it that only it describes. ` +
        "Restore this folder from a backup. Where other nodes of the cluster have copies, move this one's folders away and " +
        'start it with --join as it was: it copies everything again. Without --join that begins a new cluster',
    )
  if (first === undefined) throw lost('is missing')
  await withFile(disk, `${folder}/${first}`, { create: false, write: false }, async file => {
    const head = Buffer.alloc(Math.min(await file.size(), FIRST_BATCH_BYTES_MAX))
    const bytes = head.subarray(0, await file.read(head, 0))
    const size = wholeBatchSize(bytes, 0, bytes.length)
    if (bytes.length === 0) throw lost('is empty')
    if (size <= 0 || checkCrc(bytes, 0) !== undefined) throw lost('is damaged at its beginning')
  })
}

const CURE =
  'Check the disk, restore this folder from a backup and start again. To do without what was changed since then, topics that were made included'

export function damagedAt({ file, position, finding }: DamagedLogError, folder: string, synced: SyncedOffset): Error {
  return new LostMetadataError(
    `the log of the cluster's metadata (${folder}) is damaged: ${finding}. ${CURE}: ` +
      `truncate -s ${position} ${file} && rm -f ${synced.path}`,
  )
}

export function shortened({ folder, endOffset }: Log, synced: SyncedOffset): Error {
  return new LostMetadataError(
    `the log of the cluster's metadata (${folder}) ends at offset ${endOffset} and was synced up to ${synced.offset}: ` +
      `its last file is shorter than it was, or missing. ${CURE}: rm ${synced.path}`,
  )
}
