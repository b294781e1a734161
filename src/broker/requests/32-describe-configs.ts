import { type DescribedResource, describe } from '#core/config/resolve.ts'
import { CONFIG_RESOURCE } from '#core/metadata/config-resource.ts'
import { topicNameProblem } from '#core/metadata/topic-name.ts'
import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode, type ErrorName } from '#protocol/errors.ts'
import type { DescribeConfigsRequest, DescribeConfigsResponse } from '#protocol/messages/describe-configs.ts'
import type { InputOf } from '#protocol/schema.ts'
import type { Broker } from '../broker.ts'

/**
 * DescribeConfigs (32), versions 1-4. Every value with its type, source and what it overrides.
 * - No keys, or an empty list, ask for all.
 * - One resource of a type that there is not makes the whole request INVALID_REQUEST.
 * - A broker is described by itself; the broker without a name is what holds for the whole cluster.
 */
export function describeConfigs(broker: Broker): ServedApi {
  return serve({
    api: API.DescribeConfigs,
    async handle(request) {
      const pieces = broker.turns.pieces()
      const { resources, includeSynonyms, includeDocumentation } = request
      const allOfAType = resources.every(({ resourceType }) => TYPES.has(resourceType))
      // One that is named a thousand times is described once.
      const described = new Map<string, Result>()
      let entries = 0
      const describeAsked = (asked: Resource): Result => {
        const { resourceType, resourceName, configurationKeys } = asked
        if ((configurationKeys?.length ?? 0) > KEYS_MAX) {
          const errorMessage = `a resource is asked for at most ${KEYS_MAX} keys`
          return { errorCode: ErrorCode.INVALID_REQUEST, errorMessage, resourceType, resourceName, configs: [] }
        }
        const found = !allOfAType ? OF_NO_TYPE : entries < ENTRIES_MAX ? resourceOf(broker, asked) : TOO_MANY
        if ('error' in found) {
          const { error, message } = found
          return { errorCode: ErrorCode[error], errorMessage: message, resourceType, resourceName, configs: [] }
        }
        const configs = describe(found, { keys: configurationKeys, includeSynonyms, includeDocumentation })
        return { errorCode: ErrorCode.NONE, errorMessage: '', resourceType, resourceName, configs }
      }
      const results: Result[] = []
      for (const asked of resources) {
        const wait = pieces.next(RESOURCE_PIECES)
        if (wait) await wait
        const key = keyOf(asked)
        const before = entries < ENTRIES_MAX ? described.get(key) : undefined
        const result = before ?? describeAsked(asked)
        entries += result.configs?.length ?? 0
        described.set(key, result)
        results.push(result)
      }
      return { results }
    },
  })
}

type Resource = DescribeConfigsRequest['resources'][number]
/** Keys beyond what is looked at count for nothing. */
const keyOf = ({ configurationKeys, ...rest }: Resource) =>
  JSON.stringify([rest, (configurationKeys?.length ?? 0) > KEYS_MAX ? KEYS_MAX : configurationKeys])
type Result = NonNullable<InputOf<typeof DescribeConfigsResponse>['results']>[number]

const TYPES: ReadonlySet<number> = new Set(Object.values(CONFIG_RESOURCE))
/** Settings in one answer, also of what is named repeatedly: those of some 12,000 topics, in some hundred bytes each. */
const ENTRIES_MAX = 400_000
/** There are some hundred. */
const KEYS_MAX = 1000
const TOO_MANY = {
  error: 'INVALID_REQUEST',
  message: `one request is answered with at most ${ENTRIES_MAX} settings; ask for the other resources in another`,
} as const
/** What describing a resource takes, in pieces of a turn. */
const RESOURCE_PIECES = 16
const OF_NO_TYPE = { error: 'INVALID_REQUEST', message: 'a resource is of a type that there is not' } as const

function resourceOf(
  broker: Broker,
  { resourceType: type, resourceName: name }: Resource,
): DescribedResource | { readonly error: ErrorName; readonly message: string } {
  const { image } = broker.metadata
  switch (type) {
    case CONFIG_RESOURCE.TOPIC: {
      const problem = topicNameProblem(name)
      if (problem !== undefined)
        return { error: 'INVALID_TOPIC_EXCEPTION', message: `Topic name is invalid: ${problem}` }
      if (image.topicByName(name) === undefined) {
        return { error: 'UNKNOWN_TOPIC_OR_PARTITION', message: `there is no topic ${name}` }
      }
      return { type: 'topic', overrides: image.config(type, name), broker: broker.configs }
    }
    case CONFIG_RESOURCE.BROKER:
      if (name === '') return { type: 'broker-default', broker: broker.configs }
      if (name === String(broker.nodeId)) return { type: 'broker', broker: broker.configs }
      return { error: 'INVALID_REQUEST', message: `this is broker ${broker.nodeId}; ask broker ${name} itself` }
    case CONFIG_RESOURCE.GROUP:
      if (name === '') return { error: 'INVALID_REQUEST', message: 'a group has a name' }
      return { type: 'group', overrides: image.config(type, name), broker: broker.configs }
    case CONFIG_RESOURCE.CLIENT_METRICS:
      if (name === '') return { error: 'INVALID_REQUEST', message: 'a client metrics subscription has a name' }
      return { type: 'client-metrics', overrides: image.config(type, name) }
    default:
      return { error: 'INVALID_REQUEST', message: `configurations of resource type ${type} cannot be described` }
  }
}
