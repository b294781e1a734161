import type { SeededRandom } from '#base/random.ts'
import type { Millis, Offset } from '#base/units.ts'
import { fetchOffsets } from '#client/admin/groups.ts'
import { listOffsets } from '#client/admin/offsets.ts'
import type { Client } from '#client/client.ts'
import { type ConsumedRecord, Consumer } from '#client/consumer.ts'
import { ClientError } from '#client/errors.ts'
import type { TopicPartition } from '#client/per-leader.ts'
import { Channel, ChannelError } from '#network/channel.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode, errorOf } from '#protocol/errors.ts'
import { batchesOf } from '#records/batch.ts'
import { recordsOf } from '#records/records.ts'
import type { FakeNode } from '#world/fake/fake-node.ts'
import { keyOf } from '../checkers/node-ledger.ts'
import { holds } from '../checkers/partition-log.ts'
import { dial, insist, type Scene, type Serving } from './scene.ts'

/** A request that came in whole is answered, or its connection closed, within this; a disk hangs for less. */
const ANSWER_MS_MAX: Millis = 40_000

/** For so long a leader that is cut off may not have heard that a topic is gone. */
const STALE_MS_MAX: Millis = 120_000

/** Looks at everything that the node serves, over a network without faults. */
export class Observing {
  readonly #scene: Scene
  readonly #server: Serving
  readonly #node: FakeNode
  readonly #random: SeededRandom
  #client: Client | undefined

  constructor(scene: Scene, server: Serving, node: FakeNode, random: SeededRandom) {
    this.#scene = scene
    this.#server = server
    this.#node = node
    this.#random = random
  }

  async client(): Promise<Client> {
    if (this.#client === undefined) {
      this.#client = await dial(this.#scene, this.#node, this.#random)
      this.#server.silenced.push(() => this.forget())
    }
    return this.#client
  }

  forget(): void {
    this.#client?.close()
    this.#client = undefined
  }

  /** After a power cut, before anybody else is served: what it has taken. */
  async assess(): Promise<void> {
    const { ledger, groups } = this.#scene
    const { lossy } = ledger
    const ends = await this.#list(lossy, 'latest')
    ledger.lost(lossy.map(of => ({ ...of, offset: ends.get(keyOf(of)) ?? 0 })))
    if (ledger.commitsDurable) return
    for (const group of groups) ledger.commitsLost(group, await this.committed(group))
  }

  /** Compares all that there is with what was promised. */
  async survey(): Promise<void> {
    const { ledger, topics, groups } = this.#scene
    for (const { name: topic, partitions } of topics) {
      for (let partition = 0; partition < partitions; partition++) await this.partition({ topic, partition })
    }
    for (const group of groups) {
      const floors = ledger.commitFloors(group)
      const isSame = this.#sameLog()
      const found = await this.committed(group)
      if (isSame()) ledger.commitsRead(group, found, floors)
    }
  }

  async partition(of: TopicPartition): Promise<void> {
    const { ledger } = this.#scene
    const began = this.#scene.simulation.schedule.now
    for (;;) {
      const [floor, startFloor] = [ledger.floor(of), ledger.startFloor(of)]
      const isSame = this.#sameLog()
      const start = (await this.#list([of], 'earliest')).get(keyOf(of)) ?? -1
      const end = (await this.#list([of], 'latest')).get(keyOf(of)) ?? -1
      const records = await this.#read(of, start, end)
      if (records === undefined) continue
      if (!isSame()) return
      if (records.some(record => ledger.wasDropped(record))) {
        // A leader that is cut off has not heard yet that the topic is gone which had the name before.
        const forMs = (this.#scene.simulation.schedule.now - began) / 1000
        holds(forMs < STALE_MS_MAX, `${keyOf(of)}: what is read was deleted with an earlier topic, ${forMs} ms ago`)
        this.forget()
        await this.#scene.simulation.wait(100)
        continue
      }
      ledger.bounds(of, start, end, floor, startFloor)
      ledger.whole(of, start, end, records)
      return
    }
  }

  /**
   * Of a topic that comes and goes the end may have been told by a leader of one that had the name before, which stood still
   * and had not heard yet that it is gone: offsets are asked for by name, and both may be in their first epoch.
   */
  async #wasAnothers(of: TopicPartition, end: Offset): Promise<boolean> {
    if (this.#scene.topics.some(({ name }) => name === of.topic)) return false
    return ((await this.#list([of], 'latest')).get(keyOf(of)) ?? -1) < end
  }

  /** Says later whether no power cut can have taken anything since; if it has, what was learnt is of no use. */
  #sameLog(): () => boolean {
    const { losses } = this.#scene.ledger
    return () => losses === this.#scene.ledger.losses && !this.#server.unsure
  }

  async ends(): Promise<ReadonlyMap<string, Offset>> {
    const { topics } = this.#scene
    return await this.#list(
      topics.flatMap(({ name: topic, partitions }) =>
        Array.from({ length: partitions }, (_, partition) => ({ topic, partition })),
      ),
      'latest',
    )
  }

  async #list(of: readonly TopicPartition[], spec: 'earliest' | 'latest'): Promise<Map<string, Offset>> {
    if (of.length === 0) return new Map()
    const listed = await this.#insist(client =>
      listOffsets(
        client,
        of.map(each => ({ ...each, spec })),
      ),
    )
    return new Map(listed.map(each => [keyOf(each), each.offset]))
  }

  async committed(group: string): Promise<Map<string, Offset>> {
    const found = await this.#insist(client => fetchOffsets(client, group))
    return new Map(found.map(each => [keyOf(each), each.offset]))
  }

  /** Everything between two offsets, from the start again if the node dies meanwhile. Undefined if the end was none. */
  async #read(of: TopicPartition, start: Offset, end: Offset): Promise<ConsumedRecord[] | undefined> {
    return await this.#insist(async client => {
      const consumer = new Consumer(client, { offsetReset: 'earliest', maxWaitMs: 200 })
      consumer.assign([{ ...of, from: start }])
      const records: ConsumedRecord[] = []
      const began = this.#scene.simulation.schedule.now
      try {
        const isSame = this.#sameLog()
        while ((consumer.position(of) ?? start) < end && isSame()) {
          records.push(...(await consumer.poll(500)))
          if ((this.#scene.simulation.schedule.now - began) / 1000 <= 20_000) continue
          if (await this.#wasAnothers(of, end)) return undefined
          holds(
            !this.#scene.calm,
            `${keyOf(of)}: nothing comes behind ${consumer.position(of)} though it ends at ${end}`,
          )
          throw new ClientError('TIMED_OUT', 'reading takes long', { retriable: true })
        }
        return records
      } finally {
        await consumer.close()
      }
    })
  }

  async #insist<T>(act: (client: Client) => Promise<T>): Promise<T> {
    const value = await insist(
      this.#scene,
      this.#random,
      async () => act(await this.client()),
      error => error.code === 'CLOSED',
    )
    return value instanceof ClientError ? await this.#insist(act) : value
  }

