import type { NodeId } from '#base/units.ts'
import { type Uuid, ZERO_UUID } from '#base/uuid.ts'
import { CONFIG_RESOURCE, configResourceKey } from '#core/metadata/config-resource.ts'
import type { MetadataDelta } from '#core/metadata/delta.ts'
import type { MetadataImage, PartitionImage, TopicImage } from '#core/metadata/image.ts'
import { ProducerStates } from '#core/partition/producers.ts'
import type { BatchFold } from '#storage/batch-fold.ts'
import type { LogFolders } from '#storage/log-folders.ts'
import { StorageError } from '#storage/storage-error.ts'
import type { Clock, Logger } from '#world/world.ts'
import { Partition } from './partition.ts'
import type { Terms } from './terms.ts'

/** Why a partition cannot be asked here, by the name of Kafka's error. */
export type PartitionError =
  | 'UNKNOWN_TOPIC_OR_PARTITION'
  | 'UNKNOWN_TOPIC_ID'
  | 'INCONSISTENT_TOPIC_ID'
  | 'NOT_LEADER_OR_FOLLOWER'
  | 'KAFKA_STORAGE_ERROR'

export interface PartitionsOptions {
  readonly nodeId: NodeId
  readonly folders: LogFolders
  readonly image: () => MetadataImage
  readonly clock: Clock
  readonly log: Logger
  /** The terms of a topic with these overrides. */
  readonly termsOf: (topic: string) => Terms
  /** A partition began or ceased to be led here. */
  readonly ledChanged: (partition: Partition, leads: boolean) => void
}

interface HostedTopic {
  readonly id: Uuid
  readonly name: string
  terms: Terms
  readonly partitions: (Partition | undefined)[]
}

const OPEN_AT_ONCE = 32
/** A partition that could not be opened is tried again after this: disks come back, also without a restart. */
const REOPEN_MS = 2000

/** The partitions of this broker, as the metadata image wants them. */
export class Partitions {
  readonly #options: PartitionsOptions
  readonly #topics = new Map<Uuid, HostedTopic>()
  /** Partitions whose folder failed, so that they are offline and not missing. */
  readonly #offline = new Set<string>()
  /** By topic id and index: a partition that is tried again may be asked for by the image meanwhile. */
  readonly #opening = new Map<string, Promise<Partition>>()
  #stopped = false

  constructor(options: PartitionsOptions) {
    this.#options = options
  }

  *all(): Generator<Partition> {
    for (const topic of this.#topics.values()) {
      for (const partition of topic.partitions) if (partition !== undefined) yield partition
    }
  }

  *inFolder(path: string): Generator<Partition> {
    for (const partition of this.all()) if (partition.log.folder.startsWith(`${path}/`)) yield partition
  }

  /**
   * The partition, or why it cannot be asked here. By name, by id, or by both where a session remembers the name that
   * an id had: a topic that was made anew under its name has another id.
   */
  find(name: string | undefined, id: Uuid | undefined, index: number): Partition | PartitionError {
    const image = this.#options.image()
    // Without a name, the zero id is an id like any other: one that no topic has.
    const byId = id !== undefined && (id !== ZERO_UUID || name === undefined)
    if (byId && name !== undefined) {
      const now = image.topicByName(name)
      if (now === undefined) return 'UNKNOWN_TOPIC_OR_PARTITION'
      if (now.id !== id) return 'INCONSISTENT_TOPIC_ID'
    }
    const topic = byId ? image.topic(id) : image.topicByName(name ?? '')
    if (topic === undefined) return byId ? 'UNKNOWN_TOPIC_ID' : 'UNKNOWN_TOPIC_OR_PARTITION'
    if (topic.partitions[index] === undefined) return 'UNKNOWN_TOPIC_OR_PARTITION'
    const hosted = this.#topics.get(topic.id)?.partitions[index]
    if (hosted !== undefined) return hosted
    return this.#offline.has(`${topic.id}:${index}`) ? 'KAFKA_STORAGE_ERROR' : 'NOT_LEADER_OR_FOLLOWER'
  }

  /** What the cluster knows of a partition, wherever it is. */
  imageOf(name: string | undefined, id: Uuid, index: number): PartitionImage | undefined {
    const image = this.#options.image()
    const topic = id === ZERO_UUID ? image.topicByName(name ?? '') : image.topic(id)
    return topic?.partitions[index]
  }

  terms(partition: Partition): Terms {
    return this.#topics.get(partition.topicId)?.terms ?? this.#options.termsOf(partition.topic)
  }

