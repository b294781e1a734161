import { failed } from '#core/metadata/answer.ts'
import { type ServedApi, serve } from '#network/service.ts'
import { API } from '#protocol/apis.ts'
import type { Broker } from '../broker.ts'

/** ListPartitionReassignments (46), version 0. Asked of the active controller, so that what was begun is seen at once. */
export function listPartitionReassignments(broker: Broker): ServedApi {
  return serve({
    api: API.ListPartitionReassignments,
    handle: (request, call) =>
      broker.forwarding.forward(
        API.ListPartitionReassignments,
        call,
        request,
        errorCode => ({ ...failed(errorCode), topics: [] }),
        { patienceMs: request.timeoutMs },
      ),
  })
}
