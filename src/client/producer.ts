import type { Millis, NodeId, Offset } from '#base/units.ts'
import { ZERO_UUID } from '#base/uuid.ts'
import { Accumulator, IDEMPOTENT_IN_FLIGHT_MAX, type Outcome, type ProducerBatch } from '#core/producer/accumulator.ts'
import { partitionForKey } from '#core/producer/murmur2.ts'
import { StickyPartitioner } from '#core/producer/partitioner.ts'
import type { Channel } from '#network/channel.ts'
import { errorOf } from '#protocol/errors.ts'
import { InitProducerIdRequest, InitProducerIdResponse } from '#protocol/messages/init-producer-id.ts'
import { ProduceRequest, ProduceResponse } from '#protocol/messages/produce.ts'
import type { CompressionName } from '#records/batch.ts'
import type { Timer } from '#world/world.ts'
import type { Client } from './client.ts'
import { brokerError, ClientError, clientError, throwIfError } from './errors.ts'
import { LeaderSearch } from './leader-search.ts'
import type { Topic } from './metadata.ts'
import { askLeader, PATIENCE_MS } from './patience.ts'
import type { Led, TopicPartition } from './per-leader.ts'
import { checkTimestamp, type NewRecord, toBytes, toHeaders } from './records.ts'

const PRODUCE = { request: ProduceRequest, response: ProduceResponse }
const INIT_PRODUCER_ID = { request: InitProducerIdRequest, response: InitProducerIdResponse }
/** The last version that names topics by name. */
const PRODUCE_BY_NAME_MAX = 12
const PURPOSE = 'produce'
/** A broker that has waited for its followers for as long as it may says so; only one that says nothing is given up. */
const ANSWER_GRACE_MS: Millis = 5000

export interface ProducerOptions {
  /** all: every in-sync replica has it; 1: the leader has it; 0: nobody answers. */
  readonly acks: 'all' | 1 | 0
  /** Whether the broker keeps order and refuses second copies; needs acks all. On unless acks is less. */
  readonly idempotent: boolean
  readonly batchBytes: number
  readonly lingerMs: Millis
  readonly bufferBytesMax: number
  readonly requestBytesMax: number
  readonly deliveryTimeoutMs: Millis
  readonly requestTimeoutMs: Millis
  /** Requests under way per broker; at most five while idempotent. */
  readonly inFlightMax: number
  readonly compression: CompressionName
  /** Whether a topic that is missing may be created by the broker. */
  readonly createTopics: boolean
}

const DEFAULTS: ProducerOptions = {
  acks: 'all',
  idempotent: true,
  batchBytes: 16_384,
  lingerMs: 5,
  bufferBytesMax: 32 * 1024 * 1024,
  requestBytesMax: 1_048_576,
  deliveryTimeoutMs: 120_000,
  requestTimeoutMs: 30_000,
  inFlightMax: IDEMPOTENT_IN_FLIGHT_MAX,
  compression: 'none',
  createTopics: true,
}

/** Where a record was written. */
export interface RecordMetadata {
  readonly topic: string
  readonly partition: number
  /** -1 with acks 0, and where the broker no longer knows. */
  readonly offset: Offset
}

/** The records of one `send`, until all are written or one has failed. */
class Delivery {
  readonly metadata: RecordMetadata[]
  readonly done: Promise<RecordMetadata[]>
  #left: number
  readonly #resolve: (metadata: RecordMetadata[]) => void
  readonly #reject: (error: unknown) => void

  constructor(count: number) {
    this.metadata = new Array<RecordMetadata>(count)
    this.#left = count
    const { promise, resolve, reject } = Promise.withResolvers<RecordMetadata[]>()
    this.done = promise
    this.#resolve = resolve
    this.#reject = reject
    if (count === 0) resolve([])
  }

