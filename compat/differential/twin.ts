/** Sends every call to two servers, on connections that are alike, and collects where their answers differ. */
import { setTimeout as delay } from 'node:timers/promises'
import { ByteReader } from '#base/bytes.ts'
import type { SeededRandom } from '#base/random.ts'
import type { Api } from '#protocol/apis.ts'
import { decode, EncodeError } from '#protocol/codec.ts'
import { ErrorCode, errorOf } from '#protocol/errors.ts'
import { decodeResponseHeader, encodeRequestFrame } from '#protocol/frames.ts'
import type { InputOf, MessageOf, Schema } from '#protocol/schema.ts'
import { Comparison, type Difference, type Sides } from './compare.ts'
import type { Findings } from './findings.ts'
import { mutate } from './mutate.ts'
import { type Outcome, Wire } from './wire.ts'

export type Side = 0 | 1
/** What the first server said or chose, and what the second. */
export type Two<T> = readonly [T, T]
/** A request; as a function where it names what each server chose. */
export type Body<Q extends Schema> = InputOf<Q> | ((side: Side) => InputOf<Q>)
/** Undefined where a server closed the connection, said nothing, or does not offer the version. */
export type Answers<R extends Schema> = Two<MessageOf<R> | undefined>

/** A request is never answered later than this. */
const LIMIT_MS = 10_000
const SIDES = [0, 1] as const

export class Twin {
  readonly sides: Sides
  readonly findings: Findings
  readonly random: SeededRandom
  readonly #ports: Two<number>
  readonly #connections = new Map<string, Two<Wire>>()
  readonly #versions: [Map<number, readonly [number, number]>, Map<number, readonly [number, number]>]
  #correlationId = 0

  constructor(ports: Two<number>, sides: Sides, findings: Findings, random: SeededRandom) {
    this.#ports = ports
    this.sides = sides
    this.findings = findings
    this.random = random
    this.#versions = [new Map(), new Map()]
  }

  /** Which versions each side offers, by API key. */
  offer(side: Side, versions: Map<number, readonly [number, number]>): void {
    this.#versions[side] = versions
  }

