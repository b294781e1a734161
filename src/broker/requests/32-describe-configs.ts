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
    handle(request) {
      const { resources, includeSynonyms, includeDocumentation } = request
      const allOfAType = resources.every(({ resourceType }) => TYPES.has(resourceType))
      // One that is named a thousand times is described once.
      const described = new Map<string, Result>()
      const describeAsked = (asked: Resource): Result => {
        const { resourceType, resourceName, configurationKeys } = asked
        const found = !allOfAType ? OF_NO_TYPE : described.size < DESCRIBED_MAX ? resourceOf(broker, asked) : TOO_MANY
        if ('error' in found) {
          const { error, message } = found
          return { errorCode: ErrorCode[error], errorMessage: message, resourceType, resourceName, configs: [] }
        }
        const configs = describe(found, { keys: configurationKeys, includeSynonyms, includeDocumentation })
        return { errorCode: ErrorCode.NONE, errorMessage: '', resourceType, resourceName, configs }
      }
      const results = resources.map(asked => {
        const key = JSON.stringify(asked)
        const result = described.get(key) ?? describeAsked(asked)
        described.set(key, result)
        return result
      })
      return { results }
    },
  })
}

type Resource = DescribeConfigsRequest['resources'][number]
type Result = NonNullable<InputOf<typeof DescribeConfigsResponse>['results']>[number]

const TYPES: ReadonlySet<number> = new Set(Object.values(CONFIG_RESOURCE))
/** Some tens of microseconds each: what one request may keep the loop from others. */
const DESCRIBED_MAX = 20_000
const TOO_MANY = {
  error: 'INVALID_REQUEST',
  message: `one request describes at most ${DESCRIBED_MAX} resources; ask for the others in another`,
} as const
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
