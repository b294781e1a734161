import type { SeededRandom } from '#base/random.ts'
import type { Client } from '#client/client.ts'
import { ClientError } from '#client/errors.ts'
import { Producer } from '#client/producer.ts'
import type { FakeNode } from '#world/fake/fake-node.ts'
import { keyOf, type Origin, type Sent } from '../checkers/node-ledger.ts'
import { Violation } from '../checkers/partition-log.ts'
import { dial, type Scene, type SceneTopic } from './scene.ts'

const COMPRESSIONS = ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const

/** A node may be out of reach for longer than a producer tries. */
const OUT_OF_TIME: ReadonlySet<string> = new Set([
  'TIMED_OUT',
  'REQUEST_TIMED_OUT',
  'CONNECTION_FAILED',
  'NOT_ENOUGH_REPLICAS',
])

/** Sends numbered records with idempotent producers, one after another, until the scene is calm. */
export class Producing {
  readonly #scene: Scene
  readonly #node: FakeNode
  readonly #random: SeededRandom
  #made = 0

  constructor(scene: Scene, node: FakeNode, random: SeededRandom) {
    this.#scene = scene
    this.#node = node
    this.#random = random
  }

  async run(): Promise<void> {
    const client = await dial(this.#scene, this.#node, this.#random)
    while (!this.#scene.calm) await this.#producer(client, this.#scene.topics, this.#random.between(1, 60))
    client.close()
  }

  /** One producer and so many sends. */
  async #producer(client: Client, topics: readonly SceneTopic[], sends: number): Promise<void> {
    const { ledger } = this.#scene
    const origin = ledger.origin(`${this.#node.name}.${++this.#made}`)
    await produceNumbered(this.#scene, client, origin, topics, sends, this.#random, () => this.#scene.calm)
  }
}

export async function produceNumbered(
  scene: Scene,
  client: Client,
  origin: Origin,
  topics: readonly SceneTopic[],
  sends: number,
  random: SeededRandom,
  until: () => boolean,
): Promise<void> {
  const { ledger, simulation } = scene
  const { losses } = ledger
  const producer = new Producer(client, {
    lingerMs: random.pick([0, 1, 5, 50]),
    batchBytes: random.pick([100, 1000, 16_384]),
    compression: random.chance(0.7) ? 'none' : random.pick(COMPRESSIONS),
    requestTimeoutMs: random.between(2000, 30_000),
    createTopics: false,
  })
  const numbers = new Map<string, number>()
  const underWay: Promise<void>[] = []
  let failed = false
  for (let left = sends; left > 0 && !until() && !failed && losses === ledger.losses; left--) {
    const topic = random.pick(topics)
    const partition = random.below(topic.partitions)
    const batch = Array.from({ length: random.between(1, 4) }, (): Sent => {
      const place = { topic: topic.name, partition }
      const number = (numbers.get(keyOf(place)) ?? -1) + 1
      numbers.set(keyOf(place), number)
      const value = `${origin.name}/${keyOf(place)}/${number} `.padEnd(random.chance(0.1) ? 2000 : 30, '.')
      return { ...place, producer: origin.name, number, value }
    })
    for (const sent of batch) ledger.sending(sent)
    const sending = producer.send(
      topic.name,
      batch.map(({ value }) => ({ value, partition })),
    )
    const settled = sending.then(
      written => {
        // Some of it may have been acknowledged before a power cut and lost by it.
        if (!topic.durable && losses !== ledger.losses) return
        for (const [index, { offset }] of written.entries()) ledger.acknowledged(batch[index] as Sent, offset)
      },
      (error: unknown) => {
        failed = true
        origin.tainted = true
        if (!(error instanceof ClientError)) throw error
        // A broker that is cut off from the controllers may not have heard of a new topic or partition for long.
        const isNews = error.code === 'UNKNOWN_TOPIC_OR_PARTITION' || error.message.includes('has no partition')
        const unheard = isNews && scene.servers.length > 1
        if (!OUT_OF_TIME.has(error.code) && !error.retriable && !unheard && losses === ledger.losses) {
          throw new Violation(`${origin.name} could not send: ${error.code}, ${error.message}`)
        }
      },
    )
    settled.catch(scene.fails)
    underWay.push(settled)
    if (random.chance(0.3)) await settled
    if (random.chance(0.6)) await simulation.wait(random.fraction() * random.pick([1, 20, 300]) * scene.pace)
  }
  await producer.close()
  await Promise.all(underWay)
}

/** One record to every partition named, until it is taken: each leaves the set when it was. */
export async function touch(
  scene: Scene,
  client: Client,
  origin: Origin,
  left: Set<string>,
  random: SeededRandom,
): Promise<void> {
  const { ledger } = scene
  // Who is silent keeps nobody waiting for long.
  const producer = new Producer(client, { requestTimeoutMs: 1000, createTopics: false })
  await Promise.all(
    [...left].map(async key => {
      const dash = key.lastIndexOf('-')
      const place = { topic: key.slice(0, dash), partition: Number(key.slice(dash + 1)) }
      const sent: Sent = {
        ...place,
        producer: origin.name,
        number: 0,
        value: `${origin.name}/${key}/0 ${random.below(10)}`,
      }
      ledger.sending(sent)
      const [written] = await producer.send(place.topic, [{ value: sent.value, partition: place.partition }])
      if (written !== undefined) ledger.acknowledged(sent, written.offset)
      left.delete(key)
    }),
  )
  await producer.close()
}
