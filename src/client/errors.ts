import { ChannelError, type ChannelErrorCode } from '#network/channel.ts'
import { type ErrorName, errorOf } from '#protocol/errors.ts'

/** Failures that no broker answered with. */
export type LocalErrorName =
  /** No broker could be reached. */
  | 'CONNECTION_FAILED'
  /** It was not done in time, or not told in time that it was. */
  | 'TIMED_OUT'
  | 'CLOSED'
  /** The broker does not speak the protocol as it should. */
  | 'PROTOCOL_BROKEN'
  /** The caller asked for what cannot be. */
  | 'INVALID_ARGUMENT'

export interface ClientErrorOptions extends ErrorOptions {
  readonly retriable?: boolean
  /** What the user can do about it. */
  readonly hint?: string | undefined
  /** The broker's code. */
  readonly errorCode?: number
}

/** Whatever goes wrong in the client: Kafka's name for it, or one of ours, and whether trying again may help. */
export class ClientError extends Error {
  override readonly name = 'ClientError'
  readonly code: ErrorName | LocalErrorName
  readonly retriable: boolean
  readonly hint: string | undefined
  /** Kafka's number; undefined where no broker answered. */
  readonly errorCode: number | undefined

  constructor(code: ErrorName | LocalErrorName, message: string, options: ClientErrorOptions = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.code = code
    this.retriable = options.retriable ?? false
    this.hint = options.hint
    this.errorCode = options.errorCode
  }
}

const HINTS: Partial<Record<ErrorName, string>> = {
  MESSAGE_TOO_LARGE: "raise the topic's max.message.bytes, or send smaller records or batches",
  RECORD_LIST_TOO_LARGE: "raise the topic's segment.bytes, or send smaller batches",
  NOT_ENOUGH_REPLICAS: 'bring replicas back, or lower min.insync.replicas of the topic',
  INVALID_REPLICATION_FACTOR: 'there are fewer brokers than replicas asked for: see `tidemark cluster`',
  OFFSET_OUT_OF_RANGE: 'the offset was deleted by retention or is not written yet: read from earliest or latest',
  NON_EMPTY_GROUP: 'stop the consumers of the group first',
  GROUP_SUBSCRIBED_TO_TOPIC: 'stop the consumers that subscribe to the topic first',
  KAFKA_STORAGE_ERROR: "see the broker's log: its disk is full or failing",
  UNSUPPORTED_VERSION: 'the broker is older or newer than this feature',
  MISMATCHED_ENDPOINT_TYPE: 'this is the port of a controller: give that of a broker',
  NOT_CONTROLLER: 'a majority of the controllers that vote must run and reach each other: see the log of any node',
  COORDINATOR_LOAD_IN_PROGRESS:
    'if it lasts, see `tidemark cluster`: perhaps no controller leads, and producers get no ids',
  COORDINATOR_NOT_AVAILABLE: 'its partition of __consumer_offsets has no leader: see `tidemark cluster`',
  INVALID_RECORD: 'a compacted topic takes only records with a key',
}

/** Brokers pass on what only a controller can do, so this is what it means to a client. */
const NO_CONTROLLER = 'no controller leads at the moment, or it cannot be reached'

/** The error that a broker answered with, or undefined for code 0. `about` is what it concerns, such as `topic "a"`. */
export function brokerError(errorCode: number, about: string, message?: string | null): ClientError | undefined {
  if (errorCode === 0) return undefined
  const known = errorOf(errorCode)
  const own = known.name === 'NOT_CONTROLLER' ? NO_CONTROLLER : known.message
  const text =
    message === null || message === undefined || message === '' || known.name === 'NOT_CONTROLLER' ? own : message
  const hint = HINTS[known.name]
  return new ClientError(known.name, `${about}: ${text}`, { errorCode, retriable: known.retriable, hint })
}

export function throwIfError(errorCode: number, about: string, message?: string | null): void {
  const error = brokerError(errorCode, about, message)
  if (error !== undefined) throw error
}

const CHANNEL_CODES: Record<ChannelErrorCode, { code: ErrorName | LocalErrorName; retriable: boolean; hint?: string }> =
  {
    refused: {
      code: 'CONNECTION_FAILED',
      retriable: true,
      hint: 'is the broker running, and is this its address and port? `tidemark start` runs one on localhost:9092; -b takes several addresses by commas, for when one is down',
    },
    'unknown-host': { code: 'CONNECTION_FAILED', retriable: true, hint: 'check the host name for a typing error' },
    unreachable: { code: 'CONNECTION_FAILED', retriable: true, hint: 'check the network and firewalls on the way' },
    'timed-out': {
      code: 'TIMED_OUT',
      retriable: true,
      hint: 'a firewall may swallow the packets, the broker may be starting or overloaded, no broker may listen there (`tidemark doctor` looks closer), or a change waits for a controller and none leads (`tidemark cluster`)',
    },
    closed: {
      code: 'CONNECTION_FAILED',
      retriable: true,
      hint: 'a port that expects TLS or another protocol closes connections like this',
    },
    overloaded: { code: 'TIMED_OUT', retriable: true },
    protocol: {
      code: 'PROTOCOL_BROKEN',
      retriable: false,
      hint: 'no broker listens there, or one that expects TLS: check the port',
    },
    'unsupported-version': {
      code: 'UNSUPPORTED_VERSION',
      retriable: false,
      hint: 'the broker is older or newer than this feature, or this is the port of a controller: give that of a broker',
    },
    unsendable: { code: 'UNSUPPORTED_VERSION', retriable: false },
  }

/** Any error as a ClientError; what is no failure of the world is passed on as it is. */
export function clientError(error: unknown): unknown {
  if (!(error instanceof ChannelError)) return error
  const { code, retriable, hint } = CHANNEL_CODES[error.code]
  return new ClientError(code, error.message, { cause: error, retriable, hint })
}

/** Whether the same thing may work in a moment. */
export function mayRetry(error: unknown): error is ClientError {
  return error instanceof ClientError && error.retriable
}
