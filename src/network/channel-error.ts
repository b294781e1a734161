import { hostPort } from '#base/host-port.ts'
import type { Address } from '#world/world.ts'

export type ChannelErrorCode =
  /** Nobody listens at the address. */
  | 'refused'
  /** The host's name leads nowhere. */
  | 'unknown-host'
  /** The connection could not be made for another reason. */
  | 'unreachable'
  /** No connection, or no answer, in time. */
  | 'timed-out'
  /** The connection is closed; a request that was under way may or may not have been carried out. */
  | 'closed'
  /** More is under way than the channel allows. The request was not sent. */
  | 'overloaded'
  /** The other side does not speak the protocol as it should. */
  | 'protocol'
  /** No version of the API is known to both sides. The request was not sent. */
  | 'unsupported-version'
  /** The request holds what its version cannot carry, or is too large. The request was not sent. */
  | 'unsendable'

/** What went wrong between us and one address. */
export class ChannelError extends Error {
  override readonly name = 'ChannelError'
  readonly code: ChannelErrorCode
  readonly address: Address

  constructor(code: ChannelErrorCode, address: Address, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
    this.address = address
  }
}

export function connectError(address: Address, error: unknown): ChannelError {
  const at = hostPort(address)
  const cause = error instanceof Error ? error : undefined
  const name = cause !== undefined && 'code' in cause ? String(cause.code) : ''
  const options = { cause: error }
  switch (name) {
    case 'ECONNREFUSED':
      return new ChannelError('refused', address, `${at} refused the connection: nobody listens there`, options)
    case 'ETIMEDOUT':
      return new ChannelError('timed-out', address, `${at} did not take the connection in time`, options)
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return new ChannelError('unknown-host', address, `the host name ${address.host} cannot be resolved`, options)
    default:
      return new ChannelError('unreachable', address, `no connection to ${at}: ${cause?.message ?? name}`, options)
  }
}
