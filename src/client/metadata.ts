import type { Epoch, Millis, NodeId } from '#base/units.ts'
import { type Uuid, ZERO_UUID } from '#base/uuid.ts'
import { MetadataRequest, MetadataResponse } from '#protocol/messages/metadata.ts'
import type { MessageOf } from '#protocol/schema.ts'
import type { Address, World } from '#world/world.ts'
import type { Brokers } from './brokers.ts'
import { brokerError, type ClientError, clientError } from './errors.ts'

export const METADATA = { request: MetadataRequest, response: MetadataResponse }

export interface Broker {
  readonly id: NodeId
  readonly host: string
  readonly port: number
  readonly rack: string | null
}

export interface Partition {
  readonly partition: number
  /** -1 while it has none. */
  readonly leader: NodeId
  readonly leaderEpoch: Epoch
  readonly replicas: readonly NodeId[]
  readonly isr: readonly NodeId[]
  readonly offline: readonly NodeId[]
}

export interface Topic {
  readonly name: string
  /** All zero where the broker gives topics no ids. */
  readonly id: Uuid
  readonly internal: boolean
  /** By number. */
  readonly partitions: readonly Partition[]
}

interface Known {
  readonly topic: Topic
  readonly at: Millis
}

/** What the cluster said about itself lately. Topics that were asked for are remembered until they are `maxAgeMs` old. */
export class Metadata {
  readonly #brokers: Brokers
  readonly #clock: World['clock']
  readonly #maxAgeMs: Millis
  readonly #topics = new Map<string, Known>()
  #cluster: { brokers: readonly Broker[]; controllerId: NodeId; clusterId: string | null } | undefined

  constructor(brokers: Brokers, clock: World['clock'], maxAgeMs: Millis) {
    this.#brokers = brokers
    this.#clock = clock
    this.#maxAgeMs = maxAgeMs
  }

  get brokers(): readonly Broker[] {
    return this.#cluster?.brokers ?? []
  }

  get controllerId(): NodeId {
    return this.#cluster?.controllerId ?? -1
  }

  get clusterId(): string | null {
    return this.#cluster?.clusterId ?? null
  }

  /** What is remembered of a topic, if that is not too old. */
  remembered(name: string): Topic | undefined {
    const known = this.#topics.get(name)
    return known !== undefined && this.#clock.monotonic() - known.at < this.#maxAgeMs ? known.topic : undefined
  }

  nameOf(id: Uuid): string | undefined {
    for (const { topic } of this.#topics.values()) if (topic.id === id) return topic.name
    return undefined
  }

  forget(name: string): void {
    this.#topics.delete(name)
  }

  /** Asks for these topics, or for all. Topics with errors are left out and their errors returned by name. */
  async refresh(
    names: readonly string[] | 'all',
    options: { readonly create?: boolean } = {},
  ): Promise<{ readonly topics: readonly Topic[]; readonly errors: ReadonlyMap<string, ClientError> }> {
    const answer = await this.#ask(names, options.create ?? false)
    const addresses = new Map<NodeId, Address>(
      answer.brokers.map(({ nodeId, host, port }) => [nodeId, { host, port }] as const),
    )
    this.#brokers.know(addresses)
    this.#cluster = {
      brokers: answer.brokers.map(({ nodeId, host, port, rack }) => ({ id: nodeId, host, port, rack })),
      controllerId: answer.controllerId,
      clusterId: answer.clusterId,
    }
    const at = this.#clock.monotonic()
    const topics: Topic[] = []
    const errors = new Map<string, ClientError>()
    for (const each of answer.topics) {
      const name = each.name ?? ''
      const error = brokerError(each.errorCode, `topic "${name}"`)
      if (error !== undefined) {
        errors.set(name, error)
        this.#topics.delete(name)
        continue
      }
      const topic = toTopic(name, each)
      topics.push(topic)
      if (names !== 'all' || this.#topics.has(name)) this.#topics.set(name, { topic, at })
    }
    return { topics, errors }
  }

  async #ask(names: readonly string[] | 'all', create: boolean): Promise<MetadataResponse> {
    const topics = names === 'all' ? null : names.map(name => ({ name, topicId: ZERO_UUID }))
    try {
      const channel = await this.#brokers.any()
      return await channel.ask(METADATA, { topics, allowAutoTopicCreation: create })
    } catch (error) {
      throw clientError(error)
    }
  }
}

function toTopic(name: string, answer: MessageOf<typeof MetadataResponse>['topics'][number]): Topic {
  const partitions = answer.partitions
    .map(each => ({
      partition: each.partitionIndex,
      leader: each.leaderId,
      leaderEpoch: each.leaderEpoch,
      replicas: each.replicaNodes,
      isr: each.isrNodes,
      offline: each.offlineReplicas,
    }))
    .sort((a, b) => a.partition - b.partition)
  return { name, id: answer.topicId, internal: answer.isInternal, partitions }
}
