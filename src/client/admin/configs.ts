import type { NodeId } from '#base/units.ts'
import { DescribeConfigsRequest, DescribeConfigsResponse } from '#protocol/messages/describe-configs.ts'
import {
  IncrementalAlterConfigsRequest,
  IncrementalAlterConfigsResponse,
} from '#protocol/messages/incremental-alter-configs.ts'
import type { Client } from '../client.ts'
import { throwIfError } from '../errors.ts'

const DESCRIBE_CONFIGS = { request: DescribeConfigsRequest, response: DescribeConfigsResponse }
const ALTER_CONFIGS = { request: IncrementalAlterConfigsRequest, response: IncrementalAlterConfigsResponse }

const RESOURCE_TYPES = { topic: 2, broker: 4, 'broker-logger': 8, 'client-metrics': 16, group: 32 } as const
export type ConfigResourceType = keyof typeof RESOURCE_TYPES

export interface ConfigResource {
  readonly type: ConfigResourceType
  /** A topic's or group's name, a broker's id; '' for the default of all brokers. */
  readonly name: string
}

const SOURCES: Record<number, string> = {
  1: 'topic',
  2: 'broker',
  3: 'cluster',
  4: 'static',
  5: 'default',
  6: 'logger',
  7: 'client-metrics',
  8: 'group',
}
const TYPES = ['unknown', 'boolean', 'string', 'int', 'short', 'long', 'double', 'list', 'class', 'password']

export interface ConfigEntry {
  readonly name: string
  /** Null for what is secret, and for what has no value. */
  readonly value: string | null
  /** Where the value comes from: topic, broker, cluster, static (the broker's file), default, ... */
  readonly source: string
  readonly type: string
  readonly readOnly: boolean
  readonly sensitive: boolean
  readonly documentation: string | null
  /** The values that stand behind this one, the one that counts first. */
  readonly synonyms: readonly { readonly name: string; readonly value: string | null; readonly source: string }[]
}

/** The settings of a resource: all of them, or those named. */
export async function describeConfigs(
  client: Client,
  resource: ConfigResource,
  options: { readonly names?: readonly string[]; readonly documentation?: boolean } = {},
): Promise<ConfigEntry[]> {
  const answer = await client.ask(
    recipient(resource),
    DESCRIBE_CONFIGS,
    {
      resources: [
        {
          resourceType: RESOURCE_TYPES[resource.type],
          resourceName: resource.name,
          configurationKeys: options.names ?? null,
        },
      ],
      includeSynonyms: true,
      includeDocumentation: options.documentation ?? false,
    },
    {
      check: ({ results }) => throwIfError(results[0]?.errorCode ?? 0, shown(resource), results[0]?.errorMessage),
    },
  )
  return (answer.results[0]?.configs ?? [])
    .map(entry => ({
      name: entry.name,
      value: entry.value,
      source: SOURCES[entry.configSource] ?? 'unknown',
      type: TYPES[entry.configType] ?? 'unknown',
      readOnly: entry.readOnly,
      sensitive: entry.isSensitive,
      documentation: entry.documentation,
      synonyms: entry.synonyms.map(({ name, value, source }) => ({
        name,
        value,
        source: SOURCES[source] ?? 'unknown',
      })),
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** How many topics one request asks for: an answer stays small. */
const TOPICS_PER_REQUEST = 1000

/** Some settings of many topics: by topic, then by name. Topics that are gone meanwhile are left out. */
export async function topicSettings(
  client: Client,
  topics: readonly string[],
  names: readonly string[],
): Promise<Map<string, Map<string, string | null>>> {
  const settings = new Map<string, Map<string, string | null>>()
  for (let from = 0; from < topics.length; from += TOPICS_PER_REQUEST) {
    const resources = topics.slice(from, from + TOPICS_PER_REQUEST).map(resourceName => ({
      resourceType: RESOURCE_TYPES.topic,
      resourceName,
      configurationKeys: names,
    }))
    const { results } = await client.ask('first', DESCRIBE_CONFIGS, { resources })
    for (const { errorCode, resourceName, configs } of results) {
      if (errorCode === 0) settings.set(resourceName, new Map(configs.map(({ name, value }) => [name, value])))
    }
  }
  return settings
}

export type ConfigChange =
  | { readonly name: string; readonly op: 'set' | 'append' | 'subtract'; readonly value: string }
  | { readonly name: string; readonly op: 'delete' }

const OPERATIONS = { set: 0, delete: 1, append: 2, subtract: 3 } as const

/** Changes single settings and leaves the others as they are (KIP-339). */
export async function alterConfigs(
  client: Client,
  resource: ConfigResource,
  changes: readonly ConfigChange[],
  options: { readonly validateOnly?: boolean } = {},
): Promise<void> {
  await client.ask(
    recipient(resource),
    ALTER_CONFIGS,
    {
      resources: [
        {
          resourceType: RESOURCE_TYPES[resource.type],
          resourceName: resource.name,
          configs: changes.map(change => ({
            name: change.name,
            configOperation: OPERATIONS[change.op],
            value: change.op === 'delete' ? null : change.value,
          })),
        },
      ],
      validateOnly: options.validateOnly ?? false,
    },
    {
      check: ({ responses }) => throwIfError(responses[0]?.errorCode ?? 0, shown(resource), responses[0]?.errorMessage),
    },
  )
}

/** What concerns one broker only that broker can say. */
function recipient({ type, name }: ConfigResource): NodeId | 'any' {
  return (type === 'broker' || type === 'broker-logger') && /^\d+$/.test(name) ? Number(name) : 'any'
}

function shown({ type, name }: ConfigResource): string {
  return name === '' ? `the default of all ${type}s` : `${type} "${name}"`
}
