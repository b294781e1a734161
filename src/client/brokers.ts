import { hostPort } from '#base/host-port.ts'
import type { Millis, NodeId } from '#base/units.ts'
import { type ApiPair, Channel, ChannelError, type ChannelOptions } from '#network/channel.ts'
import type { InputOf, MessageOf, Schema } from '#protocol/schema.ts'
import type { Address, Timer } from '#world/world.ts'
import type { ClientWorld } from './client.ts'
import { ClientError, clientError, mayRetry } from './errors.ts'

/** What every broker answers at once is asked of another one as well when it takes longer. */
const PATIENCE_MS: Millis = 500

interface Link {
  readonly opening: Promise<Channel>
  channel: Channel | undefined
}

interface Place {
  readonly key: string
  readonly address: Address
}

/**
 * The connections to a cluster, one per broker and purpose. Answers come in the order of the questions, so whatever
 * waits at the broker (a fetch, a join) needs a connection that nobody else waits behind. They are made when first
 * needed and again after they broke.
 *
 * What any broker can say is asked of whoever is connected, and last of those who were silent or whose word led nowhere:
 * a broker that is cut off from the controllers names itself the leader for as long as that lasts.
 */
export class Brokers {
  readonly #world: ClientWorld
  readonly #options: Partial<ChannelOptions>
  readonly #bootstrap: readonly Address[]
  #known: ReadonlyMap<NodeId, Address> = new Map()
  readonly #links = new Map<string, Link>()
  /** Who is asked after all others, the one that failed last at the end. */
  readonly #doubted = new Set<string>()
  /** Where names led when they were dialled last: who is known by two of them is one. */
  readonly #remotes = new Map<string, string>()
  #closed = false
  #purposes = 0

  constructor(world: ClientWorld, bootstrap: readonly Address[], options: Partial<ChannelOptions>) {
    this.#world = world
    this.#bootstrap = bootstrap
    this.#options = options
  }

  /** Where the brokers are, as the cluster says; connections to addresses that it no longer names are closed. */
  know(addresses: ReadonlyMap<NodeId, Address>): void {
    for (const [id, address] of this.#known) {
      const now = addresses.get(id)
      if (now !== undefined && now.host === address.host && now.port === address.port) continue
      for (const key of this.#links.keys()) if (key.startsWith(`${id}/`)) this.#drop(key)
    }
    this.#known = addresses
  }

  get known(): ReadonlyMap<NodeId, Address> {
    return this.#known
  }

  /** A connection to one broker. Rejects with a ClientError. */
  to(node: NodeId, purpose = ''): Promise<Channel> {
    const address = this.#known.get(node)
    if (address === undefined) {
      return Promise.reject(
        new ClientError('BROKER_NOT_AVAILABLE', `broker ${node} is not in the cluster's metadata`, { retriable: true }),
      )
    }
    return this.#open({ key: `${node}/${purpose}`, address })
  }

  /** A purpose that nobody else has; to be given back by `release`. */
  claim(what: string): string {
    return `${what} ${++this.#purposes}`
  }

  /** Closes the connections for a purpose. */
  release(purpose: string): void {
    for (const key of this.#links.keys()) if (key.endsWith(`/${purpose}`)) this.#drop(key)
  }

  /** A connection to any broker. */
  any(): Promise<Channel> {
    return this.#first(channel => Promise.resolve(channel))
  }

  /** Asks what every broker answers at once: whoever answers first. Rejects with a ClientError. */
  ask<Q extends Schema, R extends Schema>(
    pair: ApiPair<Q, R>,
    body: (channel: Channel) => InputOf<Q>,
    options: { readonly timeoutMs?: Millis; readonly versionMax?: number } = {},
  ): Promise<{ readonly answer: MessageOf<R>; readonly from: Address }> {
    return this.#first(async channel => {
      return { answer: await channel.ask(pair, body(channel), options), from: channel.address }
    })
  }

  /** It was silent, or what it said led nowhere: all others are asked before it. */
  doubt(address: Address): void {
    const who = this.#who(address)
    this.#doubted.delete(who)
    this.#doubted.add(who)
  }

  /** Whether the cluster names it among its brokers. */
  names(address: Address): boolean {
    const who = this.#who(address)
    return this.#known.values().some(each => this.#who(each) === who)
  }