  /** Sends requests of all kinds and times the answers. */
  async probe(): Promise<void> {
    const { simulation } = this.#scene
    while (!this.#scene.over) {
      await simulation.wait(this.#random.between(1, 2000) * this.#scene.pace)
      if (!this.#server.up) continue
      try {
        await this.#probeOnce()
      } catch (error) {
        if (!(error instanceof ChannelError)) throw error
      }
    }
  }

  async #probeOnce(): Promise<void> {
    const { simulation, servers } = this.#scene
    const [only] = servers
    const address = servers.length === 1 && only !== undefined ? only : this.#random.pick(servers)
    const channel = await Channel.connect(this.#node.world, address, { requestTimeoutMs: ANSWER_MS_MAX + 1000 })
    this.#server.silenced.push(() => channel.close())
    try {
      await channel.negotiate()
      const count = this.#random.between(1, 8)
      await Promise.all(
        Array.from({ length: count }, async () => {
          const began = simulation.schedule.now
          const { kind, ask } = this.#question(channel)
          await ask().finally(() => {
            const tookMs = (simulation.schedule.now - began) / 1000
            holds(tookMs <= ANSWER_MS_MAX, `${kind} was answered after ${tookMs} ms`)
          })
        }),
      )
    } finally {
      channel.close()
    }
  }

  /** A replica gives nothing but what is committed, whether it leads or follows. */
  #served(of: TopicPartition, bytes: Buffer, highWatermark: Offset): void {
    for (const at of batchesOf(bytes)) {
      for (const { offset, timestamp, key, value } of recordsOf(bytes, at)) {
        holds(
          offset < highWatermark,
          `${keyOf(of)}: ${offset} is given by one who knows that ${highWatermark} is committed`,
        )
        this.#scene.ledger.read({ ...of, offset, timestamp, key, value, headers: [] })
      }
    }
  }

  #question(channel: Channel): { readonly kind: string; readonly ask: () => Promise<unknown> } {
    const random = this.#random
    const { ledger, topics, groups } = this.#scene
    const { name, partitions } = random.pick(topics)
    const partitionIndex = random.below(partitions)
    switch (random.below(7)) {
      case 0:
        return { kind: 'Metadata', ask: () => channel.ask(API.Metadata, { topics: null }) }
      case 1: {
        const of = { topic: name, partition: partitionIndex }
        const fetchOffset = random.chance(0.5) ? 0 : random.below(ledger.floor(of) + 1)
        const topic = { topic: name, partitions: [{ partition: partitionIndex, fetchOffset, partitionMaxBytes: 5000 }] }
        const body = { maxWaitMs: random.between(0, 2000), minBytes: random.pick([0, 1, 1_000_000]), maxBytes: 10_000 }
        return {
          kind: 'Fetch',
          ask: async () => {
            const isSame = this.#sameLog()
            const answer = await channel.ask(API.Fetch, { ...body, topics: [topic] }, { versionMax: 12 })
            const found = answer.responses[0]?.partitions[0]
            if (found?.records && isSame()) this.#served(of, found.records, found.highWatermark)
          },
        }
      }
      case 2:
        return {
          kind: 'ListOffsets',
          ask: () =>
            channel.ask(API.ListOffsets, {
              replicaId: -1,
              topics: [{ name, partitions: [{ partitionIndex, timestamp: random.pick([-3, -2, -1, 0]) }] }],
            }),
        }
      case 3:
        return {
          kind: 'OffsetFetch',
          ask: () =>
            channel.ask(
              API.OffsetFetch,
              { groups: [{ groupId: random.pick(groups), topics: null }] },
              { versionMax: 9 },
            ),
        }
      case 4:
        return {
          kind: 'DescribeConfigs',
          ask: () =>
            channel.ask(API.DescribeConfigs, {
              resources: [{ resourceType: 2, resourceName: name, configurationKeys: null }],
            }),
        }
      case 5:
        return { kind: 'ListGroups', ask: () => channel.ask(API.ListGroups, {}) }
      default:
        return {
          kind: 'InitProducerId',
          ask: async () => {
            const body = { transactionalId: null, transactionTimeoutMs: 60_000 }
            const { errorCode, producerId } = await channel.ask(API.InitProducerId, body)
            if (errorCode === ErrorCode.NONE) ledger.producerId(producerId)
            else holds(errorOf(errorCode).retriable, `InitProducerId was refused: ${errorOf(errorCode).name}`)
          },
        }
    }
  }
}
