import type { Millis, NodeId } from '#base/units.ts'
import type { ApiPair, Channel } from '#network/channel.ts'
import { FindCoordinatorRequest, FindCoordinatorResponse } from '#protocol/messages/find-coordinator.ts'
import type { InputOf, MessageOf, Schema } from '#protocol/schema.ts'
import type { Address, World } from '#world/world.ts'
import { Brokers } from './brokers.ts'
import { brokerError, ClientError, clientError, mayRetry } from './errors.ts'
import { Metadata, type Topic } from './metadata.ts'
import { askAny, askCoordinator } from './patience.ts'

export { ClientError } from './errors.ts'
export type { Broker, Partition, Topic } from './metadata.ts'

export type ClientWorld = Pick<World, 'clock' | 'random' | 'network'>

export interface ClientOptions {
  readonly world: ClientWorld
  /** `host:port`, several by commas, or a list. The port is 9092 where it is left out. */
  readonly bootstrap: string | readonly string[]
  readonly clientId: string
  readonly connectTimeoutMs: Millis
  readonly requestTimeoutMs: Millis
  /** How long a call with its retries may take in all (default.api.timeout.ms). */
  readonly callTimeoutMs: Millis
  readonly retryBackoffMs: Millis
  readonly retryBackoffMaxMs: Millis
  readonly metadataMaxAgeMs: Millis
}

const DEFAULTS = {
  bootstrap: 'localhost:9092',
  clientId: 'tidemark',
  connectTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  callTimeoutMs: 60_000,
  retryBackoffMs: 100,
  retryBackoffMaxMs: 1000,
  metadataMaxAgeMs: 300_000,
}

const FIND_COORDINATOR = { request: FindCoordinatorRequest, response: FindCoordinatorResponse }

/**
 * Whom to ask: a broker by its id; any of them; whichever answers first, of several that are asked when one takes long, for
 * what changes nothing; or the one that coordinates a group.
 */
export type Recipient = NodeId | 'any' | 'first' | { readonly group: string }

/** A client of one cluster: its connections, what it knows of the cluster, and calls with retries. */
export class Client {
  readonly world: ClientWorld
  readonly options: ClientOptions
  readonly brokers: Brokers
  readonly metadata: Metadata
  readonly #coordinators = new Map<string, { readonly node: NodeId; readonly from: Address }>()
  #closed = false

