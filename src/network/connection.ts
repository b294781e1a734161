import { AssertionError } from '#base/assert.ts'
import { ByteReader, DecodeError } from '#base/bytes.ts'
import type { Millis } from '#base/units.ts'
import { API, apiByKey } from '#protocol/apis.ts'
import { decodeInTurns, decodeToEdge } from '#protocol/codec.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { FrameReader } from '#protocol/frame-reader.ts'
import { decodeRequestHeader, type RequestHeader } from '#protocol/frames.ts'
import type { Address, Clock, Logger, Sink, Socket, WorldError } from '#world/world.ts'
import { Answers } from './answers.ts'
import type { FramePool } from './frame-pool.ts'
import type { MemoryBudget, Reader } from './memory-budget.ts'
import type { Answer, Caller, ServedApi, Service } from './service.ts'
import { SIZE_FIELD_BYTES, Slot } from './slot.ts'
import { whatStrangerSent } from './stranger.ts'
import type { Turns } from './turns.ts'

export interface ConnectionLimits {
  /** socket.request.max.bytes */
  readonly frameBytesMax: number
  /** Requests of one connection that are not answered yet; reading pauses beyond. */
  readonly inFlightMax: number
  /** Their bytes; reading pauses beyond. */
  readonly inFlightBytesMax: number
  /** Answers of one connection that the client has not read yet, in bytes of memory; reading pauses beyond. */
  readonly queuedBytesMax: number
}

export const DEFAULT_CONNECTION_LIMITS: ConnectionLimits = {
  frameBytesMax: 104_857_600,
  inFlightMax: 128,
  inFlightBytesMax: 64 * 1024 * 1024,
  queuedBytesMax: 4 * 1024 * 1024,
}

const NO_BYTES = Buffer.alloc(0)
/** Requests of one connection that are begun in one turn, so that thousands in one piece do not hold up the others. */
const TAKEN_AT_ONCE = 128
/** Requests of more bytes are decoded in turns; an element of an array may be a byte. */
const DECODED_AT_ONCE_BYTES = 4096
/** What is decoded of all requests that are begun in one turn. */
const TAKEN_AT_ONCE_BYTES = 8 * DECODED_AT_ONCE_BYTES
/** Memory in the answers of one turn: a few bytes may ask for much, and what is made is what takes the time. */
const ANSWERED_AT_ONCE_BYTES = 64 * 1024
/**
 * Elements of arrays in one request, and long strings by their length. They take some ten times the memory of their bytes, and an answer as much again. The
 * largest that clients send name some ten thousand topics with their partitions.
 */
const DECODED_ELEMENTS_MAX = 1 << 18

export interface ConnectionOptions {
  readonly id: number
  readonly socket: Socket
  readonly listener: string
  readonly service: Service
  readonly limits: ConnectionLimits
  readonly pool: FramePool
  /** Shared with all that the node reads from. */
  readonly budget: MemoryBudget
  readonly turns: Turns
  readonly clock: Clock
  readonly log: Logger
  readonly onClosed: (connection: Connection) => void
}

/**
 * One client's connection: takes requests from its bytes, as they come and as fast as they are answered, and has them
 * handled. {@link Answers} brings what becomes of them into the order in which they came.
 */
export class Connection implements Sink, Caller, Reader {
  readonly id: number
  readonly listener: string
  readonly local: Address
  readonly remote: Address
  softwareName = 'unknown'
  softwareVersion = 'unknown'
  lastActive: Millis

