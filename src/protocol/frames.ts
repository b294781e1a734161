import { assert } from '#base/assert.ts'
import { type ByteReader, DecodeError } from '#base/bytes.ts'
import { API, type Api, apiByKey } from './apis.ts'
import { decode, encode } from './codec.ts'
import * as headers from './messages/headers.ts'
import type { InputOf, RecordsHole, Schema } from './schema.ts'
import { PartsWriter } from './wire.ts'

/**
 * A frame is `size: int32` and that many bytes: a header, then a message. Which header a message has follows from its
 * API and version alone.
 */

/** 2 with tagged fields, 1 without. Version 0 went with the only API that used it. */
export function requestHeaderVersion(apiKey: number, version: number): 1 | 2 {
  return isFlexible(apiKey, version) ? 2 : 1
}

/** ApiVersions is answered with header 0 in every version: its client cannot know yet what we support (KIP-511). */
export function responseHeaderVersion(apiKey: number, version: number): 0 | 1 {
  return apiKey !== API.ApiVersions.key && isFlexible(apiKey, version) ? 1 : 0
}

function isFlexible(apiKey: number, version: number): boolean {
  const api = apiByKey(apiKey)
  return api !== undefined && version >= api.flexibleFrom
}

export interface RequestHeader {
  readonly apiKey: number
  readonly apiVersion: number
  readonly correlationId: number
  readonly clientId: string | null
}

/**
 * Reads the header of a request and leaves the reader at the message. A key or version that we do not have is the
 * caller's to judge: with an unknown key the header is read as far as the client id.
 */
export function decodeRequestHeader(reader: ByteReader): RequestHeader {
  const start = reader.position
  const apiKey = reader.int16()
  const apiVersion = reader.int16()
  reader.position = start
  const { correlationId, clientId } = decode(headers.RequestHeader, requestHeaderVersion(apiKey, apiVersion), reader)
  return { apiKey, apiVersion, correlationId, clientId }
}

export function decodeResponseHeader(apiKey: number, version: number, reader: ByteReader): headers.ResponseHeader {
  return decode(headers.ResponseHeader, responseHeaderVersion(apiKey, version), reader)
}

/** What a whole frame is encoded into; see `encodeParts`. */
export type FrameParts = (Buffer | RecordsHole)[]

export function encodeRequestFrame<Q extends Schema>(
  api: Api<Q, Schema>,
  version: number,
  header: { readonly correlationId: number; readonly clientId: string | null },
  message: InputOf<Q>,
): FrameParts {
  const writer = new PartsWriter()
  writer.reserve(4)
  const requestHeader = { requestApiKey: api.key, requestApiVersion: version, ...header }
  encode(headers.RequestHeader, requestHeaderVersion(api.key, version), requestHeader, writer)
  encode(api.request, version, message, writer)
  return withSize(writer)
}

export function encodeResponseFrame<R extends Schema>(
  api: Api<Schema, R>,
  version: number,
  correlationId: number,
  message: InputOf<R>,
): FrameParts {
  const writer = new PartsWriter()
  writer.reserve(4)
  encode(headers.ResponseHeader, responseHeaderVersion(api.key, version), { correlationId }, writer)
  encode(api.response, version, message, writer)
  return withSize(writer)
}

function withSize(writer: PartsWriter): FrameParts {
  const parts = writer.parts()
  const size = sizeOfParts(parts) - 4
  assert(size <= 0x7fff_ffff, `a frame of ${size} bytes`)
  writer.buffer.writeInt32BE(size, 0)
  return parts
}

export function sizeOfParts(parts: FrameParts): number {
  let size = 0
  for (const part of parts) size += Buffer.isBuffer(part) ? part.length : part.size
  return size
}

const BUFFER_BYTES_MIN = 4 << 10
const BUFFER_BYTES_MAX = 64 << 10
/** Larger frames get their memory as their bytes arrive, so that a claimed size alone costs nothing. */
const TRUSTED_BYTES = 1 << 20

/** Where the memory of large frames comes from. */
export interface FrameMemory {
  /** Exactly so many bytes, of any content. */
  take(size: number): Buffer
  /** Nothing refers to the bytes any more. */
  give(buffer: Buffer): void
}

