import { hostPort } from '#base/host-port.ts'
import type { Epoch, NodeId } from '#base/units.ts'
import type { Address } from '#world/world.ts'

/**
 * Where the controllers are, and which of them is active, as far as this broker has heard. What one of its links learns
 * serves all of them at once.
 */
export class Controllers {
  /** Name of the listener by which controllers are reached. */
  readonly listener: string
  readonly #configured: readonly Address[]
  readonly #byId = new Map<NodeId, Address>()
  #activeId: NodeId = -1
  #epoch: Epoch = -1
  /** Took what only the active one takes, though nobody said its id. */
  #active: Address | undefined
  readonly #listeners = new Set<() => void>()

  constructor(configured: readonly Address[], listener: string) {
    this.#configured = configured
    this.listener = listener
  }

  /** The one that is active, if it is known. */
  get active(): Address | undefined {
    return this.#active ?? this.#byId.get(this.#activeId)
  }

  /** All that are known, in the order in which to try them: the active one first. */
  candidates(): Address[] {
    const inOrder = [this.active, ...this.#byId.values(), ...this.#configured]
    const unique = new Map<string, Address>()
    for (const address of inOrder) {
      if (address === undefined) continue
      const name = hostPort(address)
      if (!unique.has(name)) unique.set(name, address)
    }
    return [...unique.values()]
  }

  /** What a Fetch of the metadata log says of the quorum: -1 where its leader is not known. */
  heard(leaderId: NodeId, epoch: Epoch, endpoints: readonly { nodeId: NodeId; host: string; port: number }[]): void {
    const before = this.active
    for (const { nodeId, host, port } of endpoints) this.#byId.set(nodeId, { host, port })
    if (epoch < this.#epoch || (epoch === this.#epoch && leaderId === -1)) return
    if (epoch > this.#epoch || leaderId !== this.#activeId) this.#active = undefined
    this.#epoch = epoch
    this.#activeId = leaderId
    this.#tell(before)
  }

  /** Where controllers said that they are reached, by their registrations or by somebody who was asked. */
  found(controllers: Iterable<Address & { readonly id: NodeId }>): void {
    const before = this.active
    for (const { id, host, port } of controllers) this.#byId.set(id, { host, port })
    this.#tell(before)
  }

  /** This one took what only the active controller takes. */
  tookFor(address: Address): void {
    const before = this.active
    if (before !== undefined && isSame(before, address)) return
    this.#active = address
    this.#tell(before)
  }

  /** This one is gone, or says that it is not active: nobody is known to be until there is news. */
  isNotActive(address: Address): void {
    const { active } = this
    if (active === undefined || !isSame(active, address)) return
    this.#active = undefined
    this.#activeId = -1
  }

  /** Calls at each change of who is active, until the returned function is called. */
  onNews(run: () => void): () => void {
    this.#listeners.add(run)
    return () => this.#listeners.delete(run)
  }

  #tell(before: Address | undefined): void {
    const { active } = this
    if (active === undefined || (before !== undefined && isSame(before, active))) return
    for (const run of [...this.#listeners]) run()
  }
}

export function isSame(a: Address, b: Address): boolean {
  return a.host === b.host && a.port === b.port
}
