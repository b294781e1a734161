import type { Millis, NodeId } from '#base/units.ts'
import type { RaftPeer } from '#core/raft/messages.ts'
import { Channel, ChannelError, NODE_ELEMENTS_MAX } from '#network/channel.ts'
import type { Address, World } from '#world/world.ts'

/** What waits for news long must not keep votes waiting: answers on one connection come in order. */
export type Lane = 'fetch' | 'control'

/**
 * A connection that nobody used for so long is dialled anew. The machine at the other end may have lost power and be back, or
 * a firewall on the way have forgotten it, and nobody says so: votes would wait for their time-out.
 */
const TRUSTED_MS: Millis = 10_000

/** Nodes whose addresses others told; beyond so many, what was told first is forgotten. */
const LEARNED_MAX = 1000

export interface PeersOptions {
  readonly world: Pick<World, 'clock' | 'network'>
  readonly nodeId: NodeId
  /** Where a node is reached by what the log or the configuration says. */
  readonly known: (id: NodeId) => Address | undefined
  /** Who may know of the quorum. */
  readonly anyone: () => readonly Address[]
  readonly connectTimeoutMs: Millis
  /** A connection to this node broke, and where it listened nobody does. */
  readonly gone: (id: NodeId) => void
}

interface Link {
  readonly address: Address
  readonly channel: Promise<Channel>
  /** Once it is open. */
  opened?: Channel
}

/**
 * The connections to the other controllers, opened when they are needed. One that breaks is dialled again at once: when
 * that is refused the process is gone, and whoever follows it need not wait for a time-out.
 */
export class Peers {
  readonly #options: PeersOptions
  readonly #links = new Map<string, Link>()
  readonly #learned = new Map<NodeId, Address>()
  readonly #redialling = new Set<NodeId>()
  #next = 0
  #closed = false

  constructor(options: PeersOptions) {
    this.#options = options
  }

  /** Somebody said where a node is reached: a leader of itself, or a node of its leader. */
  learn(id: NodeId, { host, port }: Address): void {
    if (id < 0 || id === this.#options.nodeId || host === '' || port <= 0) return
    this.#learned.delete(id)
    this.#learned.set(id, { host, port })
    if (this.#learned.size <= LEARNED_MAX) return
    for (const first of this.#learned.keys()) {
      this.#learned.delete(first)
      return
    }
  }

  /** What the voters' record says counts again. */
  forget(ids: Iterable<NodeId>): void {
    for (const id of ids) this.#learned.delete(id)
  }

  addressOf(id: NodeId): Address | undefined {
    return this.#learned.get(id) ?? this.#options.known(id)
  }

  /** An open connection that has negotiated versions. Rejects with a ChannelError. */
  channel(to: RaftPeer, lane: Lane): Promise<Channel> {
    if (to === 'anyone') return this.#anyone()
    const address = this.addressOf(to)
    if (address === undefined) {
      return Promise.reject(new ChannelError('unknown-host', NOWHERE, `where node ${to} listens is not known`))
    }
    return this.#open(`${to} ${lane}`, address, to)
  }

  /** To an address that is no known node's. */
  channelTo(address: Address): Promise<Channel> {
    return this.#open(`${address.host}:${address.port}`, address, undefined)
  }

  close(): void {
    this.#closed = true
    for (const { channel } of this.#links.values()) close(channel)
    this.#links.clear()
  }

  /** Who does not answer, or knows nothing, is not asked next. */
  #anyone(): Promise<Channel> {
    const addresses = this.#options.anyone()
    const address = addresses[this.#next++ % addresses.length]
    if (address === undefined) {
      return Promise.reject(new ChannelError('unknown-host', NOWHERE, 'no other controller is known'))
    }
    return this.channelTo(address)
  }

  #open(key: string, address: Address, id: NodeId | undefined): Promise<Channel> {
    if (this.#closed) return Promise.reject(new ChannelError('closed', address, 'the controller is stopping'))
    const now = this.#options.world.clock.monotonic()
    const before = this.#links.get(key)
    if (before !== undefined) {
      const isSame = before.address.host === address.host && before.address.port === address.port
      if (isSame && now - (before.opened?.lastUsed ?? now) < TRUSTED_MS) return before.channel
      this.#links.delete(key)
      close(before.channel)
    }
    const channel = this.#connect(address)
    const link: Link = { address, channel }
    this.#links.set(key, link)
    channel.then(
      opened => {
        link.opened = opened
        opened.whenClosed(() => this.#broke(key, link, id))
      },
      () => {
        if (this.#links.get(key) === link) this.#links.delete(key)
        // What was told of it may be older than what the log says.
        if (id !== undefined && this.#learned.get(id) === address) this.#learned.delete(id)
      },
    )
    return channel
  }

  async #connect(address: Address): Promise<Channel> {
    const { world, nodeId, connectTimeoutMs } = this.#options
    const limits = { connectTimeoutMs, requestTimeoutMs: connectTimeoutMs, elementsMax: NODE_ELEMENTS_MAX }
    const options = { clientId: `raft-${nodeId}`, ...limits }
    const channel = await Channel.connect(world, address, options)
    await channel.negotiate()
    if (this.#closed) channel.close()
    return channel
  }

  #broke(key: string, link: Link, id: NodeId | undefined): void {
    if (this.#links.get(key) !== link) return
    this.#links.delete(key)
    if (this.#closed || id === undefined || this.#redialling.has(id)) return
    this.#redialling.add(id)
    this.#open(key, link.address, id)
      .catch((error: unknown) => {
        if (!(error instanceof ChannelError)) throw error
        if (error.code === 'refused' && !this.#closed) this.#options.gone(id)
      })
      .finally(() => this.#redialling.delete(id))
  }
}

const NOWHERE: Address = { host: '', port: 0 }

function close(channel: Promise<Channel>): void {
  channel.then(
    opened => opened.close(),
    () => {},
  )
}
