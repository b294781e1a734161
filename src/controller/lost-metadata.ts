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

/** The log is gone, and folders of this node that were used with it are not. */
export function lostBeside(folder: string, what: string): Error {
  return new LostMetadataError(
    `the log of the cluster's metadata ${what} (${folder}), and this node's log folders were used with it: only it says ` +
      "what is in them. Restore this folder from a backup. Where other nodes of the cluster have copies, move this one's " +
      'folders away and start it with --join as it was: it copies everything again. Without --join that begins a new cluster',
  )
}

/** Looks before anything is cut off: the log must begin with a whole batch. */
export async function refuseLost(disk: Disk, folder: string): Promise<void> {
  const [first] = (await disk.list(folder))
    .map(({ name }) => name)
    .filter(name => name.endsWith('.log'))
    .toSorted()
  const lost = (what: string) => lostBeside(folder, what)
  if (first === undefined) throw lost('is missing')
  await withFile(disk, `${folder}/${first}`, { create: false, write: false }, async file => {
    const head = Buffer.alloc(Math.min(await file.size(), FIRST_BATCH_BYTES_MAX))
    const bytes = head.subarray(0, await file.read(head, 0))
    const size = wholeBatchSize(bytes, 0, bytes.length)
    if (bytes.length === 0) throw lost('is empty')
    if (size <= 0 || checkCrc(bytes, 0) !== undefined) throw lost('is damaged at its beginning')
  })
}

/**
 * Refuses a folder for the metadata log while another one of the node has such a log (KafkaRaftServer.initializeLogDirs), as
 * where the order of log.dirs was changed: this node would be none of its quorum, or found a second one.
 */
export async function refuseElsewhere(
  disk: Disk,
  name: string,
  { folder, others }: { readonly folder: string; readonly others: readonly string[] },
): Promise<void> {
  for (const other of others) {
    const there = `${other}/${name}`
    // A folder alone, of a start that was refused, is no log.
    const names = (await disk.list(there).catch(() => [])).map(file => file.name)
    if (!names.some(file => file.endsWith('.log') || file.endsWith('.checkpoint'))) continue
    throw new LostMetadataError(
      `a log of the cluster's metadata is in ${there}, and this node is to have its own in ${folder}: name ${other} first in ` +
        `log.dirs, or as metadata.log.dir. If the log was moved and ${folder} has all of it, remove ${there}`,
    )
  }
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