  /** The versions of an API that both offer, rising. */
  versionsOf(api: Api, from = 0, to = Number.POSITIVE_INFINITY): number[] {
    const versions: number[] = []
    for (let version = Math.max(from, api.versions.first); version <= Math.min(to, api.versions.last); version++) {
      if (this.#offered(api, version)) versions.push(version)
    }
    return versions
  }

  #offered(api: Api, version: number): boolean {
    return this.#versions.every(versions => {
      const range = versions.get(api.key)
      return range !== undefined && version >= range[0] && version <= range[1]
    })
  }

  close(): void {
    for (const wires of this.#connections.values()) for (const wire of wires) wire.close()
  }

  /** Asks both and compares. Calls of one connection are answered in order; others do not wait for them. */
  async call<Q extends Schema, R extends Schema>(
    api: Api<Q, R>,
    version: number,
    body: Body<Q>,
    connection = 'main',
  ): Promise<Answers<R>> {
    if (!this.#offered(api, version)) {
      this.findings.skip(api, version)
      return [undefined, undefined]
    }
    const bodies = SIDES.map(side => (typeof body === 'function' ? body(side) : body)) as [InputOf<Q>, InputOf<Q>]
    return this.#exchange(api, version, bodies, connection)
  }

  /** The same in every version that both offer; the answers are those of the last. */
  async everyVersion<Q extends Schema, R extends Schema>(
    api: Api<Q, R>,
    body: InputOf<Q> | ((side: Side, version: number) => InputOf<Q>),
    connection = 'main',
  ): Promise<Answers<R>> {
    let answers: Answers<R> = [undefined, undefined]
    const versions = this.versionsOf(api)
    if (versions.length === 0) this.findings.skip(api, api.versions.last)
    for (const version of versions) {
      const of = typeof body === 'function' ? (side: Side) => body(side, version) : body
      answers = await this.call(api, version, of, connection)
    }
    return answers
  }

  /** Sends `count` variants of a request that is right, each wrong or odd in one or two places, in random versions. */
  async vary<Q extends Schema, R extends Schema>(
    api: Api<Q, R>,
    count: number,
    body: Body<Q>,
    from = 0,
    fits: (body: InputOf<Q>) => boolean = () => true,
  ): Promise<void> {
    const versions = this.versionsOf(api, from)
    if (versions.length === 0) {
      this.findings.skip(api, api.versions.last)
      return
    }
    const bodies = SIDES.map(side => (typeof body === 'function' ? body(side) : body)) as [InputOf<Q>, InputOf<Q>]
    for (let i = 0; i < count; i++) {
      const version = this.random.pick(versions)
      const varied = mutate(this.random, api.request, version, bodies) as [InputOf<Q>, InputOf<Q>] | undefined
      if (varied === undefined || !varied.every(fits)) continue
      try {
        await this.#exchange(api, version, varied, 'varied')
      } catch (error) {
        // What this version cannot carry is no request.
        if (!(error instanceof EncodeError)) throw error
      }
    }
  }

  /** Bytes as they are, on connections of their own: whether both answer the same bytes, or both close. */
  async raw(what: string, bytes: Uint8Array, limitMs = LIMIT_MS): Promise<Two<Outcome>> {
    const wires = this.#ports.map(port => new Wire(port)) as [Wire, Wire]
    const outcomes = (await Promise.all(wires.map(wire => wire.request(bytes, limitMs)))) as [Outcome, Outcome]
    for (const wire of wires) wire.close()
    const kinds = outcomes.map(outcome => (typeof outcome === 'string' ? outcome : 'answered'))
    const difference = { path: what, left: String(kinds[0]), right: String(kinds[1]) }
    this.findings.note('raw bytes', 0, kinds[0] === kinds[1] ? [] : [difference], () =>
      Buffer.from(bytes).toString('hex'),
    )
    return outcomes
  }

  /** Sends what is never answered; what follows on the connection shows whether it was. */
  unanswered<Q extends Schema>(api: Api<Q>, version: number, body: Body<Q>, connection = 'main'): void {
    for (const side of SIDES) {
      const frame = this.#frame(api, version, typeof body === 'function' ? body(side) : body, connection)
      this.#wires(connection)[side].send(frame)
    }
  }

  /** Waits until each server's answer satisfies, without comparing: news takes its time to get around. */
  async settle<Q extends Schema, R extends Schema>(
    api: Api<Q, R>,
    version: number,
    body: Body<Q>,
    holds: (answer: MessageOf<R>) => boolean,
  ): Promise<void> {
    await Promise.all(
      SIDES.map(async side => {
        for (let i = 0; i < 100; i++) {
          const request = typeof body === 'function' ? body(side) : body
          const frame = this.#frame(api, version, request, 'settle')
          const outcome = await this.#wires('settle')[side].request(frame, LIMIT_MS)
          if (typeof outcome !== 'string') {
            const answer = this.#decode(api, version, outcome)
            if (answer !== undefined && holds(answer)) return
          }
          await delay(i < 10 ? 3 : 25)
        }
        this.findings.note(api.name, version, [{ path: 'settles', left: 'yes', right: `side ${side} never` }], () =>
          example(typeof body === 'function' ? body(side) : body),
        )
      }),
    )
  }

  async #exchange<Q extends Schema, R extends Schema>(
    api: Api<Q, R>,
    version: number,
    bodies: Two<InputOf<Q>>,
    connection: string,
  ): Promise<Answers<R>> {
    const wires = this.#wires(connection)
    const begun = performance.now()
    const outcomes = await Promise.all(
      SIDES.map(async side => {
        const outcome = await wires[side].request(this.#frame(api, version, bodies[side], connection), LIMIT_MS)
        this.findings.took(api.name, side, performance.now() - begun)
        return outcome
      }),
    )
    const answers = outcomes.map(outcome =>
      typeof outcome === 'string' ? undefined : this.#decode(api, version, outcome),
    ) as [MessageOf<R> | undefined, MessageOf<R> | undefined]
    const [left, right] = answers
    let differences: Difference[]
    if (left === undefined || right === undefined) {
      const word = (side: Side): string =>
        answers[side] !== undefined
          ? 'answered'
          : String(Buffer.isBuffer(outcomes[side]) ? 'unreadable' : outcomes[side])
      const [l, r] = [word(0), word(1)]
      differences = l === r ? [] : [{ path: '(connection)', left: l, right: r }]
    } else if (codesOf(left).includes(FAILED) && !codesOf(right).includes(FAILED)) {
      // What follows from a failure of its own is one difference, however many fields are missing.
      differences = [
        {
          path: '(failed)',
          left: errorOf(FAILED).name,
          right: [...new Set(codesOf(right))].map(code => errorOf(code).name).join(),
        },
      ]
    } else differences = new Comparison(api.name, api.response, version, this.sides).run(left, right)
    this.findings.note(api.name, version, differences, () => example(bodies[1]), answers)
    return answers
  }

  #wires(connection: string): Two<Wire> {
    let wires = this.#connections.get(connection)
    if (wires === undefined) {
      wires = this.#ports.map(port => new Wire(port)) as [Wire, Wire]
      this.#connections.set(connection, wires)
    }
    return wires
  }

  #frame<Q extends Schema>(api: Api<Q>, version: number, body: InputOf<Q>, connection: string): Buffer {
    this.#correlationId = (this.#correlationId + 1) & 0x7fff_ffff
    const header = { correlationId: this.#correlationId, clientId: `twin-${connection}` }
    return Buffer.concat(encodeRequestFrame(api, version, header, body) as Buffer[])
  }

  #decode<R extends Schema>(api: Api<Schema, R>, version: number, frame: Buffer): MessageOf<R> | undefined {
    const reader = new ByteReader(frame)
    try {
      decodeResponseHeader(api.key, version, reader)
      const answer = decode(api.response, version, reader)
      return reader.remaining === 0 ? answer : undefined
    } catch {
      return undefined
    }
  }
}

const FAILED = ErrorCode.UNKNOWN_SERVER_ERROR

function codesOf(answer: unknown): number[] {
  if (answer === null || typeof answer !== 'object' || answer instanceof Uint8Array) return []
  return Object.entries(answer).flatMap(([key, value]) => (key === 'errorCode' ? [value as number] : codesOf(value)))
}

export function pick<R extends object, T>(
  answers: Two<R | undefined>,
  of: (answer: R) => T | undefined,
  none: T,
): Two<T> {
  const one = (answer: R | undefined): T => (answer === undefined ? none : (of(answer) ?? none))
  return [one(answers[0]), one(answers[1])]
}

export function example(body: unknown): string {
  const text = JSON.stringify(body, (_, value) => {
    if (typeof value === 'bigint') return String(value)
    if (value?.type === 'Buffer' && Array.isArray(value.data)) {
      const bytes = Buffer.from(value.data).toString('hex')
      return bytes.length > 60 ? `${bytes.slice(0, 60)}… ${value.data.length} bytes` : bytes
    }
    return value
  })
  return text.length > 700 ? `${text.slice(0, 700)}…` : text
}
