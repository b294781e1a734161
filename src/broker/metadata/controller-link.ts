import type { Millis } from '#base/units.ts'
import { type ApiPair, Channel, ChannelError, NODE_ELEMENTS_MAX } from '#network/channel.ts'
import type { InputOf, MessageOf, Schema } from '#protocol/schema.ts'
import type { Address, Logger, World } from '#world/world.ts'
import { type Controllers, isSame } from './controllers.ts'
import { discover, isController } from './discovery.ts'

const BACKOFF_MIN_MS = 20
/** A new leader of the quorum has to be found soon after it stands; one that is away for long costs less so. */
const BACKOFF_MAX_MS = 100
const LONG_BACKOFF_MS = 500
const LONG_AFTER_FAILURES = 100
const CONNECT_TIMEOUT_MS = 2000
/** When one does not answer at once, it may be cut off: the next is tried beside it. */
const STAGGER_MS = 200
/**
 * For so long a controller that was replaced may still answer what it was asked. It decides nothing any more, and where it
 * has stopped without breaking its connections, who waits for it would wait for the whole of his time-out.
 */
const RETIRE_MS = 500
const COMPLAIN_AFTER_MS = 2000
/** A controller that a link belongs to and that cannot serve it is tried again after this time. */
const AWAY_MS = 5000

/**
 * The broker's way to the active controller: one connection, opened when it is needed and again when it broke or another
 * controller became the active one.
 */
export class ControllerLink {
  readonly #world: World
  readonly #controllers: Controllers
  /** The one that this link goes to as long as it serves, where it does not need the active one. */
  readonly #home: Address | undefined
  #awayUntil: Millis = Number.NEGATIVE_INFINITY
  readonly #clientId: string
  readonly #log: Logger
  readonly #forget: () => void
  #channel: Promise<Channel> | undefined
  /** Of `#channel`, when it is open. */
  #at: Address | undefined
  /** Whether something that was asked by `ask` was answered at `#at`. */
  #hasAnswered = false
  /** Who said or showed that it is not active, since one was; the later, the later it is tried again. */
  readonly #refused: Address[] = []
  #failures = 0
  #failingSince: Millis | undefined
  #hasComplained = false
  #closed = false
  readonly #resting = new Set<() => void>()

  constructor(world: World, controllers: Controllers, clientId: string, log: Logger, home?: Address) {
    this.#world = world
    this.#controllers = controllers
    this.#clientId = clientId
    this.#log = log
    this.#home = home
    this.#forget = controllers.onNews(() => this.#heardOfActive())
  }