  written(index: number, metadata: RecordMetadata): void {
    this.metadata[index] = metadata
    if (--this.#left === 0) this.#resolve(this.metadata)
  }

  failed(error: unknown): void {
    this.#reject(error)
  }
}

interface Tag {
  readonly delivery: Delivery
  readonly index: number
}

/**
 * Sends records in batches, in order per partition. Several `send`s may be under way; call `close` to be sure that all
 * is written and every failure was told.
 */
export class Producer {
  readonly #client: Client
  readonly #options: ProducerOptions
  readonly #accumulator: Accumulator<Tag>
  readonly #partitioners = new Map<string, StickyPartitioner>()
  readonly #underWay = new Map<NodeId, number>()
  /** By topic, until the records of the last send are in their batches. */
  readonly #taking = new Map<string, Promise<void>>()
  /** Senders that wait for room, and those who wait until all is settled. */
  #waitForRoom: (() => void)[] = []
  #waitForEmpty: (() => void)[] = []
  #scheduled = false
  #timer: Timer | undefined
  #timerAt = Number.POSITIVE_INFINITY
  #identifying = false
  readonly #leaders: LeaderSearch
  /** The topics of which something was sent without asking for an answer. */
  readonly #minded = new WeakMap<Channel, Set<string>>()
  #closed = false

