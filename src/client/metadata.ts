import { hostPort } from '#base/host-port.ts'
import type { Epoch, Millis, NodeId } from '#base/units.ts'
import { type Uuid, ZERO_UUID } from '#base/uuid.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { MetadataRequest, MetadataResponse } from '#protocol/messages/metadata.ts'
import type { MessageOf } from '#protocol/schema.ts'
import type { Address, World } from '#world/world.ts'
import type { Brokers } from './brokers.ts'
import { brokerError, ClientError } from './errors.ts'

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

/** As the answers to Produce and Fetch have it. */
export interface LeaderNews {
  readonly leaderId: NodeId
  readonly leaderEpoch: Epoch
  readonly endpoints: readonly { readonly nodeId: NodeId; readonly host: string; readonly port: number }[]
}

interface Known {
  readonly topic: Topic
  readonly at: Millis
  /** Who said so; nobody where somebody said since that there is no such topic. */
  readonly from: Address | undefined
}

/** Topics whose end is remembered. */
const GONE_MAX = 1000

/**
 * What the cluster said about itself lately. Topics that were asked for are remembered until they are `maxAgeMs` old. Of
 * a leader in an older epoch than one that was heard of nothing is taken (KIP-320).
 */
export class Metadata {
  readonly #brokers: Brokers
  readonly #clock: World['clock']
  readonly #maxAgeMs: Millis
  /** Ids of topics that were deleted by this client, the latest last. */
  readonly #gone = new Set<Uuid>()
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

  /** A topic is no more: who goes on naming it has not heard yet, and is not believed. */
  gone(name: string, id: Uuid): void {
    this.forget(name)
    if (id === ZERO_UUID) return
    this.#gone.add(id)
    if (this.#gone.size <= GONE_MAX) return
    for (const oldest of this.#gone) {
      this.#gone.delete(oldest)
      return
    }
  }

  /** What was said of a topic led nowhere. Whoever said it is asked after all others now, and the leader last of all. */
  doubt(name: string, leader?: NodeId): void {
    const from = this.#topics.get(name)?.from
    if (from !== undefined) this.#brokers.doubt(from)
    const address = leader === undefined ? undefined : this.#brokers.known.get(leader)
    if (address !== undefined) this.#brokers.doubt(address)
  }

  /** A broker that leads no more said who does (KIP-951). Whether that is news. */
  learn(name: string, partition: number, led: LeaderNews, from: Address): boolean {
    const { leaderId, leaderEpoch, endpoints } = led
    const known = this.#topics.get(name)
    const before = known?.topic.partitions[partition]
    if (known === undefined || before === undefined || leaderId < 0 || leaderEpoch <= before.leaderEpoch) return false
    const at = endpoints.find(({ nodeId }) => nodeId === leaderId)
    if (at !== undefined) {
      this.#brokers.know(new Map(this.#brokers.known).set(leaderId, { host: at.host, port: at.port }))
    } else if (!this.#brokers.known.has(leaderId)) return false
    const partitions = known.topic.partitions.with(partition, { ...before, leader: leaderId, leaderEpoch })
    this.#topics.set(name, { topic: { ...known.topic, partitions }, at: known.at, from })
    return true
  }

  /** Asks for these topics, or for all. Topics with errors are left out and their errors returned by name. */
  async refresh(
    names: readonly string[] | 'all',
    options: { readonly create?: boolean } = {},
  ): Promise<{ readonly topics: readonly Topic[]; readonly errors: ReadonlyMap<string, ClientError> }> {
    const { answer, from } = await this.#ask(names, options.create ?? false)
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
      const errorCode = this.#gone.has(each.topicId) ? ErrorCode.UNKNOWN_TOPIC_OR_PARTITION : each.errorCode
      const error = brokerError(errorCode, `topic "${name}"`)
      if (error !== undefined) {
        errors.set(name, error)
        // Not used until somebody says more. Its epochs are kept: who has not heard of the topic may only be late, and who is
        // asked next may be so as well, and be believed to lead what another one does.
        const known = this.#topics.get(name)
        if (known !== undefined) this.#topics.set(name, { ...known, at: Number.NEGATIVE_INFINITY, from: undefined })
        // Another one may have heard of it.
        this.#brokers.doubt(from)
        continue
      }
      const known = this.#topics.get(name)
      const said = toTopic(name, each)
      const topic = known === undefined ? said : newest(known.topic, said)
      if (topic !== said) this.#brokers.doubt(from)
      topics.push(topic)
      if (names !== 'all' || known !== undefined) this.#topics.set(name, { topic, at, from })
    }
    return { topics, errors }
  }

  async #ask(
    names: readonly string[] | 'all',
    create: boolean,
  ): Promise<{ readonly answer: MetadataResponse; readonly from: Address }> {
    const topics = names === 'all' ? null : names.map(name => ({ name, topicId: ZERO_UUID }))
    // What has grown too old is asked of another one than who said it, for that one may have heard nothing since.
    if (names !== 'all') {
      for (const name of names) if (this.#topics.has(name) && this.remembered(name) === undefined) this.doubt(name)
    }
    const asked = await this.#brokers.ask(METADATA, () => ({ topics, allowAutoTopicCreation: create }))
    if (asked.answer.errorCode !== ErrorCode.REBOOTSTRAP_REQUIRED) return asked
    // All that is known is of another time (KIP-1102): where it began is the way back.
    this.#brokers.know(new Map())
    this.#brokers.doubt(asked.from)
    throw new ClientError('REBOOTSTRAP_REQUIRED', `${hostPort(asked.from)} asks to begin anew`, { retriable: true })
  }
}

/** What is newer of two answers, partition by partition; the later one where it is of another topic, or without epochs. */
function newest(known: Topic, said: Topic): Topic {
  if (said.id === ZERO_UUID || said.id !== known.id) return said
  const isOlder = (partition: Partition | undefined, { leaderEpoch }: Partition): boolean =>
    partition === undefined || partition.leaderEpoch < leaderEpoch
  // A topic never has fewer partitions than it had.
  if (!known.partitions.some(each => isOlder(said.partitions[each.partition], each))) return said
  const count = Math.max(known.partitions.length, said.partitions.length)
  const partitions = Array.from({ length: count }, (_, index) => {
    const before = known.partitions[index]
    const now = said.partitions[index]
    return before !== undefined && isOlder(now, before) ? before : now
  })
  return { ...said, partitions: partitions.filter(each => each !== undefined) }
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
