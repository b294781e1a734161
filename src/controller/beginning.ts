import { SUPPORTED_FEATURES } from '#core/metadata/features.ts'
import { NO_QUORUM_STATE, type QuorumState } from '#core/raft/quorum.ts'
import { batchesOf } from '#records/batch.ts'
import type { Disk, Logger, World } from '#world/world.ts'
import { type Bootstrap, readBootstrap } from './bootstrap.ts'
import type { ControllerConfig } from './config.ts'
import { lostBeside, refuseElsewhere } from './lost-metadata.ts'
import { type Folded, METADATA_FOLDER, MetadataLog, noteQuorum } from './metadata-log.ts'
import { refuseForeign, refuseToFound } from './quorum-error.ts'
import { readQuorumState, writeQuorumState } from './quorum-state.ts'
import { TAIL_BYTES_MAX } from './standby.ts'

export interface ControllerStart {
  readonly world: World
  readonly config: ControllerConfig
  /** The log folder (metadata.log.dir), in which `__cluster_metadata-0` lies or is made. */
  readonly folder: string
  readonly log: Logger
  /** Whether the node's log folders hold partitions, which only the metadata log describes. */
  readonly partitionsThere?: boolean
  /** Whether the node's other folders tell that it has founded its cluster: it must not found a second one of the same id. */
  readonly foundedBefore?: boolean
  /** Other log folders of this node: none of them may have a metadata log. */
  readonly otherFolders?: readonly string[]
}

/** What a controller begins with, read from its folder. */
export interface Beginning {
  readonly log: MetadataLog
  /** The latest snapshot, and what the rest of the log says of the quorum. */
  readonly folded: Folded
  /** What the log holds behind the snapshot, as far as it is kept in memory. */
  readonly tail: readonly Buffer[]
  readonly state: QuorumState
  readonly bootstrap: Bootstrap
}

/**
 * Writes that the controller of this log folder is to join a quorum, so that it never founds one by itself though it is
 * killed before it has anything of that. Durable when it resolves, which is to be before the folder says of which cluster it is.
 */
export async function markJoining(disk: Disk, folder: string): Promise<void> {
  const own = `${folder}/${METADATA_FOLDER}`
  await disk.makeFolder(own)
  await disk.syncFolder(folder)
  if ((await readQuorumState(disk, own)) === NO_QUORUM_STATE) await writeQuorumState(disk, own, NO_QUORUM_STATE, 1, [])
}

/**
 * Opens the folder and reads it. Rejects with a StorageError or a WorldError, with a LostMetadataError or a QuorumStateError
 * when it is damaged, with a QuorumError when it is another quorum's; then nothing is open.
 */
export async function readBeginning(start: ControllerStart): Promise<Beginning> {
  const { world, config, folder } = start
  const { segmentBytes } = config
  await refuseElsewhere(world.disk, METADATA_FOLDER, { folder, others: start.otherFolders ?? [] })
  const log = await MetadataLog.open({
    disk: world.disk,
    clock: world.clock,
    log: start.log,
    folder,
    ...(segmentBytes !== undefined && { segmentBytes }),
    partitionsThere: start.partitionsThere ?? false,
  })
  try {
    const features = config.features ?? SUPPORTED_FEATURES
    const [folded, state, bootstrap] = await Promise.all([
      log.fold(0),
      readQuorumState(world.disk, log.folder),
      readBootstrap(world.disk, folder, features, config.configs.number('min.insync.replicas')),
    ])
    const tail: Buffer[] = []
    let tailBytes = 0
    await log.readThrough(folded.endOffset, log.endOffset, bytes => {
      for (const at of batchesOf(bytes)) noteQuorum(folded.history, bytes, at)
      log.appendedBytes += bytes.length
      tailBytes += bytes.length
      if (tailBytes <= TAIL_BYTES_MAX) tail.push(bytes)
    })
    if (log.nextOffset === 0 && state !== NO_QUORUM_STATE) refuseToFound(config, state)
    if (log.nextOffset === 0 && start.foundedBefore === true) throw lostBeside(log.folder, 'is missing')
    refuseForeign(config, folded.history)
    if ((config.bootstrapServers ?? []).length > 0) await markJoining(world.disk, folder)
    return { log, folded, tail, state, bootstrap }
  } catch (error) {
    await log.close()
    throw error
  }
}
