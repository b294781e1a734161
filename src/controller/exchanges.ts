import type { Millis, NodeId } from '#base/units.ts'
import type { MetadataImage } from '#core/metadata/image.ts'
import type { RaftEvent, RaftPeer, RaftRequest } from '#core/raft/messages.ts'
import type { Voter, VoterEndpoint } from '#core/raft/quorum.ts'
import { type Channel, ChannelError } from '#network/channel.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { StorageError } from '#storage/storage-error.ts'
import { type Logger, type World, WorldError } from '#world/world.ts'
import { AddressBook } from './address-book.ts'
import { ClusterMembership } from './cluster-membership.ts'
import type { ControllerConfig } from './config.ts'
import { type Asker, type Exchanged, ExchangeError, exchange } from './exchange.ts'
import type { FollowedRecords } from './followed.ts'
import { Peers } from './peers.ts'
import { PieceSize } from './piece-size.ts'

export interface ExchangesOptions {
  readonly world: World
  readonly config: ControllerConfig
  readonly logger: Logger
  readonly requestTimeoutMs: Millis
  readonly voters: () => readonly Voter[]
  readonly image: () => MetadataImage | undefined
  readonly step: (event: RaftEvent) => void
  /** The disk did not take which cluster this node belongs to. */
  readonly failed: (error: StorageError | WorldError) => void
}

/** What this node asks of the other controllers, and what becomes of it: each request ends as one event of raft. */
export class Exchanges {
  readonly peers: Peers
  readonly membership: ClusterMembership
  /** Where the others reach this node; known once it listens. */
  endpoints: readonly VoterEndpoint[] = []
  readonly #options: ExchangesOptions
  readonly #addresses: AddressBook
  readonly #records = new Map<number, FollowedRecords>()
  readonly #complained = new Set<string>()
  readonly #pieces = new PieceSize()

  constructor(options: ExchangesOptions) {
    this.#options = options
    const { world, config, logger, voters, image, requestTimeoutMs, step } = options
    this.membership = new ClusterMembership(config.cluster, logger, requestTimeoutMs)
    this.#addresses = new AddressBook({ config, voters, image })
    this.peers = new Peers({
      world,
      nodeId: config.nodeId,
      known: id => this.#addresses.addressOf(id),
      anyone: () => this.#addresses.anyone(),
      connectTimeoutMs: requestTimeoutMs,
      gone: id => step({ kind: 'peer-gone', id }),
    })
  }

  async send(request: number, to: RaftPeer, message: RaftRequest): Promise<void> {
    const { step, failed } = this.#options
    try {
      const channel = await this.#channelFor(to, message)
      if (message.kind === 'fetch') await this.membership.join(channel)
      const { response, records, nodes } = await this.#exchange(channel, message)
      for (const { nodeId, host, port } of nodes) this.peers.learn(nodeId, { host, port })
      if (records !== undefined) this.#records.set(request, records)
      if (message.kind === 'kraft-range' && to === this.#options.config.nodeId) this.#complainOfNamesake(message.voter)
      step({ kind: 'answered', request, response })
    } catch (error) {
      if (error instanceof ExchangeError) this.#complain(to, error)
      else if (error instanceof StorageError || error instanceof WorldError) failed(error)
      else if (!(error instanceof ChannelError)) throw error
      step({ kind: 'unanswered', request, refused: error instanceof ChannelError && error.code === 'refused' })
    }
  }

  async #exchange(channel: Channel, message: RaftRequest): Promise<Exchanged> {
    const { clock } = this.#options.world
    const from = clock.monotonic()
    try {
      const exchanged = await exchange(channel, message, this.asker)
      if (message.kind === 'fetch') this.#pieces.came(clock.monotonic() - from, message.fetch.maxWaitMs)
      return exchanged
    } catch (error) {
      if (message.kind === 'fetch' && error instanceof ChannelError && error.code === 'timed-out') this.#pieces.late()
      throw error
    }
  }

  /** The records that came with the answer to a fetch. */
  recordsOf(request: number): FollowedRecords | undefined {
    return this.#records.get(request)
  }

  /** Raft has said what becomes of them. */
  forget(request: number): void {
    this.#records.delete(request)
  }

  get asker(): Asker {
    const { config, requestTimeoutMs } = this.#options
    return {
      nodeId: config.nodeId,
      clusterId: config.cluster.id ?? null,
      endpoints: this.endpoints,
      requestTimeoutMs,
      fetchBytes: this.#pieces.bytes,
    }
  }

  /** A leader that belongs to no cluster, though its log is one's, asks the others. Rejects with a ChannelError. */
  async askForCluster(ids: Iterable<NodeId>): Promise<void> {
    for (const id of ids) {
      if (id !== this.#options.config.nodeId) await this.membership.join(await this.peers.channel(id, 'control'))
    }
  }

  /**
   * Whether a node belongs to another cluster than this: a node of Kafka's is formatted before it first runs,
   * and does not tell with what. Rejects with a ChannelError.
   */
  async isRefused(clusterId: string, id: NodeId): Promise<boolean> {
    const { nodeId, directoryId } = this.#options.config
    if (id === nodeId) return false
    const fetch = {
      replicaId: -1,
      directoryId,
      currentLeaderEpoch: 0,
      offset: 0,
      lastFetchedEpoch: 0,
      highWatermark: Number.POSITIVE_INFINITY,
      maxWaitMs: 0,
    }
    try {
      const channel = await this.peers.channel(id, 'control')
      await exchange(channel, { kind: 'fetch', fetch }, { ...this.asker, clusterId })
      return false
    } catch (error) {
      if (!(error instanceof ExchangeError)) throw error
      return error.errorCode === ErrorCode.INCONSISTENT_CLUSTER_ID
    }
  }

  #channelFor(to: RaftPeer, message: RaftRequest): Promise<Channel> {
    if (message.kind === 'kraft-range') {
      const address = this.#addresses.ofOurListener(message.voter.endpoints)
      if (address !== undefined) return this.peers.channelTo(address)
    }
    return this.peers.channel(to, message.kind === 'fetch' ? 'fetch' : 'control')
  }

  /** Said once: it is looked again and again whether it is gone. */
  #complainOfNamesake({ id, endpoints }: Voter): void {
    if (this.#complained.has('namesake')) return
    this.#complained.add('namesake')
    const { host, port } = this.#addresses.ofOurListener(endpoints) ?? {}
    this.#options.logger.error(
      { nodeId: id },
      `a controller with the number ${id} votes already and answers at ${host}:${port}, so this one does not; give this node another node.id (--node-id) and a folder of its own, or stop the other`,
    )
  }

  /** Said once for each reason: it is tried again and again. */
  #complain(to: RaftPeer, { message, errorCode }: ExchangeError): void {
    const { logger, config } = this.#options
    const key = `${to} ${errorCode}`
    if (this.#complained.has(key)) return
    this.#complained.add(key)
    const why =
      errorCode === ErrorCode.INCONSISTENT_CLUSTER_ID
        ? `another controller belongs to another cluster than this node (${config.cluster.id}), so they do not work together. Check controller.quorum.voters or controller.quorum.bootstrap.servers, or whether this node's folders are of another cluster`
        : 'another controller gave an answer that cannot be used'
    logger.warn({ peer: to, reason: message }, why)
  }
}
