import type { NodeId } from '#base/units.ts'
import type { Address, Logger, World } from '#world/world.ts'
import { ControllerLink } from './controller-link.ts'
import { Controllers } from './controllers.ts'

export interface ControllerLinksOptions {
  readonly world: World
  readonly nodeId: NodeId
  readonly log: Logger
  /** Where controllers may be found, beside those that the metadata tells of. */
  readonly controllers: readonly Address[]
  /** The one in this process: what the broker knows of the cluster it reads there. */
  readonly ownController: Address | undefined
  /** Name of the listener by which controllers are reached. */
  readonly listener: string
}

/** A broker's ways to the active controller: one for each thing that must not wait behind another, nor end with it. */
export class ControllerLinks {
  /** What all of them know of the quorum. */
  readonly controllers: Controllers
  /** For what clients asked for and is passed on. */
  readonly clients: ControllerLink
  /** For what the broker asks for by itself: its short time-outs must not end what clients asked for. */
  readonly own: ControllerLink
  /** For the broker's life alone: what takes long for a client must not delay a heartbeat, nor end with one. */
  readonly life: ControllerLink
  /** Of the follower alone: answers on one connection keep their order, and its long polls would hold up all others. */
  readonly metadata: ControllerLink
  /** For who is in sync: it must not wait behind anything else, as acknowledgements wait for it. */
  readonly replicas: ControllerLink

  constructor({ world, nodeId, log, controllers, ownController, listener }: ControllerLinksOptions) {
    const named = ownController === undefined ? controllers : [ownController, ...controllers]
    this.controllers = new Controllers(named, listener)
    const link = (clientId: string, fixed?: Address) =>
      new ControllerLink(world, this.controllers, `${clientId}-${nodeId}`, log, fixed)
    this.clients = link('broker')
    this.own = link('broker-own')
    this.life = link('heartbeat')
    this.metadata = link('raft-client', ownController)
    this.replicas = link('broker-replicas')
  }

  close(): void {
    for (const link of [this.clients, this.own, this.life, this.metadata, this.replicas]) link.close()
  }
}
