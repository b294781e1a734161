import { brokerDefinition, listenerBaseKey } from './broker.ts'
import type { BrokerConfigs, Overrides } from './broker-configs.ts'
import { type ConfigDefinition, type ConfigProblem, checkValue, invalidValue } from './definition.ts'

interface AlteredBroker {
  readonly type: string
  readonly broker: BrokerConfigs
}

/** Keys of a listener that may be set for the whole cluster, with and without its prefix. */
const CLUSTER_LEVEL_LISTENER_KEYS = ['max.connections', 'max.connection.creation.rate', 'num.network.threads']
const SECURITY_OF_LISTENERS = /^ssl\.(?:keystore|key\.|truststore)/
const THREADS = [
  'num.io.threads',
  'num.network.threads',
  'num.replica.fetchers',
  'num.recovery.threads.per.data.dir',
  'background.threads',
]
const MiB = 1024 * 1024

/**
 * Checks what is altered for a broker (or for all of them) as it would stand. Unknown keys are taken: they may belong to
 * something that is yet to come. Each problem is INVALID_REQUEST, which Kafka answers here where a topic gets INVALID_CONFIG.
 */
export function brokerProblems(after: Overrides, { type, broker }: AlteredBroker): ConfigProblem[] {
  const problems: ConfigProblem[] = []
  for (const [name, text] of after) {
    const definition = brokerDefinition(name)
    if (definition === undefined) continue
    const problem = placeProblem(name, definition, type === 'broker') ?? valueProblem(definition, text, broker)
    if (problem !== undefined) problems.push({ name, message: problem })
  }
  return problems.length > 0 ? problems : togetherProblems(after, type, broker)
}

function placeProblem(name: string, definition: ConfigDefinition, ofOneBroker: boolean): string | undefined {
  const base = listenerBaseKey(name)
  if (base === undefined && definition.update === 'read-only')
    return `${name} cannot be changed while the broker runs: set it in the configuration that it starts with.`
  if (base === undefined && SECURITY_OF_LISTENERS.test(name))
    return `${name} can be changed only for one listener: listener.name.<listener>.${name}.`
  const perBroker =
    base === undefined ? definition.update === 'per-broker' : !CLUSTER_LEVEL_LISTENER_KEYS.includes(base)
  if (perBroker && !ofOneBroker) return `${name} cannot be set for the whole cluster: name the broker.`
  return undefined
}

function valueProblem(definition: ConfigDefinition, text: string, broker: BrokerConfigs): string | undefined {
  const checked = checkValue(definition, text)
  if ('problem' in checked) return invalidValue(definition, text, checked.problem).message
  const needed = unsupportedValue(definition, checked.text)
  if (needed !== undefined) return needed
  if (THREADS.includes(definition.name)) {
    const current = broker.number(definition.name)
    const wanted = Number(checked.value)
    if (wanted < current / 2)
      return invalidValue(definition, text, `must be at least half of the present ${current}`).message
    if (wanted > current * 2)
      return invalidValue(definition, text, `must be at most double the present ${current}`).message
  }
  return undefined
}

/** A value that would need something that is not there yet is refused, as ignoring it would be a lie. */
export function unsupportedValue(definition: ConfigDefinition, text: string): string | undefined {
  if (definition.needs === undefined || text === (definition.default ?? '')) return undefined
  const shown = definition.type === 'PASSWORD' ? 'set' : `"${text}"`
  return `${definition.name} cannot be ${shown}: it would need ${definition.needs}, which is not supported yet.`
}

function togetherProblems(after: Overrides, type: string, before: BrokerConfigs): ConfigProblem[] {
  const broker = before.with(type === 'broker' ? { dynamic: after } : { dynamicDefault: after })
  return brokerRules(broker, name => after.has(name))
}

/** Rules between several keys of a broker, of which `concerns` picks those to look at. */
export function brokerRules(broker: BrokerConfigs, concerns: (name: string) => boolean): ConfigProblem[] {
  const problems: ConfigProblem[] = []
  const atMost = (small: string, large: string): void => {
    if (!concerns(small) && !concerns(large)) return
    if (broker.number(small) > broker.number(large))
      problems.push({
        name: small,
        message: `${small} (${broker.text(small)}) cannot be larger than ${large} (${broker.text(large)}).`,
      })
  }
  const below = (small: string, large: string): void => {
    if (!concerns(small) && !concerns(large)) return
    if (broker.number(small) >= broker.number(large))
      problems.push({
        name: small,
        message: `${small} (${broker.text(small)}) must be smaller than ${large} (${broker.text(large)}).`,
      })
  }
  if (concerns('log.cleaner.dedupe.buffer.size') || concerns('log.cleaner.threads'))
    if (broker.number('log.cleaner.dedupe.buffer.size') < broker.number('log.cleaner.threads') * MiB)
      problems.push({
        name: 'log.cleaner.dedupe.buffer.size',
        message: `log.cleaner.dedupe.buffer.size (${broker.text('log.cleaner.dedupe.buffer.size')}) must be at least ${MiB} for each of log.cleaner.threads.`,
      })
  for (const kind of ['consumer', 'share', 'streams']) {
    for (const rest of ['session.timeout.ms', 'heartbeat.interval.ms', 'assignment.interval.ms']) {
      atMost(`group.${kind}.min.${rest}`, `group.${kind}.max.${rest}`)
      atMost(`group.${kind}.min.${rest}`, `group.${kind}.${rest}`)
      atMost(`group.${kind}.${rest}`, `group.${kind}.max.${rest}`)
    }
    below(`group.${kind}.heartbeat.interval.ms`, `group.${kind}.session.timeout.ms`)
  }
  for (const rest of ['record.lock.duration.ms', 'delivery.count.limit', 'partition.max.record.locks']) {
    atMost(`group.share.min.${rest}`, `group.share.${rest}`)
    atMost(`group.share.${rest}`, `group.share.max.${rest}`)
  }
  atMost('group.streams.num.standby.replicas', 'group.streams.max.standby.replicas')
  atMost('group.min.session.timeout.ms', 'group.max.session.timeout.ms')
  atMost('replica.fetch.wait.max.ms', 'replica.socket.timeout.ms')
  atMost('replica.fetch.wait.max.ms', 'replica.lag.time.max.ms')
  return problems
}
