import { Complaints } from '#base/complaints.ts'
import type { Millis, NodeId } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import type { MetadataImage } from '#core/metadata/image.ts'
import { type PartitionImage, UNASSIGNED_DIRECTORY } from '#core/metadata/partition-image.ts'
import { ProducerRoom } from '#core/partition/producer-room.ts'
import { ProducerStates } from '#core/partition/producers.ts'
import type { BatchFold } from '#storage/batch-fold.ts'
import type { LogFolders } from '#storage/log-folders.ts'
import { cureOfOpening, DamagedLogError, StorageError } from '#storage/storage-error.ts'
import type { Clock, Logger, Timer } from '#world/world.ts'
import { Partition } from './partition.ts'
import type { PartitionSurroundings } from './surroundings.ts'
import type { Terms } from './terms.ts'

export interface OpeningsOptions {
  readonly nodeId: NodeId
  readonly folders: LogFolders
  readonly image: () => MetadataImage
  readonly clock: Clock
  readonly log: Logger
  readonly around: PartitionSurroundings
  /** One that could not be opened may be tried again. */
  readonly again: (topicId: Uuid, index: number) => void
}

export interface OpenedTopic {
  readonly id: Uuid
  readonly name: string
  readonly terms: Terms
}

/** A partition that is to be here and cannot be opened. */
export interface Unopened {
  readonly topicId: Uuid
  readonly index: number
  /** On the monotonic clock. */
  readonly since: Millis
  /** When it is tried again; undefined while it is being opened. */
  readonly timer: Timer | undefined
}

/** A partition that could not be opened is tried again after this: disks come back, also without a restart. */
const REOPEN_MS = 2000

/** Opens the partitions that are new here, with their logs, and knows of those whose disk does not let it. */
export class Openings {
  readonly #options: OpeningsOptions
  readonly #room = new ProducerRoom()
  /** By topic id and index: a partition that is tried again may be asked for by the image meanwhile. */
  readonly #opening = new Map<string, Promise<Partition>>()
  /** Partitions whose folder failed, so that they are offline and not missing; each that did is tried again by one timer. */
  readonly #offline = new Map<string, Unopened>()

  readonly #complaints: Complaints

  constructor(options: OpeningsOptions) {
    this.#options = options
    this.#complaints = new Complaints(options.clock, options.log)
  }

  isOffline(topicId: Uuid, index: number): boolean {
    return this.#offline.has(keyOf(topicId, index))
  }

  unopened(topicId: Uuid, index: number): Unopened | undefined {
    return this.#offline.get(keyOf(topicId, index))
  }

  get allUnopened(): Iterable<Unopened> {
    return this.#offline.values()
  }

  /** One that is being opened, and will be for a while: it is offline until that is done. */
  waitFor(topicId: Uuid, index: number): void {
    const key = keyOf(topicId, index)
    if (!this.#opening.has(key) || this.#offline.has(key)) return
    this.#offline.set(key, { topicId, index, since: this.#options.clock.monotonic(), timer: undefined })
  }

  /** The cluster wants it here no more. */
  forget(topicId: Uuid, index: number): void {
    this.#online(keyOf(topicId, index))
  }

  #online(key: string): boolean {
    this.#offline.get(key)?.timer?.cancel()
    return this.#offline.delete(key)
  }

  /** Who comes while it is being opened gets the same one. Undefined where the disk fails; then it is offline. */
  async open(topic: OpenedTopic, index: number): Promise<Partition | undefined> {
    const { log, clock, again } = this.#options
    const key = keyOf(topic.id, index)
    const names = { topic: topic.name, partition: index }
    try {
      const partition = await this.#openOnce(key, topic, index)
      if (this.#online(key)) this.#complaints.tell('info', 'online', names, 'a partition is online again')
      return partition
    } catch (error) {
      if (!(error instanceof StorageError)) throw error
      if (!this.#offline.has(key)) {
        // A damaged log is told each: its own file is to be restored.
        if (error instanceof DamagedLogError) log.error(names, `a partition is offline: ${error.message}`)
        else this.#complaints.tell('error', error.errno, names, unopened(error))
      }
      // The image may ask for it at any time: every failure with a timer of its own would be tried again for ever.
      const before = this.#offline.get(key)
      before?.timer?.cancel()
      const since = before?.since ?? clock.monotonic()
      const timer = clock.after(REOPEN_MS, () => again(topic.id, index))
      this.#offline.set(key, { topicId: topic.id, index, since, timer })
      return undefined
    }
  }

  #openOnce(key: string, topic: OpenedTopic, index: number): Promise<Partition> {
    const opening = this.#opening.get(key) ?? this.#open(topic, index).finally(() => this.#opening.delete(key))
    this.#opening.set(key, opening)
    return opening
  }

  async #open(topic: OpenedTopic, index: number): Promise<Partition> {
    const directoryId = this.#directoryOf(topic, index)
    const producers = new ProducerStates(this.#room)
    let opened: Partition | undefined
    const fold: BatchFold = {
      restore: entries => producers.restore(entries),
      apply: (buffer, at) => {
        producers.apply(buffer, at)
        return undefined
      },
      snapshot: () => producers.snapshot(opened?.appending ?? Number.POSITIVE_INFINITY),
    }
    const opening = this.#options.folders.open({
      topic: topic.name,
      topicId: topic.id,
      partition: index,
      config: topic.terms.log,
      fold,
      highWatermark: () => opened?.highWatermark ?? 0,
      directoryId,
    })
    opening.catch(() => producers.leaveRoom())
    const { log, highWatermark } = await opening
    opened = new Partition(topic.id, topic.name, index, log, producers, highWatermark, this.#options.around)
    return opened
  }

  /**
   * Where the replica lies, or is to lie. Rejects where it may lie in a folder that does not work: made anew in another one
   * it would be empty, and believed to have all that it had acknowledged. KIP-858.
   */
  #directoryOf(topic: OpenedTopic, index: number): Uuid | undefined {
    const { nodeId, folders, image } = this.#options
    const wanted = image().partition(topic.id, index)
    const directory = wanted?.directories[wanted.replicas.indexOf(nodeId)]
    const online = folders.directoryIds
    if (directory === undefined || online.includes(directory)) return directory
    const failed = folders.folders.filter(folder => !folder.online)
    const isNew = wanted?.partitionEpoch === 0 || (wanted !== undefined && isNewTo(nodeId, wanted))
    if (failed.length === 0 || isNew || folders.has(topic.name, index)) return undefined
    const paths = failed.map(({ path }) => path).join(', ')
    throw new StorageError('EIO', paths, 'the partition may lie in a folder that is offline')
  }
}

/** One that was given to this broker, whose place nobody knows yet, and of which nobody believes that it holds anything. */
function isNewTo(nodeId: NodeId, partition: PartitionImage): boolean {
  const { replicas, directories, leader, isr, eligibleLeaderReplicas, lastKnownElr } = partition
  if (directories[replicas.indexOf(nodeId)] !== UNASSIGNED_DIRECTORY || leader === nodeId) return false
  return ![isr, eligibleLeaderReplicas, lastKnownElr].some(ids => ids.includes(nodeId))
}

function unopened({ errno, message }: StorageError): string {
  return `a partition cannot be opened and is offline (${message}); ${cureOfOpening(errno)}. It is tried again every ${REOPEN_MS / 1000} s`
}

function keyOf(topicId: Uuid, index: number): string {
  return `${topicId}:${index}`
}
