import { BROKER_CONFIGS } from './broker.ts'
import type { BrokerConfigs } from './broker-configs.ts'
import { checkValue } from './definition.ts'
import { ipOverrides } from './ip-overrides.ts'

/** How many connections a broker with these listeners takes, by its configuration as it holds now. */
export function connectionCounts(configs: BrokerConfigs, listeners: readonly string[]) {
  const ofListener = new Map<string, number>()
  for (const name of listeners) {
    const count = ownNumber(configs, `listener.name.${name.toLowerCase()}.max.connections`, 'max.connections')
    if (count !== undefined) ofListener.set(name, count)
  }
  return {
    all: configs.number('max.connections'),
    ofListener,
    perHost: configs.number('max.connections.per.ip'),
    ofHost: ipOverrides(configs.string('max.connections.per.ip.overrides') ?? ''),
  }
}

/** What a listener's own key says, by the rules of the key that it stands for. */
function ownNumber(configs: BrokerConfigs, key: string, base: string): number | undefined {
  const text = configs.override(key)
  const definition = BROKER_CONFIGS.get(base)
  if (text === undefined || definition === undefined) return undefined
  const parsed = checkValue(definition, text)
  return 'value' in parsed ? Number(parsed.value) : undefined
}
