import type { NodeId } from '#base/units.ts'
import type { MetadataImage } from '#core/metadata/image.ts'
import type { Voter, VoterEndpoint } from '#core/raft/quorum.ts'
import type { Address } from '#world/world.ts'
import type { ControllerConfig } from './config.ts'

export interface AddressBookOptions {
  readonly config: ControllerConfig
  readonly voters: () => readonly Voter[]
  readonly image: () => MetadataImage | undefined
}

/** Where controllers are reached by what the log and the configuration say. */
export class AddressBook {
  readonly #options: AddressBookOptions

  constructor(options: AddressBookOptions) {
    this.#options = options
  }

  /** The voters' record counts, then the fixed list, then what the node registered with. */
  addressOf(id: NodeId): Address | undefined {
    const { config, voters, image } = this.#options
    const recorded = this.ofOurListener(voters().find(each => each.id === id)?.endpoints ?? [])
    const configured = config.voters?.find(each => each.id === id)
    return recorded ?? configured ?? this.ofOurListener(image()?.controllers.get(id)?.endPoints ?? [])
  }

  /** All controllers have the listener of one name for each other. */
  ofOurListener(endpoints: readonly VoterEndpoint[]): VoterEndpoint | undefined {
    const { name } = this.#options.config.listener
    return endpoints.find(endpoint => endpoint.name === name) ?? endpoints[0]
  }

  /** Who may know of the quorum. */
  anyone(): readonly Address[] {
    const { config, voters } = this.#options
    const { nodeId, bootstrapServers = [], voters: fixed = [] } = config
    const configured = [...bootstrapServers, ...fixed.filter(({ id }) => id !== nodeId)]
    if (configured.length > 0) return configured
    return voters().flatMap(({ id }) => (id === nodeId ? [] : (this.addressOf(id) ?? [])))
  }
}
