import { hostPort } from '#base/host-port.ts'
import type { NodeId } from '#base/units.ts'
import { Channel, ChannelError, type ChannelOptions } from '#network/channel.ts'
import type { Address } from '#world/world.ts'
import type { ClientWorld } from './client.ts'
import { ClientError, clientError } from './errors.ts'

/**
 * The connections to a cluster, one per broker and purpose. Answers come in the order of the questions, so whatever
 * waits at the broker (a fetch, a join) needs a connection that nobody else waits behind. They are made when first
 * needed and again after they broke.
 */
export class Brokers {
  readonly #world: ClientWorld
  readonly #options: Partial<ChannelOptions>
  readonly #bootstrap: readonly Address[]
  #known: ReadonlyMap<NodeId, Address> = new Map()
  readonly #channels = new Map<string, Promise<Channel>>()
  /** Addresses that did not answer in time when they were asked last, the latest one at the end. */
  readonly #silent = new Set<string>()
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
      for (const key of this.#channels.keys()) if (key.startsWith(`${id}/`)) this.#drop(key)
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
    return this.#open(`${node}/${purpose}`, address)
  }

  /** A purpose that nobody else has; to be given back by `release`. */
  claim(what: string): string {
    return `${what} ${++this.#purposes}`
  }

  /** Closes the connections for a purpose. */
  release(purpose: string): void {
    for (const key of this.#channels.keys()) if (key.endsWith(`/${purpose}`)) this.#drop(key)
  }

  /**
   * A connection to any broker: one that is open, a known one, or one of the bootstrap addresses, in this order; and before
   * all those that were silent lately: a process that is stopped takes connections and answers nothing.
   */
  async any(): Promise<Channel> {
    for (const [key, opening] of this.#channels) {
      if (!key.endsWith('/')) continue
      const channel = await opening.catch(() => undefined)
      if (channel?.open === true && !this.#silent.has(hostPort(channel.address))) return channel
    }
    return await this.#first()
  }

  close(): void {
    this.#closed = true
    for (const key of this.#channels.keys()) this.#drop(key)
  }

  #drop(key: string): void {
    const channel = this.#channels.get(key)
    this.#channels.delete(key)
    channel?.then(
      open => open.close(),
      () => {},
    )
  }

  async #first(): Promise<Channel> {
    const failures: ClientError[] = []
    const places: [string, Address][] = [
      ...[...this.#known].map(([id, address]): [string, Address] => [`${id}/`, address]),
      ...this.#bootstrap.map((address): [string, Address] => [`bootstrap ${hostPort(address)}/`, address]),
    ]
    const silent = [...this.#silent]
    const patience = ([, address]: [string, Address]): number => silent.indexOf(hostPort(address))
    for (const [key, address] of places.sort((a, b) => patience(a) - patience(b))) {
      try {
        return await this.#open(key, address)
      } catch (error) {
        if (!(error instanceof ClientError)) throw error
        failures.push(error)
      }
    }
    const [first] = failures
    if (first !== undefined && failures.length === 1) throw first
    const message = failures.map(failure => failure.message).join('; ')
    throw new ClientError('CONNECTION_FAILED', message, { retriable: true, hint: first?.hint, cause: first })
  }

  #open(key: string, address: Address): Promise<Channel> {
    if (this.#closed) return Promise.reject(new ClientError('CLOSED', 'the client is closed'))
    const existing = this.#channels.get(key)
    if (existing !== undefined) return existing
    const opening = this.#dial(address)
    this.#channels.set(key, opening)
    const forget = (): void => {
      if (this.#channels.get(key) === opening) this.#channels.delete(key)
    }
    opening.then(channel => {
      if (this.#closed) channel.close()
      channel.whenClosed(error => {
        forget()
        this.#heard(address, error)
      })
    }, forget)
    return opening
  }

  async #dial(address: Address): Promise<Channel> {
    try {
      const channel = await Channel.connect(this.#world, address, this.#options)
      try {
        await channel.negotiate()
        this.#silent.delete(hostPort(address))
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
    const key = hostPort(address)
    if (error.code !== 'timed-out') return
    this.#silent.delete(key)
    this.#silent.add(key)
  }
}
