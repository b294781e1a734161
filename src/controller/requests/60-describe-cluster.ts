import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import { ErrorCode } from '#protocol/errors.ts'
import type { Controller } from '../controller.ts'

const CONTROLLERS = 2

/**
 * DescribeCluster (60), versions 1-2 here: which controllers there are (KIP-919). Asked for brokers, which is all that v0
 * can ask for, a controller says MISMATCHED_ENDPOINT_TYPE.
 */
export function describeCluster(controller: Controller): ServedApi {
  return serve({
    api: API.DescribeCluster,
    handle({ endpointType }) {
      if (endpointType !== CONTROLLERS) {
        const isBrokers = endpointType === 1
        return {
          errorCode: isBrokers ? ErrorCode.MISMATCHED_ENDPOINT_TYPE : ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
          errorMessage: isBrokers
            ? 'The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of type BROKER'
            : `Unsupported endpoint type ${endpointType}`,
        }
      }
      const { endpoint } = controller
      const brokers = [...(controller.image?.controllers.values() ?? [])].flatMap(({ id, endPoints }) => {
        const found = id === controller.nodeId ? endpoint : endPoints.find(({ name }) => name === endpoint.name)
        return found === undefined ? [] : [{ brokerId: id, host: found.host, port: found.port }]
      })
      return {
        errorCode: ErrorCode.NONE,
        errorMessage: null,
        endpointType,
        clusterId: controller.clusterId ?? '',
        controllerId: controller.leaderId,
        brokers,
      }
    },
  })
}
