import type { Millis, NodeId } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import type { FeatureRange } from '#core/metadata/node-image.ts'
import type { VoterEndpoint } from '#core/raft/quorum.ts'
import { ChannelError } from '#network/channel.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode, errorOf } from '#protocol/errors.ts'
import type { ControllerRegistrationRequest } from '#protocol/messages/controller-registration.ts'
import type { Clock, Logger } from '#world/world.ts'
import type { Peers } from './peers.ts'

const PAUSE_MS_MIN: Millis = 50
const PAUSE_MS_MAX: Millis = 2000

export interface RegistrationOptions {
  readonly clock: Clock
  readonly logger: Logger
  readonly peers: Peers
  readonly request: () => ControllerRegistrationRequest
  /** -1 while none is known, or it is this node. */
  readonly leader: () => NodeId
  readonly timeoutMs: Millis
}

/** What a controller says of itself. */
export function registrationOf(controller: {
  readonly nodeId: NodeId
  readonly incarnationId: Uuid
  readonly endpoint: VoterEndpoint
  readonly features: ReadonlyMap<string, FeatureRange>
}): ControllerRegistrationRequest {
  const { nodeId, incarnationId, endpoint, features } = controller
  return {
    controllerId: nodeId,
    incarnationId,
    zkMigrationReady: false,
    listeners: [{ ...endpoint, securityProtocol: 0 }],
    features: [...features].map(([name, { min, max }]) => ({
      name,
      minSupportedVersion: min,
      maxSupportedVersion: max,
    })),
  }
}

/** A controller that does not lead makes itself known to the one that does, once in its life (KIP-919). */
export class Registration {
  readonly #options: RegistrationOptions
  #done = false
  #busy = false
  #stopped = false

  constructor(options: RegistrationOptions) {
    this.#options = options
  }

  /** Asked whenever another leader is known. */
  consider(): void {
    if (this.#done || this.#busy || this.#stopped || this.#options.leader() < 0) return
    this.#busy = true
    void this.#run().finally(() => {
      this.#busy = false
      // Somebody may lead again since it gave up.
      this.consider()
    })
  }

  /** The record is there: this node wrote it itself while it led. */
  done(): void {
    this.#done = true
  }

  stop(): void {
    this.#stopped = true
  }

  async #run(): Promise<void> {
    const { clock, logger } = this.#options
    for (let pause = PAUSE_MS_MIN; !this.#done && !this.#stopped; pause = Math.min(pause * 2, PAUSE_MS_MAX)) {
      const leaderId = this.#options.leader()
      if (leaderId < 0) return
      const reason = await this.#register(leaderId)
      if (reason === undefined) {
        this.#done = true
        return
      }
      logger.debug({ leaderId, reason }, 'this controller is not registered yet; trying again')
      await new Promise<void>(resolve => clock.after(pause, resolve))
    }
  }

  /** Why not, if it was not. */
  async #register(leaderId: NodeId): Promise<string | undefined> {
    const { peers, request, timeoutMs } = this.#options
    try {
      const channel = await peers.channel(leaderId, 'control')
      const { errorCode } = await channel.ask(API.ControllerRegistration, request(), { timeoutMs })
      return errorCode === ErrorCode.NONE ? undefined : errorOf(errorCode).name
    } catch (error) {
      if (!(error instanceof ChannelError)) throw error
      return error.message
    }
  }
}
