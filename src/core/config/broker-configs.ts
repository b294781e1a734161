import { assert } from '#base/assert.ts'
import { BROKER_CONFIGS, brokerConfigChain } from './broker.ts'
import { checkValue } from './definition.ts'
import type { ConfigValue } from './value.ts'

export type Overrides = ReadonlyMap<string, string>

/** The layers that decide a broker's configuration, the one that wins first. */
export interface BrokerLayers {
  readonly nodeId: number
  /** What was altered for this broker alone. */
  readonly dynamic: Overrides
  /** What was altered for all brokers of the cluster (the broker resource without a name). */
  readonly dynamicDefault: Overrides
  /** File, flags and environment. */
  readonly fixed: Overrides
}

/** Source codes of DescribeConfigs (KIP-226). */
export const CONFIG_SOURCE = {
  UNKNOWN: 0,
  TOPIC: 1,
  DYNAMIC_BROKER: 2,
  DYNAMIC_DEFAULT_BROKER: 3,
  STATIC_BROKER: 4,
  DEFAULT: 5,
  DYNAMIC_BROKER_LOGGER: 6,
  CLIENT_METRICS: 7,
  GROUP: 8,
} as const

/** How many milliseconds one of the unit is, for keys that a chain of synonyms measures in other units. */
const UNIT_MS: readonly (readonly [suffix: string, ms: bigint])[] = [
  ['.hours', 3_600_000n],
  ['.minutes', 60_000n],
]

/**
 * A broker's configuration: an immutable view over its layers. A change makes a new one (`with`), so whoever holds one
 * reads consistent values.
 */
export class BrokerConfigs {
  readonly layers: BrokerLayers
  readonly #parsed = new Map<string, ConfigValue>()

  constructor(layers: Partial<BrokerLayers> = {}) {
    this.layers = { nodeId: -1, dynamic: new Map(), dynamicDefault: new Map(), fixed: new Map(), ...layers }
  }

  with(changed: Partial<BrokerLayers>): BrokerConfigs {
    return new BrokerConfigs({ ...this.layers, ...changed })
  }

  /** The text that holds for one key; null when nothing is set anywhere and there is no default. */
  text(name: string): string | null {
    return this.override(name) ?? BROKER_CONFIGS.get(name)?.default ?? null
  }

  /** What somebody set, in the order of precedence. */
  override(name: string): string | undefined {
    const { dynamic, dynamicDefault, fixed } = this.layers
    return dynamic.get(name) ?? dynamicDefault.get(name) ?? fixed.get(name)
  }

  /** The parsed value. A dynamic value that is invalid counts as absent, as in Kafka: it never keeps a broker from running. */
  value(name: string): ConfigValue {
    const known = this.#parsed.get(name)
    if (known !== undefined) return known
    const value = this.#parse(name)
    this.#parsed.set(name, value)
    return value
  }

  #parse(name: string): ConfigValue {
    const definition = BROKER_CONFIGS.get(name)
    assert(definition !== undefined, `no such broker configuration: ${name}`)
    const { dynamic, dynamicDefault, fixed } = this.layers
    for (const text of [dynamic.get(name), dynamicDefault.get(name), fixed.get(name), definition.default]) {
      if (text === undefined || text === null) continue
      const parsed = checkValue(definition, text)
      if ('value' in parsed) return parsed.value
    }
    return null
  }

  knows(name: string): boolean {
    return BROKER_CONFIGS.has(name)
  }
  number(name: string): number {
    return Number(this.value(name))
  }
  boolean(name: string): boolean {
    return this.value(name) === true
  }
  string(name: string): string | null {
    const value = this.value(name)
    return value === null ? null : String(value)
  }
  list(name: string): readonly string[] {
    const value = this.value(name)
    return Array.isArray(value) ? value : []
  }

  /**
   * What a topic inherits from a chain such as log.retention.ms, .minutes, .hours: the first key that holds a value, in
   * the unit of the first. Each key's own layers decide before the next key is asked, as in Kafka.
   */
  topicDefault(chain: readonly string[]): string | undefined {
    for (const name of chain) {
      const definition = BROKER_CONFIGS.get(name)
      const text = this.text(name)
      if (text === null || definition === undefined) continue
      const parsed = checkValue(definition, text)
      if ('problem' in parsed) continue
      const unit = UNIT_MS.find(([suffix]) => name.endsWith(suffix))
      if (unit !== undefined && name !== chain[0]) {
        const amount = BigInt(parsed.text)
        return amount < 0n ? '-1' : (amount * unit[1]).toString()
      }
      if (name === 'log.retention.ms' && parsed.text.startsWith('-')) return '-1'
      return parsed.text
    }
    return undefined
  }

  /** Kafka's chain for one key: the prefixed form of a listener before the plain one, milliseconds before hours. */
  chain(name: string): readonly string[] {
    return brokerConfigChain(name)
  }
}
