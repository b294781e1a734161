import type { Millis } from '#base/units.ts'
import { type ApiPair, Channel, ChannelError } from '#network/channel.ts'
import type { InputOf, MessageOf, Schema } from '#protocol/schema.ts'
import type { Address, Logger, World } from '#world/world.ts'

const BACKOFF_MIN_MS = 20
const BACKOFF_MAX_MS = 1000

/**
 * The broker's way to the active controller: one connection, opened when it is needed and again when it broke. Who the
 * active controller is, is found by asking one after another.
 */
export class ControllerLink {
  readonly #world: World
  readonly #controllers: () => readonly Address[]
  readonly #clientId: string
  readonly #log: Logger
  #channel: Promise<Channel> | undefined
  #next = 0
  #failures = 0
  #closed = false

  constructor(world: World, controllers: () => readonly Address[], clientId: string, log: Logger) {
    this.#world = world
    this.#controllers = controllers
    this.#clientId = clientId
    this.#log = log
  }

  /** Sends to the controller that answered last. Rejects with a ChannelError; the next call tries another one. */
  async ask<Q extends Schema, R extends Schema>(
    pair: ApiPair<Q, R>,
    body: InputOf<Q>,
    timeoutMs: Millis,
  ): Promise<MessageOf<R>> {
    const channel = await this.connected()
    return await channel.ask(pair, body, { timeoutMs })
  }

  /** The controller that was asked is not the active one: the next call goes to another one. */
  lookElsewhere(): void {
    this.#channel?.then(
      channel => channel.close(),
      () => {},
    )
    this.#channel = undefined
    this.#next++
  }

  /** How long to wait before trying again after a failure. */
  get backoffMs(): Millis {
    return Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** Math.min(this.#failures, 10))
  }

  close(): void {
    this.#closed = true
    this.#channel?.then(
      channel => channel.close(),
      () => {},
    )
  }

  /** The connection, opened if need be. Rejects with a ChannelError: then nothing was sent. */
  connected(): Promise<Channel> {
    if (this.#channel !== undefined) return this.#channel
    const controllers = this.#controllers()
    const address = controllers[this.#next % controllers.length]
    if (this.#closed || address === undefined) {
      return Promise.reject(new ChannelError('closed', address ?? { host: '', port: 0 }, 'the broker is stopping'))
    }
    const connecting = Channel.connect(this.#world, address, { clientId: this.#clientId }).then(async channel => {
      await channel.negotiate()
      this.#failures = 0
      channel.whenClosed(() => {
        if (this.#channel === connecting) this.#channel = undefined
      })
      return channel
    })
    this.#channel = connecting
    connecting.catch(error => {
      if (this.#channel === connecting) this.#channel = undefined
      this.#next++
      if (this.#failures++ === 3) {
        this.#log.warn(
          { controller: `${address.host}:${address.port}`, reason: String(error?.message ?? error) },
          'no controller answers; the broker keeps trying. Check controller.quorum.voters or controller.quorum.bootstrap.servers, and that the controllers run',
        )
      }
    })
    return connecting
  }
}
