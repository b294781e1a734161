import type { NodeId } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import type { ConfigResource } from './config-resource.ts'
import type { TopicImage } from './image.ts'

export interface TopicDelta {
  /** The topic came into being since the last delta: all of its partitions are new. */
  readonly created: boolean
  /** Indexes of the partitions that are new or changed. */
  readonly partitions: ReadonlySet<number>
}

/** What changed in an image since its delta was last taken, of what somebody acts on. What it is now, the image says. */
export class MetadataDelta {
  readonly #topics = new Map<Uuid, { created: boolean; partitions: Set<number> }>()
  readonly #deletedTopics = new Map<Uuid, TopicImage>()
  /** By `configResourceKey`. */
  readonly configs = new Map<string, ConfigResource>()
  /** Brokers that registered, changed or left. */
  readonly brokers = new Set<NodeId>()
  /** A controller registered, or is known no more. */
  controllers = false

  /** Topics that are there now and are new or have changed partitions. */
  get topics(): ReadonlyMap<Uuid, TopicDelta> {
    return this.#topics
  }

  /** Topics that were there and are gone, as they were last. */
  get deletedTopics(): ReadonlyMap<Uuid, TopicImage> {
    return this.#deletedTopics
  }

  topicCreated(id: Uuid): void {
    this.#topics.set(id, { created: true, partitions: new Set() })
  }

  partitionChanged(id: Uuid, index: number): void {
    let topic = this.#topics.get(id)
    if (topic === undefined) {
      topic = { created: false, partitions: new Set() }
      this.#topics.set(id, topic)
    }
    topic.partitions.add(index)
  }

  /** A topic that came and went within one delta is in neither list. */
  topicDeleted(topic: TopicImage): void {
    const created = this.#topics.get(topic.id)?.created ?? false
    this.#topics.delete(topic.id)
    if (!created) this.#deletedTopics.set(topic.id, topic)
  }
}
