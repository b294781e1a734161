import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Broker } from '../broker.ts'
import { CLUSTER_OPERATIONS } from './authorized-operations.ts'

const BROKERS = 1

/** DescribeCluster (60), versions 0-2. The brokers as this client reaches them; v2 names fenced ones too. */
export function describeCluster(broker: Broker): ServedApi {
  return serve({
    api: API.DescribeCluster,
    handle(request, call) {
      const { clusterId } = broker
      if (request.endpointType !== BROKERS) {
        const code =
          call.apiVersion === 0 || request.endpointType !== 2 ? 'UNSUPPORTED_ENDPOINT_TYPE' : 'MISMATCHED_ENDPOINT_TYPE'
        const errorMessage = 'this is a broker; controllers describe themselves on their own listener'
        return { errorCode: ErrorCode[code], errorMessage, clusterId: '' }
      }
      const endpoints = request.includeFencedBrokers
        ? broker.registeredEndpoints(call.caller)
        : broker.endpointsFor(call.caller)
      const brokers = endpoints.map(({ nodeId, ...rest }) => ({ brokerId: nodeId, ...rest }))
      return {
        clusterId,
        controllerId: broker.anyLiveBroker(),
        brokers,
        ...(request.includeClusterAuthorizedOperations && { clusterAuthorizedOperations: CLUSTER_OPERATIONS }),
      }
    },
  })
}