  /** Brings the partitions to what the image says now. Logs that are new here are open when it is done. */
  async change(delta: MetadataDelta, brokerConfigChanged: boolean): Promise<void> {
    for (const topic of delta.deletedTopics.values()) this.#delete(topic)
    for (const topic of this.#topics.values()) {
      if (brokerConfigChanged || delta.configs.has(configResourceKey(CONFIG_RESOURCE.TOPIC, topic.name)))
        this.#configure(topic)
    }
    const image = this.#options.image()
    const work: (() => Promise<void>)[] = []
    for (const [id, changed] of delta.topics) {
      const topic = image.topic(id)
      if (topic === undefined) continue
      for (const index of changed.partitions) work.push(() => this.#settle(topic, index))
    }
    await inTurns(work, OPEN_AT_ONCE)
  }

  /** Deletes what is too old or too much, in every log. */
  async retain(): Promise<void> {
    for (const partition of [...this.all()]) {
      if (partition.gone) continue
      const before = partition.log.startOffset
      try {
        await partition.log.retain(this.#options.clock.now(), partition.highWatermark)
      } catch (error) {
        if (!(error instanceof StorageError)) throw error
      }
      if (partition.log.startOffset !== before) partition.startMoved()
    }
  }

  /** What DeleteRecords took stays away, whatever happens to the process. Rejects with a StorageError when it may not. */
  keepStart({ log }: Partition): Promise<void> {
    return this.#options.folders.keepStartOffset(log)
  }

  expireProducers(before: number): void {
    for (const partition of this.all()) partition.producers.expire(before)
  }

  /** Nobody is led and nobody waits here any more. The logs stay open for their owner to close. */
  stop(): void {
    this.#stopped = true
    for (const partition of this.all()) partition.leave()
    this.#topics.clear()
  }

  async #settle(topic: TopicImage, index: number): Promise<void> {
    const { nodeId, ledChanged, log, clock } = this.#options
    const wanted = topic.partitions[index]
    if (wanted === undefined || !wanted.replicas.includes(nodeId)) {
      this.#leave(topic, index)
      return
    }
    const hosted = this.#hosted(topic)
    let partition = hosted.partitions[index]
    if (partition === undefined) {
      const key = `${topic.id}:${index}`
      try {
        partition = await this.#openOnce(key, hosted, index)
      } catch (error) {
        if (!(error instanceof StorageError)) throw error
        if (!this.#offline.has(key)) {
          const reason = error.message
          log.error({ topic: topic.name, partition: index, reason }, 'a partition cannot be opened and is offline')
        }
        this.#offline.add(key)
        clock.after(REOPEN_MS, () => void this.#settleAgain(topic.id, index))
        return
      }
      if (this.#offline.delete(key)) log.info({ topic: topic.name, partition: index }, 'a partition is online again')
      if (this.#stopped) return
      if (this.#options.image().topic(topic.id) === undefined) {
        this.#remove(partition)
        return
      }
      hosted.partitions[index] = partition
    }
    const led = partition.leads
    if (wanted.leader === nodeId)
      partition.lead(nodeId, wanted.leaderEpoch, wanted.isr, { minInSync: hosted.terms.minInSync })
    else partition.resign(wanted.leader, wanted.leaderEpoch)
    if (led !== partition.leads) ledChanged(partition, partition.leads)
  }

  async #settleAgain(id: Uuid, index: number): Promise<void> {
    const topic = this.#options.image().topic(id)
    if (this.#stopped || !this.#offline.has(`${id}:${index}`)) return
    if (topic === undefined) this.#offline.delete(`${id}:${index}`)
    else if (this.#topics.get(id)?.partitions[index] === undefined) await this.#settle(topic, index)
  }

  #openOnce(key: string, topic: HostedTopic, index: number): Promise<Partition> {
    const opening = this.#opening.get(key) ?? this.#open(topic, index).finally(() => this.#opening.delete(key))
    this.#opening.set(key, opening)
    return opening
  }

  async #open(topic: HostedTopic, index: number): Promise<Partition> {
    const producers = new ProducerStates()
    let opened: Partition | undefined
    const fold: BatchFold = {
      restore: entries => producers.restore(entries),
      apply: (buffer, at) => {
        producers.apply(buffer, at)
        return undefined
      },
      snapshot: () => producers.snapshot(opened?.appending ?? Number.POSITIVE_INFINITY),
    }
    const { log, highWatermark } = await this.#options.folders.open({
      topic: topic.name,
      topicId: topic.id,
      partition: index,
      config: topic.terms.log,
      fold,
      highWatermark: () => opened?.highWatermark ?? 0,
    })
    opened = new Partition(topic.id, topic.name, index, log, producers, highWatermark)
    return opened
  }

  #hosted(topic: TopicImage): HostedTopic {
    let hosted = this.#topics.get(topic.id)
    if (hosted === undefined) {
      hosted = { id: topic.id, name: topic.name, terms: this.#options.termsOf(topic.name), partitions: [] }
      this.#topics.set(topic.id, hosted)
    }
    return hosted
  }

  #configure(topic: HostedTopic): void {
    topic.terms = this.#options.termsOf(topic.name)
    for (const partition of topic.partitions) {
      partition?.log.configure(topic.terms.log)
      partition?.configure({ minInSync: topic.terms.minInSync })
    }
  }

  #leave(topic: TopicImage, index: number): void {
    const hosted = this.#topics.get(topic.id)
    const partition = hosted?.partitions[index]
    if (hosted === undefined || partition === undefined) return
    hosted.partitions[index] = undefined
    this.#remove(partition)
  }

  #delete(topic: TopicImage): void {
    const hosted = this.#topics.get(topic.id)
    this.#topics.delete(topic.id)
    for (const partition of hosted?.partitions ?? []) if (partition !== undefined) this.#remove(partition)
  }

  #remove(partition: Partition): void {
    const led = partition.leads
    partition.leave()
    if (led) this.#options.ledChanged(partition, false)
    void this.#options.folders.remove(partition.log)
  }
}

/** Runs the work with at most so many at a time. */
async function inTurns(work: readonly (() => Promise<void>)[], atOnce: number): Promise<void> {
  let next = 0
  const run = async (): Promise<void> => {
    while (next < work.length) await (work[next++] as () => Promise<void>)()
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, work.length) }, run))
}
