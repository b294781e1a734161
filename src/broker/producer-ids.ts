import type { NodeId, ProducerId } from '#base/units.ts'
import { ChannelError } from '#network/channel.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { ControllerLink } from './metadata/controller-link.ts'

/** A block of ids that the controller gave to this broker alone (KIP-730). */
export class ProducerIds {
  readonly #link: ControllerLink
  readonly #nodeId: NodeId
  readonly #brokerEpoch: () => number
  #next: ProducerId = 0
  #end: ProducerId = 0
  #fetching: Promise<void> | undefined

  constructor(link: ControllerLink, nodeId: NodeId, brokerEpoch: () => number) {
    this.#link = link
    this.#nodeId = nodeId
    this.#brokerEpoch = brokerEpoch
  }

  /** An id that nobody else has; undefined when the controller gives none now. */
  async next(): Promise<ProducerId | undefined> {
    if (this.#next === this.#end) {
      this.#fetching ??= this.#fetch().finally(() => {
        this.#fetching = undefined
      })
      await this.#fetching
    }
    return this.#next < this.#end ? this.#next++ : undefined
  }

  async #fetch(): Promise<void> {
    try {
      const body = { brokerId: this.#nodeId, brokerEpoch: this.#brokerEpoch() }
      const answer = await this.#link.ask(API.AllocateProducerIds, body, 5000)
      if (answer.errorCode === ErrorCode.NOT_CONTROLLER) this.#link.lookElsewhere()
      if (answer.errorCode !== ErrorCode.NONE) return
      this.#next = answer.producerIdStart
      this.#end = answer.producerIdStart + answer.producerIdLen
    } catch (error) {
      if (!(error instanceof ChannelError)) throw error
    }
  }
}