  readonly #socket: Socket
  readonly #service: Service
  readonly #limits: ConnectionLimits
  readonly #turns: Turns
  readonly #clock: Clock
  readonly #log: Logger
  readonly #onClosed: (connection: Connection) => void
  readonly #frames: FrameReader
  readonly pool: FramePool
  readonly budget: MemoryBudget
  /** Bytes that have arrived and whose requests have not ended: counted in the budget. */
  #requestBytes = 0
  /** Those of them that are no whole request yet. */
  #arrivingBytes = 0
  /** Frames that came and are not begun: behind a barrier, or more than one turn or the limits allow. */
  readonly #behind: Buffer[] = []
  readonly #answers: Answers
  /** What was taken in this turn, and the memory in answers that had been made before it. */
  readonly #turn = { taken: 0, takenBytes: 0, madeBefore: 0 }
  #takingBehind = false
  #takesBehindSoon = false
  #barrier = false
  /** A request is being decoded: those behind wait. */
  #decoding = false
  #inFlightBytes = 0
  #paused = false
  #closing = false
  #gone = false
  readonly #whenGone = new Set<() => void>()
  /** What waited to be read when that was looked at last, and since when it is so much. */
  #unread = 0
  #unreadSince: Millis = 0
  #anyFrame = false
  #space: Uint8Array = NO_BYTES
  /** The first bytes of all, to say what a stranger speaks. */
  #first: Buffer = NO_BYTES

