import type { Api } from '#protocol/apis.ts'
import type { InputOf, MessageOf, RecordsHole, Schema, VersionRange } from '#protocol/schema.ts'
import type { Address, File } from '#world/world.ts'

/** What a request handler knows about who asks. */
export interface Call {
  readonly apiKey: number
  readonly apiVersion: number
  readonly clientId: string | null
  readonly caller: Caller
  /** Size of the whole request in bytes. */
  readonly size: number
  /** How many elements its arrays have together: what going over it takes. */
  readonly elements: number
  /** A broker passed it on for a client. */
  readonly passedOn?: boolean
  /** Says that nothing refers to the request's bytes any more, so that their memory may be used for another. */
  recycle(): void
  /** The request's bytes are used beyond its answer; they count as the node's memory until as many `letGo` followed. */
  hold(): void
  letGo(): void
}

/** The connection behind a call, for as long as it lives. */
export interface Caller {
  /** Unique in this process. */
  readonly id: number
  /** The listener's name, such as PLAINTEXT. */
  readonly listener: string
  /** The address that the client dialled, as seen here. */
  readonly local: Address
  readonly remote: Address
  /** What the client said of itself in ApiVersions (KIP-511); 'unknown' before. */
  softwareName: string
  softwareVersion: string
  /** Runs when the connection has ended, at once if it has already. What is returned takes the wish back. */
  whenGone(run: () => void): () => void
}

/** The request wants no answer at all (Produce with acks=0). */
export const NO_ANSWER = Symbol('no answer')
/** The connection is closed instead of an answer (an acks=0 produce that failed). */
export const HANG_UP = Symbol('hang up')

export type Answer<Response> = Response | typeof NO_ANSWER | typeof HANG_UP

/** A range of a file in place of records in an answer: it goes from the file to the socket. */
export interface FileRange extends RecordsHole {
  readonly file: File
  readonly position: number
  readonly size: number
}

/** One API as a listener serves it. */
export interface ServedApi {
  readonly api: Api
  readonly versions: VersionRange
  /** Advertised where it differs from what is served: Produce says 0 since clients infer features from it (KAFKA-18659). */
  readonly advertised: VersionRange
  /**
   * Later requests of the same connection wait for its answer. For what changes the cluster's state elsewhere, so that a
   * client that pipelines sees its own changes; all else goes on at once, and only the answers keep their order.
   */
  readonly barrier: boolean
  readonly handle: (request: unknown, call: Call) => Answer<object> | Promise<Answer<object>>
}

interface ServedApiOptions<Request extends Schema, Response extends Schema> {
  readonly api: Api<Request, Response>
  /** The first and last version that are served; all that exist unless given. */
  readonly versions?: readonly [first: number, last: number]
  readonly advertised?: readonly [first: number, last: number]
  readonly barrier?: boolean
  readonly handle: (
    request: MessageOf<Request>,
    call: Call,
  ) => Answer<InputOf<Response>> | Promise<Answer<InputOf<Response>>>
}

/** Ties a handler to its API's tables; the types of both messages follow from them. */
export function serve<Request extends Schema, Response extends Schema>(
  options: ServedApiOptions<Request, Response>,
): ServedApi {
  const { first, last } = options.api.versions
  const versions = options.versions ?? [first, last]
  const advertised = options.advertised ?? versions
  return {
    api: options.api as unknown as Api,
    versions: { first: versions[0], last: versions[1] },
    advertised: { first: advertised[0], last: advertised[1] },
    barrier: options.barrier ?? false,
    handle: options.handle as ServedApi['handle'],
  }
}

/** All that one listener serves, by API key. */
export type Service = ReadonlyMap<number, ServedApi>

export function service(apis: readonly ServedApi[]): Service {
  return new Map(apis.map(served => [served.api.key, served]))
}
