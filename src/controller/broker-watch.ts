import type { Millis, NodeId, Offset } from '#base/units.ts'
import type { BrokerImage } from '#core/metadata/node-image.ts'
import { Channel, ChannelError, type ChannelErrorCode } from '#network/channel.ts'
import type { Caller } from '#network/service.ts'
import { inParallel } from '#storage/files.ts'
import type { Address, Timer } from '#world/world.ts'
import { addressOf, type Watching } from './broker-address.ts'

const DIAL_MS_MAX: Millis = 1000
/** Between one look at a silent broker and the next, and from then on until its session ends. */
const LOOKS_AGAIN_MS: readonly Millis[] = [20, 100, 400]
const LAST_LOOK_MS: Millis = 1000
/** Brokers that are dialled at the same time when a term begins. */
const DIALS_MAX = 32

export interface BrokerWatchOptions extends Watching {
  /** Nobody listens where this broker did. */
  readonly died: (brokerId: NodeId, brokerEpoch: Offset) => void
}

interface Watched {
  readonly brokerEpoch: Offset
  readonly callerId: number
  readonly forget: () => void
}

/**
 * Sees that a broker's process is gone before its session runs out: the connection of its heartbeats breaks, and dialling
 * its listener is refused. Any other outcome says nothing: it is dialled again, until it is heard of or its session ends. A
 * broker that heartbeats again after it was taken for dead listens where this node cannot see it: a refusal says nothing
 * until a dial has succeeded.
 */
export class BrokerWatch {
  readonly #options: BrokerWatchOptions
  readonly #watched = new Map<NodeId, Watched>()
  /** By broker, the epoch that was taken for dead. */
  readonly #declared = new Map<NodeId, Offset>()
  readonly #unseen = new Map<NodeId, Offset>()
  /** Brokers that are dialled to see whether they can be. */
  readonly #lookingFor = new Set<NodeId>()
  readonly #timers = new Set<Timer>()
  /** Counts terms: what was asked in one is of no use in the next. */
  #term = 0

  constructor(options: BrokerWatchOptions) {
    this.#options = options
  }

  /** A broker registered or sent a heartbeat over this connection. */
  heard(brokerId: NodeId, brokerEpoch: Offset, caller: Caller): void {
    if (this.#options.image()?.broker(brokerId)?.epoch !== brokerEpoch) return
    if (this.#declared.get(brokerId) === brokerEpoch) {
      this.#unseen.set(brokerId, brokerEpoch)
      void this.#lookFor(brokerId, brokerEpoch)
    }
    const before = this.#watched.get(brokerId)
    if (before?.callerId === caller.id && before.brokerEpoch === brokerEpoch) return
    before?.forget()
    const watched: Watched = {
      brokerEpoch,
      callerId: caller.id,
      forget: caller.whenGone(() => {
        if (this.#watched.get(brokerId)?.callerId !== caller.id) return
        this.#watched.delete(brokerId)
        void this.#look(brokerId)
      }),
    }
    this.#watched.set(brokerId, watched)
  }

  /** A term begins: those that died with the controller before have no connection here that could break. */
  begin(): void {
    const brokers = [...(this.#options.image()?.brokers.values() ?? [])]
    const silent = brokers.filter(({ id, fenced }) => !fenced && id !== this.#options.nodeId && !this.#watched.has(id))
    void inParallel(silent, DIALS_MAX, ({ id }) => this.#look(id))
  }

  end(): void {
    this.#term++
    for (const timer of this.#timers) timer.cancel()
    this.#timers.clear()
    for (const { forget } of this.#watched.values()) forget()
    this.#watched.clear()
    this.#declared.clear()
    this.#unseen.clear()
  }

  /**
   * A dying process may close its connections before its listener, and reset who comes in between: whoever stays silent is
   * dialled again.
   */
  async #look(brokerId: NodeId, looks = 0): Promise<void> {
    const broker = this.#unfenced(brokerId)
    const address = broker === undefined ? undefined : this.#addressOf(broker)
    if (broker === undefined || address === undefined || this.#unseen.get(brokerId) === broker.epoch) return
    const term = this.#term
    const answer = await this.#dial(address)
    // It may have come back by another connection, or as another process, meanwhile.
    if (term !== this.#term || this.#watched.has(brokerId) || this.#unfenced(brokerId)?.epoch !== broker.epoch) return
    if (answer !== 'refused') {
      const timer = this.#options.world.clock.after(LOOKS_AGAIN_MS[looks] ?? LAST_LOOK_MS, () => {
        this.#timers.delete(timer)
        if (!this.#watched.has(brokerId)) void this.#look(brokerId, looks + 1)
      })
      this.#timers.add(timer)
      return
    }
    this.#declared.set(brokerId, broker.epoch)
    const { logger, died } = this.#options
    logger.warn({ brokerId, ...address }, 'a broker is fenced: its connection broke, and where it listened nobody does')
    died(brokerId, broker.epoch)
  }

  /** A network that was cut is whole again: from then on the broker can be seen to die. */
  async #lookFor(brokerId: NodeId, brokerEpoch: Offset): Promise<void> {
    const broker = this.#options.image()?.broker(brokerId)
    const address = broker === undefined ? undefined : this.#addressOf(broker)
    if (address === undefined || this.#lookingFor.has(brokerId)) return
    const term = this.#term
    this.#lookingFor.add(brokerId)
    const isSeen = (await this.#dial(address)) === 'taken'
    this.#lookingFor.delete(brokerId)
    if (!isSeen || term !== this.#term || this.#unseen.get(brokerId) !== brokerEpoch) return
    this.#unseen.delete(brokerId)
    this.#declared.delete(brokerId)
  }

  #unfenced(id: NodeId): BrokerImage | undefined {
    const broker = this.#options.image()?.broker(id)
    return broker?.fenced === false ? broker : undefined
  }

  #addressOf({ endPoints }: BrokerImage): Address | undefined {
    return addressOf(endPoints, this.#options.interBrokerListener)
  }

  async #dial(address: Address): Promise<'taken' | ChannelErrorCode> {
    try {
      const channel = await Channel.connect(this.#options.world, address, { connectTimeoutMs: DIAL_MS_MAX })
      channel.close()
      return 'taken'
    } catch (error) {
      if (!(error instanceof ChannelError)) throw error
      return error.code
    }
  }
}
