import type { Millis } from '#base/units.ts'
import { REQUEST_ELEMENTS_MAX } from '#core/metadata/topics.ts'
import type { Call } from '#network/service.ts'
import type { Api } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { InputOf, MessageOf, Schema } from '#protocol/schema.ts'
import type { Clock } from '#world/world.ts'
import type { ControllerLink } from './controller-link.ts'
import { forwardInEnvelope } from './envelope.ts'
import type { MetadataFollower } from './follower.ts'

const FORWARD_TIMEOUT_MS = 30_000
/** An election takes less. Clients give up on a broker that does not answer in half a minute: before that they are told why. */
const FORWARD_PATIENCE_MS = 15_000
/** The next change is not surely the one that was asked for, and may never come. */
const FOLLOW_WAIT_MS = 100

/** What clients ask of a broker and the active controller decides (KIP-590). */
export class Forwarding {
  readonly #link: ControllerLink
  readonly #metadata: MetadataFollower
  readonly #clock: Clock

  constructor(link: ControllerLink, metadata: MetadataFollower, clock: Clock) {
    this.#link = link
    this.#metadata = metadata
    this.#clock = clock
  }

  /**
   * Sends a request on to the active controller and answers as it does. While there is none it waits for as long as the
   * request may take, at most 15 seconds. `asksOnly`: it changes nothing.
   */
  async forward<Q extends Schema, R extends Schema>(
    api: Api<Q, R>,
    call: Call,
    request: MessageOf<Q>,
    refused: (errorCode: number) => InputOf<R>,
    asksOnly?: { readonly patienceMs: Millis },
  ): Promise<InputOf<R>> {
    if (call.elements > REQUEST_ELEMENTS_MAX) return refused(ErrorCode.POLICY_VIOLATION)
    const { timeoutMs = FORWARD_TIMEOUT_MS } = request as { readonly timeoutMs?: Millis }
    const patienceMs = asksOnly?.patienceMs ?? Math.min(timeoutMs, FORWARD_PATIENCE_MS)
    const limits = { clock: this.#clock, patienceMs, timeoutMs: FORWARD_TIMEOUT_MS, asksOnly: asksOnly !== undefined }
    return await forwardInEnvelope(this.#link, api, call, request, limits, refused)
  }

  /**
   * As `forward`; then, where something was changed, waits for the next change to be taken up here, which is most likely
   * the one that was asked for.
   */
  async forwardAndFollow<Q extends Schema, R extends Schema>(
    api: Api<Q, R>,
    call: Call,
    request: MessageOf<Q>,
    refused: (errorCode: number) => InputOf<R>,
    isChange: (answer: InputOf<R>) => boolean,
  ): Promise<InputOf<R>> {
    const before = this.#metadata.appliedOffset
    const answer = await this.forward(api, call, request, refused)
    if (isChange(answer) && this.#metadata.appliedOffset === before)
      await this.#metadata.caughtUp(() => this.#metadata.appliedOffset > before, FOLLOW_WAIT_MS)
    return answer
  }
}
