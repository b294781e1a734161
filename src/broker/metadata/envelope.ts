import { ByteReader, ByteWriter } from '#base/bytes.ts'
import type { Millis } from '#base/units.ts'
import { ChannelError } from '#network/channel.ts'
import type { Call } from '#network/service.ts'
import { API, type Api } from '#protocol/apis.ts'
import { decode, encode, encodeToBuffer } from '#protocol/codec.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { decodeResponseHeader, requestHeaderVersion } from '#protocol/frames.ts'
import { RequestHeader } from '#protocol/messages/headers.ts'
import { DefaultPrincipalData } from '#protocol/records/principal.ts'
import type { InputOf, MessageOf, Schema } from '#protocol/schema.ts'
import type { ControllerLink } from './controller-link.ts'

/** The correlation id within an envelope: it holds one request. */
const CORRELATION_ID = 0
const ATTEMPTS = 5

/** There is no active controller that would take the request. */
export class NoControllerError extends Error {
  override readonly name = 'NoControllerError'
}

/**
 * KIP-590: a client's request, wrapped with who asked, goes to the active controller; its answer comes back wrapped.
 * Rejects with a NoControllerError when no controller took it.
 */
export async function forwardInEnvelope<Q extends Schema, R extends Schema>(
  link: ControllerLink,
  api: Api<Q, R>,
  call: Call,
  request: MessageOf<Q>,
  timeoutMs: Millis,
): Promise<InputOf<R>> {
  const envelope = {
    requestData: requestBytes(api, call, request),
    requestPrincipal: principalBytes(),
    clientHostAddress: addressBytes(call.caller.remote.host),
  }
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    try {
      const answer = await link.ask(API.Envelope, envelope, timeoutMs)
      if (answer.errorCode === ErrorCode.NONE && answer.responseData !== null) {
        const reader = new ByteReader(answer.responseData)
        decodeResponseHeader(api.key, call.apiVersion, reader)
        return decode(api.response, call.apiVersion, reader) as unknown as InputOf<R>
      }
      link.lookElsewhere()
    } catch (error) {
      // What was sent may have been done; only what never left is sent again.
      if (!(error instanceof ChannelError) || error.code === 'timed-out') throw error
    }
  }
  throw new NoControllerError('no controller takes requests now')
}

function requestBytes<Q extends Schema, R extends Schema>(api: Api<Q, R>, call: Call, request: MessageOf<Q>): Buffer {
  const writer = new ByteWriter(512)
  const header = {
    requestApiKey: api.key,
    requestApiVersion: call.apiVersion,
    correlationId: CORRELATION_ID,
    clientId: call.clientId,
  }
  encode(RequestHeader, requestHeaderVersion(api.key, call.apiVersion), header, writer)
  encode(api.request, call.apiVersion, request as InputOf<Q>, writer)
  return writer.written()
}

/** Version and principal, as Kafka's default builder writes them. Everybody is anonymous on a plaintext listener. */
function principalBytes(): Buffer {
  const body = encodeToBuffer(DefaultPrincipalData, 0, { type: 'User', name: 'ANONYMOUS', tokenAuthenticated: false })
  return Buffer.concat([Buffer.from([0, 0]), body])
}

function addressBytes(host: string): Buffer {
  const parts = host.split('.').map(Number)
  if (parts.length === 4 && parts.every(part => part >= 0 && part <= 255)) return Buffer.from(parts)
  return Buffer.from([127, 0, 0, 1])
}
