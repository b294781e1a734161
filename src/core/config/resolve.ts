import { BROKER_CONFIGS, brokerDefinition } from './broker.ts'
import { type BrokerConfigs, CONFIG_SOURCE, type Overrides } from './broker-configs.ts'
import { CLIENT_METRICS_CONFIGS } from './client-metrics.ts'
import { type ConfigDefinition, checkValue } from './definition.ts'
import { GROUP_CONFIGS } from './group.ts'
import { effectiveTopicText, TOPIC_CONFIGS } from './topic.ts'
import { CONFIG_TYPE_CODES, CONFIG_TYPE_UNKNOWN } from './value.ts'

/** What is described, with all that decides its values. `broker` is the answering broker's own configuration. */
export type DescribedResource =
  | { readonly type: 'topic'; readonly overrides: Overrides; readonly broker: BrokerConfigs }
  | { readonly type: 'group'; readonly overrides: Overrides; readonly broker: BrokerConfigs }
  | { readonly type: 'broker'; readonly broker: BrokerConfigs }
  /** The broker resource without a name: what holds for the whole cluster, only what somebody set. */
  | { readonly type: 'broker-default'; readonly broker: BrokerConfigs }
  | { readonly type: 'client-metrics'; readonly overrides: Overrides }

export interface DescribeOptions {
  /** null and empty ask for everything. Unknown keys are simply absent from the answer. */
  readonly keys?: readonly string[] | null
  readonly includeSynonyms?: boolean
  readonly includeDocumentation?: boolean
}

export interface ConfigSynonym {
  readonly name: string
  readonly value: string | null
  readonly source: number
}

/** One entry of DescribeConfigs, in the fields of its message (and `isDefault` of version 0). */
export interface ConfigEntry {
  readonly name: string
  readonly value: string | null
  readonly readOnly: boolean
  readonly isDefault: boolean
  readonly configSource: number
  readonly isSensitive: boolean
  readonly synonyms: readonly ConfigSynonym[]
  readonly configType: number
  readonly documentation: string | null
}

/** DescribeConfigs of one resource, entries in the order of their names. Asking twice gives the same. */
export function describe(resource: DescribedResource, options: DescribeOptions = {}): ConfigEntry[] {
  const wanted = options.keys == null || options.keys.length === 0 ? undefined : new Set(options.keys)
  const names = [...namesOf(resource)].filter(name => wanted?.has(name) ?? true).sort()
  return names.map(name => entryOf(resource, name, options))
}

function* namesOf(resource: DescribedResource): Generator<string> {
  if (resource.type === 'broker-default') {
    yield* resource.broker.layers.dynamicDefault.keys()
    return
  }
  const table = tableOfResource(resource)
  for (const definition of table.values()) if (definition.internal !== true) yield definition.name
  for (const name of ownNames(resource)) if (!isListed(table.get(name))) yield name
}

const isListed = (definition: ConfigDefinition | undefined): boolean =>
  definition !== undefined && definition.internal !== true

function ownNames(resource: Exclude<DescribedResource, { type: 'broker-default' }>): Iterable<string> {
  if (resource.type !== 'broker')
    return [...resource.overrides.keys()].filter(name => tableOfResource(resource).has(name))
  const { dynamic, dynamicDefault, fixed } = resource.broker.layers
  return new Set([...dynamic.keys(), ...dynamicDefault.keys(), ...fixed.keys()])
}

function tableOfResource(resource: DescribedResource) {
  switch (resource.type) {
    case 'topic':
      return TOPIC_CONFIGS
    case 'group':
      return GROUP_CONFIGS
    case 'client-metrics':
      return CLIENT_METRICS_CONFIGS
    default:
      return BROKER_CONFIGS
  }
}

function entryOf(resource: DescribedResource, name: string, options: DescribeOptions): ConfigEntry {
  const ofBroker = resource.type === 'broker' || resource.type === 'broker-default'
  const definition = ofBroker ? brokerDefinition(name) : tableOfResource(resource).get(name)
  // Nobody can know whether a key of a plug-in is a secret, so it is treated as one.
  const isSensitive = definition === undefined || definition.type === 'PASSWORD'
  const synonyms = synonymsOf(resource, name, definition).map(synonym =>
    isSensitive ? { ...synonym, value: null } : synonym,
  )
  const source = synonyms[0]?.source ?? CONFIG_SOURCE.DEFAULT
  return {
    name,
    value: isSensitive ? null : shownValue(resource, name, definition),
    readOnly: ofBroker && (BROKER_CONFIGS.get(name)?.update ?? 'read-only') === 'read-only',
    isDefault: source === CONFIG_SOURCE.DEFAULT,
    configSource: source,
    isSensitive,
    synonyms: options.includeSynonyms === true ? synonyms : [],
    configType: definition === undefined ? CONFIG_TYPE_UNKNOWN : CONFIG_TYPE_CODES[definition.type],
    documentation: options.includeDocumentation === true ? (definition?.documentation ?? null) : null,
  }
}

