import type { Epoch, Millis, NodeId, Offset } from '#base/units.ts'
import type { BrokerImage } from '#core/metadata/node-image.ts'
import { Channel, ChannelError, NODE_ELEMENTS_MAX } from '#network/channel.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { FrameMemory } from '#protocol/frame-reader.ts'
import type { Address, World } from '#world/world.ts'

export interface LeaderChannelOptions {
  readonly world: World
  readonly nodeId: NodeId
  readonly broker: (id: NodeId) => BrokerImage | undefined
  /** The listener by which brokers reach each other. */
  readonly listener: string
  /** Where what leaders answer is put; given back when the logs are done with it. */
  readonly memory: FrameMemory
  /** Asked each time, as they may change while the broker runs. */
  readonly terms: () => { readonly timeoutMs: Millis }
}

const CONNECT_TIMEOUT_MS: Millis = 2000
/** The largest answer that is taken: what was asked for, and one batch beyond it. */
const ANSWER_BYTES_MAX = 512 * 1024 * 1024

const LATEST = -1
const EARLIEST_LOCAL = -4

/** A follower's way to the broker that leads: one connection, opened when it is needed and again when it broke. */
export class LeaderChannel {
  readonly #leaderId: NodeId
  readonly #clientId: string
  readonly #options: LeaderChannelOptions
  #channel: Promise<Channel> | undefined
  /** The same, once it is there. */
  #open: Channel | undefined
  #isClosed = false

  constructor(leaderId: NodeId, clientId: string, options: LeaderChannelOptions) {
    this.#leaderId = leaderId
    this.#clientId = clientId
    this.#options = options
  }

  close(): void {
    this.#isClosed = true
    this.#channel?.then(
      channel => channel.close(),
      () => {},
    )
    this.#channel = undefined
  }

  /** The connection, where nobody need wait for it. */
  get open(): Channel | undefined {
    return this.#open
  }

  /** Rejects with a ChannelError. */
  connected(): Promise<Channel> {
    if (this.#channel !== undefined) return this.#channel
    const address = this.#address()
    if (address === undefined) {
      const message = `broker ${this.#leaderId} has no listener ${this.#options.listener}`
      return Promise.reject(new ChannelError('closed', { host: '', port: 0 }, message))
    }
    const connecting = Channel.connect(this.#options.world, address, {
      clientId: this.#clientId,
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
      requestTimeoutMs: this.#options.terms().timeoutMs,
      frameBytesMax: ANSWER_BYTES_MAX,
      elementsMax: NODE_ELEMENTS_MAX,
      memory: this.#options.memory,
    }).then(async channel => {
      await channel.negotiate()
      if (this.#channel === connecting) this.#open = channel
      channel.whenClosed(() => {
        if (this.#channel === connecting) this.#channel = undefined
        if (this.#open === channel) this.#open = undefined
      })
      if (this.#isClosed) channel.close()
      return channel
    })
    this.#channel = connecting
    connecting.catch(() => {
      if (this.#channel === connecting) this.#channel = undefined
    })
    return connecting
  }

  /** Where the leader's log starts and ends; undefined when it does not say. */
  async offsetsOf(partition: { readonly topic: string; readonly index: number; readonly leaderEpoch: Epoch }) {
    const { topic, index, leaderEpoch: currentLeaderEpoch } = partition
    const ask = async (channel: Channel, timestamp: number): Promise<Offset | undefined> => {
      const partitions = [{ partitionIndex: index, currentLeaderEpoch, timestamp }]
      const request = { replicaId: this.#options.nodeId, topics: [{ name: topic, partitions }] }
      const answer = await channel.ask(API.ListOffsets, request, { timeoutMs: this.#options.terms().timeoutMs })
      const answered = answer.topics[0]?.partitions[0]
      return answered?.errorCode === ErrorCode.NONE ? answered.offset : undefined
    }
    try {
      const channel = await this.connected()
      const [endOffset, startOffset] = await Promise.all([ask(channel, LATEST), ask(channel, EARLIEST_LOCAL)])
      return endOffset === undefined || startOffset === undefined ? undefined : { startOffset, endOffset }
    } catch (error) {
      if (!(error instanceof ChannelError)) throw error
      return undefined
    }
  }

  #address(): Address | undefined {
    const { broker, listener } = this.#options
    const endPoint = broker(this.#leaderId)?.endPoints.find(({ name }) => name === listener)
    return endPoint === undefined ? undefined : { host: endPoint.host, port: endPoint.port }
  }
}
