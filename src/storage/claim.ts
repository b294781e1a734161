import { assert } from '#base/assert.ts'
import type { NodeId } from '#base/units.ts'
import { uuidFromRandom } from '#base/uuid.ts'
import { type Disk, WorldError } from '#world/world.ts'
import { LogFolder, type LogFolderWorld } from './log-folder.ts'
import { checkOwner, ForeignFolderError, type MetaProperties, readMetaProperties } from './meta-properties.ts'
import { cureOfOpening, StorageError, storageError } from './storage-error.ts'

export interface Claim extends LogFolderWorld {
  /** `log.dirs`; at least one. */
  readonly paths: readonly string[]
  readonly nodeId: NodeId
  /** The cluster that folders must belong to; without it what they say. */
  readonly clusterId?: string | undefined
  /** Folders that know no cluster wait for it; otherwise they are a new one, whose id is drawn here. */
  readonly awaitsCluster?: boolean | undefined
}

export interface Claimed {
  /** Undefined where the folders know none. */
  readonly clusterId: string | undefined
  /** In the order of `log.dirs`. */
  readonly folders: LogFolder[]
  /** Paths of those that cannot be used. */
  readonly failed: readonly string[]
}

/**
 * Makes a node's folders its own: makes what is missing, locks, and looks whose they are. An empty folder becomes ours.
 * Rejects with a {@link ForeignFolderError}, or with a StorageError when no folder can be used.
 */
export async function claimFolders(options: Claim): Promise<Claimed> {
  const { paths, nodeId, log, random } = options
  assert(paths.length > 0, 'a node has a log folder')
  let { clusterId } = options as { clusterId: string | undefined }
  const folders: LogFolder[] = []
  const failed: string[] = []
  let failure: StorageError | undefined
  // Those that know their cluster first, so that a new folder beside them learns it.
  const known = await inOrderOfKnowledge(options.disk, paths)
  for (const path of known) {
    const identify = (found: MetaProperties | undefined) => {
      if (found !== undefined) checkOwner(path, found, nodeId, clusterId)
      clusterId ??= found?.clusterId
      if (options.awaitsCluster !== true) clusterId ??= uuidFromRandom(bytes => random.fill(bytes))
      return { clusterId, nodeId }
    }
    try {
      const mayAwait = options.awaitsCluster === true || clusterId !== undefined
      const opened = await LogFolder.open(options, path, identify, mayAwait)
      folders.push(opened)
      const twin = folders.find(other => other !== opened && other.directoryId === opened.directoryId)
      if (twin !== undefined) {
        throw new ForeignFolderError(
          `${path} is a copy of ${twin.path}: both have directory.id ${opened.directoryId}; remove one of them from log.dirs`,
        )
      }
    } catch (error) {
      if (error instanceof WorldError && error.code !== 'EBUSY') {
        failure = storageError(error, path)
        failed.push(path)
        log.error(
          { folder: path, errno: error.code },
          `the folder is offline (${failure.message}); ${cureOfOpening(error.code)}, and start the node again`,
        )
        continue
      }
      // What each says of the life before is as true as it was.
      for (const folder of folders) await folder.closeUnused(folder.keptBrokerEpoch ?? -1)
      if (!(error instanceof WorldError)) throw error
      throw new ForeignFolderError(`${path} is in use by another process; stop it, or choose another folder`)
    }
  }
  if (folders.length === 0) {
    throw failure ?? new StorageError('EIO', paths.join(','), 'no log folder can be used')
  }
  folders.sort((a, b) => paths.indexOf(a.path) - paths.indexOf(b.path))
  return { clusterId, folders, failed }
}

async function inOrderOfKnowledge(disk: Disk, paths: readonly string[]): Promise<string[]> {
  const known: string[] = []
  const fresh: string[] = []
  for (const path of paths) {
    const properties = await readMetaProperties(disk, path).catch(() => undefined)
    ;(properties?.clusterId === undefined ? fresh : known).push(path)
  }
  return [...known, ...fresh]
}