  constructor(options: ConnectionOptions) {
    this.id = options.id
    this.listener = options.listener
    this.local = options.socket.local
    this.remote = options.socket.remote
    this.#socket = options.socket
    this.#service = options.service
    this.#limits = options.limits
    this.#turns = options.turns
    this.#clock = options.clock
    this.#log = options.log
    this.#onClosed = options.onClosed
    this.lastActive = options.clock.monotonic()
    this.pool = options.pool
    this.budget = options.budget
    this.budget.join(this)
    this.#frames = new FrameReader(options.limits.frameBytesMax, options.pool)
    this.#answers = new Answers({
      socket: options.socket,
      budget: options.budget,
      turns: options.turns,
      left: slot => {
        this.#inFlightBytes -= slot.size
        this.#end(slot)
      },
      failed: (slot, error) => this.#handlerFailed(slot, error),
      hangUp: () => {
        this.#closing = true
        this.#socket.end()
      },
      goOn: () => {
        this.#takeBehind()
        this.#balance()
      },
    })
  }

  /** Whether requests are under way; a connection with some is not idle. */
  get busy(): boolean {
    return this.#answers.waiting > 0 || this.#socket.queuedBytes > 0 || this.#paused
  }

  /**
   * Whether nothing has come for so long, and nothing is under way; or nothing of what there is to read was read either, as
   * by a client whose machine sleeps, or that never meant to: it would stay for ever. To be asked from time to time.
   */
  isIdle(idleMs: Millis): boolean {
    const now = this.#clock.monotonic()
    const unread = this.#socket.queuedBytes
    if (unread !== this.#unread) {
      this.#unread = unread
      this.#unreadSince = now
    }
    // Whoever waited for an answer until a moment ago has not had the time to ask again.
    if (unread === 0 && this.busy) this.lastActive = now
    const before = now - idleMs
    return this.lastActive < before && (unread === 0 || this.#unreadSince < before)
  }

  get partial(): boolean {
    return this.#frames.partial
  }

  goOn(): void {
    this.#balance()
  }

  get unread(): number {
    return this.#answers.countedBytes > 0 ? this.#socket.queuedBytes : 0
  }

  closeStalled(what: string): void {
    this.#log.warn(
      { listener: this.listener, remote: `${this.remote.host}:${this.remote.port}` },
      `closed a connection that ${what} while others wait for the memory it takes up (queued.max.request.bytes)`,
    )
    this.close()
  }

  whenGone(run: () => void): () => void {
    if (this.#gone) run()
    else this.#whenGone.add(run)
    return () => this.#whenGone.delete(run)
  }

  space(): Uint8Array {
    this.#space = this.#frames.space()
    return this.#space
  }

  received(count: number): void {
    if (this.#closing) return
    this.lastActive = this.#clock.monotonic()
    if (!this.#anyFrame && this.#first.length === 0)
      this.#first = Buffer.from(this.#space.subarray(0, Math.min(count, 16)))
    this.#beginTurn()
    this.budget.arrived(count)
    this.#requestBytes += count
    this.#arrivingBytes += count
    try {
      this.#frames.received(count)
      for (let frame = this.#frames.next(); frame !== undefined; frame = this.#frames.next()) {
        this.#anyFrame = true
        this.#inFlightBytes += frame.length
        this.#arrivingBytes -= frame.length + SIZE_FIELD_BYTES
        this.budget.whole(this, frame.length + SIZE_FIELD_BYTES)
        if (this.#enough || this.#barrier || this.#decoding || this.#behind.length > 0 || this.#full)
          this.#behind.push(frame)
        else this.#take(frame)
        if (this.#closing) return
      }
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error
      this.#refuse(
        this.#anyFrame
          ? `a broken request: ${error.message}`
          : whatStrangerSent(this.#first, this.listener, error.message),
      )
      return
    }
    if (this.#behind.length > 0) this.#takeBehindSoon()
    this.#balance()
  }

  drained(): void {
    this.lastActive = this.#clock.monotonic()
    this.#answers.count()
    this.#takeBehind()
    this.#balance()
  }

  closed(error: WorldError | undefined): void {
    this.#gone = true
    this.#closing = true
    if (error !== undefined && error.code !== 'ECONNRESET' && error.code !== 'EPIPE') {
      this.#log.debug({ remote: this.remote, code: error.code }, 'a connection broke')
    }
    this.budget.part(this)
    this.budget.whole(this, this.#arrivingBytes)
    for (const slot of this.#answers.end()) this.#end(slot)
    this.#behind.length = 0
    this.budget.remove(this.#requestBytes + this.#answers.countedBytes)
    for (const run of [...this.#whenGone]) run()
    this.#whenGone.clear()
    this.#onClosed(this)
  }

  close(): void {
    this.#closing = true
    this.#socket.destroy()
  }

  #beginTurn(): void {
    this.#turn.taken = 0
    this.#turn.takenBytes = 0
    this.#turn.madeBefore = this.#answers.bytesMade
  }

  get #enough(): boolean {
    const { taken, takenBytes, madeBefore } = this.#turn
    return (
      taken >= TAKEN_AT_ONCE ||
      takenBytes >= TAKEN_AT_ONCE_BYTES ||
      this.#answers.bytesMade - madeBefore >= ANSWERED_AT_ONCE_BYTES
    )
  }

  #take(frame: Buffer): void {
    this.#turn.taken++
    this.#turn.takenBytes += Math.min(frame.length, DECODED_AT_ONCE_BYTES)
    const reader = new ByteReader(frame)
    const header = decodeRequestHeader(reader)
    const served = this.#service.get(header.apiKey)
    const version = header.apiVersion
    if (served === undefined || version < served.versions.first || version > served.versions.last) {
      this.#unsupported(header, served, frame)
      return
    }
    reader.elementsLeft = DECODED_ELEMENTS_MAX
    const slot = new Slot(served, header, this, frame)
    if (frame.length <= DECODED_AT_ONCE_BYTES) {
      const request = decodeToEdge(served.api.request, version, reader)
      this.#answers.begin(slot)
      this.#handle(slot, request, reader)
      return
    }
    this.#answers.begin(slot)
    this.#decode(slot, decodeInTurns(served.api.request, version, reader), reader)
  }

  /** A request whose bytes are few but records ends in its first turn. */
  #decode(slot: Slot, decoding: Generator<undefined, object>, reader: ByteReader): void {
    const step = decoding.next()
    if (step.done) {
      this.#decoding = false
      this.#handle(slot, step.value, reader)
      return
    }
    this.#decoding = true
    this.#turns.soon(() => {
      if (this.#closing) return
      try {
        this.#decode(slot, decoding, reader)
      } catch (error) {
        if (!(error instanceof DecodeError)) throw error
        this.#refuse(`a broken request: ${error.message}`)
        return
      }
      this.#takeBehind()
      this.#balance()
    })
  }

  #handle(slot: Slot, request: object, { elementsLeft }: ByteReader): void {
    const { served } = slot
    slot.elements = DECODED_ELEMENTS_MAX - elementsLeft
    let answer: Answer<object> | Promise<Answer<object>>
    try {
      answer = served.handle(request, slot)
    } catch (error) {
      this.#handlerFailed(slot, error)
      return
    }
    if (answer instanceof Promise) {
      if (served.barrier) this.#barrier = true
      answer.then(
        value => this.#answered(slot, value),
        error => this.#handlerFailed(slot, error),
      )
    } else {
      this.#answered(slot, answer)
    }
  }

  #answered(slot: Slot, answer: Answer<object>): void {
    if (this.#gone) return
    this.#answers.settle(slot, answer)
    if (slot.served.barrier) this.#barrier = false
    this.#takeBehind()
    this.#balance()
  }

  /** Goes on with frames that had to wait, as far as it may and with what is left of the turn: answers may come one upon another within it. */
  #takeBehind(): void {
    // Every answer that is there at once comes back here.
    if (this.#takingBehind) return
    this.#takingBehind = true
    try {
      while (!this.#enough && this.#mayTake) this.#take(this.#behind.shift() as Buffer)
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error
      this.#refuse(`a broken request: ${error.message}`)
    } finally {
      this.#takingBehind = false
    }
    this.#takeBehindSoon()
  }

  #takeBehindSoon(): void {
    if (this.#takesBehindSoon || !this.#mayTake) return
    this.#takesBehindSoon = true
    this.#clock.soon(() => {
      this.#takesBehindSoon = false
      this.#beginTurn()
      this.#takeBehind()
      this.#balance()
    })
  }

  get #mayTake(): boolean {
    return this.#behind.length > 0 && !this.#barrier && !this.#decoding && !this.#closing && !this.#full
  }

  /** So much waits for answers, or answers for a reader, that no request more is begun. */
  get #full(): boolean {
    return this.#answers.waiting >= this.#limits.inFlightMax || this.#socket.queuedBytes >= this.#limits.queuedBytesMax
  }

  #end(slot: Slot): void {
    this.#requestBytes -= slot.size + SIZE_FIELD_BYTES
    slot.end()
  }

  /** KIP-511: an unknown version of ApiVersions is answered in version 0, so that the client can ask again. All else ends here. */
  #unsupported(header: RequestHeader, served: ServedApi | undefined, frame: Buffer): void {
    if (served !== undefined && served.api.key === API.ApiVersions.key) {
      const { first, last } = served.advertised
      const answer = {
        errorCode: ErrorCode.UNSUPPORTED_VERSION,
        apiKeys: [{ apiKey: header.apiKey, minVersion: first, maxVersion: last }],
      }
      const slot = new Slot(served, { ...header, apiVersion: 0 }, this, frame)
      this.#answers.begin(slot)
      this.#answers.settle(slot, answer)
      return
    }
    const what =
      served === undefined
        ? `${apiByKey(header.apiKey)?.name ?? 'API key'} (${header.apiKey}), which this listener does not serve`
        : `${served.api.name} version ${header.apiVersion}; versions ${served.versions.first} to ${served.versions.last} are served`
    this.#refuse(`a request for ${what}`, header.clientId)
  }

  #handlerFailed(slot: Slot, error: unknown): void {
    if (error instanceof AssertionError) throw error
    this.#log.error(
      { err: error, api: slot.served.api.name, version: slot.header.apiVersion, clientId: slot.header.clientId },
      'a request failed for a reason of ours; its connection is closed so that the client can try again',
    )
    this.close()
  }

  #refuse(why: string, clientId: string | null = null): void {
    this.#log.warn(
      {
        listener: this.listener,
        remote: `${this.remote.host}:${this.remote.port}`,
        clientId,
        software: `${this.softwareName} ${this.softwareVersion}`,
      },
      `closed a connection that sent ${why}`,
    )
    this.#closing = true
    // What was answered before still leaves.
    this.#socket.end()
  }

  /** Back-pressure: who does not read his answers, or asks faster than we answer, is not read from. */
  #balance(): void {
    if (this.#closing) return
    const own =
      this.#answers.waiting + this.#behind.length >= this.#limits.inFlightMax ||
      this.#inFlightBytes >= this.#limits.inFlightBytesMax ||
      this.#socket.queuedBytes >= this.#limits.queuedBytesMax
    if (own) this.budget.leave(this)
    const full = own || this.budget.mustWait(this)
    if (full === this.#paused) return
    this.#paused = full
    if (full) this.#socket.pause()
    else this.#socket.resume()
  }
}