  /** Sends to the active controller, as far as it is known. Rejects with a ChannelError; the next call may go to another. */
  async ask<Q extends Schema, R extends Schema>(
    pair: ApiPair<Q, R>,
    body: InputOf<Q>,
    timeoutMs: Millis,
  ): Promise<MessageOf<R>> {
    const channel = await this.connected()
    const answer = await channel.ask(pair, body, { timeoutMs })
    if (this.#at === channel.address) this.#hasAnswered = true
    return answer
  }

  /**
   * The controller that was asked (at `from`, where that is known) is not the active one: the next call goes to another
   * one. Of several that are told so by the same controller only the first one has this effect.
   */
  lookElsewhere(from?: Address): void {
    const at = this.#at
    if (at === undefined || (from === undefined ? !this.#hasAnswered : !isSame(from, at))) return
    this.#failures++
    if (this.#fixed === undefined) this.#avoid(at)
    else this.#awayUntil = this.#world.clock.monotonic() + AWAY_MS
    this.#release()
  }

  /** The controller that was asked answered what was wanted, which need not be the active one. */
  wasAnswered(): void {
    this.#failures = 0
  }

  /** The controller that was asked took it, so it is the active one. */
  wasTaken(): void {
    this.#failures = 0
    this.#refused.length = 0
    if (this.#at !== undefined && this.#fixed === undefined) this.#controllers.tookFor(this.#at)
  }

  /** The only one that this link goes to now. */
  get #fixed(): Address | undefined {
    return this.#world.clock.monotonic() < this.#awayUntil ? undefined : this.#home
  }

  #avoid(address: Address): void {
    const known = this.#refused.findIndex(each => isSame(each, address))
    if (known >= 0) this.#refused.splice(known, 1)
    this.#refused.push(address)
    this.#controllers.isNotActive(address)
  }

  /**
   * How long to wait before trying again after a failure: nothing after the first, as others may be there, and nothing
   * while one is known to be active, which is forgotten as soon as it shows otherwise.
   */
  get backoffMs(): Millis {
    if (this.#failures <= 1 || (this.#fixed === undefined && this.#controllers.active !== undefined)) return 0
    if (this.#failures > LONG_AFTER_FAILURES) return LONG_BACKOFF_MS
    return Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** Math.min(this.#failures - 2, 10))
  }

  /** Waits before trying again: as long as `backoffMs`, or until another controller is heard to be active. */
  rest(atLeastMs: Millis = 0): Promise<void> {
    return new Promise(resolve => {
      const done = () => {
        timer.cancel()
        this.#resting.delete(done)
        resolve()
      }
      const timer = this.#world.clock.after(Math.max(atLeastMs, this.backoffMs), done)
      this.#resting.add(done)
    })
  }

  close(): void {
    this.#closed = true
    this.#forget()
    this.#channel?.then(
      channel => channel.close(),
      () => {},
    )
    for (const done of [...this.#resting]) done()
  }

  /** The connection, opened if need be. Rejects with a ChannelError: then nothing was sent. */
  connected(): Promise<Channel> {
    const fixed = this.#fixed
    if (fixed !== undefined && this.#at !== undefined && !isSame(this.#at, fixed)) this.#release()
    if (this.#channel !== undefined) return this.#channel
    if (this.#closed) return Promise.reject(closedError())
    const connecting: Promise<Channel> = this.#dialAny().then(
      channel => this.#opened(channel, connecting),
      (error: unknown) => {
        if (this.#channel === connecting) this.#channel = undefined
        this.#failed(error)
        throw error
      },
    )
    // Those who wait for it are told; when nobody does, that is no failure of the process.
    connecting.catch(() => {})
    this.#channel = connecting
    return connecting
  }

  #opened(channel: Channel, connecting: Promise<Channel>): Channel {
    if (this.#closed) {
      channel.close()
      throw closedError()
    }
    this.#failingSince = undefined
    this.#hasComplained = false
    if (this.#channel === connecting) {
      this.#at = channel.address
      this.#hasAnswered = false
    }
    channel.whenClosed(() => {
      if (this.#channel !== connecting) return
      this.#channel = undefined
      this.#at = undefined
      if (this.#fixed === undefined) this.#controllers.isNotActive(channel.address)
    })
    return channel
  }

  #failed(error: unknown): void {
    this.#failures++
    const now = this.#world.clock.monotonic()
    this.#failingSince ??= now
    if (this.#closed || this.#hasComplained || now - this.#failingSince < COMPLAIN_AFTER_MS) return
    this.#hasComplained = true
    this.#log.warn(
      { reason: error instanceof Error ? error.message : String(error) },
      'no controller answers; the broker keeps trying. Check controller.quorum.voters or controller.quorum.bootstrap.servers, and that the controllers run',
    )
  }

  /** The first that answers, in the order of what is known; each has a start over the next. Rejects as the last one does. */
  #dialAny(): Promise<Channel> {
    const { clock } = this.#world
    const all = this.#fixed === undefined ? this.#controllers.candidates() : [this.#fixed]
    // Those known to be active or never heard of come first, in that order; then who refused the longest ago.
    const refusal = (address: Address) => this.#refused.findIndex(each => isSame(each, address))
    const { active } = this.#controllers
    const rank = (address: Address) => (active !== undefined && isSame(address, active) ? -2 : refusal(address))
    const queue = all.sort((a, b) => rank(a) - rank(b))
    const tried = [...queue]
    return new Promise((resolve, reject) => {
      let underWay = 0
      let isOver = false
      const next = () => {
        const address = queue.shift()
        if (isOver || address === undefined) return
        underWay++
        const timer = clock.after(STAGGER_MS, next)
        this.#dial(address).then(
          ({ channel, others }) => {
            underWay--
            timer.cancel()
            if (channel === undefined) {
              for (const other of others) {
                if (tried.some(each => isSame(each, other))) continue
                tried.push(other)
                queue.push(other)
              }
              if (queue.length > 0) next()
              else if (underWay === 0 && !isOver) {
                isOver = true
                reject(nobodyError())
              }
            } else if (isOver) channel.close()
            else {
              isOver = true
              resolve(channel)
            }
          },
          (error: unknown) => {
            underWay--
            timer.cancel()
            this.#avoid(address)
            if (queue.length > 0) next()
            else if (underWay === 0 && !isOver) {
              isOver = true
              reject(error)
            }
          },
        )
      }
      if (queue.length === 0) reject(nobodyError())
      next()
    })
  }

  /** Connects; a broker that stands at the address tells where the controllers are. */
  async #dial(address: Address): Promise<{ channel: Channel | undefined; others: readonly Address[] }> {
    const channel = await Channel.connect(this.#world, address, {
      clientId: this.#clientId,
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
      // Of what says nothing else: the first question, to a process that may stand still.
      requestTimeoutMs: CONNECT_TIMEOUT_MS,
      elementsMax: NODE_ELEMENTS_MAX,
    })
    try {
      await channel.negotiate()
      if (isController(channel)) return { channel, others: [] }
      const { controllers } = await discover(channel, this.#controllers.listener)
      this.#controllers.found(controllers)
      channel.close()
      return { channel: undefined, others: controllers }
    } catch (error) {
      channel.close()
      throw error
    }
  }

  /** What is asked from now on goes there; what is under way may still be answered where it is. */
  #heardOfActive(): void {
    if (this.#fixed !== undefined) return
    const { active } = this.#controllers
    if (active !== undefined && this.#at !== undefined && !isSame(active, this.#at)) this.#release()
    for (const done of [...this.#resting]) done()
  }

  #release(): void {
    const channel = this.#channel
    this.#channel = undefined
    this.#at = undefined
    channel?.then(
      open => this.#retire(open),
      () => {},
    )
  }

  #retire(channel: Channel): void {
    if (this.#closed || channel.inFlight === 0) channel.close()
    else this.#world.clock.after(RETIRE_MS, () => channel.close())
  }
}

function closedError(): ChannelError {
  return new ChannelError('closed', { host: '', port: 0 }, 'the broker is stopping')
}

function nobodyError(): ChannelError {
  return new ChannelError('unreachable', { host: '', port: 0 }, 'no controller is known')
}
