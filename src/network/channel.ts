import { assert } from '#base/assert.ts'
import { ByteReader, ByteWriter } from '#base/bytes.ts'
import { hostPort } from '#base/host-port.ts'
import { INT32_MAX, type Millis } from '#base/units.ts'
import { VERSION } from '#base/version.ts'
import { DecodeError, decode, EncodeError, encode, encodeParts } from '#protocol/codec.ts'
import { type FrameMemory, FrameReader } from '#protocol/frame-reader.ts'
import { ApiVersionsRequest, ApiVersionsResponse } from '#protocol/messages/api-versions.ts'
import { RequestHeader, ResponseHeader } from '#protocol/messages/headers.ts'
import { type InputOf, includesVersion, type MessageOf, parseVersions, type Schema } from '#protocol/schema.ts'
import type { Address, Sink, Socket, Timer, World, WorldError } from '#world/world.ts'
import { ChannelError, connectError } from './channel-error.ts'

export { ChannelError, type ChannelErrorCode } from './channel-error.ts'

export interface ChannelOptions {
  readonly clientId: string
  readonly softwareName: string
  readonly softwareVersion: string
  readonly connectTimeoutMs: Millis
  /** How long an answer may take where the call does not say. */
  readonly requestTimeoutMs: Millis
  /** The largest answer that is taken. */
  readonly frameBytesMax: number
  /** Elements of arrays, tagged fields and long strings in one answer: they take many times the memory of their bytes. */
  readonly elementsMax: number
  /** Requests under way, and their bytes; more are refused as `overloaded`. */
  readonly inFlightMax: number
  readonly inFlightBytesMax: number
  /** Where the memory of answers comes from; without, each has its own. */
  readonly memory: FrameMemory | undefined
}

export interface CallOptions {
  readonly timeoutMs?: Millis
  /**
   * Told which memory the answer lies in, just before the answer: bytes in it (records) are views. Who gives it back to
   * the channel's `memory` vouches that nobody uses them any more; what nobody gives back is left to the collector.
   */
  readonly lent?: (frame: Buffer) => void
}

const DEFAULTS: ChannelOptions = {
  clientId: 'tidemark',
  softwareName: 'tidemark',
  softwareVersion: VERSION,
  connectTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  frameBytesMax: 256 * 1024 * 1024,
  elementsMax: 1 << 22,
  inFlightMax: 1000,
  inFlightBytesMax: 256 * 1024 * 1024,
  memory: undefined,
}

/**
 * What an answer to a node's own question can hold at most, as many as a request to a node. What it asks is often at an address
 * that somebody told it, without having to say who he is.
 */
export const NODE_ELEMENTS_MAX = 1 << 18
/** The answer to ApiVersions: it is asked of anybody, before it is known who that is. Of Kafka's it is a thousand bytes. */
const VERSIONS_BYTES_MAX = 64 * 1024

/** A request schema and the schema of its answer; an entry of the table of APIs is one. */
export interface ApiPair<Q extends Schema = Schema, R extends Schema = Schema> {
  readonly request: Q
  readonly response: R
}

export interface VersionSpan {
  readonly min: number
  readonly max: number
}

/** KIP-511: an error in the first two bytes of any version, and the layout of version 0 behind it. */
const UNSUPPORTED_VERSION = 35

/** Who is told what became of a request, in the turn in which it did. */
export interface Asker<Answer extends object = object> {
  /** Bytes in the answer (records) are views of the frame; see {@link CallOptions.lent}. */
  answered(answer: Answer, frame: Buffer): void
  failed(error: ChannelError): void
}

interface InFlight {
  readonly correlationId: number
  readonly pair: ApiPair
  readonly version: number
  readonly bytes: number
  readonly deadline: Millis
  readonly asker: Asker
}

/**
 * One connection, the asking side. Requests are sent as they come and answered in order. It lives until it is closed or
 * something goes wrong; then every request under way is rejected with the reason, and so is every later one.
 */
