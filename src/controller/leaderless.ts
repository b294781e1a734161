import type { Millis, NodeId } from '#base/units.ts'
import type { Address, Clock, Logger, Timer } from '#world/world.ts'

/** An election takes far less, also where the one that led has to be missed first. */
const TOLD_AFTER_MS: Millis = 10_000

export interface LeaderlessOptions {
  readonly clock: Clock
  readonly logger: Logger
  /** Who votes, and where each is reached; empty where this node knows of no quorum yet. */
  readonly voters: () => readonly { readonly id: NodeId; readonly address: Address | undefined }[]
}

/** Says so in one line when no controller leads for long, and once more when one does. */
export class Leaderless {
  readonly #options: LeaderlessOptions
  #timer: Timer | undefined
  #isTold = false

  constructor(options: LeaderlessOptions) {
    this.#options = options
  }

  /** Nobody is known to lead. */
  lost(): void {
    if (this.#isTold) return
    this.#timer ??= this.#options.clock.after(TOLD_AFTER_MS, () => this.#tell())
  }

  /** This node leads, or another one does. */
  found(leaderId: NodeId): void {
    this.stop()
    if (!this.#isTold) return
    this.#isTold = false
    this.#options.logger.info({ leaderId }, `controller ${leaderId} leads again`)
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #tell(): void {
    this.#timer = undefined
    const voters = this.#options.voters()
    if (voters.length === 0) return
    this.#isTold = true
    const named = voters.map(({ id, address }) =>
      address === undefined ? `${id}` : `${id} (${address.host}:${address.port})`,
    )
    this.#options.logger.warn(
      { voters: voters.map(({ id }) => id) },
      `no controller leads for ${TOLD_AFTER_MS / 1000} s, so nothing can be changed and no leaders are elected; what has a leader is served. Of the voters ${named.join(', ')} ${Math.floor(voters.length / 2) + 1} must run and reach each other: start those that are down`,
    )
  }
}
