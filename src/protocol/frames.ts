import type { ByteReader } from '#base/bytes.ts'
import { INT32_MAX } from '#base/units.ts'
import { API, type Api, apiByKey } from './apis.ts'
import { decode, encode, encodeInTurns } from './codec.ts'
import * as headers from './messages/headers.ts'
import type { InputOf, RecordsHole, Schema } from './schema.ts'
import { EncodeError, PartsWriter } from './wire.ts'

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

/** As {@link encodeResponseFrame}, in turns. */
export function* encodeResponseFrameInTurns<R extends Schema>(
  api: Api<Schema, R>,
  version: number,
  correlationId: number,
  message: InputOf<R>,
): Generator<undefined, FrameParts> {
  const writer = new PartsWriter()
  writer.reserve(4)
  encode(headers.ResponseHeader, responseHeaderVersion(api.key, version), { correlationId }, writer)
  yield* encodeInTurns(api.response, version, message, writer)
  return withSize(writer)
}

function withSize(writer: PartsWriter): FrameParts {
  const parts = writer.parts()
  const size = sizeOfParts(parts) - 4
  if (size > INT32_MAX)
    throw new EncodeError(`a frame of ${size} bytes`)
    // Its place was reserved first.
  ;(parts[0] as Buffer).writeInt32BE(size, 0)
  return parts
}

export function sizeOfParts(parts: FrameParts): number {
  let size = 0
  for (const part of parts) size += Buffer.isBuffer(part) ? part.length : part.size
  return size
}
