import type { Millis } from '#base/units.ts'
import type { Channel } from '#network/channel.ts'
import { API } from '#protocol/apis.ts'
import type { Logger } from '#world/world.ts'
import type { ClusterIdentity } from './config.ts'

const CONTROLLERS = 2

/** To which cluster this node belongs: a new one learns it once, from whoever it begins to follow, or founds one. */
export class ClusterMembership {
  readonly #cluster: ClusterIdentity
  readonly #logger: Logger
  readonly #timeoutMs: Millis
  #storing: Promise<void> | undefined
  #heardOf: string | undefined

  constructor(cluster: ClusterIdentity, logger: Logger, timeoutMs: Millis) {
    this.#cluster = cluster
    this.#logger = logger
    this.#timeoutMs = timeoutMs
  }

  get id(): string | undefined {
    return this.#cluster.id
  }

  /** The cluster that a voter of this node's quorum belongs to, by what it asked; only while this node has none. */
  get heardOf(): string | undefined {
    return this.#heardOf
  }

  heard(clusterId: string): void {
    if (this.id === undefined) this.#heardOf = clusterId
  }

  /**
   * Before anything of another node's log is taken: this node belongs to its cluster, if that has an id. Rejects with a
   * ChannelError, a StorageError or a WorldError.
   */
  async join(channel: Channel): Promise<void> {
    if (this.id !== undefined || channel.versionFor(API.DescribeCluster.request) === undefined) return
    const { clusterId } = await channel.ask(
      API.DescribeCluster,
      { endpointType: CONTROLLERS },
      { timeoutMs: this.#timeoutMs },
    )
    if (clusterId !== '') await this.found(clusterId)
  }

  /** Stores the id, unless there is one already. */
  async found(clusterId: string): Promise<void> {
    if (this.id !== undefined) return
    this.#storing ??= this.#store(clusterId).finally(() => {
      this.#storing = undefined
    })
    await this.#storing
  }

  async #store(clusterId: string): Promise<void> {
    await this.#cluster.found(clusterId)
    this.#logger.info({ clusterId: this.id }, 'this node belongs to a cluster now')
  }
}
