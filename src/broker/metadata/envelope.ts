import { ByteReader, ByteWriter } from '#base/bytes.ts'
import type { Millis } from '#base/units.ts'
import { ChannelError } from '#network/channel.ts'
import type { Call } from '#network/service.ts'
import { API, type Api } from '#protocol/apis.ts'
import { decode, encode } from '#protocol/codec.ts'
import { ErrorCode } from '#protocol/errors.ts'
import { decodeResponseHeader, requestHeaderVersion } from '#protocol/frames.ts'
import { RequestHeader } from '#protocol/messages/headers.ts'
import { encodeVersioned } from '#protocol/records/framing.ts'
import { DefaultPrincipalData } from '#protocol/records/principal.ts'
import type { InputOf, MessageOf, Schema } from '#protocol/schema.ts'
import type { Clock } from '#world/world.ts'
import type { ControllerLink } from './controller-link.ts'

/** The correlation id within an envelope: it holds one request. */
const CORRELATION_ID = 0
/** Between two attempts, if no news of a controller comes before. */
const REST_MS = 20

/** Failures of a channel that is open which say that the request did not leave. */
const NOT_SENT: ReadonlySet<string> = new Set(['overloaded', 'unsendable', 'unsupported-version'])

/** How long a request that is forwarded may take. */
export interface ForwardLimits {
  readonly clock: Clock
  /** For how long a controller is waited for that takes the request. */
  readonly patienceMs: Millis
  /** For how long one that took it may work on it. */
  readonly timeoutMs: Millis
  /** It changes nothing, so it may be sent again whatever became of it. */
  readonly asksOnly?: boolean
}

/**
 * KIP-590: a client's request, wrapped with who asked, goes to the active controller; its answer comes back wrapped. While
 * there is none it waits, and what a controller did not take goes to the next one.
 *
 * A change that may have been made is never asked for again; `refused` then says REQUEST_TIMED_OUT in the API's own form,
 * and NOT_CONTROLLER where nobody took it in time. Kafka sends again after a broken connection, and so its client may be
 * told TOPIC_ALREADY_EXISTS of its own creation, or add partitions that nobody wanted a second time.
 */
export async function forwardInEnvelope<Q extends Schema, R extends Schema>(
  link: ControllerLink,
  api: Api<Q, R>,
  call: Call,
  request: MessageOf<Q>,
  { clock, patienceMs, timeoutMs, asksOnly = false }: ForwardLimits,
  refused: (errorCode: number) => InputOf<R>,
): Promise<InputOf<R>> {
  const envelope = {
    requestData: requestBytes(api, call, request),
    requestPrincipal: principalBytes(),
    clientHostAddress: addressBytes(call.caller.remote.host),
  }
  const until = clock.monotonic() + patienceMs
  let isGone = false
  const forget = call.caller.whenGone(() => {
    isGone = true
  })
  try {
    for (;;) {
      let mayBeDone = false
      try {
        const channel = await link.connected()
        // One that broke meanwhile takes nothing.
        mayBeDone = channel.open
        const answer = await channel.ask(API.Envelope, envelope, { timeoutMs })
        if (answer.errorCode === ErrorCode.NONE && answer.responseData !== null) {
          link.wasTaken()
          const reader = new ByteReader(answer.responseData)
          decodeResponseHeader(api.key, call.apiVersion, reader)
          return decode(api.response, call.apiVersion, reader) as unknown as InputOf<R>
        }
        if (answer.errorCode !== ErrorCode.NOT_CONTROLLER) return refused(answer.errorCode)
        link.lookElsewhere(channel.address)
      } catch (error) {
        if (!(error instanceof ChannelError)) throw error
        if (mayBeDone && !NOT_SENT.has(error.code) && !asksOnly) return refused(ErrorCode.REQUEST_TIMED_OUT)
        if (error.code === 'unsendable') return refused(ErrorCode.INVALID_REQUEST)
      }
      if (isGone || clock.monotonic() >= until) return refused(ErrorCode.NOT_CONTROLLER)
      await link.rest(REST_MS)
    }
  } finally {
    forget()
  }
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
  return encodeVersioned(DefaultPrincipalData, 0, { type: 'User', name: 'ANONYMOUS', tokenAuthenticated: false })
}

function addressBytes(host: string): Buffer {
  const parts = host.split('.').map(Number)
  if (parts.length === 4 && parts.every(part => part >= 0 && part <= 255)) return Buffer.from(parts)
  return Buffer.from([127, 0, 0, 1])
}
