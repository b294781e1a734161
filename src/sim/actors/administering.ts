import type { SeededRandom } from '#base/random.ts'
import { alterConfigs, describeConfigs } from '#client/admin/configs.ts'
import { createTopic, deleteRecords, deleteTopic, listTopics } from '#client/admin/topics.ts'
import type { Client } from '#client/client.ts'
import { ClientError } from '#client/errors.ts'
import type { FakeNode } from '#world/fake/fake-node.ts'
import type { Observing } from './observing.ts'
import { produceNumbered } from './producing.ts'
import { dial, eventually, insist, type Scene, type SceneTopic } from './scene.ts'

/** Settings that may change without that anything which is promised changes. */
const SETTINGS: Readonly<Record<string, readonly string[]>> = {
  'max.message.bytes': ['500000', '1000000', '2000000'],
  'segment.ms': ['1000', '60000', '604800000'],
  'index.interval.bytes': ['100', '4096'],
  'retention.ms': ['-1', '604800000'],
}
export const MIN_IN_SYNC = 'min.insync.replicas'
const SETTLES_MS = 60_000

export interface AdministeringOptions {
  /** More settings that may change. */
  readonly settings?: Readonly<Record<string, readonly string[]>>
  /** How many replicas topics have that come and go. */
  readonly passingReplicas?: readonly number[]
}

/** Changes what the cluster knows of topics, and looks whether it still knows it. */
export class Administering {
  readonly #scene: Scene
  readonly #node: FakeNode
  readonly #random: SeededRandom
  readonly #observing: Observing
  /** What was set for a topic; two values where nobody answered. */
  readonly #settings = new Map<string, Map<string, Set<string | undefined>>>()
  /** Those that are there now. */
  readonly #passing = new Map<string, SceneTopic>()
  readonly #possible: Readonly<Record<string, readonly string[]>>
  readonly #passingReplicas: readonly number[]

  constructor(
    scene: Scene,
    node: FakeNode,
    random: SeededRandom,
    observing: Observing,
    { settings = {}, passingReplicas = [1] }: AdministeringOptions = {},
  ) {
    this.#possible = { ...SETTINGS, ...settings }
    this.#passingReplicas = passingReplicas
    this.#scene = scene
    this.#node = node
    this.#random = random
    this.#observing = observing
  }

