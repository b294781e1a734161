import { Placement } from '#core/metadata/placement.ts'
import { isInternalTopic, OFFSETS_TOPIC, topicNameProblem } from '#core/metadata/topic-name.ts'
import { PARTITIONS_PER_REQUEST_MAX } from '#core/metadata/topics.ts'
import { ChannelError } from '#network/channel.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { InputOf } from '#protocol/schema.ts'
import type { Broker } from './broker.ts'
import type { ControllerLink } from './metadata/controller-link.ts'

type NewTopic = NonNullable<InputOf<typeof API.CreateTopics.request>['topics']>[number]

const CREATE_TIMEOUT_MS = 5000
/** An election takes less; clients ask again by themselves, and what they asked behind this waits for its answer. */
const PATIENCE_MS = 1000
/** Between two attempts, if no news of a controller comes before. */
const REST_MS = 20

/** The topics that a broker makes by itself: those that clients name, and the one that groups live in. */
export class TopicCreation {
  readonly #broker: Broker
  readonly #link: ControllerLink

  constructor(broker: Broker, link: ControllerLink) {
    this.#broker = broker
    this.#link = link
  }

  /** Creates topics that a client asked about. The error code that each missing one is to be answered with. */
  async autoCreate(names: readonly string[]): Promise<Map<string, number>> {
    if (!this.#broker.configs.boolean('auto.create.topics.enable')) return new Map()
    // As the controller would answer, who looks at no more in one request.
    if (names.length > PARTITIONS_PER_REQUEST_MAX) return new Map(names.map(name => [name, ErrorCode.POLICY_VIOLATION]))
    const valid = [...new Set(names)].filter(name => topicNameProblem(name) === undefined)
    if (valid.includes(OFFSETS_TOPIC)) await this.createOffsetsTopic()
    const topics = valid.filter(name => !isInternalTopic(name))
    return await this.#create(topics.map(name => ({ name, numPartitions: -1, replicationFactor: -1 })))
  }

  /** `__consumer_offsets`, when it is first needed. */
  async createOffsetsTopic(): Promise<void> {
    const { configs, metadata } = this.#broker
    // Also those that are not up at this moment, as while a cluster starts: it is made once, and stays with so many copies.
    const { size } = new Placement(metadata.image)
    await this.#create([
      {
        name: OFFSETS_TOPIC,
        numPartitions: configs.number('offsets.topic.num.partitions'),
        replicationFactor: Math.max(1, Math.min(configs.number('offsets.topic.replication.factor'), size)),
        configs: [
          { name: 'cleanup.policy', value: 'compact' },
          { name: 'compression.type', value: 'producer' },
          { name: 'segment.bytes', value: String(configs.number('offsets.topic.segment.bytes')) },
        ],
      },
    ])
  }

  async #create(topics: readonly NewTopic[]): Promise<Map<string, number>> {
    const errors = new Map<string, number>()
    if (topics.length === 0) return errors
    const made: string[] = []
    for (const { name, errorCode } of await this.#ask(topics)) {
      const exists = errorCode === ErrorCode.NONE || errorCode === ErrorCode.TOPIC_ALREADY_EXISTS
      if (exists) made.push(name)
      // What may be cured by asking again is told as such; a client must not give up over it.
      const curable = exists || errorCode === ErrorCode.REQUEST_TIMED_OUT || errorCode === ErrorCode.NOT_CONTROLLER
      errors.set(name, curable ? ErrorCode.LEADER_NOT_AVAILABLE : errorCode)
    }
    const { metadata } = this.#broker
    await metadata.caughtUp(() => made.every(name => metadata.image.topicByName(name) !== undefined))
    return errors
  }

  /** Asked again, also where it may have been done: what is there then is what was wanted. */
  async #ask(topics: readonly NewTopic[]): Promise<readonly { readonly name: string; readonly errorCode: number }[]> {
    const { clock } = this.#broker.world
    const until = clock.monotonic() + PATIENCE_MS
    for (;;) {
      const answer = await this.#link
        .ask(API.CreateTopics, { topics, timeoutMs: CREATE_TIMEOUT_MS, validateOnly: false }, CREATE_TIMEOUT_MS)
        .catch((error: unknown) => {
          if (!(error instanceof ChannelError)) throw error
          return undefined
        })
      const isRefused = answer?.topics.some(({ errorCode }) => errorCode === ErrorCode.NOT_CONTROLLER) ?? false
      // The way may lead to one that is not active: nobody else who asks by it would turn it elsewhere.
      if (isRefused) this.#link.lookElsewhere()
      else if (answer !== undefined) this.#link.wasTaken()
      if ((answer !== undefined && !isRefused) || clock.monotonic() >= until) return answer?.topics ?? []
      await this.#link.rest(REST_MS)
    }
  }
}
