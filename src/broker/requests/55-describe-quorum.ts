import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Broker } from '../broker.ts'

/** DescribeQuorum (55), versions 0-2. Asked of the active controller, which alone knows. */
export function describeQuorum(broker: Broker): ServedApi {
  return serve({
    api: API.DescribeQuorum,
    handle: (request, call) => broker.forward(API.DescribeQuorum, call, request, errorCode => ({ errorCode })),
  })
}