const FRESH_MEMORY: FrameMemory = { take: size => Buffer.allocUnsafeSlow(size), give() {} }

/**
 * Splits what a connection brings into frames. Small frames share a buffer, which grows with the traffic; a larger
 * one is read straight into its own. Bytes of a frame that was handed out are never written again.
 *
 * In turn: the network fills `space()`, says `received(count)`, then `next()` until it has no more.
 */
export class FrameReader {
  readonly #frameBytesMax: number
  readonly #memory: FrameMemory
  #buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES_MIN)
  /** Bytes `#start` to `#end` of the buffer have arrived and are not handed out. */
  #start = 0
  #end = 0
  /** The frame that has a buffer of its own, as far as it has arrived. */
  #large: { readonly size: number; buffer: Buffer; filled: number } | undefined
  #spaceBytes = 0

  /** `frameBytesMax` is the largest frame that is taken, without its size field: `socket.request.max.bytes`. */
  constructor(frameBytesMax: number, memory: FrameMemory = FRESH_MEMORY) {
    this.#frameBytesMax = frameBytesMax
    this.#memory = memory
  }

  /** Whether a frame has begun and not ended: what it means when the connection ends here. */
  get partial(): boolean {
    return this.#large !== undefined || this.#end > this.#start
  }

  /** Where the next bytes go: never empty, valid until `received`. */
  space(): Buffer {
    const large = this.#large
    if (large !== undefined && large.filled < large.size) {
      if (large.filled === large.buffer.length) {
        const grown = this.#memory.take(Math.min(large.size, large.filled * 4))
        large.buffer.copy(grown, 0, 0, large.filled)
        this.#memory.give(large.buffer)
        large.buffer = grown
      }
      return this.#handOut(large.buffer.subarray(large.filled))
    }
    if (this.#end === this.#buffer.length) this.#renew()
    return this.#handOut(this.#buffer.subarray(this.#end))
  }

  #handOut(space: Buffer): Buffer {
    this.#spaceBytes = space.length
    return space
  }

  /** A buffer of twice the size, as the last one was filled, with what is not handed out yet. */
  #renew(size = Math.min(this.#buffer.length * 2, BUFFER_BYTES_MAX)): void {
    const rest = this.#buffer.subarray(this.#start, this.#end)
    const renewed = Buffer.allocUnsafeSlow(Math.max(size, rest.length * 2))
    rest.copy(renewed)
    this.#buffer = renewed
    this.#start = 0
    this.#end = rest.length
  }

  received(count: number): void {
    assert(count <= this.#spaceBytes, `${count} bytes received, there was space for ${this.#spaceBytes}`)
    this.#spaceBytes = 0
    const large = this.#large
    if (large !== undefined && large.filled < large.size) large.filled += count
    else this.#end += count
  }

  /**
   * The next whole frame without its size field, or undefined until more bytes come.
   * @throws DecodeError for a size that is negative or too large: the connection is beyond repair.
   */
  next(): Buffer | undefined {
    const large = this.#large
    if (large !== undefined) {
      if (large.filled < large.size) return undefined
      this.#large = undefined
      return large.buffer
    }
    const arrived = this.#end - this.#start
    if (arrived < 4) return undefined
    const size = this.#buffer.readInt32BE(this.#start)
    if (size < 0 || size > this.#frameBytesMax) {
      throw new DecodeError(`a frame of ${size} bytes, at most ${this.#frameBytesMax} are taken`)
    }
    const from = this.#start + 4
    if (arrived >= 4 + size) {
      this.#start = from + size
      return this.#buffer.subarray(from, this.#start)
    }
    if (4 + size > BUFFER_BYTES_MAX / 2) {
      const buffer = this.#memory.take(Math.min(size, TRUSTED_BYTES))
      const filled = this.#buffer.copy(buffer, 0, from, this.#end)
      this.#large = { size, buffer, filled }
      this.#start = this.#end
    } else if (this.#start + 4 + size > this.#buffer.length) {
      this.#renew(Math.max(4 + size, this.#buffer.length))
    }
    return undefined
  }
}
