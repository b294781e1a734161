import type { SeededRandom } from '#base/random.ts'
import type { Millis, NodeId } from '#base/units.ts'
import { alterConfigs } from '#client/admin/configs.ts'
import { electLeaders } from '#client/admin/elections.ts'
import { addVoter, describeQuorum, removeVoter } from '#client/admin/quorum.ts'
import { alterReassignments, listReassignments } from '#client/admin/reassignments.ts'
import { createPartitions, createTopic, listTopics } from '#client/admin/topics.ts'
import type { Client } from '#client/client.ts'
import { ClientError } from '#client/errors.ts'
import { Producer } from '#client/producer.ts'
import type { FakeNode } from '#world/fake/fake-node.ts'
import { Violation } from '../checkers/partition-log.ts'
import { MIN_IN_SYNC } from './administering.ts'
import { dial, eventually, insist, type Scene, type SceneTopic } from './scene.ts'

/** A topic that may lose what it took: unclean elections, acks=1, retention. Only its replicas have to agree. */
export const LOOSE_TOPIC = 'loose'

const THROTTLED = ['leader.replication.throttled', 'follower.replication.throttled'] as const
const ENDS_MS_MAX = 240_000
const RESTS_MS_MAX = 5000
/** What may be wrong with a change that was right a moment ago: brokers come and go. */
const RIGHTLY_REFUSED: ReadonlySet<string> = new Set([
  'INVALID_REPLICA_ASSIGNMENT',
  'NO_REASSIGNMENT_IN_PROGRESS',
  'INVALID_REPLICATION_FACTOR',
  'INVALID_PARTITIONS',
  'UNKNOWN_TOPIC_OR_PARTITION',
  'DUPLICATE_VOTER',
  'VOTER_NOT_FOUND',
])

export interface Reshape {
  readonly reassign: boolean
  /** The cluster's min.insync.replicas goes up and down. */
  readonly restrict: boolean
  readonly grow: boolean
  readonly elect: boolean
  readonly throttle: boolean
  readonly voters: boolean
}

export interface GrowingTopic extends SceneTopic {
  partitions: number
}

/** Changes what the cluster looks like: where replicas are, who leads, how many partitions there are, who votes. */
export class Reshaping {
  readonly #scene: Scene
  readonly #node: FakeNode
  readonly #random: SeededRandom
  readonly #topics: readonly GrowingTopic[]
  readonly #brokers: readonly NodeId[]
  readonly #restricts: boolean
  readonly #shapes: readonly ((client: Client) => Promise<void>)[]