export class Channel implements Sink {
  readonly address: Address
  readonly options: ChannelOptions
  /** When a request was sent last, or it was opened, on the monotonic clock. */
  lastUsed: Millis
  readonly #clock: World['clock']
  readonly #socket: Socket
  readonly #frames: FrameReader
  /** Requests without an answer, oldest first. */
  readonly #inFlight: InFlight[] = []
  #inFlightBytes = 0
  #lastCorrelationId = -1
  #versions: ReadonlyMap<number, VersionSpan> | undefined
  #failure: ChannelError | undefined
  #timer: Timer | undefined
  #timerAt = Number.POSITIVE_INFINITY
  readonly #whenClosed: ((error: ChannelError) => void)[] = []

  private constructor(world: Pick<World, 'clock'>, address: Address, options: ChannelOptions, socket: Socket) {
    this.address = address
    this.options = options
    this.#clock = world.clock
    this.lastUsed = this.#clock.monotonic()
    this.#socket = socket
    this.#frames = new FrameReader(options.frameBytesMax, options.memory)
    socket.attach(this)
  }

  /** Rejects with a {@link ChannelError}. */
  static async connect(
    world: Pick<World, 'clock' | 'network'>,
    address: Address,
    options: Partial<ChannelOptions> = {},
  ): Promise<Channel> {
    const whole = { ...DEFAULTS, ...options }
    let socket: Socket
    try {
      socket = await world.network.connect(address, whole.connectTimeoutMs)
    } catch (error) {
      throw connectError(address, error)
    }
    return new Channel(world, address, whole, socket)
  }

  get open(): boolean {
    return this.#failure === undefined
  }

  get inFlight(): number {
    return this.#inFlight.length
  }

  /** Our own end of the connection. */
  get local(): Address {
    return this.#socket.local
  }

  /** The other end, by the address that the name led to. */
  get remote(): Address {
    return this.#socket.remote
  }

  /** What the other side offers by API key; undefined before {@link negotiate}. */
  get versions(): ReadonlyMap<number, VersionSpan> | undefined {
    return this.#versions
  }

  /** Runs once when the channel is closed, also by `close`; at once if it is closed already. */
  whenClosed(run: (error: ChannelError) => void): void {
    if (this.#failure !== undefined) run(this.#failure)
    else this.#whenClosed.push(run)
  }

  /** Asks which versions the other side offers, in our newest version and then in one that it knows (KIP-511). */
  async negotiate(): Promise<MessageOf<typeof ApiVersionsResponse>> {
    this.#frames.frameBytesMax = Math.min(VERSIONS_BYTES_MAX, this.options.frameBytesMax)
    try {
      return await this.#negotiate()
    } finally {
      this.#frames.frameBytesMax = this.options.frameBytesMax
    }
  }

  async #negotiate(): Promise<MessageOf<typeof ApiVersionsResponse>> {
    const pair = { request: ApiVersionsRequest, response: ApiVersionsResponse }
    const { softwareName: clientSoftwareName, softwareVersion: clientSoftwareVersion } = this.options
    const newest = parseVersions(ApiVersionsRequest.versions).last
    let answer = await this.call(pair, newest, { clientSoftwareName, clientSoftwareVersion })
    if (answer.errorCode === UNSUPPORTED_VERSION) {
      const theirs = answer.apiKeys.find(api => api.apiKey === ApiVersionsRequest.apiKey)?.maxVersion ?? 0
      const body = { clientSoftwareName, clientSoftwareVersion }
      answer = await this.call(pair, Math.max(0, Math.min(theirs, newest - 1)), body)
    }
    if (answer.errorCode !== 0) {
      throw this.#fail('protocol', `${hostPort(this.address)} answered ApiVersions with error ${answer.errorCode}`)
    }
    this.#versions = new Map(answer.apiKeys.map(api => [api.apiKey, { min: api.minVersion, max: api.maxVersion }]))
    return answer
  }

