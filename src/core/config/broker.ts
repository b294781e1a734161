import { GROUPS_CONFIGS } from './broker-groups.ts'
import { LOG_CONFIGS } from './broker-log.ts'
import { NETWORK_CONFIGS } from './broker-network.ts'
import { REMOTE_CONFIGS } from './broker-remote.ts'
import { REPLICATION_CONFIGS } from './broker-replication.ts'
import { SECURITY_CONFIGS } from './broker-security.ts'
import { TRANSACTION_CONFIGS } from './broker-transactions.ts'
import { type ConfigDefinition, type ConfigTable, tableOf } from './definition.ts'

/** The broker's tables under the headings of the documentation. */
export const BROKER_SECTIONS: readonly (readonly [heading: string, definitions: readonly ConfigDefinition[]])[] = [
  ['Node, network and requests', NETWORK_CONFIGS],
  ['Logs', LOG_CONFIGS],
  ['Groups and offsets', GROUPS_CONFIGS],
  ['Replication and controllers', REPLICATION_CONFIGS],
  ['Transactions', TRANSACTION_CONFIGS],
  ['Tiered storage', REMOTE_CONFIGS],
  ['Security', SECURITY_CONFIGS],
]

/** Every broker configuration of 4.3. */
export const BROKER_CONFIGS: ConfigTable = tableOf(...BROKER_SECTIONS.flatMap(([, definitions]) => definitions))

const CHAINS: readonly (readonly string[])[] = [
  ['log.roll.ms', 'log.roll.hours'],
  ['log.roll.jitter.ms', 'log.roll.jitter.hours'],
  ['log.retention.ms', 'log.retention.minutes', 'log.retention.hours'],
]
const LISTENER_KEY = /^listener\.name\.[^.]*\.(.*)$/
/** Keys that a listener takes for each SASL mechanism: `listener.name.x.plain.sasl.jaas.config`. */
const MECHANISM_KEYS = [
  'sasl.jaas.config',
  'sasl.login.callback.handler.class',
  'sasl.login.class',
  'sasl.server.callback.handler.class',
  'connections.max.reauth.ms',
]

/** The key that `listener.name.x.key` stands for on one listener; undefined for a key without that prefix. */
export function listenerBaseKey(name: string): string | undefined {
  const base = LISTENER_KEY.exec(name)?.[1]
  return base === undefined ? undefined : (MECHANISM_KEYS.find(key => base.endsWith(key)) ?? base)
}

/** Every key that may decide one key's value, the one that wins first. */
export function brokerConfigChain(name: string): readonly string[] {
  if (name === 'log.flush.interval.ms') return ['log.flush.interval.ms', 'log.flush.scheduler.interval.ms']
  const chain = CHAINS.find(keys => keys.includes(name))
  if (chain !== undefined) return chain
  const base = listenerBaseKey(name)
  return base === undefined ? [name] : [name, base]
}

/** The definition of a key, also of one with a listener's prefix. */
export function brokerDefinition(name: string): ConfigDefinition | undefined {
  return BROKER_CONFIGS.get(name) ?? BROKER_CONFIGS.get(listenerBaseKey(name) ?? '')
}
