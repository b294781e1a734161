import type { Millis, NodeId, Offset } from '#base/units.ts'
import type { BrokerImage } from '#core/metadata/node-image.ts'
import { Channel, ChannelError } from '#network/channel.ts'
import type { Timer } from '#world/world.ts'
import { addressOf, type Watching } from './broker-address.ts'

const LOOKS_EVERY_MS: Millis = 1000
/** What a broker may take to be connected to, and to answer. */
const ANSWER_MS_MAX: Millis = 1000
/** Whose answer is out for so long may be cut off: it is not believed who says that others are. */
const DOUBTED_MS: Millis = 250
/** Who was silent for so long cannot be dialled. */
const SILENT_MS: Millis = 5000
/** Who could not be dialled can be again when it has answered for so long. */
const ANSWERED_MS: Millis = 10_000
/** Brokers that are asked at the same time. */
const ASKED_MAX = 256

export interface ReachWatchOptions extends Watching {
  /** Whether a broker that heartbeats can be dialled, when that changes. */
  readonly changed: (brokerId: NodeId, brokerEpoch: Offset, isReached: boolean) => void
}

/** A broker as it answers. */
interface Asked {
  readonly brokerEpoch: Offset
  channel: Channel | undefined
  /** Since when its answer is waited for. */
  askedAt: Millis | undefined
  hasAnswered: boolean
  /** It is another one by now, or another controller's business. */
  isOver: boolean
  /** Since when it is silent, or answers, without a break. */
  isSilent: boolean
  since: Millis
  isReached: boolean
}

/**
 * Sees that a broker cannot be dialled though it may heartbeat: a firewall, a broken way in. Its followers cannot fetch
 * then, nor clients write, and it would lead for as long as that lasts. Each is asked something small every second. Silence
 * and refusals count, a connection that is closed does not: quotas do that. Where most of the others are silent as well, it
 * is this controller that dials in vain.
 */
export class ReachWatch {
  readonly #options: ReachWatchOptions
  readonly #asked = new Map<NodeId, Asked>()
  #timer: Timer | undefined

  constructor(options: ReachWatchOptions) {
    this.#options = options
  }

  begin(): void {
    this.#timer = this.#options.world.clock.after(LOOKS_EVERY_MS, () => {
      this.#look()
      this.begin()
    })
  }

  end(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    for (const id of [...this.#asked.keys()]) this.#forget(id)
  }

  #look(): void {
    const brokers = this.#options.image()?.brokers
    if (brokers === undefined) return
    for (const [id, { brokerEpoch }] of this.#asked) if (brokers.get(id)?.epoch !== brokerEpoch) this.#forget(id)
    for (const broker of brokers.values()) {
      // The one in this process can always be dialled from here, which says nothing.
      if (broker.id === this.#options.nodeId) continue
      if (broker.fenced) this.#pause(this.#asked.get(broker.id))
      else if (!this.#asked.has(broker.id)) this.#begin(broker)
    }
    let waiting = 0
    // In the order in which they were asked last, so that it is everybody's turn where there are very many.
    for (const [id, asked] of [...this.#asked]) {
      const broker = brokers.get(id)
      if (broker === undefined || broker.fenced) continue
      this.#judge(broker, asked)
      if (asked.askedAt === undefined && waiting < ASKED_MAX) {
        this.#asked.delete(id)
        this.#asked.set(id, asked)
        void this.#ask(broker, asked)
      }
      if (asked.askedAt !== undefined) waiting++
    }
  }

  /** Nobody asks who is fenced: its silence of before is no news when it is back, and says nothing of who else is silent. */
  #pause(asked: Asked | undefined): void {
    if (asked === undefined) return
    asked.isSilent = !asked.isReached
    asked.since = this.#now
  }

  #begin({ id, epoch }: BrokerImage): void {
    this.#asked.set(id, {
      brokerEpoch: epoch,
      channel: undefined,
      askedAt: undefined,
      hasAnswered: false,
      isOver: false,
      isSilent: false,
      since: this.#now,
      isReached: true,
    })
  }

  #forget(id: NodeId): void {
    const asked = this.#asked.get(id)
    if (asked === undefined) return
    this.#asked.delete(id)
    asked.isOver = true
    asked.channel?.close()
  }

  #judge({ id, epoch, endPoints }: BrokerImage, asked: Asked): void {
    const lasts = this.#now - asked.since
    if (asked.isReached === asked.isSilent) {
      if (asked.isSilent ? lasts < SILENT_MS || this.#isCutOff(id) : lasts < ANSWERED_MS) return
      asked.isReached = !asked.isSilent
      const { logger, changed, interBrokerListener } = this.#options
      const where = { brokerId: id, ...addressOf(endPoints, interBrokerListener) }
      if (asked.isReached) logger.info(where, 'a broker can be dialled again, and may lead')
      else logger.warn(where, `a broker cannot be dialled for ${SILENT_MS} ms: others lead where they can`)
      changed(id, epoch, asked.isReached)
    }
  }

  /**
   * Whether a broker is silent, or has yet to answer this controller, and not for so long that others were chosen: a leader
   * that is walled in sees all its followers fall silent, and must not put them out of the in-sync set before one of them
   * can be chosen. Never for much longer than {@link SILENT_MS}.
   */
  doubts(id: NodeId): boolean {
    if (id === this.#options.nodeId) return false
    const asked = this.#asked.get(id)
    if (asked === undefined) return true
    if (!asked.isReached || this.#isCutOff(id)) return false
    if (!asked.hasAnswered && this.#now - asked.since < SILENT_MS) return true
    return asked.isSilent || (asked.askedAt !== undefined && this.#now - asked.askedAt > DOUBTED_MS)
  }

  /** Most of the others are silent, too. */
  #isCutOff(id: NodeId): boolean {
    const brokers = this.#options.image()?.brokers
    const others = [...this.#asked].filter(([other]) => other !== id && brokers?.get(other)?.fenced === false)
    return 2 * others.filter(([, { isSilent }]) => isSilent).length > others.length
  }

  async #ask({ endPoints }: BrokerImage, asked: Asked): Promise<void> {
    const { world, interBrokerListener } = this.#options
    const address = addressOf(endPoints, interBrokerListener)
    if (address === undefined) return
    const began = this.#now
    asked.askedAt = began
    const answers = await this.#answers(asked, () => {
      const limits = { connectTimeoutMs: ANSWER_MS_MAX, requestTimeoutMs: ANSWER_MS_MAX }
      return Channel.connect(world, address, limits)
    })
    asked.askedAt = undefined
    if (answers === true) asked.hasAnswered = true
    if (answers === undefined || answers !== asked.isSilent) return
    asked.isSilent = !answers
    asked.since = began
  }

  /** Undefined where what happened says nothing. */
  async #answers(asked: Asked, connect: () => Promise<Channel>): Promise<boolean | undefined> {
    try {
      if (asked.channel?.open !== true) asked.channel = await connect()
      await asked.channel.negotiate()
      return true
    } catch (error) {
      if (!(error instanceof ChannelError)) throw error
      switch (error.code) {
        case 'timed-out':
        case 'refused':
        case 'unreachable':
          return false
        case 'unknown-host':
          return undefined
        default:
          return true
      }
    } finally {
      if (asked.isOver) asked.channel?.close()
    }
  }

  get #now(): Millis {
    return this.#options.world.clock.monotonic()
  }
}