function shownValue(
  resource: DescribedResource,
  name: string,
  definition: ConfigDefinition | undefined,
): string | null {
  const text = givenText(resource, name, definition)
  return text === null || definition === undefined ? text : normalText(definition, text)
}

function givenText(resource: DescribedResource, name: string, definition: ConfigDefinition | undefined): string | null {
  switch (resource.type) {
    case 'broker':
      return resource.broker.text(name)
    case 'broker-default':
      return resource.broker.layers.dynamicDefault.get(name) ?? null
    case 'client-metrics':
      return resource.overrides.get(name) ?? definition?.default ?? null
    case 'topic':
      return definition === undefined ? null : effectiveTopicText(definition, resource.overrides, resource.broker)
    case 'group': {
      const synonym = definition?.synonyms?.[0]
      const inherited = synonym === undefined ? undefined : resource.broker.text(synonym)
      return resource.overrides.get(name) ?? inherited ?? definition?.default ?? null
    }
  }
}

function normalText(definition: ConfigDefinition, text: string): string {
  const parsed = checkValue(definition, text)
  return 'text' in parsed ? parsed.text : text
}

function synonymsOf(
  resource: DescribedResource,
  name: string,
  definition: ConfigDefinition | undefined,
): ConfigSynonym[] {
  switch (resource.type) {
    case 'broker':
      return brokerSynonyms(resource.broker, name)
    case 'broker-default':
      return brokerSynonyms(resource.broker, name).filter(
        ({ source }) => source === CONFIG_SOURCE.DYNAMIC_DEFAULT_BROKER,
      )
    case 'topic':
      return [...ownSynonym(resource, name, CONFIG_SOURCE.TOPIC), ...inheritedSynonyms(resource.broker, definition)]
    case 'group': {
      const inherited = inheritedSynonyms(resource.broker, definition)
      if (inherited.length === 0 && definition?.synonyms === undefined && typeof definition?.default === 'string')
        inherited.push({ name, value: definition.default, source: CONFIG_SOURCE.DEFAULT })
      return [...ownSynonym(resource, name, CONFIG_SOURCE.GROUP), ...inherited]
    }
    case 'client-metrics':
      return ownSynonym(resource, name, CONFIG_SOURCE.CLIENT_METRICS)
  }
}

function ownSynonym(
  resource: Extract<DescribedResource, { overrides: Overrides }>,
  name: string,
  source: number,
): ConfigSynonym[] {
  return resource.overrides.has(name)
    ? [{ name, value: shownValue(resource, name, tableOfResource(resource).get(name)), source }]
    : []
}

function inheritedSynonyms(broker: BrokerConfigs, definition: ConfigDefinition | undefined): ConfigSynonym[] {
  const first = definition?.synonyms?.[0]
  return first === undefined ? [] : brokerSynonyms(broker, first)
}

/**
 * Every place that sets a broker key or one of its chain, by precedence. As in Kafka, what comes before the key's own
 * first mention is left out, and with it the whole list when only another key of the chain is set.
 */
function brokerSynonyms(broker: BrokerConfigs, name: string): ConfigSynonym[] {
  const { dynamic, dynamicDefault, fixed } = broker.layers
  const chain = broker.chain(name)
  const all: ConfigSynonym[] = []
  const add = (layer: { get(name: string): string | null | undefined }, source: number) => {
    for (const key of chain) {
      const value = layer.get(key)
      if (value !== undefined && value !== null) all.push({ name: key, value, source })
    }
  }
  add(dynamic, CONFIG_SOURCE.DYNAMIC_BROKER)
  add(dynamicDefault, CONFIG_SOURCE.DYNAMIC_DEFAULT_BROKER)
  add(fixed, CONFIG_SOURCE.STATIC_BROKER)
  add({ get: key => BROKER_CONFIGS.get(key)?.default }, CONFIG_SOURCE.DEFAULT)
  const from = all.findIndex(synonym => synonym.name === name)
  return from === -1 ? [] : all.slice(from)
}