  #who(address: Address): string {
    const name = hostPort(address)
    return this.#remotes.get(name) ?? name
  }

  close(): void {
    this.#closed = true
    for (const key of this.#links.keys()) this.#drop(key)
  }

  #drop(key: string): void {
    const link = this.#links.get(key)
    this.#links.delete(key)
    link?.opening.then(
      channel => channel.close(),
      () => {},
    )
  }

  /** What it gives with the first of the places that has it: one is tried, and the next when that fails or takes long. */
  async #first<T>(act: (channel: Channel) => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const places = this.#places()
    const failures: ClientError[] = []
    let timer: Timer | undefined
    let underWay = 0
    let over = false
    const settle = (end: () => void): void => {
      timer?.cancel()
      if (!over) end()
      over = true
    }
    const next = (): void => {
      timer?.cancel()
      const place = over ? undefined : places.shift()
      if (place === undefined) {
        if (underWay === 0) settle(() => reject(this.#joined(failures)))
        return
      }
      underWay++
      timer = this.#world.clock.after(PATIENCE_MS, () => {
        this.doubt(place.address)
        next()
      })
      const failed = (error: unknown): void => {
        underWay--
        if (!(error instanceof ClientError)) settle(() => reject(error))
        else failures.push(error)
        next()
      }
      const tried = (error: unknown): void => {
        const failure = clientError(error)
        if (mayRetry(failure)) failed(failure)
        else settle(() => reject(failure))
      }
      this.#open(place).then(channel => act(channel).then(value => settle(() => resolve(value)), tried), failed)
    }
    next()
    return await promise
  }

  #joined(failures: readonly ClientError[]): ClientError {
    if (this.#closed) return new ClientError('CLOSED', 'the client is closed')
    const [first] = failures
    if (first !== undefined && failures.length === 1) return first
    const message = failures.map(failure => failure.message).join('; ')
    return new ClientError('CONNECTION_FAILED', message, { retriable: true, hint: first?.hint, cause: first })
  }

  /** All that may be asked what any broker can say, in this order. */
  #places(): Place[] {
    const places = new Map<string, Place>()
    const known = [...this.#known].map(([id, address]) => ({ key: `${id}/`, address }))
    const bootstrap = this.#bootstrap.map(address => ({ key: `bootstrap ${hostPort(address)}/`, address }))
    for (const place of [...known, ...bootstrap]) {
      const who = this.#who(place.address)
      const same = places.get(who)
      if (same === undefined || (this.#isOpen(place) && !this.#isOpen(same))) places.set(who, place)
    }
    const doubted = [...this.#doubted]
    const rank = (place: Place): number => 2 * doubted.indexOf(this.#who(place.address)) + (this.#isOpen(place) ? 0 : 1)
    return [...places.values()].sort((a, b) => rank(a) - rank(b))
  }

  #isOpen({ key }: Place): boolean {
    return this.#links.get(key)?.channel?.open === true
  }

  #open({ key, address }: Place): Promise<Channel> {
    if (this.#closed) return Promise.reject(new ClientError('CLOSED', 'the client is closed'))
    const existing = this.#links.get(key)
    if (existing !== undefined) return existing.opening
    const link: Link = { opening: this.#dial(address), channel: undefined }
    this.#links.set(key, link)
    const forget = (): void => {
      if (this.#links.get(key) === link) this.#links.delete(key)
    }
    link.opening.then(channel => {
      link.channel = channel
      if (this.#closed) channel.close()
      channel.whenClosed(error => {
        forget()
        this.#heard(address, error)
      })
    }, forget)
    return link.opening
  }

  async #dial(address: Address): Promise<Channel> {
    try {
      const channel = await Channel.connect(this.#world, address, this.#options)
      this.#remotes.set(hostPort(address), hostPort(channel.remote))
      try {
        await channel.negotiate()
      } catch (error) {
        channel.close()
        throw error
      }
      return channel
    } catch (error) {
      if (!(error instanceof ChannelError)) throw error
      this.#heard(address, error)
      throw clientError(error)
    }
  }

  #heard(address: Address, error: ChannelError): void {
    if (error.code === 'timed-out') this.doubt(address)
  }
}