  constructor(
    scene: Scene,
    node: FakeNode,
    random: SeededRandom,
    shape: Reshape,
    topics: readonly GrowingTopic[],
    brokers: readonly NodeId[],
  ) {
    this.#scene = scene
    this.#node = node
    this.#random = random
    this.#topics = topics
    this.#brokers = brokers
    this.#restricts = shape.restrict
    this.#shapes = [
      ...(shape.reassign ? [(client: Client) => this.#reassign(client)] : []),
      ...(shape.restrict ? [(client: Client) => this.#restrict(client, this.#random.pick(['2', '3']))] : []),
      ...(shape.grow ? [(client: Client) => this.#grow(client)] : []),
      ...(shape.elect ? [(client: Client) => this.#elect(client)] : []),
      ...(shape.throttle ? [(client: Client) => this.#throttle(client)] : []),
      ...(shape.voters ? [(client: Client) => this.#revote(client)] : []),
    ]
  }

  async run(): Promise<void> {
    if (this.#shapes.length === 0) return
    const client = await dial(this.#scene, this.#node, this.#random)
    while (!this.#scene.calm) {
      await this.#rest(this.#random.between(1, 6000) * this.#scene.pace)
      if (!this.#scene.calm) await this.#random.pick(this.#shapes)(client)
    }
    await this.#settle(client)
    client.close()
  }

  /** Not beyond the calm: a throttle that stayed would hold up what has to be well again soon. */
  async #rest(ms: Millis): Promise<void> {
    for (let left = ms; left > 0 && !this.#scene.calm; left -= RESTS_MS_MAX) {
      await this.#scene.simulation.wait(Math.min(left, RESTS_MS_MAX))
    }
  }

  async #restrict(client: Client, value: string): Promise<void> {
    const change = { name: MIN_IN_SYNC, op: 'set', value } as const
    await this.#insist(() => alterConfigs(client, { type: 'broker', name: '' }, [change]))
  }

  /** Nothing that was begun goes on for ever. */
  async #settle(client: Client): Promise<void> {
    if (this.#restricts) await this.#restrict(client, '2')
    await this.#insist(() =>
      alterConfigs(
        client,
        { type: 'broker', name: '' },
        THROTTLED.map(name => ({ name: `${name}.rate`, op: 'delete' })),
      ),
    )
    await eventually(this.#scene, 'reassignments do not end', ENDS_MS_MAX, async () => {
      const left = await listReassignments(client).catch((error: unknown) => {
        if (!(error instanceof ClientError)) throw error
        return undefined
      })
      return left?.length === 0
    })
  }

  /** Sends to the loose topic until the scene is calm; what becomes of it is nobody's business. */
  async spill(node: FakeNode, random: SeededRandom): Promise<void> {
    const client = await dial(this.#scene, node, random)
    const configs = {
      'unclean.leader.election.enable': 'true',
      'min.insync.replicas': '1',
      'internal.segment.bytes': '5000',
      'retention.bytes': '20000',
      'file.delete.delay.ms': '100',
    }
    const wanted = { name: LOOSE_TOPIC, partitions: 2, replicationFactor: 3, configs }
    await this.#insist(() => createTopic(client, wanted), ['TOPIC_ALREADY_EXISTS'])
    const { simulation } = this.#scene
    while (!this.#scene.calm) {
      const producer = new Producer(client, {
        acks: random.pick([1, 1, 'all'] as const),
        requestTimeoutMs: 3000,
        createTopics: false,
      })
      for (let left = random.between(1, 40); left > 0 && !this.#scene.calm; left--) {
        const records = [
          { value: `${simulation.schedule.now}`.padEnd(random.between(20, 300), '-'), partition: random.below(2) },
        ]
        producer.send(LOOSE_TOPIC, records).catch((error: unknown) => {
          if (!(error instanceof ClientError)) this.#scene.fails(error)
        })
        await simulation.wait(random.fraction() * random.pick([1, 50, 500]) * this.#scene.pace)
      }
      await producer.close()
    }
    client.close()
  }

  async #reassign(client: Client): Promise<void> {
    const random = this.#random
    const { name: topic, partitions } = random.pick(this.#topics)
    const partition = random.below(partitions)
    if (random.chance(0.2)) {
      await this.#insist(() => alterReassignments(client, [{ topic, partition, replicas: null }]))
      return
    }
    const count = Math.min(this.#brokers.length, random.pick([2, 3, 3, 4]))
    const replicas = shuffled(this.#brokers, random).slice(0, count)
    await this.#insist(async () => {
      for (const { error } of await alterReassignments(client, [{ topic, partition, replicas }])) throw error
    })
  }

  async #grow(client: Client): Promise<void> {
    const topic = this.#random.pick(this.#topics)
    if (topic.partitions >= 6) return
    const count = topic.partitions + 1
    await this.#insist(() => createPartitions(client, topic.name, count))
    // Whether it was done, and the answer lost, is known by looking.
    const known = await this.#insist(() => listTopics(client))
    if (known === undefined || known instanceof ClientError) return
    if ((known.find(({ name }) => name === topic.name)?.partitions.length ?? 0) < count) return
    this.#scene.ledger.add({ topic: topic.name, partition: count - 1 }, topic.durable)
    topic.partitions = count
  }

  async #elect(client: Client): Promise<void> {
    await this.#insist(() => electLeaders(client, 'preferred'))
  }

  async #throttle(client: Client): Promise<void> {
    const random = this.#random
    const { name } = random.pick(this.#topics)
    const replicas = THROTTLED.map(kind => ({ name: `${kind}.replicas`, op: 'set' as const, value: '*' }))
    const rate = String(random.pick([1000, 20_000, 1_000_000]))
    const rates = THROTTLED.map(kind => ({ name: `${kind}.rate`, op: 'set' as const, value: rate }))
    await this.#insist(() => alterConfigs(client, { type: 'topic', name }, replicas))
    await this.#insist(() => alterConfigs(client, { type: 'broker', name: '' }, rates))
  }

  /** One controller's vote is taken, and given back, by itself or by us. */
  async #revote(client: Client): Promise<void> {
    const before = await this.#insist(() => describeQuorum(client))
    if (before === undefined || before instanceof ClientError || before.voters.length < 3) return
    const voter = this.#random.pick(before.voters)
    const listeners = before.nodes.find(({ id }) => id === voter.id)?.listeners ?? []
    await this.#insist(() => removeVoter(client, voter))
    await this.#scene.simulation.wait(this.#random.between(10, 5000))
    if (listeners.length > 0) await this.#insist(() => addVoter(client, { ...voter, listeners }))
  }

  /** Until it was done, refused rightly, or the scene is calm and it cannot be done. */
  async #insist<T>(act: () => Promise<T>, alsoRight: readonly string[] = []): Promise<T | ClientError | undefined> {
    return await insist(this.#scene, this.#random, act, error => {
      if (RIGHTLY_REFUSED.has(error.code) || alsoRight.includes(error.code)) return true
      if (!error.retriable) throw new Violation(`a change was refused: ${error.code}, ${error.message}`)
      return false
    })
  }
}

function shuffled<T>(items: readonly T[], random: SeededRandom): T[] {
  const left = [...items]
  const order: T[] = []
  while (left.length > 0) order.push(...left.splice(random.below(left.length), 1))
  return order
}
