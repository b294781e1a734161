import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Broker } from '../broker.ts'

/** Who looks for a controller asks brokers too, and goes on to the next one after some seconds. */
const PATIENCE_MS = 1000

/** DescribeQuorum (55), versions 0-2. Asked of the active controller, which alone knows. */
export function describeQuorum(broker: Broker): ServedApi {
  return serve({
    api: API.DescribeQuorum,
    handle: (request, call) =>
      broker.forwarding.forward(API.DescribeQuorum, call, request, errorCode => ({ errorCode }), {
        patienceMs: PATIENCE_MS,
      }),
  })
}
