import type { Millis } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import type { MetadataImage } from '#core/metadata/image.ts'
import { METADATA_VERSION_DIRECTORIES } from '#core/metadata/metadata-version.ts'
import {
  LOST_DIRECTORY,
  MIGRATING_DIRECTORY,
  type PartitionImage,
  UNASSIGNED_DIRECTORY,
} from '#core/metadata/partition-image.ts'
import type { LogFolders } from '#storage/log-folders.ts'
import { DirectoryReports, type DirectoryReportsOptions } from './directory-reports.ts'
import { FailingFolders } from './failing-folders.ts'
import { LostReplicas, UNOPENED_PATIENCE } from './lost-replicas.ts'
import type { Partition } from './partition.ts'

export interface ReplicaDirectoriesOptions extends DirectoryReportsOptions {
  readonly folders: LogFolders
  readonly image: () => MetadataImage
}

/**
 * The disks below this broker's replicas, as the cluster has to know of them (KIP-858): where each replica lies, which
 * folders are given up, and which replicas others do without while their disk is full, or hangs.
 */
export class ReplicaDirectories {
  readonly #options: ReplicaDirectoriesOptions
  readonly #reports: DirectoryReports
  readonly #failing: FailingFolders
  readonly #lost: LostReplicas
  /** Failures of logs that were looked at. */
  #failuresSeen = 0

  constructor(options: ReplicaDirectoriesOptions) {
    const { folders, log } = options
    this.#options = options
    this.#reports = new DirectoryReports(options)
    this.#failing = new FailingFolders(folders, log)
    this.#lost = new LostReplicas(log)
  }

  /** One that cannot write takes no part: as a follower that stays where it is it would hold up all others. */
  mayTakePart(partition: Partition): boolean {
    return !this.#failing.hasGivenUp(partition) && !this.#lost.isHandedOver(partition)
  }

  /** Says where a replica lies, when the cluster thinks otherwise. */
  report(partition: Partition, wanted: PartitionImage): void {
    const { topicId, index, log } = partition
    const { nodeId, folders } = this.#options
    if (!this.#isKnownOf || this.#lost.isHandedOver(partition)) return
    const directory = folders.directoryOf(log)
    const known = wanted.directories[wanted.replicas.indexOf(nodeId)]
    if (directory === undefined || known === directory) return
    // Empty because its disk was replaced, it would be taken for what it was and could be elected: everybody else would be
    // cut back to nothing. Once another one leads it is told, and follows. Who was handed over and is eligible is
    // as it was: the controller asks with which directories a broker has come back.
    const isAsItWas = known === LOST_DIRECTORY && wanted.eligibleLeaderReplicas.includes(nodeId)
    const isEmpty = wanted.replicas.length > 1 && log.endOffset === 0
    if (isPlace(known) && wanted.leader < 0 && isEmpty && !isAsItWas) return
    this.#reports.report(topicId, index, directory)
  }

  /** Directories that the cluster is to take for offline, and whether some came to them by this look. */
  lookForFailing(partitions: Iterable<Partition>): { readonly offline: readonly Uuid[]; readonly isNews: boolean } {
    const before = this.#failing.count
    const offline = this.#failing.look(partitions, this.#options.clock.monotonic())
    return { offline, isNews: offline.length > before }
  }

  /**
   * A replica whose log cannot be made or opened, as its folder hangs, is full or fails. Who alone is in sync stays: nobody
   * can stand in for it. Followers give leaders time: if all were lost, and empty as of a topic that is new, nobody could
   * ever say where they lie again.
   */
  reportUnopened(topicId: Uuid, index: number, wanted: PartitionImage, since: Millis): void {
    const { nodeId, folders, clock } = this.#options
    const { directories, replicas, isr, leader } = wanted
    const { hungDirectoryIds: hung, directoryIds } = folders
    const directory = directories[replicas.indexOf(nodeId)]
    if (!this.#isKnownOf || directory === LOST_DIRECTORY) return
    const isHere = directory !== undefined && directoryIds.includes(directory)
    const hangs = hung.length > 0 && (!isHere || hung.includes(directory))
    // The cluster knows of folders that are offline.
    if (!hangs && !isHere && isPlace(directory)) return
    const isNeeded = isr.every(replica => replica === nodeId)
    if (isNeeded || leader < 0) return
    const { leaderPatienceMs, followerPatienceMs } = hangs ? UNOPENED_PATIENCE.hangs : UNOPENED_PATIENCE.fails
    if (clock.monotonic() - since < (leader === nodeId ? leaderPatienceMs : followerPatienceMs)) return
    this.#reports.report(topicId, index, LOST_DIRECTORY)
  }

  /** Tells of the replicas that cannot write for now. Returns those that take part again. */
  lookForLost(partitions: Iterable<Partition>): readonly Partition[] {
    const { folders, clock } = this.#options
    const isNews = folders.failures !== this.#failuresSeen
    this.#failuresSeen = folders.failures
    if ((!isNews && this.#lost.isIdle) || !this.#isKnownOf) return []
    const { lost, back } = this.#lost.look(partitions, clock.monotonic())
    for (const { topicId, index } of lost) this.#reports.report(topicId, index, LOST_DIRECTORY)
    for (const { topicId, index, log } of back) {
      const directory = folders.directoryOf(log)
      // Also where the controller has not heard yet that it was lost: it may still be on its way.
      if (directory !== undefined) this.#reports.report(topicId, index, directory)
    }
    return back
  }

  stop(): void {
    this.#reports.stop()
  }

  /** Whether controllers take the directories of replicas. */
  get #isKnownOf(): boolean {
    return this.#options.image().metadataVersion >= METADATA_VERSION_DIRECTORIES
  }
}

/** A directory, or one that is lost, and not that nobody knows which. */
function isPlace(directory: Uuid | undefined): boolean {
  return directory !== undefined && directory !== UNASSIGNED_DIRECTORY && directory !== MIGRATING_DIRECTORY
}
