import type { Millis, NodeId, Offset } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import type { FeatureRange } from '#core/metadata/image.ts'
import { ChannelError } from '#network/channel.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode, errorOf } from '#protocol/errors.ts'
import type { Clock, Logger, Timer } from '#world/world.ts'
import type { ControllerLink } from './controller-link.ts'
import type { MetadataFollower } from './follower.ts'

export interface Registration {
  readonly nodeId: NodeId
  readonly clusterId: string
  /** A fresh id of each start of the process. */
  readonly incarnationId: Uuid
  readonly listeners: readonly {
    readonly name: string
    readonly host: string
    readonly port: number
    readonly securityProtocol: number
  }[]
  readonly features: ReadonlyMap<string, FeatureRange>
  readonly rack: string | null
  readonly logDirs: readonly Uuid[]
  /** From `.kafka_cleanshutdown` of the last stop, -1 if it was not clean (KIP-966). */
  readonly previousBrokerEpoch: Offset
}

/** Refusals that asking again does not change. */
const FOR_GOOD = new Set<string>(['INCONSISTENT_CLUSTER_ID', 'UNSUPPORTED_VERSION', 'INVALID_REGISTRATION'])
/** Asked again at once, so that a node alone is up in a blink; Kafka waits for the heartbeat interval here. */
const NOT_YET_MS = 10
const SHUTDOWN_POLL_MS = 50

/** The broker's life in the cluster: registers, is unfenced once it has caught up, heartbeats, takes its leave. */
export class BrokerLifecycle {
  readonly #registration: Registration
  readonly #link: ControllerLink
  readonly #follower: MetadataFollower
  readonly #clock: Clock
  readonly #log: Logger
  readonly #heartbeatMs: Millis
  #epoch: Offset = -1
  #timer: Timer | undefined
  #stopped = false
  #offlineLogDirs: readonly Uuid[] = []

  constructor(
    registration: Registration,
    link: ControllerLink,
    follower: MetadataFollower,
    clock: Clock,
    log: Logger,
    heartbeatMs: Millis,
  ) {
    this.#registration = registration
    this.#link = link
    this.#follower = follower
    this.#clock = clock
    this.#log = log
    this.#heartbeatMs = heartbeatMs
  }

  /** The offset of this registration in the metadata log; -1 before. */
  get epoch(): Offset {
    return this.#epoch
  }

  /** Resolves when the broker is registered and unfenced. Rejects with an Error when the cluster refuses it for good. */
  async start(): Promise<void> {
    await this.#register()
    await this.#follower.when(() => this.#follower.appliedOffset > this.#epoch)
    while (!this.#stopped && (await this.#heartbeat(false))?.isFenced !== false) await this.#pause(NOT_YET_MS)
    this.#schedule()
  }

  /** Controlled shutdown: the controller moves leaders away and says when to go. At most `timeoutMs`. */
  async leave(timeoutMs: Millis): Promise<void> {
    this.#timer?.cancel()
    this.#stopped = true
    const deadline = this.#clock.monotonic() + timeoutMs
    while (this.#clock.monotonic() < deadline) {
      const answer = await this.#heartbeat(true)
      if (answer === undefined || answer.shouldShutDown) return
      await this.#pause(SHUTDOWN_POLL_MS)
    }
  }

  stop(): void {
    this.#stopped = true
    this.#timer?.cancel()
  }

  async #register(): Promise<void> {
    const { nodeId: brokerId, features, ...rest } = this.#registration
    while (!this.#stopped) {
      try {
        const answer = await this.#link.ask(
          API.BrokerRegistration,
          {
            ...rest,
            brokerId,
            features: [...features].map(([name, { min, max }]) => ({
              name,
              minSupportedVersion: min,
              maxSupportedVersion: max,
            })),
          },
          10_000,
        )
        if (answer.errorCode === ErrorCode.NONE) {
          this.#epoch = answer.brokerEpoch
          return
        }
        const error = errorOf(answer.errorCode)
        if (FOR_GOOD.has(error.name)) {
          throw new Error(`the cluster refuses broker ${brokerId}: ${error.name}, ${error.message}`)
        }
        if (error.name === 'NOT_CONTROLLER') this.#link.lookElsewhere()
        this.#log.info({ error: error.name, brokerId }, 'the registration was not taken; trying again')
        await this.#pause(error.name === 'DUPLICATE_BROKER_REGISTRATION' ? 500 : 50)
      } catch (error) {
        if (!(error instanceof ChannelError)) throw error
        await this.#pause(this.#link.backoffMs)
      }
    }
  }

  async #heartbeat(wantShutDown: boolean): Promise<{ isFenced: boolean; shouldShutDown: boolean } | undefined> {
    try {
      const answer = await this.#link.ask(
        API.BrokerHeartbeat,
        {
          brokerId: this.#registration.nodeId,
          brokerEpoch: this.#epoch,
          currentMetadataOffset: this.#follower.appliedOffset - 1,
          wantFence: false,
          wantShutDown,
          offlineLogDirs: this.#offlineLogDirs,
        },
        this.#heartbeatMs * 2,
      )
      if (answer.errorCode === ErrorCode.NONE) return answer
      const { name } = errorOf(answer.errorCode)
      if (name === 'NOT_CONTROLLER') this.#link.lookElsewhere()
      else if (name === 'STALE_BROKER_EPOCH' || name === 'BROKER_ID_NOT_REGISTERED') {
        this.#log.warn({ error: name }, 'the cluster does not know this registration any more; registering again')
        await this.#register()
      }
      return undefined
    } catch (error) {
      if (!(error instanceof ChannelError)) throw error
      return undefined
    }
  }

  #schedule(): void {
    if (this.#stopped) return
    this.#timer = this.#clock.after(this.#heartbeatMs, () => {
      void this.#heartbeat(false).then(() => this.#schedule())
    })
  }

  #pause(ms: Millis): Promise<void> {
    return new Promise(resolve => {
      this.#clock.after(ms, resolve)
    })
  }
}