  constructor(options: Partial<ClientOptions> & { readonly world: ClientWorld }) {
    this.options = { ...DEFAULTS, ...options }
    this.world = options.world
    const { clientId, connectTimeoutMs, requestTimeoutMs, metadataMaxAgeMs } = this.options
    const bootstrap = parseAddresses(this.options.bootstrap)
    this.brokers = new Brokers(this.world, bootstrap, { clientId, connectTimeoutMs, requestTimeoutMs })
    this.metadata = new Metadata(this.brokers, this.world.clock, metadataMaxAgeMs)
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Asks one broker, again while that may help, and follows a coordinator that moved. Rejects with a ClientError. */
  ask<Q extends Schema, R extends Schema>(
    to: Recipient,
    pair: ApiPair<Q, R>,
    body: InputOf<Q>,
    options: {
      readonly timeoutMs?: Millis
      readonly versionMax?: number
      /** Throws where the answer as a whole is an error; one that may be retried is. */
      readonly check?: (answer: MessageOf<R>) => void
    } = {},
  ): Promise<MessageOf<R>> {
    return this.retrying(() => this.askOnce(to, pair, body, options), options.timeoutMs)
  }

  /** As `ask`, once: for who asks another one where this one cannot be reached. */
  async askOnce<Q extends Schema, R extends Schema>(
    to: Recipient,
    pair: ApiPair<Q, R>,
    body: InputOf<Q>,
    options: {
      readonly timeoutMs?: Millis
      readonly versionMax?: number
      readonly check?: (answer: MessageOf<R>) => void
    } = {},
  ): Promise<MessageOf<R>> {
    let asked: Address | undefined
    const ask = async (channel: Channel): Promise<MessageOf<R>> => {
      asked = channel.address
      const answer = await channel.ask(pair, body, options)
      options.check?.(answer)
      return answer
    }
    try {
      if (typeof to === 'object') return await askCoordinator(this, to.group, 'group', ask)
      if (to === 'any') return await askAny(this, ask)
      if (to !== 'first') return await ask(await this.channel(to))
      const { answer, from } = await this.brokers.ask(pair, () => body, options)
      asked = from
      options.check?.(answer)
      return answer
    } catch (thrown) {
      const error = clientError(thrown)
      if (mayRetry(error)) {
        if (typeof to === 'object') this.forgetCoordinator(to.group)
        // It may be cut off from those who could do it.
        else if (typeof to === 'string' && asked !== undefined) this.brokers.doubt(asked)
      }
      throw error
    }
  }

  /** Does it until it succeeds, fails for good, or the time is up; then the last error is thrown. */
  async retrying<T>(attempt: () => Promise<T>, timeoutMs: Millis = this.options.callTimeoutMs): Promise<T> {
    const until = this.world.clock.monotonic() + timeoutMs
    for (let failures = 0; ; failures++) {
      try {
        return await attempt()
      } catch (error) {
        const { retryBackoffMs, retryBackoffMaxMs } = this.options
        const backoff = Math.min(retryBackoffMs * 2 ** failures, retryBackoffMaxMs)
        if (!mayRetry(error) || this.#closed || this.world.clock.monotonic() + backoff >= until) throw error
        // Who cannot be reached at the first attempt is more likely misspelt than restarting.
        if (error.code === 'CONNECTION_FAILED' && this.metadata.brokers.length === 0) throw error
        // Up to a fifth of chance, so that clients that failed together do not come back together.
        await this.pause(backoff * (0.9 + 0.2 * this.world.random.fraction()))
      }
    }
  }

  async channel(to: Recipient): Promise<Channel> {
    if (typeof to === 'string') return await this.brokers.any()
    if (typeof to === 'object') return await this.#toCoordinator(to.group)
    if (!this.brokers.known.has(to)) await this.metadata.refresh([])
    return await this.brokers.to(to)
  }

  async #toCoordinator(group: string): Promise<Channel> {
    try {
      return await this.brokers.to(await this.coordinator(group), 'group')
    } catch (error) {
      // Another one coordinates by now, or will soon: this one cannot be reached, or has left the cluster.
      this.forgetCoordinator(group)
      throw error
    }
  }

  /** The broker that coordinates a group, remembered until it cannot be reached or a call to it fails. */
  async coordinator(group: string): Promise<NodeId> {
    const known = this.#coordinators.get(group)
    if (known !== undefined) return known.node
    const { answer, from } = await this.brokers.ask(FIND_COORDINATOR, channel =>
      (channel.versionFor(FindCoordinatorRequest) ?? 0) >= 4 ? { coordinatorKeys: [group] } : { key: group },
    )
    const found = answer.coordinators[0] ?? answer
    const error = brokerError(found.errorCode, `group "${group}"`, found.errorMessage)
    if (error !== undefined) {
      this.brokers.doubt(from)
      throw error
    }
    if (!this.brokers.known.has(found.nodeId)) await this.metadata.refresh([])
    this.#coordinators.set(group, { node: found.nodeId, from })
    return found.nodeId
  }

  /** What was heard of it led nowhere: others are asked before who said it, and before itself. */
  forgetCoordinator(group: string): void {
    const known = this.#coordinators.get(group)
    if (known === undefined) return
    this.#coordinators.delete(group)
    this.brokers.doubt(known.from)
    const address = this.brokers.known.get(known.node)
    if (address !== undefined) this.brokers.doubt(address)
  }

  /**
   * What is known of a topic; asks if nothing is, or of fewer partitions than there should be. With `create` the broker may
   * create it. Rejects if there is none.
   */
  async topic(
    name: string,
    options: { readonly create?: boolean; readonly fresh?: boolean; readonly partitionsMin?: number } = {},
  ): Promise<Topic> {
    const { partitionsMin = 0 } = options
    const remembered = options.fresh === true ? undefined : this.metadata.remembered(name)
    if (remembered !== undefined && remembered.partitions.length >= partitionsMin) return remembered
    const { clock } = this.world
    const newUntil = clock.monotonic() + NEWS_MS_MAX
    // One broker of several may have to hear first what another one did.
    const mayHear = (): boolean => this.brokers.known.size > 1 && clock.monotonic() < newUntil
    return await this.retrying(async () => {
      const { topics, errors } = await this.metadata.refresh([name], options)
      const error = errors.get(name)
      if (error !== undefined) {
        const final = error.code === 'UNKNOWN_TOPIC_OR_PARTITION' && options.create !== true && !mayHear()
        throw final ? new ClientError(error.code, `there is no topic "${name}"`, { errorCode: 3 }) : error
      }
      const topic = topics[0]
      if (topic === undefined) throw new ClientError('UNKNOWN_TOPIC_OR_PARTITION', `there is no topic "${name}"`)
      if (topic.partitions.length < partitionsMin && mayHear()) {
        throw new ClientError('UNKNOWN_TOPIC_OR_PARTITION', `topic "${name}" has no partition ${partitionsMin - 1}`, {
          retriable: true,
        })
      }
      return topic
    })
  }

  pause(ms: Millis): Promise<void> {
    return new Promise(resolve => {
      this.world.clock.after(ms, resolve)
    })
  }

  close(): void {
    this.#closed = true
    this.brokers.close()
  }
}

/** For so long one broker of several may not know yet what a client did at another. */
const NEWS_MS_MAX: Millis = 1000

/** Dials the cluster and learns its brokers. Rejects with a ClientError that says what to check. */
export async function connect(options: Partial<ClientOptions> & { readonly world: ClientWorld }): Promise<Client> {
  const client = new Client(options)
  try {
    await client.metadata.refresh([])
    return client
  } catch (error) {
    client.close()
    throw clientError(error)
  }
}

export function parseAddresses(text: string | readonly string[]): Address[] {
  const parts = (typeof text === 'string' ? text.split(',') : text).map(part => part.trim()).filter(part => part !== '')
  if (parts.length === 0) throw new ClientError('INVALID_ARGUMENT', 'no bootstrap address is given')
  return parts.map(parseAddress)
}

function parseAddress(text: string): Address {
  const match = /^(?:[A-Z_]+:\/\/)?(?:\[([0-9A-Fa-f:.%]+)\]|([^:[\]/\s]+))(?::(\d{1,5}))?$/.exec(text)
  const port = match?.[3] === undefined ? 9092 : Number(match[3])
  const host = match?.[1] ?? match?.[2]
  if (host === undefined || port < 1 || port > 65_535) {
    throw new ClientError('INVALID_ARGUMENT', `"${text}" is no address`, {
      hint: 'write host:port, such as localhost:9092; several are separated by commas',
    })
  }
  return { host, port }
}