  constructor(client: Client, options: Partial<ProducerOptions> = {}) {
    const whole = { ...DEFAULTS, idempotent: (options.acks ?? 'all') === 'all', ...options }
    if (whole.idempotent && whole.acks !== 'all') {
      throw new ClientError('INVALID_ARGUMENT', 'an idempotent producer needs acks all')
    }
    this.#client = client
    this.#options = {
      ...whole,
      inFlightMax: whole.idempotent ? Math.min(whole.inFlightMax, IDEMPOTENT_IN_FLIGHT_MAX) : whole.inFlightMax,
    }
    this.#accumulator = new Accumulator({
      batchBytes: whole.batchBytes,
      lingerMs: whole.lingerMs,
      bufferBytesMax: whole.bufferBytesMax,
      recordBytesMax: whole.requestBytesMax,
      deliveryTimeoutMs: whole.deliveryTimeoutMs,
      retryBackoffMs: client.options.retryBackoffMs,
      retryBackoffMaxMs: client.options.retryBackoffMaxMs,
      compression: whole.compression,
      idempotent: whole.idempotent,
    })
    this.#leaders = new LeaderSearch(client, {
      create: whole.createTopics,
      asked: topics => {
        for (const topic of topics) this.#hasten(topic)
        this.#schedule()
      },
      rested: () => this.#schedule(),
    })
  }

  /**
   * Resolves when all of the records are written; rejects with a ClientError when one is not. Waits while the buffer is
   * full. Records of one `send` come before those of the next to the same topic, also where neither is awaited.
   */
  async send(topic: string, records: readonly NewRecord[]): Promise<RecordMetadata[]> {
    const delivery = new Delivery(records.length)
    // It is awaited below, but may fail before.
    delivery.done.catch(() => {})
    const taking = this.#take(topic, records, delivery, this.#taking.get(topic))
    const taken = taking
      .catch(() => {})
      .then(() => {
        if (this.#taking.get(topic) === taken) this.#taking.delete(topic)
      })
    this.#taking.set(topic, taken)
    await taking
    return await delivery.done
  }

  /** Puts the records into their batches once those of the send before are in theirs. */
  async #take(
    topic: string,
    records: readonly NewRecord[],
    delivery: Delivery,
    before: Promise<void> | undefined,
  ): Promise<void> {
    if (before !== undefined) await before
    const { createTopics: create } = this.#options
    let known = this.#client.metadata.remembered(topic) ?? (await this.#client.topic(topic, { create }))
    for (const { partition = -1 } of records) {
      // There may be more than when it was asked for.
      if (partition < known.partitions.length || !Number.isSafeInteger(partition)) continue
      known = await this.#client.topic(topic, { create, partitionsMin: partition + 1 })
      break
    }
    for (const [index, record] of records.entries()) {
      const tag = { delivery, index }
      while (!this.#append(known, record, tag)) await new Promise<void>(resolve => this.#waitForRoom.push(resolve))
    }
  }

  /** Sends what lingers and waits until everything that was taken is settled. */
  async flush(): Promise<void> {
    while (this.#taking.size > 0) {
      this.#accumulator.flush()
      this.#schedule()
      await Promise.all(this.#taking.values())
    }
    this.#accumulator.flush()
    if (this.#accumulator.empty) return
    this.#schedule()
    await new Promise<void>(resolve => this.#waitForEmpty.push(resolve))
  }

  async close(): Promise<void> {
    await this.flush()
    this.#closed = true
    this.#timer?.cancel()
  }

  /** Whether there was room for it. */
  #append(topic: Topic, record: NewRecord, tag: Tag): boolean {
    const key = toBytes(record.key)
    const value = toBytes(record.value)
    const headers = toHeaders(record.headers)
    const timestamp = record.timestamp ?? this.#client.world.clock.now()
    checkTimestamp(timestamp)
    if (this.#closed) throw new ClientError('CLOSED', 'the producer is closed')
    const sticky = record.partition === undefined && key === null ? this.#sticky(topic.name) : undefined
    const partition = sticky === undefined ? this.#partition(topic, record.partition, key) : this.#draw(topic, sticky)
    const before = this.#accumulator.bufferedBytes
    const now = this.#client.world.clock.monotonic()
    const taken = this.#accumulator.append(topic.name, partition, { timestamp, key, value, headers }, tag, now)
    if (taken === 'too-large') {
      throw new ClientError('MESSAGE_TOO_LARGE', `a record is larger than ${this.#options.requestBytesMax} bytes`, {
        hint: "raise the producer's largest request and the topic's max.message.bytes",
      })
    }
    if (taken === 'taken') {
      sticky?.appended(this.#accumulator.bufferedBytes - before, this.#accumulator.filling(topic.name, partition))
    }
    this.#schedule()
    return taken === 'taken'
  }

  #partition(topic: Topic, wanted: number | undefined, key: Uint8Array | null): number {
    if (wanted === undefined) return partitionForKey(key ?? new Uint8Array(0), topic.partitions.length)
    if (Number.isInteger(wanted) && wanted >= 0 && wanted < topic.partitions.length) return wanted
    throw new ClientError('INVALID_ARGUMENT', `topic "${topic.name}" has no partition ${wanted}`, {
      hint: `its partitions are 0 to ${topic.partitions.length - 1}`,
    })
  }

  #sticky(topic: string): StickyPartitioner {
    let partitioner = this.#partitioners.get(topic)
    if (partitioner === undefined) {
      partitioner = new StickyPartitioner(this.#options.batchBytes)
      this.#partitioners.set(topic, partitioner)
    }
    return partitioner
  }

  #draw(topic: Topic, sticky: StickyPartitioner): number {
    const led = topic.partitions.filter(({ leader }) => leader >= 0)
    const loads = (led.length > 0 ? led : topic.partitions).map(({ partition }) => ({
      partition,
      queued: this.#accumulator.queued(topic.name, partition),
    }))
    return sticky.partition(loads, () => this.#client.world.random.fraction())
  }

  /** Looks at what is to be sent once the records that come in this turn are in their batches. */
  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    this.#client.world.clock.soon(() => {
      this.#scheduled = false
      this.#pump()
    })
  }

  #pump(): void {
    if (this.#closed) return
    const now = this.#client.world.clock.monotonic()
    for (const batch of this.#accumulator.expire(now)) {
      const message = `partition ${batch.topic}-${batch.partition}: not written in ${this.#options.deliveryTimeoutMs} ms`
      this.#fail(batch, new ClientError('TIMED_OUT', message, { retriable: true }))
    }
    if (this.#accumulator.needsIdentity) {
      if (!this.#accumulator.empty) this.#identify()
    } else this.#sendReady(now)
    this.#watch()
  }

  #sendReady(now: Millis): void {
    const byLeader = new Map<NodeId, Led<TopicPartition>[]>()
    const unknown = new Set<string>()
    for (const { topic, partition } of this.#accumulator.ready(now)) {
      const known = this.#client.metadata.remembered(topic)?.partitions[partition]
      if (known === undefined || known.leader < 0) {
        unknown.add(topic)
        continue
      }
      const { leader, leaderEpoch } = known
      const list = byLeader.get(leader)
      if (list === undefined) byLeader.set(leader, [{ topic, partition, leaderEpoch }])
      else list.push({ topic, partition, leaderEpoch })
    }
    this.#leaders.ask(unknown)
    for (const [leader, partitions] of byLeader) {
      if ((this.#underWay.get(leader) ?? 0) >= this.#options.inFlightMax) continue
      const batches = this.#accumulator.drain(partitions, this.#options.requestBytesMax, now)
      if (batches.length > 0) void this.#produce(leader, batches)
    }
  }

  /** Never rejects: what goes wrong is the batches' outcome. */
  async #produce(leader: NodeId, batches: readonly ProducerBatch<Tag>[]): Promise<void> {
    this.#underWay.set(leader, (this.#underWay.get(leader) ?? 0) + 1)
    try {
      const exchange = (channel: Channel) => this.#exchange(channel, leader, batches)
      const settle = await askLeader(this.#client, leader, PURPOSE, batches, PATIENCE_MS, exchange)
      settle()
    } catch (error) {
      const failure = clientError(error)
      const final = failure instanceof ClientError && !failure.retriable ? failure : undefined
      for (const batch of batches) this.#settle(batch, { answered: false }, final)
      // The leader may be another one by now.
      if (final === undefined) {
        this.#leaders.misled(
          batches.map(({ topic }) => topic),
          leader,
        )
      }
    } finally {
      this.#underWay.set(leader, (this.#underWay.get(leader) ?? 1) - 1)
      this.#schedule()
    }
  }

  /** Returns what settles the batches as they were answered. */
  async #exchange(channel: Channel, leader: NodeId, batches: readonly ProducerBatch<Tag>[]): Promise<() => void> {
    const { acks, requestTimeoutMs } = this.#options
    const byTopic = Map.groupBy(batches, ({ topic }) => topic)
    const topics = [...byTopic].map(([name, list]) => ({
      name,
      topicId: this.#client.metadata.remembered(name)?.id ?? ZERO_UUID,
      partitionData: list.map(({ partition, bytes }) => ({ index: partition, records: bytes ?? null })),
    }))
    const cap = topics.some(({ topicId }) => topicId === ZERO_UUID) ? PRODUCE_BY_NAME_MAX : undefined
    const version = channel.versionFor(ProduceRequest, cap)
    if (version === undefined) throw channel.unsupported(ProduceRequest)
    const body = { acks: acks === 'all' ? -1 : acks, timeoutMs: requestTimeoutMs, topicData: topics }
    if (acks === 0) {
      channel.post(ProduceRequest, version, body)
      this.#mind(channel, leader, byTopic.keys())
      return () => {
        for (const batch of batches) this.#settle(batch, { answered: true, errorCode: 0, baseOffset: -1 })
      }
    }
    const graceMs = Math.min(ANSWER_GRACE_MS, requestTimeoutMs / 2)
    const answer = await channel.call(PRODUCE, version, body, { timeoutMs: requestTimeoutMs + graceMs })
    const answers = new Map<string, ProduceResponse['responses'][number]['partitionResponses'][number]>()
    const nameById = new Map(topics.map(({ name, topicId }) => [topicId, name]))
    for (const { name, topicId, partitionResponses } of answer.responses) {
      const topic = version > PRODUCE_BY_NAME_MAX ? nameById.get(topicId) : name
      for (const each of partitionResponses) answers.set(`${topic}-${each.index}`, each)
    }
    return () => this.#answered(leader, channel, batches, answers, answer.nodeEndpoints)
  }

  #answered(
    leader: NodeId,
    { address }: Channel,
    batches: readonly ProducerBatch<Tag>[],
    answers: ReadonlyMap<string, ProduceResponse['responses'][number]['partitionResponses'][number]>,
    endpoints: ProduceResponse['nodeEndpoints'],
  ): void {
    const misled = new Set<string>()
    for (const batch of batches) {
      const { topic, partition } = batch
      const found = answers.get(`${topic}-${partition}`)
      if (found === undefined) {
        this.#settle(batch, { answered: false })
        continue
      }
      const { errorCode, baseOffset, errorMessage, currentLeader } = found
      this.#settle(
        batch,
        { answered: true, errorCode, baseOffset },
        brokerError(errorCode, `partition ${topic}-${partition}`, errorMessage),
      )
      if (errorCode === 0 || !errorOf(errorCode).retriable) continue
      const learnt = this.#client.metadata.learn(topic, partition, { ...currentLeader, endpoints }, address)
      if (learnt) this.#hasten(topic)
      else misled.add(topic)
    }
    this.#leaders.misled(misled, leader)
  }

  /** With acks=0 a leader that leads no more has no way to say so but to hang up. */
  #mind(channel: Channel, leader: NodeId, topics: Iterable<string>): void {
    const minded = this.#minded.get(channel) ?? new Set()
    for (const topic of topics) minded.add(topic)
    if (this.#minded.has(channel)) return
    this.#minded.set(channel, minded)
    channel.whenClosed(() => {
      if (!this.#closed) this.#leaders.misled(minded, leader)
    })
  }

  /** Where another one leads than was asked, nothing waits before it is asked. */
  #hasten(topic: string): void {
    for (const { partition, leader, leaderEpoch } of this.#client.metadata.remembered(topic)?.partitions ?? []) {
      if (leader >= 0) this.#accumulator.hasten(topic, partition, leaderEpoch)
    }
  }

  #settle(batch: ProducerBatch<Tag>, outcome: Outcome, error?: ClientError): void {
    const settlement = this.#accumulator.settle(batch, outcome, this.#client.world.clock.monotonic())
    if (settlement.type === 'retry') return
    if (settlement.type === 'failed') {
      const about = `partition ${batch.topic}-${batch.partition}`
      this.#fail(batch, error ?? brokerError(settlement.errorCode, about))
      return
    }
    const { baseOffset } = settlement
    for (const [at, { delivery, index }] of batch.tags.entries()) {
      const offset = baseOffset < 0 ? -1 : baseOffset + at
      delivery.written(index, { topic: batch.topic, partition: batch.partition, offset })
    }
    this.#settled()
  }

  #fail(batch: ProducerBatch<Tag>, error: unknown): void {
    for (const delivery of new Set(batch.tags.map(tag => tag.delivery))) delivery.failed(error)
    this.#settled()
  }

  #settled(): void {
    for (const resolve of this.#waitForRoom.splice(0)) resolve()
    if (this.#accumulator.empty) for (const resolve of this.#waitForEmpty.splice(0)) resolve()
  }

  #watch(): void {
    const at = this.#accumulator.wakeAt()
    // With requests under way there is a wake-up anyway, but one of another partition may be due before.
    if (at === undefined || at >= this.#timerAt) return
    this.#timer?.cancel()
    this.#timerAt = at
    // What is ready already waits for a request to come back or for metadata; both look here again, so this is no hurry.
    const left = at - this.#client.world.clock.monotonic()
    this.#timer = this.#client.world.clock.after(left > 0 ? Math.ceil(left) : 50, () => {
      this.#timerAt = Number.POSITIVE_INFINITY
      this.#pump()
    })
  }

  #identify(): void {
    if (this.#identifying) return
    this.#identifying = true
    this.#client
      .ask(
        'first',
        INIT_PRODUCER_ID,
        { transactionalId: null, transactionTimeoutMs: 0x7fff_ffff },
        { check: ({ errorCode }) => throwIfError(errorCode, 'the producer id') },
      )
      .then(
        ({ producerId, producerEpoch: epoch }) => this.#accumulator.identify({ producerId, epoch }),
        error => {
          for (const batch of this.#accumulator.abandon()) this.#fail(batch, error)
        },
      )
      .finally(() => {
        this.#identifying = false
        this.#schedule()
      })
  }
}
