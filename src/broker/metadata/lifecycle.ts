import type { Millis, NodeId, Offset } from '#base/units.ts'
import type { Uuid } from '#base/uuid.ts'
import { METADATA_VERSION_DIRECTORIES } from '#core/metadata/metadata-version.ts'
import type { FeatureRange } from '#core/metadata/node-image.ts'
import { ChannelError } from '#network/channel.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode, errorOf } from '#protocol/errors.ts'
import type { Clock, Logger, Timer } from '#world/world.ts'
import type { ControllerLink } from './controller-link.ts'
import type { Controllers } from './controllers.ts'
import type { MetadataFollower } from './follower.ts'

export interface Registration {
  readonly nodeId: NodeId
  readonly clusterId: string
  /** Of this life of the process, or of lives that ended before they heard that they were registered. */
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
  /** Of the life before, -1 if something that it had written may be lost (KIP-966). */
  readonly previousBrokerEpoch: Offset
}

export interface LifecycleOptions {
  readonly registration: Registration
  readonly link: ControllerLink
  readonly controllers: Controllers
  readonly follower: MetadataFollower
  readonly clock: Clock
  readonly log: Logger
  /** broker.heartbeat.interval.ms */
  readonly heartbeatMs: Millis
  /** broker.session.timeout.ms: for so long the cluster may take one that is dead for one that lives. */
  readonly sessionTimeoutMs: Millis
  /** Directories that do not work at this moment. */
  readonly offlineLogDirs: () => readonly Uuid[]
  /** It is registered under this epoch, and does nothing under it before this resolves. */
  readonly registered: (epoch: Offset) => Promise<void>
  /** The metadata speak of this life; the cluster counts on the broker when this resolves. */
  readonly caughtUp: () => Promise<void>
}

/** Refusals that asking again does not change, and what does. */
const FOR_GOOD: Readonly<Record<string, string>> = {
  INCONSISTENT_CLUSTER_ID:
    'its folders belong to another cluster; choose other folders, or the controllers of its own cluster',
  UNSUPPORTED_VERSION:
    'start it with a release as new as the controllers, or lower the features (tidemark cluster features downgrade NAME=LEVEL)',
  INVALID_REGISTRATION: 'the controllers do not take what it says of itself',
  DUPLICATE_BROKER_REGISTRATION:
    'another node that runs has its number; give this one another node.id (--node-id) and a folder of its own, or stop the other',
}
/** Asked again at once, so that a node alone is up in a blink; Kafka waits for the heartbeat interval here. */
const NOT_YET_MS = 10
const SHUTDOWN_POLL_MS = 50
/** A leaving broker without any controller has nobody to take leave of. */
const LEAVE_ALONE_MS = 2000
/** Beyond the session: the controller looks for expired ones from time to time. */
const DUPLICATE_GRACE_MS = 3000
const DUPLICATE_POLL_MS = 500
const REGISTER_TIMEOUT_MS = 5000
const REFUSED_REST_MS = 50
/** For the metadata that say which features are missing. */
const FEATURES_PATIENCE_MS = 2000
const REFUSED_LATER_REST_MS = 1000

type HeartbeatAnswer = { readonly isFenced: boolean; readonly shouldShutDown: boolean }

/** The broker's life in the cluster: registers, is unfenced once it has caught up, heartbeats, takes its leave. */
export class BrokerLifecycle {
  readonly #options: LifecycleOptions
  readonly #forget: () => void
  #epoch: Offset = -1
  #timer: Timer | undefined
  #isUp = false
  #isLeaving = false
  #stopped = false
  /** Counts heartbeats, so that one which a newer one has overtaken says nothing. */
  #lastBeat = 0
  #registering: Promise<void> | undefined
  /** Of its directories, once: a controller that does not take them will not the next time either. */
  #hasToldAgain = false
  readonly #pauses = new Set<() => void>()

  constructor(options: LifecycleOptions) {
    this.#options = options
    // The new controller takes the cluster as it finds it: who makes itself heard at once is not missed.
    this.#forget = options.controllers.onNews(() => this.beat())
  }

  /** The offset of this registration in the metadata log; -1 before. */
  get epoch(): Offset {
    return this.#epoch
  }