  async run(): Promise<void> {
    const { simulation } = this.#scene
    const client = await dial(this.#scene, this.#node, this.#random)
    while (!this.#scene.calm) {
      await simulation.wait(this.#random.between(1, 3000) * this.#scene.pace)
      switch (this.#random.below(4)) {
        case 0:
          await this.#alter(client)
          break
        case 1:
          await this.#deleteRecords(client, this.#random.pick(this.#scene.topics))
          break
        case 2:
          await this.#pass(client)
          break
        default:
          await this.#check(client)
      }
    }
    await this.#check(client)
    await this.#settle(client)
    for (const topic of [...this.#passing.values()]) await this.#end(client, topic)
    client.close()
  }

  /** Creates a topic whatever it takes. */
  async create(client: Client, topic: SceneTopic, configs: Readonly<Record<string, string>>): Promise<void> {
    const { name, partitions, replicas } = topic
    await insist(
      this.#scene,
      this.#random,
      () => createTopic(client, { name, partitions, replicationFactor: replicas, configs }),
      ({ code }) => code === 'TOPIC_ALREADY_EXISTS',
    )
    this.#settings.set(name, new Map(Object.entries(configs).map(([key, value]) => [key, new Set([value])])))
    for (let partition = 0; partition < partitions; partition++) {
      this.#scene.ledger.add({ topic: name, partition }, topic.durable)
    }
  }

  async #alter(client: Client): Promise<void> {
    const random = this.#random
    const { name } = random.pick(this.#scene.topics)
    const key = random.pick(Object.keys(this.#possible))
    const value = random.chance(0.2) ? undefined : random.pick(this.#possible[key] as readonly string[])
    const settings = this.#settings.get(name) as Map<string, Set<string | undefined>>
    const possible = settings.get(key) ?? new Set([undefined])
    settings.set(key, possible.add(value))
    const change = value === undefined ? { name: key, op: 'delete' as const } : { name: key, op: 'set' as const, value }
    await insist(this.#scene, random, () => alterConfigs(client, { type: 'topic', name }, [change]))
    settings.set(key, new Set([value]))
  }

  /** What would hold up writes while one is missing is as it was at first. */
  async #settle(client: Client): Promise<void> {
    for (const { name } of this.#scene.topics) {
      if (this.#settings.get(name)?.has(MIN_IN_SYNC) !== true) continue
      await insist(this.#scene, this.#random, () =>
        alterConfigs(client, { type: 'topic', name }, [{ name: MIN_IN_SYNC, op: 'delete' }]),
      )
    }
  }

  async #check(client: Client): Promise<void> {
    for (const { name } of this.#scene.topics) {
      // What is changed is answered before the image that is described has it, so for a moment it may be older.
      let wrong = ''
      await eventually(this.#scene, `the settings of ${name} are others than were set`, SETTLES_MS, async () => {
        const entries = await insist(this.#scene, this.#random, () => describeConfigs(client, { type: 'topic', name }))
        if (entries instanceof ClientError) return false
        const own = new Map(entries.filter(({ source }) => source === 'topic').map(each => [each.name, each.value]))
        const settings = this.#settings.get(name) as Map<string, Set<string | undefined>>
        wrong = [...settings].find(([key, possible]) => !possible.has(own.get(key) ?? undefined))?.[0] ?? ''
        return wrong === ''
      })
    }
    // A broker that is cut off tells what it knew before.
    await eventually(this.#scene, 'topics are missing', SETTLES_MS, async () => {
      const known = await insist(this.#scene, this.#random, () => listTopics(client))
      if (known instanceof ClientError) return false
      const names = new Set(known.map(({ name }) => name))
      return [...this.#scene.topics, ...this.#passing.values()].every(({ name }) => names.has(name))
    })
  }

  async #deleteRecords(client: Client, { name: topic, partitions }: SceneTopic): Promise<void> {
    const { ledger } = this.#scene
    const of = { topic, partition: this.#random.below(partitions) }
    const offset = this.#random.below(ledger.floor(of) + 1)
    const { losses, deaths } = ledger
    ledger.deleting(of, offset)
    const answer = await insist(
      this.#scene,
      this.#random,
      () => deleteRecords(client, [{ ...of, offset }]),
      // A leader that has just begun may not know yet how far all of it is committed.
      ({ code }) => code === 'OFFSET_OUT_OF_RANGE' && (losses !== ledger.losses || this.#scene.servers.length > 1),
    )
    if (!(answer instanceof ClientError) && losses === ledger.losses && deaths === ledger.deaths) {
      for (const each of answer) ledger.deleted(each, each.lowWatermark)
    }
  }

  /**
   * A topic that comes and goes, often under a name that was there before. Some stay for a while, through the deaths of
   * nodes: nothing that was written down of the one before may be believed of it.
   */
  async #pass(client: Client): Promise<void> {
    const { ledger } = this.#scene
    const random = this.#random
    const name = `passing${random.below(2)}`
    const there = this.#passing.get(name)
    if (there !== undefined) {
      await this.#end(client, there)
      if (random.chance(0.2)) return
    }
    const topic: SceneTopic = {
      name,
      partitions: random.between(1, 2),
      replicas: random.pick(this.#passingReplicas),
      durable: true,
    }
    const configs = { 'flush.messages': '1', 'file.delete.delay.ms': String(random.between(0, 2000)) }
    await this.create(client, topic, configs)
    this.#passing.set(name, topic)
    const origin = ledger.origin(`${name}@${this.#scene.simulation.schedule.now}`)
    await produceNumbered(this.#scene, client, origin, [topic], random.between(1, 5), random, () => false)
    // Where a log begins is written down at once, and with it where all others do.
    if (random.chance(there === undefined ? 0.7 : 0.2)) await this.#deleteRecords(client, topic)
    if (random.chance(0.2)) await this.#end(client, topic)
  }

  async #end(client: Client, topic: SceneTopic): Promise<void> {
    const { ledger } = this.#scene
    const random = this.#random
    const { name } = topic
    if (random.chance(0.7)) {
      for (let partition = 0; partition < topic.partitions; partition++) {
        await this.#observing.partition({ topic: name, partition })
      }
    }
    this.#passing.delete(name)
    ledger.drop(name)
    await insist(
      this.#scene,
      random,
      () => deleteTopic(client, name),
      ({ code }) => code === 'UNKNOWN_TOPIC_OR_PARTITION',
    )
    // Who has deleted it does not believe that it is there.
    const other = await dial(this.#scene, this.#node, random)
    await eventually(this.#scene, `topic ${name} was deleted and is there`, SETTLES_MS, async () => {
      const known = await insist(this.#scene, random, () => listTopics(other))
      return !(known instanceof ClientError) && known.every(each => each.name !== name)
    })
    other.close()
  }
}