  /** The highest version of an API that both sides know, at most `cap`; undefined if there is none. */
  versionFor(request: Schema, cap: number = INT32_MAX): number | undefined {
    assert(this.#versions !== undefined, 'versions are known after negotiate')
    const theirs = this.#versions.get(request.apiKey ?? -1)
    if (theirs === undefined) return undefined
    const { first, last } = parseVersions(request.versions)
    const final = request.latestVersionUnstable === true ? last - 1 : last
    const version = Math.min(final, theirs.max, cap)
    return version >= Math.max(first, theirs.min) ? version : undefined
  }

  /** Sends a request in one version. Rejects with a {@link ChannelError}; Kafka's error codes are in the answer. */
  call<Q extends Schema, R extends Schema>(
    pair: ApiPair<Q, R>,
    version: number,
    body: InputOf<Q>,
    options: CallOptions = {},
  ): Promise<MessageOf<R>> {
    return new Promise((resolve, reject) => {
      const { timeoutMs = this.options.requestTimeoutMs, lent } = options
      this.send(pair, version, body, timeoutMs, {
        answered(answer, frame) {
          lent?.(frame)
          resolve(answer)
        },
        failed: reject,
      })
    })
  }

  /** As {@link call}, for who cannot wait for a promise. What cannot be sent at all fails within the call. */
  send<Q extends Schema, R extends Schema>(
    pair: ApiPair<Q, R>,
    version: number,
    body: InputOf<Q>,
    timeoutMs: Millis,
    asker: Asker<MessageOf<R>>,
  ): void {
    const refusal = this.#failure ?? this.#overload()
    if (refusal !== undefined) {
      asker.failed(refusal)
      return
    }
    let bytes: number
    try {
      bytes = this.#send(pair.request, version, body)
    } catch (error) {
      asker.failed(this.#unsendable(pair.request, version, error))
      return
    }
    this.lastUsed = this.#clock.monotonic()
    const deadline = this.lastUsed + timeoutMs
    const correlationId = this.#lastCorrelationId
    this.#inFlight.push({ correlationId, pair, version, bytes, deadline, asker: asker as Asker })
    this.#inFlightBytes += bytes
    this.#watch(deadline)
  }

  /** As {@link call}, in the highest version that both sides know. */
  async ask<Q extends Schema, R extends Schema>(
    pair: ApiPair<Q, R>,
    body: InputOf<Q>,
    options: CallOptions & { readonly versionMax?: number } = {},
  ): Promise<MessageOf<R>> {
    const version = this.versionFor(pair.request, options.versionMax)
    if (version === undefined) throw this.unsupported(pair.request)
    return await this.call(pair, version, body, options)
  }

  /** Sends a request that is never answered (Produce with acks=0). */
  post<Q extends Schema>(request: Q, version: number, body: InputOf<Q>): void {
    if (this.#failure !== undefined) throw this.#failure
    try {
      this.#send(request, version, body)
    } catch (error) {
      throw this.#unsendable(request, version, error)
    }
  }

  unsupported(request: Schema): ChannelError {
    const { address } = this
    const what = request.name.replace(/Request$/, '')
    const theirs = this.#versions?.get(request.apiKey ?? -1)
    const offer = theirs === undefined ? 'does not offer it' : `offers versions ${theirs.min} to ${theirs.max}`
    return new ChannelError(
      'unsupported-version',
      address,
      `${what} is known here in versions ${request.versions}; ${hostPort(address)} ${offer}`,
    )
  }

  /** Requests under way are rejected as closed. */
  close(): void {
    this.#fail('closed', `the connection to ${hostPort(this.address)} was closed here`)
  }

  space(): Uint8Array {
    return this.#frames.space()
  }

  received(count: number): void {
    if (this.#failure !== undefined) return
    try {
      this.#frames.received(count)
      for (let frame = this.#frames.next(); frame !== undefined; frame = this.#frames.next()) {
        this.#take(frame)
        if (this.#failure !== undefined) return
      }
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error
      this.#fail('protocol', `${hostPort(this.address)} sent what is no answer: ${error.message}`, error)
    }
  }

  drained(): void {}

  closed(error: WorldError | undefined): void {
    const why = error === undefined ? '' : ` (${error.code})`
    this.#fail('closed', `${hostPort(this.address)} closed the connection${why}`, error)
  }

  #overload(): ChannelError | undefined {
    const { inFlightMax, inFlightBytesMax } = this.options
    if (this.#inFlight.length < inFlightMax && this.#inFlightBytes < inFlightBytesMax) return undefined
    const message = `${this.#inFlight.length} requests with ${this.#inFlightBytes} bytes wait for ${hostPort(this.address)}`
    return new ChannelError('overloaded', this.address, message)
  }

  /** Writes one request and returns its size. Nothing is written if it cannot be encoded. */
  #send<Q extends Schema>(request: Q, version: number, body: InputOf<Q>): number {
    assert(request.apiKey !== undefined, `${request.name} has an API key`)
    const parts = encodeParts(request, version, body)
    let size = 0
    const buffers: Buffer[] = []
    for (const part of parts) {
      assert(Buffer.isBuffer(part), 'a request holds its records itself')
      size += part.length
      buffers.push(part)
    }
    const correlationId = this.#lastCorrelationId === INT32_MAX ? 0 : this.#lastCorrelationId + 1
    const head = new ByteWriter(64)
    head.int32(0)
    const header = {
      requestApiKey: request.apiKey,
      requestApiVersion: version,
      correlationId,
      clientId: this.options.clientId,
    }
    encode(RequestHeader, includesVersion(request.flexible, version) ? 2 : 1, header, head)
    head.buffer.writeInt32BE(head.position - 4 + size, 0)
    this.#lastCorrelationId = correlationId
    this.#socket.write([head.written(), ...buffers])
    return head.position + size
  }

  #unsendable(request: Schema, version: number, error: unknown): ChannelError {
    if (!(error instanceof EncodeError)) throw error
    const message = `${request.name} version ${version} cannot be sent: ${error.message}`
    return new ChannelError('unsendable', this.address, message, { cause: error })
  }

  #take(frame: Buffer): void {
    const reader = new ByteReader(frame)
    reader.elementsLeft = this.options.elementsMax
    const waiting = this.#inFlight[0]
    if (waiting === undefined) throw new DecodeError('an answer that nobody asked for')
    const { pair, version } = waiting
    const isApiVersions = pair.request.apiKey === ApiVersionsRequest.apiKey
    // A client must be able to read the answer to ApiVersions before it knows anything: its header is always version 0.
    const flexible = includesVersion(pair.response.flexible, version) && !isApiVersions
    const { correlationId } = decode(ResponseHeader, flexible ? 1 : 0, reader)
    if (correlationId !== waiting.correlationId) {
      throw new DecodeError(`correlation id ${correlationId} where ${waiting.correlationId} is due`)
    }
    const unsupported =
      isApiVersions && reader.remaining >= 2 && reader.buffer.readInt16BE(reader.position) === UNSUPPORTED_VERSION
    const answer = decode(pair.response, unsupported ? 0 : version, reader)
    this.#inFlight.shift()
    this.#inFlightBytes -= waiting.bytes
    waiting.asker.answered(answer, frame)
  }

  /** One timer, at the earliest deadline; it may find that its request was answered and look for the next, if there is one. */
  #watch(deadline: Millis): void {
    if (deadline >= this.#timerAt) return
    this.#timer?.cancel()
    this.#timerAt = deadline
    this.#timer = this.#clock.after(Math.max(0, deadline - this.#clock.monotonic()), () => {
      this.#timerAt = Number.POSITIVE_INFINITY
      const now = this.#clock.monotonic()
      let earliest = Number.POSITIVE_INFINITY
      for (const waiting of this.#inFlight) {
        if (waiting.deadline <= now) {
          const what = waiting.pair.request.name.replace(/Request$/, '')
          this.#fail('timed-out', `${hostPort(this.address)} did not answer ${what} in time`)
          return
        }
        earliest = Math.min(earliest, waiting.deadline)
      }
      if (earliest < Number.POSITIVE_INFINITY) this.#watch(earliest)
    })
  }

  #unwatch(): void {
    this.#timer?.cancel()
    this.#timerAt = Number.POSITIVE_INFINITY
  }

  #fail(code: ChannelError['code'], message: string, cause?: unknown): ChannelError {
    if (this.#failure !== undefined) return this.#failure
    const failure = new ChannelError(code, this.address, message, cause === undefined ? {} : { cause })
    this.#failure = failure
    this.#unwatch()
    this.#inFlightBytes = 0
    const waiting = this.#inFlight.splice(0)
    this.#socket.destroy()
    for (const { asker } of waiting) asker.failed(failure)
    for (const run of this.#whenClosed.splice(0)) run(failure)
    return failure
  }
}
