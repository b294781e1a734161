import { CONFIG_RESOURCE } from '#core/metadata/config-resource.ts'
import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Broker } from '../broker.ts'

/** ListConfigResources (74), versions 0-1. v0 lists client metrics subscriptions only; v1 what is asked for, or all. */
export function listConfigResources(broker: Broker): ServedApi {
  return serve({
    api: API.ListConfigResources,
    handle(request, call) {
      const { TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP } = CONFIG_RESOURCE
      const all = [TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP]
      const asked = call.apiVersion === 0 ? [CLIENT_METRICS] : request.resourceTypes
      const types = new Set<number>(asked.length === 0 ? all : asked)
      if ([...types].some(type => !all.includes(type as (typeof all)[number]))) {
        return { errorCode: ErrorCode.UNSUPPORTED_VERSION }
      }
      const { image } = broker.metadata
      const named = (resourceType: number, names: Iterable<string>) =>
        types.has(resourceType) ? [...names].map(resourceName => ({ resourceName, resourceType })) : []
      const configured = (type: number) =>
        [...image.configs()].filter(resource => resource.type === type).map(({ name }) => name)
      const brokers = [...image.brokers.keys()].map(String)
      return {
        configResources: [
          ...named(GROUP, configured(GROUP)),
          ...named(CLIENT_METRICS, configured(CLIENT_METRICS)),
          ...named(BROKER_LOGGER, brokers),
          ...named(BROKER, brokers),
          ...named(TOPIC, image.topicIds.keys()),
        ],
      }
    },
  })
}