  /**
   * Resolves when the broker is registered and unfenced, or stopped. Rejects with an Error when the cluster refuses it for
   * good.
   */
  async start(): Promise<void> {
    const { follower } = this.#options
    await this.#register()
    await follower.when(() => follower.appliedOffset > this.#epoch)
    await this.#options.caughtUp()
    while (!this.#stopped && (await this.#heartbeat(false))?.isFenced !== false) await this.#pause(NOT_YET_MS)
    this.#isUp = true
    this.#schedule(this.#options.heartbeatMs)
  }

  /** A heartbeat now, and the next ones from here: something is to be told at once. */
  beat(): void {
    if (this.#isUp && !this.#isLeaving && !this.#stopped) this.#schedule(0)
  }

  /** Controlled shutdown: the controller moves leaders away and says when to go. At most `timeoutMs`. */
  async leave(timeoutMs: Millis): Promise<void> {
    if (this.#stopped) return
    this.#isLeaving = true
    this.#timer?.cancel()
    const { clock, link } = this.#options
    const deadline = clock.monotonic() + timeoutMs
    let heardAt = clock.monotonic()
    while (this.#isUp && clock.monotonic() < deadline) {
      const answer = await this.#heartbeat(
        true,
        Math.max(1, Math.min(deadline, heardAt + LEAVE_ALONE_MS) - clock.monotonic()),
      )
      if (answer?.shouldShutDown === true) break
      const now = clock.monotonic()
      if (answer !== undefined) heardAt = now
      else if (now - heardAt >= LEAVE_ALONE_MS) break
      await (answer === undefined ? link.rest(NOT_YET_MS) : this.#pause(SHUTDOWN_POLL_MS))
    }
    this.stop()
  }

  stop(): void {
    this.#stopped = true
    this.#forget()
    this.#timer?.cancel()
    for (const resume of [...this.#pauses]) resume()
  }

  /** One registration at a time, whoever finds that it is needed. */
  #register(): Promise<void> {
    this.#registering ??= this.#registerUntilTaken().finally(() => {
      this.#registering = undefined
    })
    return this.#registering
  }

  async #registerUntilTaken(): Promise<void> {
    const { registration, link, clock, log, sessionTimeoutMs } = this.#options
    const { nodeId: brokerId, features, ...rest } = registration
    const request = {
      ...rest,
      brokerId,
      features: [...features].map(([name, { min, max }]) => ({
        name,
        minSupportedVersion: min,
        maxSupportedVersion: max,
      })),
    }
    // Counted from the first answer that says so: before it may have been a long time without any controller. A new controller
    // cannot know who was heard of last and gives the life before a whole session again.
    let duplicateUntil = Number.POSITIVE_INFINITY
    let connection: object | undefined
    let told = ''
    while (!this.#stopped) {
      try {
        const connected = await link.connected()
        // Where it broke a controller may have died and begun anew between two answers.
        if (connected !== connection) duplicateUntil = Number.POSITIVE_INFINITY
        connection = connected
        const answer = await link.ask(API.BrokerRegistration, request, REGISTER_TIMEOUT_MS)
        if (answer.errorCode === ErrorCode.NONE) {
          link.wasTaken()
          this.#epoch = answer.brokerEpoch
          await this.#options.registered(answer.brokerEpoch)
          return
        }
        const { name, message } = errorOf(answer.errorCode)
        if (name === 'NOT_CONTROLLER') {
          duplicateUntil = Number.POSITIVE_INFINITY
          link.lookElsewhere()
          await link.rest(NOT_YET_MS)
          continue
        }
        const isDuplicate = name === 'DUPLICATE_BROKER_REGISTRATION'
        if (isDuplicate) {
          duplicateUntil = Math.min(duplicateUntil, clock.monotonic() + sessionTimeoutMs + DUPLICATE_GRACE_MS)
        }
        const remedy = FOR_GOOD[name]
        const isForGood = remedy !== undefined && (!isDuplicate || clock.monotonic() >= duplicateUntil)
        const cure = name === 'UNSUPPORTED_VERSION' ? `${await this.#lacking()}; ${remedy}` : remedy
        if (isForGood && !this.#isUp) throw new Error(`the cluster refuses broker ${brokerId} (${name}): ${cure}`)
        // Once per reason: it is asked again and again.
        if (told !== name) {
          if (isForGood) log.error({ error: name, brokerId }, `the cluster refuses this broker: ${cure}`)
          else log.info({ error: name, brokerId, reason: message }, 'the registration was not taken; trying again')
        }
        told = name
        await this.#pause(isForGood ? REFUSED_LATER_REST_MS : isDuplicate ? DUPLICATE_POLL_MS : REFUSED_REST_MS)
      } catch (error) {
        if (!(error instanceof ChannelError)) throw error
        duplicateUntil = Number.POSITIVE_INFINITY
        // A controller may be there and fail at once each time, and then the link itself rests for nothing.
        await link.rest(NOT_YET_MS)
      }
    }
  }

  /** Which features the cluster uses that this release does not have; the controllers do not say. */
  async #lacking(): Promise<string> {
    const { follower, registration } = this.#options
    await Promise.race([follower.when(() => follower.image.features.size > 0), this.#pause(FEATURES_PATIENCE_MS)])
    const lacking = [...follower.image.features]
      .filter(([name, level]) => level > (registration.features.get(name)?.max ?? 0))
      .map(([name, level]) => `${name} ${level}`)
    return `the cluster uses features that this release does not have${lacking.length > 0 ? ` (${lacking.join(', ')})` : ''}`
  }

  /** Undefined where nobody took it. */
  async #heartbeat(
    wantShutDown: boolean,
    timeoutMs = this.#options.heartbeatMs * 2,
  ): Promise<HeartbeatAnswer | undefined> {
    const { registration, link, follower, log, offlineLogDirs } = this.#options
    try {
      const answer = await link.ask(
        API.BrokerHeartbeat,
        {
          brokerId: registration.nodeId,
          brokerEpoch: this.#epoch,
          currentMetadataOffset: follower.appliedOffset - 1,
          wantFence: false,
          wantShutDown,
          offlineLogDirs: offlineLogDirs(),
        },
        timeoutMs,
      )
      if (answer.errorCode === ErrorCode.NONE) {
        link.wasTaken()
        return answer
      }
      const { name } = errorOf(answer.errorCode)
      if (name === 'NOT_CONTROLLER') link.lookElsewhere()
      else if (!this.#isLeaving && (name === 'STALE_BROKER_EPOCH' || name === 'BROKER_ID_NOT_REGISTERED')) {
        log.warn({ error: name }, 'the cluster does not know this registration any more; registering again')
        await this.#register()
      }
      return undefined
    } catch (error) {
      if (!(error instanceof ChannelError)) throw error
      return undefined
    }
  }

  /**
   * A cluster of Kafka's that was raised to a metadata version which knows directories did not take them when this life
   * registered; without them it takes no folder for offline.
   */
  get #isWithoutDirectories(): boolean {
    const { registration, follower } = this.#options
    if (this.#hasToldAgain || registration.logDirs.length === 0) return false
    const { image } = follower
    const known = image.broker(registration.nodeId)
    const isOurs = known?.epoch === this.#epoch && known.incarnationId === registration.incarnationId
    return isOurs && known.logDirs.length === 0 && image.metadataVersion >= METADATA_VERSION_DIRECTORIES
  }

  #schedule(delayMs: Millis): void {
    this.#timer?.cancel()
    if (this.#stopped || this.#isLeaving) return
    const beat = ++this.#lastBeat
    this.#timer = this.#options.clock.after(delayMs, () => void this.#beatOn(beat))
  }

  async #beatOn(beat: number): Promise<void> {
    const { link, heartbeatMs, registration, offlineLogDirs } = this.#options
    if (this.#isWithoutDirectories) {
      this.#hasToldAgain = true
      await this.#register()
      if (beat !== this.#lastBeat) return
    }
    const answer = await this.#heartbeat(false)
    if (beat !== this.#lastBeat) return
    if (answer === undefined) await link.rest(NOT_YET_MS)
    if (beat !== this.#lastBeat) return
    // One that is fenced has news to tell as soon as it has caught up, unless all of its folders are gone.
    const offline = offlineLogDirs()
    const isBare = offline.length > 0 && registration.logDirs.every(dir => offline.includes(dir))
    this.#schedule(answer === undefined ? 0 : answer.isFenced && !isBare ? REFUSED_REST_MS : heartbeatMs)
  }

  #pause(ms: Millis): Promise<void> {
    return new Promise(resolve => {
      const resume = () => {
        timer.cancel()
        this.#pauses.delete(resume)
        resolve()
      }
      const timer = this.#options.clock.after(ms, resume)
      this.#pauses.add(resume)
    })
  }
}
