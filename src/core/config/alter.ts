import { ErrorCode } from '#protocol/errors.ts'
import { brokerDefinition } from './broker.ts'
import { brokerProblems } from './broker-alter.ts'
import type { BrokerConfigs, Overrides } from './broker-configs.ts'
import { CLIENT_METRICS_CONFIGS, clientMetricsFailure } from './client-metrics.ts'
import type { ConfigTable } from './definition.ts'
import { GROUP_CONFIGS, validateGroupConfigs } from './group.ts'
import { TOPIC_CONFIGS, validateTopicConfigs } from './topic.ts'

/** Error codes that altering ends in. */
export const { INVALID_CONFIG, INVALID_REQUEST } = ErrorCode
export interface ConfigFailure {
  readonly errorCode: number
  readonly message: string
}

export type AlterableType = 'topic' | 'group' | 'client-metrics' | 'broker' | 'broker-default'

/** What is altered: `overrides` are those of this resource now, `broker` the configuration of the one that checks. */
export interface AlterableResource {
  readonly type: AlterableType
  readonly overrides: Overrides
  readonly broker: BrokerConfigs
}

/** IncrementalAlterConfigs' operations (KIP-339). */
const CONFIG_OPERATION = { SET: 0, DELETE: 1, APPEND: 2, SUBTRACT: 3 } as const
export interface ConfigOperation {
  readonly name: string
  readonly operation: number
  readonly value: string | null
}

/** `changes` are the records to write (null deletes), only what differs, for a broker all; `overrides` is the outcome. */
export type Altered =
  | { readonly changes: ReadonlyMap<string, string | null>; readonly overrides: Overrides }
  | ConfigFailure

/** IncrementalAlterConfigs of one resource: all of it or nothing. Whether the resource exists is the caller's question. */
export function applyIncremental(resource: AlterableResource, operations: readonly ConfigOperation[]): Altered {
  const refused =
    refusedShape(
      operations.map(({ name }) => name),
      operations.filter(({ operation, value }) => operation !== CONFIG_OPERATION.DELETE && value === null),
    ) ?? unknownOperation(operations)
  if (refused !== undefined) return refused
  const after = new Map<string, string | null>()
  for (const { name, operation, value } of operations) {
    if (operation === CONFIG_OPERATION.DELETE) after.set(name, null)
    else if (operation === CONFIG_OPERATION.SET) after.set(name, value)
    else {
      const edited = editedList(resource, name, operation, value ?? '')
      if (typeof edited !== 'string') return edited
      after.set(name, edited)
    }
  }
  return settled(resource, after)
}

/** AlterConfigs of one resource: the given settings replace all that were there. */
export function replaceAll(
  resource: AlterableResource,
  entries: readonly { readonly name: string; readonly value: string | null }[],
): Altered {
  const refused = refusedShape(
    entries.map(({ name }) => name),
    entries.filter(({ value }) => value === null),
  )
  if (refused !== undefined) return refused
  const after = new Map<string, string | null>(entries.map(({ name, value }) => [name, value]))
  for (const name of resource.overrides.keys()) if (!after.has(name)) after.set(name, null)
  return settled(resource, after)
}

/** Checks the configuration that a new topic is created with: a null value is INVALID_CONFIG there. */
export function initialTopicConfigs(
  entries: readonly { readonly name: string; readonly value: string | null }[],
  broker: BrokerConfigs,
): Altered {
  const missing = entries.filter(({ value }) => value === null).map(({ name }) => name)
  if (missing.length > 0) return { errorCode: INVALID_CONFIG, message: `No value is given for ${missing.join(', ')}.` }
  return settled(
    { type: 'topic', overrides: new Map(), broker },
    new Map(entries.map(({ name, value }) => [name, value])),
  )
}

function refusedShape(
  names: readonly string[],
  withoutValue: readonly { readonly name: string }[],
): ConfigFailure | undefined {
  const seen = new Set<string>()
  const twice = names.find(name => seen.size === seen.add(name).size)
  if (twice !== undefined)
    return { errorCode: INVALID_REQUEST, message: `${twice} appears more than once in one request.` }
  if (withoutValue.length === 0) return undefined
  return {
    errorCode: INVALID_REQUEST,
    message: `No value is given for ${withoutValue.map(({ name }) => name).join(', ')}.`,
  }
}

function unknownOperation(operations: readonly ConfigOperation[]): ConfigFailure | undefined {
  const wrong = operations.find(({ operation }) => operation < 0 || operation > 3)
  if (wrong === undefined) return undefined
  return {
    errorCode: INVALID_REQUEST,
    message: `${wrong.operation} is no operation on a configuration (for ${wrong.name}).`,
  }
}

const TABLES: Record<Exclude<AlterableType, 'broker' | 'broker-default'>, ConfigTable> = {
  topic: TOPIC_CONFIGS,
  group: GROUP_CONFIGS,
  'client-metrics': CLIENT_METRICS_CONFIGS,
}

/** APPEND and SUBTRACT start from what is set, else from the built-in default; items keep their order and come once. */
function editedList(
  resource: AlterableResource,
  name: string,
  operation: number,
  items: string,
): string | ConfigFailure {
  const { type } = resource
  const definition = type === 'broker' || type === 'broker-default' ? brokerDefinition(name) : TABLES[type].get(name)
  // Kafka does not know the types of client metrics here, so their lists can only be set whole.
  if (definition?.type !== 'LIST' || type === 'client-metrics')
    return {
      errorCode: INVALID_CONFIG,
      message: `${name} is not a list, so nothing can be ${operation === CONFIG_OPERATION.APPEND ? 'appended to' : 'subtracted from'} it.`,
    }
  const parts = new Set(
    (resource.overrides.get(name) ?? definition.default ?? '').split(',').filter(part => part !== ''),
  )
  for (const item of items.split(',')) {
    if (operation === CONFIG_OPERATION.APPEND) parts.add(item)
    else parts.delete(item)
  }
  return [...parts].join(',')
}

function settled(resource: AlterableResource, after: ReadonlyMap<string, string | null>): Altered {
  const overrides = new Map(resource.overrides)
  const changes = new Map<string, string | null>()
  const ofBroker = resource.type === 'broker' || resource.type === 'broker-default'
  for (const [name, value] of after) {
    // A broker reloads files that a setting points to whenever it is written, changed or not.
    if (ofBroker || (overrides.get(name) ?? null) !== value) changes.set(name, value)
    if (value === null) overrides.delete(name)
    else overrides.set(name, value)
  }
  return failureOf(resource, overrides) ?? { changes, overrides }
}

function failureOf(resource: AlterableResource, after: Overrides): ConfigFailure | undefined {
  switch (resource.type) {
    case 'topic':
      return joined(INVALID_CONFIG, validateTopicConfigs(after, resource.broker, resource.overrides))
    case 'group':
      return joined(INVALID_CONFIG, validateGroupConfigs(after, resource.broker))
    case 'client-metrics':
      return clientMetricsFailure(after)
    default:
      return joined(INVALID_REQUEST, brokerProblems(after, resource))
  }
}

function joined(errorCode: number, problems: readonly { readonly message: string }[]): ConfigFailure | undefined {
  return problems.length === 0 ? undefined : { errorCode, message: problems.map(({ message }) => message).join(' ') }
}
